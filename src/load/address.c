/* SPDX-License-Identifier: Apache-2.0 */
#include "load/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>

#include "base/macro.h"
#include "base/number.h"

socklen_t address_len(const union address *address)
{
        return address->any.sa_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4);
}

uint16_t address_port(const union address *address)
{
        return ntohs(address->any.sa_family == AF_INET6 ? address->v6.sin6_port : address->v4.sin_port);
}

void address_set_port(union address *address, uint16_t port)
{
        if (address->any.sa_family == AF_INET6)
                address->v6.sin6_port = htons(port);
        else
                address->v4.sin_port = htons(port);
}

bool address_is_unspecified(const union address *address)
{
        if (address->any.sa_family == AF_INET6)
                return IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
        return address->any.sa_family == AF_INET && address->v4.sin_addr.s_addr == INADDR_ANY;
}

bool address_is_unicast(const union address *address)
{
        if (address_is_unspecified(address))
                return false;
        if (address->any.sa_family == AF_INET6)
                return !IN6_IS_ADDR_MULTICAST(&address->v6.sin6_addr);
        return address->any.sa_family == AF_INET && address->v4.sin_addr.s_addr != INADDR_BROADCAST &&
               !IN_MULTICAST(ntohl(address->v4.sin_addr.s_addr));
}

bool address_equal(const union address *a, const union address *b)
{
        if (a->any.sa_family != b->any.sa_family)
                return false;
        if (a->any.sa_family == AF_INET6)
                return a->v6.sin6_port == b->v6.sin6_port && a->v6.sin6_scope_id == b->v6.sin6_scope_id &&
                       IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
        return a->v4.sin_port == b->v4.sin_port && a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
}

char *address_format(const union address *address, char buf[static ADDRESS_TEXT])
{
        char host[INET6_ADDRSTRLEN + IF_NAMESIZE + 1], *end;

        if (address->any.sa_family != AF_INET6) {
                inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof(host));
                snprintf(buf, ADDRESS_TEXT, "%s:%u", host, address_port(address));
                return buf;
        }
        inet_ntop(AF_INET6, &address->v6.sin6_addr, host, INET6_ADDRSTRLEN);
        if (address->v6.sin6_scope_id != 0) {
                end = host + strlen(host);
                *end++ = '%';
                if (!if_indextoname(address->v6.sin6_scope_id, end))
                        snprintf(end, IF_NAMESIZE, "%u", address->v6.sin6_scope_id);
        }
        snprintf(buf, ADDRESS_TEXT, "[%s]:%u", host, address_port(address));
        return buf;
}

/* Splits "HOST:PORT" or "[HOST]:PORT"; a bare IPv6 address has several colons and no port. */
static int split_port(const char *text, uint16_t port, char host[static 256], uint16_t *ret_port, struct err *err)
{
        const char *colon = strrchr(text, ':'), *begin = text, *end = text + strlen(text);
        bool is_bracketed = text[0] == '[';
        uint64_t value = port;

        if (is_bracketed) {
                begin++;
                end = strchr(text, ']');
                if (!end || (end[1] != '\0' && end[1] != ':'))
                        return err_set(err, ERR_USAGE, EINVAL, "address %s has no matching bracket", text);
                colon = end[1] == ':' ? end + 1 : NULL;
        } else if (colon && strchr(text, ':') == colon) {
                end = colon;
        } else {
                colon = NULL;
        }
        if (colon && (number_parse_u64(span_of_text(colon + 1), &value) < 0 || value > UINT16_MAX))
                return err_set(err, ERR_USAGE, EINVAL, "port of address %s is not a number from 0 to 65535", text);
        if (end == begin || end - begin >= 256)
                return err_set(err, ERR_USAGE, EINVAL, "\"%s\" is not an address", text);
        memcpy(host, begin, (size_t)(end - begin));
        host[end - begin] = '\0';
        *ret_port = (uint16_t)value;
        return 0;
}

static int resolve(const char *text, uint16_t port, int family, int flags, union address *ret, struct err *err)
{
        struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_DGRAM, .ai_flags = flags}, *list;
        char host[256];
        int r;

        r = split_port(text, port, host, &port, err);
        if (r < 0)
                return r;
        /* getaddrinfo() takes "192.0.2" for 192.0.0.2. */
        if (host[strspn(host, "0123456789.")] == '\0' && inet_pton(AF_INET, host, &(struct in_addr){0}) != 1)
                return err_set(err, ERR_USAGE, EINVAL, "\"%s\" is not an IPv4 address, such as 192.0.2.1", host);
        r = getaddrinfo(host, NULL, &hints, &list);
        if (r != 0)
                return err_set(err, ERR_USAGE, EINVAL, "\"%s\" is not an address%s: %s", host,
                               flags & AI_NUMERICHOST ? "" : " or known name", gai_strerror(r));
        *ret = (union address){0};
        memcpy(ret, list->ai_addr, MIN((size_t)list->ai_addrlen, sizeof(*ret)));
        freeaddrinfo(list);
        address_set_port(ret, port);
        return 0;
}

int address_parse(const char *text, uint16_t port, union address *ret, struct err *err)
{
        return resolve(text, port, AF_UNSPEC, AI_NUMERICHOST, ret, err);
}

int address_resolve(const char *text, uint16_t port, int family, union address *ret, struct err *err)
{
        return resolve(text, port, family, 0, ret, err);
}

void address_prefix(const union address *address, struct ip_prefix *ret)
{
        struct ip_prefix prefix = {.family = address->any.sa_family};

        if (prefix.family == AF_INET6) {
                memcpy(prefix.bytes, &address->v6.sin6_addr, sizeof(address->v6.sin6_addr));
                prefix.length_bits = 128;
        } else {
                memcpy(prefix.bytes, &address->v4.sin_addr, sizeof(address->v4.sin_addr));
                prefix.length_bits = 32;
        }
        *ret = prefix;
}
