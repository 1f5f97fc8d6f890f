/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/socket.h>

#include "fuzz/fuzz.h"
#include "wire/dns.h"

/* What is read can be written, and is then read as the same. */
static void check_rewrite(const struct dns_message *response)
{
        static uint8_t buf[DNS_MESSAGE_MAX];
        struct dns_cursor cursor = {0}, again = {0};
        struct dns_answer answer, copy;
        struct dns_end end = {.rcode = DNS_RCODE_NOERROR};
        struct dns_message written;
        const char *owner = response->name;
        struct dns_writer w;
        size_t n = 0, len;

        dns_writer_begin(&w, buf, sizeof(buf), response);
        while (dns_answer_next(response, &cursor, &answer) == 1) {
                if (answer.type == DNS_TYPE_CNAME)
                        dns_writer_cname(&w, answer.target, answer.ttl_s);
                else if (answer.type == DNS_TYPE_PTR)
                        dns_writer_ptr(&w, answer.target, answer.ttl_s);
                else
                        dns_writer_address(&w, answer.type == DNS_TYPE_A ? AF_INET : AF_INET6, answer.address,
                                           answer.ttl_s);
                n++;
        }
        len = dns_writer_finish(&w, response, &end);
        if (dns_response_parse(span_of(buf, len), &written) != DNS_FAULT_NONE || written.id != response->id ||
            strcmp(written.name, owner) != 0)
                abort();
        if (written.is_truncated) /* it may have been larger than what compression makes of it */
                return;
        cursor = (struct dns_cursor){0};
        while (n-- > 0)
                if (dns_answer_next(response, &cursor, &answer) != 1 || dns_answer_next(&written, &again, &copy) != 1 ||
                    answer.type != copy.type || answer.ttl_s != copy.ttl_s || strcmp(answer.target, copy.target) != 0 ||
                    memcmp(answer.address, copy.address, 16) != 0)
                        abort();
        if (dns_answer_next(&written, &again, &copy) != 0)
                abort();
}

static void check_query(const struct dns_message *query)
{
        uint8_t buf[512], address[16];
        char name[DNS_NAME_TEXT];
        struct dns_message again;
        int family, len;

        len = dns_query_put(buf, sizeof(buf), query->id, query->name, query->type, query->edns.udp_size);
        if (len < 0 || dns_query_parse(span_of(buf, (size_t)len), &again) != DNS_FAULT_NONE ||
            strcmp(again.name, query->name) != 0 || again.edns.udp_size != query->edns.udp_size)
                abort();
        family = dns_name_to_address(query->name, address);
        if (family == 0)
                return;
        dns_name_of_address(family, address, name);
        if (!dns_name_equal(name, query->name))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct dns_message m;

        if (dns_query_parse(span_of(data, size), &m) == DNS_FAULT_NONE)
                check_query(&m);
        if (dns_response_parse(span_of(data, size), &m) == DNS_FAULT_NONE)
                check_rewrite(&m);
        return 0;
}
