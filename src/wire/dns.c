/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/dns.h"

#include "base/macro.h"
#include "wire/dns-internal.h"

#define LABEL_POINTER 0xc0
#define JUMPS_MAX     127 /* of one name: as many as it can have labels */

static const char *const fault_names[N_DNS_FAULTS] = {
        [DNS_FAULT_NONE] = "none",     [DNS_FAULT_SHORT] = "short",       [DNS_FAULT_DIRECTION] = "direction",
        [DNS_FAULT_CUT] = "cut",       [DNS_FAULT_COUNT] = "count",       [DNS_FAULT_LABEL] = "label",
        [DNS_FAULT_LENGTH] = "length", [DNS_FAULT_POINTER] = "pointer",   [DNS_FAULT_DATA] = "data",
        [DNS_FAULT_OPT] = "opt",       [DNS_FAULT_TRAILING] = "trailing",
};

const char *dns_fault_name(enum dns_fault fault)
{
        return (unsigned)fault < N_DNS_FAULTS ? fault_names[fault] : "unknown";
}

const char *dns_rcode_name(unsigned rcode)
{
        static const char *const names[] = {
                [DNS_RCODE_NOERROR] = "NOERROR",   [DNS_RCODE_FORMERR] = "FORMERR", [DNS_RCODE_SERVFAIL] = "SERVFAIL",
                [DNS_RCODE_NXDOMAIN] = "NXDOMAIN", [DNS_RCODE_NOTIMP] = "NOTIMP",   [DNS_RCODE_REFUSED] = "REFUSED",
                [DNS_RCODE_BADVERS] = "BADVERS",
        };

        return rcode < ARRAY_SIZE(names) && names[rcode] ? names[rcode] : "OTHER";
}

static bool is_name_octet(uint8_t c)
{
        return c > ' ' && c < 0x7f && c != '.' && c != '\\';
}

/* Adds a label to a name of @len octets. Its length on the wire was checked, of which the text takes two less. */
static enum dns_fault add_label(struct span label, char *name, size_t *len)
{
        if (*len > 0)
                name[(*len)++] = '.';
        for (size_t i = 0; i < label.len; i++) {
                if (!is_name_octet(label.data[i]))
                        return DNS_FAULT_LABEL;
                name[(*len)++] = (char)label.data[i];
        }
        return DNS_FAULT_NONE;
}

/* Reads a name at *@at and moves *@at behind it. Each pointer has to lead before the part of the name that ends in it,
 * so that the way is finite: what is behind can only have been written earlier. @name NULL: nothing but a walk over it
 * (in records that nobody asks about, labels may hold any octet). */
static enum dns_fault read_name(struct span bytes, size_t *at, char *name)
{
        size_t here = *at, part = *at, len = 0, wire_len = 1;
        unsigned n_jumps = 0;
        enum dns_fault fault;
        struct span field;

        for (;;) {
                if (!span_sub(bytes, here, 1, &field))
                        return DNS_FAULT_CUT;
                if (field.data[0] == 0)
                        break;
                if (field.data[0] >= LABEL_POINTER) {
                        size_t to;

                        if (!span_sub(bytes, here, 2, &field))
                                return DNS_FAULT_CUT;
                        to = get_be16(field.data) & 0x3fff;
                        if (to >= part || to < DNS_HEADER_LEN || n_jumps == JUMPS_MAX)
                                return DNS_FAULT_POINTER;
                        if (n_jumps++ == 0)
                                *at = here + 2;
                        here = part = to;
                        continue;
                }
                if (field.data[0] & LABEL_POINTER)
                        return DNS_FAULT_LABEL;
                if (!span_sub(bytes, here + 1, field.data[0], &field))
                        return DNS_FAULT_CUT;
                wire_len += 1 + field.len;
                if (wire_len > DNS_NAME_WIRE_MAX)
                        return DNS_FAULT_LENGTH;
                fault = name ? add_label(field, name, &len) : DNS_FAULT_NONE;
                if (fault != DNS_FAULT_NONE)
                        return fault;
                here += 1 + field.len;
        }
        if (n_jumps == 0)
                *at = here + 1;
        if (name)
                name[len] = '\0';
        return DNS_FAULT_NONE;
}

static enum dns_fault read_header(struct span bytes, bool is_response, struct dns_message *m)
{
        uint16_t flags;

        if (bytes.len < DNS_HEADER_LEN)
                return DNS_FAULT_SHORT;
        flags = get_be16(bytes.data + 2);
        m->id = get_be16(bytes.data);
        m->is_response = flags & DNS_FLAG_RESPONSE;
        m->opcode = flags >> DNS_OPCODE_SHIFT & 0xf;
        m->is_truncated = flags & DNS_FLAG_TRUNCATED;
        m->recursion_desired = flags & DNS_FLAG_RECURSION_DESIRED;
        m->checking_disabled = flags & DNS_FLAG_CHECKING_DISABLED;
        m->rcode = flags & DNS_RCODE_MASK;
        m->bytes = bytes;
        if (m->is_response != is_response)
                return DNS_FAULT_DIRECTION;
        return DNS_FAULT_NONE;
}

static enum dns_fault read_question(struct dns_message *m, size_t *at)
{
        size_t start = *at;
        enum dns_fault fault = read_name(m->bytes, at, m->name);
        struct span field;

        if (fault != DNS_FAULT_NONE)
                return fault;
        if (!span_sub(m->bytes, *at, 4, &field))
                return DNS_FAULT_CUT;
        m->type = get_be16(field.data);
        m->class = get_be16(field.data + 2);
        *at += 4;
        m->question = span_of(m->bytes.data + start, *at - start);
        return DNS_FAULT_NONE;
}

/* A record's parts; data lies at @data_at, since names in it may point back. */
struct record {
        uint16_t type, class;
        uint32_t ttl;
        size_t data_at, data_len;
};

static enum dns_fault read_record(struct span bytes, size_t *at, char *name, struct record *ret)
{
        enum dns_fault fault = read_name(bytes, at, name);
        struct span field;

        if (fault != DNS_FAULT_NONE)
                return fault;
        if (!span_sub(bytes, *at, 10, &field))
                return DNS_FAULT_CUT;
        *ret = (struct record){
                .type = get_be16(field.data),
                .class = get_be16(field.data + 2),
                .ttl = get_be32(field.data + 4),
                .data_at = *at + 10,
                .data_len = get_be16(field.data + 8),
        };
        if (!span_sub(bytes, ret->data_at, ret->data_len, &field))
                return DNS_FAULT_CUT;
        *at = ret->data_at + ret->data_len;
        return DNS_FAULT_NONE;
}

static bool is_wanted(const struct record *record)
{
        return record->class == DNS_CLASS_IN && (record->type == DNS_TYPE_A || record->type == DNS_TYPE_AAAA ||
                                                 record->type == DNS_TYPE_CNAME || record->type == DNS_TYPE_PTR);
}

/* Reads an answer at *@at. @ret->type is 0 where it is of a type or class that is stepped over. */
static enum dns_fault read_answer(struct span bytes, size_t *at, struct dns_answer *ret)
{
        size_t start = *at, target_at;
        struct record record;
        enum dns_fault fault = read_record(bytes, at, NULL, &record);

        *ret = (struct dns_answer){0};
        if (fault != DNS_FAULT_NONE || !is_wanted(&record))
                return fault;
        fault = read_name(bytes, &start, ret->name);
        if (fault != DNS_FAULT_NONE)
                return fault;

        ret->type = record.type;
        ret->ttl_s = record.ttl > INT32_MAX ? 0 : record.ttl;
        target_at = record.data_at;
        if (record.type == DNS_TYPE_A || record.type == DNS_TYPE_AAAA) {
                if (record.data_len != (record.type == DNS_TYPE_A ? 4 : 16))
                        return DNS_FAULT_DATA;
                memcpy(ret->address, bytes.data + record.data_at, record.data_len);
                return DNS_FAULT_NONE;
        }
        fault = read_name(bytes, &target_at, ret->target);
        if (fault == DNS_FAULT_NONE && target_at != record.data_at + record.data_len)
                return DNS_FAULT_DATA;
        return fault;
}

/* RFC 6891, 6.1: the root's name, the size in place of the class, the rest in place of the time to live. */
static enum dns_fault read_opt(struct dns_message *m, const struct record *record, bool is_root)
{
        size_t at = record->data_at, end = record->data_at + record->data_len;

        if (m->edns.is_present || !is_root)
                return DNS_FAULT_OPT;
        while (at < end) {
                if (end - at < 4 || get_be16(m->bytes.data + at + 2) > end - at - 4)
                        return DNS_FAULT_OPT;
                at += 4u + get_be16(m->bytes.data + at + 2);
        }
        m->edns = (struct dns_edns){
                .is_present = true,
                .udp_size = MAX(record->class, (uint16_t)DNS_UDP_MAX),
                .version = (uint8_t)(record->ttl >> 16),
                .wants_dnssec = record->ttl >> 15 & 1,
        };
        m->rcode |= (uint16_t)(record->ttl >> 24 << 4);
        return DNS_FAULT_NONE;
}

static enum dns_fault read_rest(struct dns_message *m, size_t *at)
{
        size_t n_authority = get_be16(m->bytes.data + 8), n_additional = get_be16(m->bytes.data + 10);

        for (size_t i = 0; i < n_authority + n_additional; i++) {
                bool is_root = *at < m->bytes.len && m->bytes.data[*at] == 0;
                struct record record;
                enum dns_fault fault = read_record(m->bytes, at, NULL, &record);

                if (fault == DNS_FAULT_NONE && record.type == DNS_TYPE_OPT)
                        fault = i < n_authority ? DNS_FAULT_OPT : read_opt(m, &record, is_root);
                if (fault != DNS_FAULT_NONE)
                        return fault;
        }
        return *at == m->bytes.len ? DNS_FAULT_NONE : DNS_FAULT_TRAILING;
}

static enum dns_fault read_message(struct span bytes, bool is_response, struct dns_message *m)
{
        enum dns_fault fault = read_header(bytes, is_response, m);
        size_t at = DNS_HEADER_LEN;

        if (fault != DNS_FAULT_NONE)
                return fault;
        m->n_answers = get_be16(bytes.data + 6);
        if (get_be16(bytes.data + 4) != 1 || (!is_response && m->n_answers > 0))
                return DNS_FAULT_COUNT;
        fault = read_question(m, &at);
        m->answers_at = at;
        for (size_t i = 0; fault == DNS_FAULT_NONE && i < m->n_answers; i++) {
                struct dns_answer answer;

                fault = read_answer(bytes, &at, &answer);
        }
        return fault == DNS_FAULT_NONE ? read_rest(m, &at) : fault;
}

static enum dns_fault parse(struct span bytes, bool is_response, struct dns_message *ret)
{
        struct dns_message m = {0};
        enum dns_fault fault = read_message(bytes, is_response, &m);

        if (fault == DNS_FAULT_NONE)
                *ret = m;
        else
                *ret = (struct dns_message){
                        .id = m.id,
                        .is_response = m.is_response,
                        .opcode = m.opcode,
                        .recursion_desired = m.recursion_desired,
                };
        return fault;
}

enum dns_fault dns_query_parse(struct span bytes, struct dns_message *ret)
{
        return parse(bytes, false, ret);
}

enum dns_fault dns_response_parse(struct span bytes, struct dns_message *ret)
{
        return parse(bytes, true, ret);
}

int dns_answer_next(const struct dns_message *response, struct dns_cursor *cursor, struct dns_answer *ret)
{
        if (cursor->n_read == 0)
                cursor->at = response->answers_at;
        while (cursor->n_read < response->n_answers) {
                cursor->n_read++;
                if (read_answer(response->bytes, &cursor->at, ret) != DNS_FAULT_NONE)
                        return 0;
                if (ret->type != 0)
                        return 1;
        }
        return 0;
}

bool dns_name_equal(const char *a, const char *b)
{
        for (;; a++, b++) {
                unsigned char x = (unsigned char)*a, y = (unsigned char)*b;

                x |= x >= 'A' && x <= 'Z' ? 0x20 : 0;
                y |= y >= 'A' && y <= 'Z' ? 0x20 : 0;
                if (x != y)
                        return false;
                if (x == '\0')
                        return true;
        }
}
