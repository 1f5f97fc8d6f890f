/* SPDX-License-Identifier: Apache-2.0 */
#include "load/datagram.h"

#include <string.h>

#include "wire/dns.h"

#define TTL_S        60
#define NUMBER_BYTES sizeof(uint64_t)

/* What an echo has at a place after its number, so that neither another order nor another datagram looks right. */
static uint8_t octet_at(uint64_t i, size_t at)
{
        return (uint8_t)(i + at * 7);
}

int datagram_ask(const struct datagram_question *question, uint64_t i, uint8_t *buf)
{
        if (question->name)
                return dns_query_put(buf, DNS_UDP_MAX, (uint16_t)i, question->name, DNS_TYPE_A, 0);
        put_be64(buf, i);
        for (size_t at = NUMBER_BYTES; at < question->bytes; at++)
                buf[at] = octet_at(i, at);
        return (int)question->bytes;
}

static enum datagram_answer check_echo(const struct datagram_question *question, uint64_t i, struct span answer)
{
        uint64_t number;

        if (answer.len != question->bytes)
                return DATAGRAM_WRONG;
        number = get_be64(answer.data);
        for (size_t at = NUMBER_BYTES; at < answer.len; at++)
                if (answer.data[at] != octet_at(number, at))
                        return DATAGRAM_WRONG;
        if (number > i)
                return DATAGRAM_WRONG;
        return number == i ? DATAGRAM_RIGHT : DATAGRAM_STALE;
}

static enum datagram_answer check_lookup(const struct datagram_question *question, uint64_t i, struct span answer)
{
        struct dns_cursor cursor = {0};
        struct dns_message message;
        struct dns_answer record;
        bool has_address = false;

        if (dns_response_parse(answer, &message) != DNS_FAULT_NONE)
                return DATAGRAM_WRONG;
        if (message.id != (uint16_t)i)
                return DATAGRAM_STALE;
        if (message.rcode != DNS_RCODE_NOERROR || message.type != DNS_TYPE_A ||
            !dns_name_equal(message.name, question->name))
                return DATAGRAM_WRONG;
        while (dns_answer_next(&message, &cursor, &record) > 0) {
                if (record.type != DNS_TYPE_A || !dns_name_equal(record.name, question->name) ||
                    memcmp(record.address, &question->address, sizeof(question->address)) != 0)
                        return DATAGRAM_WRONG;
                has_address = true;
        }
        return has_address ? DATAGRAM_RIGHT : DATAGRAM_WRONG;
}

enum datagram_answer datagram_check(const struct datagram_question *question, uint64_t i, struct span answer)
{
        return question->name ? check_lookup(question, i, answer) : check_echo(question, i, answer);
}

/* The address of the one name; other types of it have no data, and other names do not exist. */
static size_t reply_lookup(const struct datagram_question *question, struct span bytes, uint8_t *buf)
{
        struct dns_end end = {.rcode = DNS_RCODE_NOERROR};
        struct dns_message query;
        struct dns_writer writer;

        if (dns_query_parse(bytes, &query) != DNS_FAULT_NONE || query.opcode != 0)
                return 0;
        dns_writer_begin(&writer, buf, DNS_UDP_MAX, &query);
        if (!dns_name_equal(query.name, question->name))
                end.rcode = DNS_RCODE_NXDOMAIN;
        else if (query.type == DNS_TYPE_A)
                dns_writer_address(&writer, AF_INET, (const uint8_t *)&question->address, TTL_S);
        return dns_writer_finish(&writer, &query, &end);
}

size_t datagram_reply(const struct datagram_question *question, struct span bytes, uint8_t *buf)
{
        if (question->name)
                return reply_lookup(question, bytes, buf);
        memcpy(buf, bytes.data, bytes.len);
        return bytes.len;
}
