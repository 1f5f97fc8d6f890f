/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/socket.h>

#include "base/macro.h"
#include "base/text.h"
#include "wire/dns-internal.h"

#define OPT_LEN        11   /* without options */
#define ERROR_LEN      6    /* code and length of an option, and the info code of an extended error */
#define ERROR_TEXT_MAX 255  /* a limit of ours */
#define UDP_SIZE_OURS  1232 /* no fragments on any path; what resolvers agreed on in 2020 */

#define POINTER_MAX 0x3fff

/* A name as labels. Return: its octets; -EINVAL; -ENOSPC. */
static int put_name(const char *name, uint8_t *buf, size_t size)
{
        size_t len = 0;

        while (*name) {
                size_t label = strcspn(name, ".");

                if (label == 0 || label > DNS_LABEL_MAX || (name[label] == '.' && name[label + 1] == '\0') ||
                    len + 1 + label + 1 > DNS_NAME_WIRE_MAX)
                        return -EINVAL;
                if (len + 1 + label + 1 > size)
                        return -ENOSPC;
                buf[len] = (uint8_t)label;
                memcpy(buf + len + 1, name, label);
                len += 1 + label;
                name += label + (name[label] == '.');
        }
        if (size < len + 1)
                return -ENOSPC;
        buf[len] = 0;
        return (int)len + 1;
}

/* An OPT record without options. */
static void put_opt(uint8_t *p, uint16_t rcode, uint16_t options_len)
{
        memset(p, 0, OPT_LEN);
        put_be16(p + 1, DNS_TYPE_OPT);
        put_be16(p + 3, UDP_SIZE_OURS);
        p[5] = (uint8_t)(rcode >> 4);
        put_be16(p + 9, options_len);
}

int dns_query_put(uint8_t *buf, size_t size, uint16_t id, const char *name, uint16_t type, uint16_t udp_size)
{
        size_t len = DNS_HEADER_LEN;
        int r;

        if (size < DNS_HEADER_LEN)
                return -ENOSPC;
        memset(buf, 0, DNS_HEADER_LEN);
        put_be16(buf, id);
        put_be16(buf + 2, DNS_FLAG_RECURSION_DESIRED);
        put_be16(buf + 4, 1);
        r = put_name(name, buf + len, size - len);
        if (r < 0)
                return r;
        len += (size_t)r;
        if (size - len < 4 + (udp_size > 0 ? OPT_LEN : 0))
                return -ENOSPC;
        put_be16(buf + len, type);
        put_be16(buf + len + 2, DNS_CLASS_IN);
        len += 4;
        if (udp_size > 0) {
                put_opt(buf + len, 0, 0);
                put_be16(buf + len + 3, udp_size);
                put_be16(buf + 10, 1);
                len += OPT_LEN;
        }
        return (int)len;
}

void dns_writer_begin(struct dns_writer *w, uint8_t *buf, size_t size, const struct dns_message *query)
{
        uint16_t flags = DNS_FLAG_RESPONSE | DNS_FLAG_RECURSION_AVAILABLE;

        *w = (struct dns_writer){.buf = buf, .size = size, .len = DNS_HEADER_LEN, .owner_at = DNS_HEADER_LEN};
        flags |= (uint16_t)(query->opcode << DNS_OPCODE_SHIFT);
        if (query->recursion_desired)
                flags |= DNS_FLAG_RECURSION_DESIRED;
        if (query->checking_disabled)
                flags |= DNS_FLAG_CHECKING_DISABLED;
        memset(buf, 0, DNS_HEADER_LEN);
        put_be16(buf, query->id);
        put_be16(buf + 2, flags);
        if (query->question.len > 0) {
                put_be16(buf + 4, 1);
                memcpy(buf + w->len, query->question.data, query->question.len);
                w->len += query->question.len;
        }
        w->reserved = query->edns.is_present ? OPT_LEN : 0;
}

/* Writes a record of @data_len octets up to its data, for which there is room then. Return: where the data goes; NULL
 * where it does not fit. */
static uint8_t *put_record(struct dns_writer *w, uint16_t type, uint32_t ttl_s, size_t data_len)
{
        size_t len = 12 + data_len;
        uint8_t *p = w->buf + w->len;

        if (w->is_full || w->owner_at > POINTER_MAX || w->size - w->reserved < w->len ||
            len > w->size - w->reserved - w->len) {
                w->is_full = true;
                return NULL;
        }
        put_be16(p, (uint16_t)(0xc000 | w->owner_at));
        put_be16(p + 2, type);
        put_be16(p + 4, DNS_CLASS_IN);
        put_be32(p + 6, ttl_s);
        put_be16(p + 10, (uint16_t)data_len);
        w->len += len;
        w->n_answers++;
        return p + 12;
}

static void put_name_record(struct dns_writer *w, uint16_t type, const char *target, uint32_t ttl_s)
{
        uint8_t name[DNS_NAME_WIRE_MAX], *data;
        int len = put_name(target, name, sizeof(name));

        if (len < 0) {
                w->is_full = true;
                return;
        }
        data = put_record(w, type, ttl_s, (size_t)len);
        if (!data)
                return;
        memcpy(data, name, (size_t)len);
        if (type == DNS_TYPE_CNAME)
                w->owner_at = (size_t)(data - w->buf);
}

void dns_writer_cname(struct dns_writer *w, const char *target, uint32_t ttl_s)
{
        put_name_record(w, DNS_TYPE_CNAME, target, ttl_s);
}

void dns_writer_ptr(struct dns_writer *w, const char *target, uint32_t ttl_s)
{
        put_name_record(w, DNS_TYPE_PTR, target, ttl_s);
}

void dns_writer_address(struct dns_writer *w, int family, const uint8_t *address, uint32_t ttl_s)
{
        size_t len = family == AF_INET ? 4 : 16;
        uint8_t *data = put_record(w, family == AF_INET ? DNS_TYPE_A : DNS_TYPE_AAAA, ttl_s, len);

        if (data)
                memcpy(data, address, len);
}

/* The octets of an extended error that fit, text cut at a character. */
static size_t put_error(uint8_t *p, size_t room, const struct dns_end *end)
{
        size_t len = end->error_text ? MIN(strlen(end->error_text), (size_t)ERROR_TEXT_MAX) : 0;

        if (!end->has_error || room < ERROR_LEN)
                return 0;
        len = MIN(len, room - ERROR_LEN);
        if (len > 0) {
                len = text_utf8_prefix(end->error_text, len);
                memcpy(p + ERROR_LEN, end->error_text, len);
        }
        put_be16(p, DNS_OPTION_EXTENDED_ERROR);
        put_be16(p + 2, (uint16_t)(2 + len));
        put_be16(p + 4, (uint16_t)end->error);
        return ERROR_LEN + len;
}

size_t dns_writer_finish(struct dns_writer *w, const struct dns_message *query, const struct dns_end *end)
{
        uint16_t flags = get_be16(w->buf + 2);

        if (w->is_full) {
                flags |= DNS_FLAG_TRUNCATED;
                w->len = DNS_HEADER_LEN + query->question.len;
                w->n_answers = 0;
        }
        put_be16(w->buf + 2, (uint16_t)(flags | (end->rcode & DNS_RCODE_MASK)));
        put_be16(w->buf + 6, w->n_answers);
        if (query->edns.is_present) {
                size_t options = put_error(w->buf + w->len + OPT_LEN, w->size - w->len - OPT_LEN, end);

                put_opt(w->buf + w->len, (uint16_t)end->rcode, (uint16_t)options);
                put_be16(w->buf + 10, 1);
                w->len += OPT_LEN + options;
        }
        return w->len;
}
