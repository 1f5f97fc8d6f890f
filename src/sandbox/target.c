/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/target.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/number.h"

const char *const transport_names[] = {[TRANSPORT_TCP] = "tcp", [TRANSPORT_UDP] = "udp", NULL};

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void target_address_normalise(struct ip_prefix *address)
{
        if (address->family != AF_INET6 || address->length_bits < 96 ||
            memcmp(address->bytes, mapped, sizeof(mapped)) != 0)
                return;
        address->family = AF_INET;
        address->length_bits -= 96;
        memmove(address->bytes, address->bytes + 12, 4);
        memset(address->bytes + 4, 0, 12);
}

bool target_address_is_own(const struct ip_prefix *address)
{
        static const uint8_t zeros[15];

        if (address->family == AF_INET)
                return address->bytes[0] == 127 || memcmp(address->bytes, zeros, 4) == 0;
        return memcmp(address->bytes, zeros, 15) == 0 && address->bytes[15] <= 1;
}

struct ip_prefix target_address_of(const struct host_name *host)
{
        struct ip_prefix address = {0};

        if (host->kind == HOST_NAME_IS_NAME)
                return address;
        address.family = host->kind == HOST_NAME_IS_V4 ? AF_INET : AF_INET6;
        address.length_bits = address.family == AF_INET ? 32 : 128;
        memcpy(address.bytes, host->address, address.length_bits / 8);
        target_address_normalise(&address);
        return address;
}

/* What stands before "://", and what is known of its flows. */
static const struct scheme {
        const char *name;
        enum transport transport;
        uint16_t port; /* where none is written; 0: one has to be */
} schemes[] = {
        {"tcp", TRANSPORT_TCP, 0},
        {"udp", TRANSPORT_UDP, 0},
        {"http", TRANSPORT_TCP, 80},
        {"https", TRANSPORT_TCP, 443},
};

static int refuse(const char *text, const char *why, struct err *err)
{
        return err_set(err, ERR_USAGE, EINVAL,
                       "\"%.100s\" is no target: %s; expected one such as example.org:443, udp://192.0.2.1:53 or "
                       "https://example.org/",
                       text, why);
}

static const struct scheme *scheme_find(const char *text, size_t len)
{
        for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
                if (strlen(schemes[i].name) == len && strncmp(schemes[i].name, text, len) == 0)
                        return &schemes[i];
        return NULL;
}

/* Splits "HOST:PORT" or "[V6]:PORT". @ret_port is empty where there is no port. Return: false for what is neither. */
static bool split(struct span authority, struct span *ret_host, struct span *ret_port)
{
        const uint8_t *start = authority.data, *end = start + authority.len, *after;

        if (authority.len > 0 && *start == '[') {
                after = memchr(start, ']', authority.len);
                after = after ? after + 1 : NULL;
        } else {
                after = memchr(start, ':', authority.len);
                after = after ? after : end;
                if (after < end && memchr(after + 1, ':', (size_t)(end - after - 1)))
                        return false; /* IPv6 without brackets: where the port begins is not said */
        }
        if (!after || (after < end && *after != ':'))
                return false;
        *ret_host = span_of(start, (size_t)(after - start));
        *ret_port = after < end ? span_of(after + 1, (size_t)(end - after - 1)) : span_of(end, 0);
        return true;
}

static void describe_flow(const struct scheme *scheme, const struct host_name *host, struct target *target)
{
        if (scheme->port == 443) {
                target->sni = target->name ? target->name : "";
                target->http_host = ""; /* encrypted: nobody on the way sees it */
        } else if (scheme->port == 80) {
                target->sni = "";
                target->http_host = host->text;
        }
}

int target_parse(const char *text, struct host_name *host, struct target *ret, struct err *err)
{
        const char *mark = strstr(text, "://"), *rest = mark ? mark + 3 : text;
        const struct scheme *scheme = mark ? scheme_find(text, (size_t)(mark - text)) : &schemes[0];
        struct target target = {0};
        struct span name, port;
        uint64_t number;

        if (!scheme)
                return refuse(text, "what stands before \"://\" is not tcp, udp, http or https", err);
        if (strchr(rest, '@'))
                return refuse(text, "it has a user part, which a policy does not know", err);
        if (scheme->port == 0 && rest[strcspn(rest, "/?#")] != '\0')
                return refuse(text, "something follows the port", err);
        if (!split(span_of(rest, strcspn(rest, "/?#")), &name, &port))
                return refuse(text, "it is not HOST:PORT (IPv6 stands in brackets)", err);
        if (host_name_parse(name, host) < 0)
                return refuse(text, "its host is neither a name nor an address", err);
        if (port.len == 0 && scheme->port == 0)
                return refuse(text, "its port is missing", err);
        number = scheme->port;
        if (port.len > 0 && (number_parse_u64(port, &number) < 0 || number == 0 || number > UINT16_MAX))
                return refuse(text, "its port is not a number from 1 to 65535", err);

        target.transport = scheme->transport;
        target.port = (uint16_t)number;
        target.address = target_address_of(host);
        target.name = host->kind == HOST_NAME_IS_NAME ? host->text : NULL;
        describe_flow(scheme, host, &target);
        *ret = target;
        return 0;
}

char *target_format(const struct target *target, char buf[static TARGET_TEXT])
{
        char address[INET6_ADDRSTRLEN] = "?";
        const char *host = target->name;
        bool is_v6 = !host && target->address.family == AF_INET6;

        if (!host && target->address.family != 0)
                inet_ntop(target->address.family, target->address.bytes, address, sizeof(address));
        snprintf(buf, TARGET_TEXT, "%s %s%s%s:%u", transport_names[target->transport], is_v6 ? "[" : "",
                 host ? host : address, is_v6 ? "]" : "", target->port);
        return buf;
}
