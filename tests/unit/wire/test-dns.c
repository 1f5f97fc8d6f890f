/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/dns.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/hex.h"
#include "tests/test.h"

struct message {
        uint8_t *bytes;
        size_t len;
};

static void message_done(struct message *m)
{
        free(m->bytes);
}

#define _cleanup_message_ _cleanup_(message_done)

static struct message message_of(const char *hex)
{
        struct message m;
        size_t offset;

        assert_int_equal(hex_decode(span_of_text(hex), &m.bytes, &m.len, &offset), 0);
        return m;
}

/* RFC 8484, 4.1.1 and 4.2.2: the example query, and a response. */
static const char rfc8484_query[] = "0000 0100 0001 0000 0000 0000 03777777 07 6578616d706c65 03636f6d 00 0001 0001";
static const char rfc8484_response[] = "0000 8180 0001 0001 0000 0000 03777777 07 6578616d706c65 03636f6d 00 001c 0001"
                                       "c00c 001c 0001 00000e7d 0010 20010db8abcd00120001000200030004";

/* What dig 9.18 asked for www.Example.com, with EDNS and a cookie. */
static const char dig_query[] = "47c60120000100000000000103777777074578616d706c6503636f6d"
                                "000001000100002904d000000000000c000a0008162678bfad8fca04";

static void test_query(void **state)
{
        _cleanup_message_ struct message m = message_of(rfc8484_query), dig = message_of(dig_query);
        struct dns_message query;

        assert_int_equal(dns_query_parse(span_of(m.bytes, m.len), &query), DNS_FAULT_NONE);
        assert_int_equal(query.id, 0);
        assert_false(query.is_response);
        assert_int_equal(query.opcode, 0);
        assert_true(query.recursion_desired);
        assert_string_equal(query.name, "www.example.com");
        assert_int_equal(query.type, DNS_TYPE_A);
        assert_int_equal(query.class, DNS_CLASS_IN);
        assert_int_equal(query.question.len, 17 + 4);
        assert_false(query.edns.is_present);

        assert_int_equal(dns_query_parse(span_of(dig.bytes, dig.len), &query), DNS_FAULT_NONE);
        assert_int_equal(query.id, 0x47c6);
        assert_string_equal(query.name, "www.Example.com");
        assert_true(query.edns.is_present);
        assert_int_equal(query.edns.udp_size, 1232);
        assert_int_equal(query.edns.version, 0);
        assert_false(query.edns.wants_dnssec);
}

static void test_response(void **state)
{
        static const uint8_t address[16] = {0x20, 0x01, 0x0d, 0xb8, 0xab, 0xcd, 0, 0x12, 0, 1, 0, 2, 0, 3, 0, 4};
        _cleanup_message_ struct message m = message_of(rfc8484_response);
        struct dns_cursor cursor = {0};
        struct dns_message response;
        struct dns_answer answer;

        assert_int_equal(dns_response_parse(span_of(m.bytes, m.len), &response), DNS_FAULT_NONE);
        assert_true(response.is_response);
        assert_int_equal(response.rcode, DNS_RCODE_NOERROR);
        assert_string_equal(response.name, "www.example.com");
        assert_int_equal(response.type, DNS_TYPE_AAAA);

        assert_int_equal(dns_answer_next(&response, &cursor, &answer), 1);
        assert_string_equal(answer.name, "www.example.com");
        assert_int_equal(answer.type, DNS_TYPE_AAAA);
        assert_int_equal(answer.ttl_s, 3709);
        assert_memory_equal(answer.address, address, 16);
        assert_int_equal(dns_answer_next(&response, &cursor, &answer), 0);
        assert_int_equal(dns_answer_next(&response, &cursor, &answer), 0);
}

/* The four names of RFC 1035, 4.1.4, and how each points into the ones before, as owners of records. */
static void test_compression_example(void **state)
{
        static const char hex[] = "0001 8000 0001 0004 0000 0000 00 00ff 0001"                      /* 17 octets */
                                  "01 46 03 495349 04 41525041 00 0001 0001 00000001 0004 c0000201" /* F.ISI.ARPA */
                                  "03 464f4f c011 0001 0001 00000002 0004 c0000202"                 /* FOO + pointer */
                                  "c017 0001 0001 00000003 0004 c0000203"                           /* ARPA */
                                  "00 0001 0001 00000004 0004 c0000204";                            /* the root */
        static const char *const names[] = {"F.ISI.ARPA", "FOO.F.ISI.ARPA", "ARPA", ""};
        _cleanup_message_ struct message m = message_of(hex);
        struct dns_cursor cursor = {0};
        struct dns_message response;
        struct dns_answer answer;

        assert_int_equal(dns_response_parse(span_of(m.bytes, m.len), &response), DNS_FAULT_NONE);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                assert_int_equal(dns_answer_next(&response, &cursor, &answer), 1);
                assert_string_equal(answer.name, names[i]);
                assert_int_equal(answer.ttl_s, i + 1);
                assert_int_equal(answer.address[3], i + 1);
        }
        assert_int_equal(dns_answer_next(&response, &cursor, &answer), 0);
}

/* A chain, with records between that nobody asks about: of another type, of class CHAOS, with odd owners. */
static void test_chain(void **state)
{
        static const char hex[] = "abcd 8180 0001 0006 0001 0001 0161 01 78 00 0001 0001"
                                  "c00c 0005 0001 0000003c 0004 0162 c00e"    /* a.x CNAME b.x */
                                  "c00c 0010 0001 0000003c 0003 026869"       /* a TXT */
                                  "02 5c2e c00e 002e 0001 0000003c 0002 0000" /* an RRSIG whose owner is no host */
                                  "c00c 0001 0003 0000003c 0004 7f000001"     /* class CHAOS */
                                  "c021 0001 0001 ffffffff 0004 c0000201"     /* b.x A, a time to live that means 0 */
                                  "c021 0001 0001 7fffffff 0004 c0000202"     /* the longest */
                                  "c00e 0002 0001 0000003c 0004 026e73 00"    /* authority: NS */
                                  "00 0029 1000 01008000 0000";               /* EDNS: rcode bits, DO */
        _cleanup_message_ struct message m = message_of(hex);
        struct dns_cursor cursor = {0};
        struct dns_message response;
        struct dns_answer answer;

        assert_int_equal(dns_response_parse(span_of(m.bytes, m.len), &response), DNS_FAULT_NONE);
        assert_int_equal(response.rcode, 0x10);
        assert_int_equal(response.edns.udp_size, 4096);
        assert_true(response.edns.wants_dnssec);
        assert_int_equal(dns_answer_next(&response, &cursor, &answer), 1);
        assert_int_equal(answer.type, DNS_TYPE_CNAME);
        assert_string_equal(answer.name, "a.x");
        assert_string_equal(answer.target, "b.x");
        assert_int_equal(dns_answer_next(&response, &cursor, &answer), 1);
        assert_string_equal(answer.name, "b.x");
        assert_int_equal(answer.type, DNS_TYPE_A);
        assert_int_equal(answer.ttl_s, 0);
        assert_int_equal(dns_answer_next(&response, &cursor, &answer), 1);
        assert_int_equal(answer.ttl_s, INT32_MAX);
        assert_int_equal(dns_answer_next(&response, &cursor, &answer), 0);
}

static void test_faults(void **state)
{
        static const struct {
                const char *hex;
                enum dns_fault fault;
        } rows[] = {
                {"", DNS_FAULT_SHORT},
                {"0001 8180 0001 0000 0000 00", DNS_FAULT_SHORT},
                {"0001 0100 0001 0000 0000 0000 00 0001 0001", DNS_FAULT_DIRECTION},
                {"0001 8180 0000 0000 0000 0000", DNS_FAULT_COUNT},
                {"0001 8180 0002 0000 0000 0000 00 0001 0001 00 0001 0001", DNS_FAULT_COUNT},
                {"0001 8180 0001 0000 0000 0000 01", DNS_FAULT_CUT},
                {"0001 8180 0001 0000 0000 0000 0161", DNS_FAULT_CUT},
                {"0001 8180 0001 0000 0000 0000 00 0001 00", DNS_FAULT_CUT},
                {"0001 8180 0001 0000 0000 0000 c0", DNS_FAULT_CUT},
                {"0001 8180 0001 0000 0000 0000 41 61 00 0001 0001", DNS_FAULT_LABEL}, /* RFC 2673, withdrawn */
                {"0001 8180 0001 0000 0000 0000 81 61 00 0001 0001", DNS_FAULT_LABEL}, /* never defined */
                {"0001 8180 0001 0000 0000 0000 01 2e 00 0001 0001", DNS_FAULT_LABEL}, /* a dot */
                {"0001 8180 0001 0000 0000 0000 01 00 00 0001 0001", DNS_FAULT_LABEL}, /* NUL */
                {"0001 8180 0001 0000 0000 0000 01 20 00 0001 0001", DNS_FAULT_LABEL}, /* a space */
                {"0001 8180 0001 0000 0000 0000 01 5c 00 0001 0001", DNS_FAULT_LABEL}, /* a backslash */
                {"0001 8180 0001 0000 0000 0000 01 c3 00 0001 0001", DNS_FAULT_LABEL},
                {"0001 8180 0001 0000 0000 0000 c00c 0001 0001", DNS_FAULT_POINTER},      /* itself */
                {"0001 8180 0001 0000 0000 0000 0161 c00c 0001 0001", DNS_FAULT_POINTER}, /* a loop with labels */
                {"0001 8180 0001 0000 0000 0000 c000 0001 0001", DNS_FAULT_POINTER},      /* into the header */
                {"0001 8180 0001 0000 0000 0000 c00e 00 0001 0001", DNS_FAULT_POINTER},   /* forward */
                {"0001 8180 0001 0001 0000 0000 00 0001 0001 c013 0001 0001 00000000 0004 01020304",
                 DNS_FAULT_POINTER}, /* an answer's owner forward */
                {"0001 8180 0001 0001 0000 0000 00 0001 0001 00 0001 0001 00000000 0004 010203", DNS_FAULT_CUT},
                {"0001 8180 0001 0001 0000 0000 00 0001 0001 00 0001 0001 00000000 0003 010203", DNS_FAULT_DATA},
                {"0001 8180 0001 0001 0000 0000 00 0001 0001 00 0001 0001 00000000 0005 0102030405", DNS_FAULT_DATA},
                {"0001 8180 0001 0001 0000 0000 00 0001 0001 00 001c 0001 00000000 0004 01020304", DNS_FAULT_DATA},
                {"0001 8180 0001 0001 0000 0000 00 0001 0001 00 0005 0001 00000000 0002 0000", DNS_FAULT_DATA},
                {"0001 8180 0001 0001 0000 0000 00 0001 0001 00 0005 0001 00000000 0000", DNS_FAULT_CUT},
                {"0001 8180 0001 0001 0000 0000 00 0001 0001 00 0005 0001 00000000 0002 0161 00", DNS_FAULT_DATA},
                {"0001 8180 0001 0000 0001 0000 00 0001 0001 00 0029 0200 00000000 0000", DNS_FAULT_OPT}, /* section */
                {"0001 8180 0001 0000 0000 0001 00 0001 0001 0161 00 0029 0200 00000000 0000", DNS_FAULT_OPT},
                {"0001 8180 0001 0000 0000 0002 00 0001 0001 00 0029 0200 00000000 0000 00 0029 0200 00000000 0000",
                 DNS_FAULT_OPT},
                {"0001 8180 0001 0000 0000 0001 00 0001 0001 00 0029 0200 00000000 0003 000a00", DNS_FAULT_OPT},
                {"0001 8180 0001 0000 0000 0001 00 0001 0001 00 0029 0200 00000000 0004 000a0001", DNS_FAULT_OPT},
                {"0001 8180 0001 0000 0000 0000 00 0001 0001 00", DNS_FAULT_TRAILING},
                {"0001 8180 0001 0000 0000 ffff 00 0001 0001", DNS_FAULT_CUT},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_message_ struct message m = message_of(rows[i].hex);
                struct dns_message response;
                enum dns_fault fault = dns_response_parse(span_of(m.bytes, m.len), &response);

                if (fault != rows[i].fault)
                        fail_msg("%s: %s", rows[i].hex, dns_fault_name(fault));
        }
}

/* What is told to who sent a malformed query. */
static void test_query_faults(void **state)
{
        _cleanup_message_ struct message answered = message_of("1234 1900 0001 0001 0000 0000 00 0001 0001"),
                                         response = message_of(rfc8484_response);
        struct dns_message query;

        assert_int_equal(dns_query_parse(span_of(answered.bytes, answered.len), &query), DNS_FAULT_COUNT);
        assert_int_equal(query.id, 0x1234);
        assert_int_equal(query.opcode, 3);
        assert_true(query.recursion_desired);
        assert_int_equal(query.question.len, 0);
        assert_int_equal(dns_query_parse(span_of(response.bytes, response.len), &query), DNS_FAULT_DIRECTION);
        for (size_t len = 0; len < response.len; len++)
                assert_int_not_equal(dns_response_parse(span_of(response.bytes, len), &query), DNS_FAULT_NONE);
}

/* The longest name, and one octet more; and each pointer only backwards, but through more parts than a name can have.
 */
static void test_long_names(void **state)
{
        uint8_t buf[2048] = {[2] = 0x81, [5] = 1}, *p = buf + DNS_HEADER_LEN;
        struct dns_message m;

        for (size_t i = 0; i < 3; i++) {
                *p++ = 63;
                memset(p, 'a', 63);
                p += 63;
        }
        *p = 61;
        memset(p + 1, 'b', 61);
        memset(p + 62, 0, 5);
        assert_int_equal(dns_response_parse(span_of(buf, (size_t)(p + 67 - buf)), &m), DNS_FAULT_NONE);
        assert_int_equal(strlen(m.name), 253);
        *p = 62;
        memset(p + 1, 'b', 62);
        memset(p + 63, 0, 5);
        assert_int_equal(dns_response_parse(span_of(buf, (size_t)(p + 68 - buf)), &m), DNS_FAULT_LENGTH);

        for (size_t n = 127; n <= 128; n++) {
                memset(buf, 0, sizeof(buf));
                buf[2] = 0x81;
                buf[5] = 1;
                buf[7] = 2;
                put_be16(buf + DNS_HEADER_LEN + 1, DNS_TYPE_A);
                /* One record with a name of pointers, which lie in the data of a record before it. */
                p = buf + DNS_HEADER_LEN + 5;
                put_be16(p + 1, 16); /* TXT of the root */
                put_be16(p + 3, DNS_CLASS_IN);
                put_be16(p + 9, (uint16_t)(2 * (n - 1)));
                p += 11;
                for (size_t i = 0; i < n - 1; i++, p += 2)
                        put_be16(p, (uint16_t)(0xc000 | (i == 0 ? DNS_HEADER_LEN : p - buf - 2)));
                put_be16(p, (uint16_t)(0xc000 | (p - buf - 2)));
                put_be16(p + 2, DNS_TYPE_A);
                put_be16(p + 4, DNS_CLASS_IN);
                put_be16(p + 10, 4);
                assert_int_equal(dns_response_parse(span_of(buf, (size_t)(p + 16 - buf)), &m),
                                 n == 127 ? DNS_FAULT_NONE : DNS_FAULT_POINTER);
        }
}

static void test_query_put(void **state)
{
        _cleanup_message_ struct message expected = message_of(rfc8484_query);
        struct dns_message query;
        uint8_t buf[512];
        int len;

        len = dns_query_put(buf, sizeof(buf), 0, "www.example.com", DNS_TYPE_A, 0);
        assert_int_equal(len, expected.len);
        assert_memory_equal(buf, expected.bytes, expected.len);
        for (size_t size = 0; size < expected.len; size++)
                assert_int_equal(dns_query_put(buf, size, 0, "www.example.com", DNS_TYPE_A, 0), -ENOSPC);

        len = dns_query_put(buf, sizeof(buf), 7, "x", DNS_TYPE_AAAA, 1232);
        assert_int_equal(dns_query_parse(span_of(buf, (size_t)len), &query), DNS_FAULT_NONE);
        assert_int_equal(query.edns.udp_size, 1232);
        assert_int_equal(query.type, DNS_TYPE_AAAA);

        assert_int_equal(dns_query_put(buf, sizeof(buf), 7, "a..b", DNS_TYPE_A, 0), -EINVAL);
        assert_int_equal(dns_query_put(buf, sizeof(buf), 7, "a.", DNS_TYPE_A, 0), -EINVAL);
        assert_int_equal(dns_query_put(buf, sizeof(buf), 7, ".", DNS_TYPE_A, 0), -EINVAL);
}

/* The response of RFC 8484, written from its question; only the recursion bits and the rest are as they were. */
static void test_write(void **state)
{
        _cleanup_message_ struct message m = message_of(rfc8484_response);
        struct dns_end end = {.rcode = DNS_RCODE_NOERROR};
        struct dns_message query = {0}, response;
        struct dns_cursor cursor = {0};
        struct dns_answer answer;
        struct dns_writer w;
        uint8_t buf[512], question[64];
        size_t len;

        memcpy(question, m.bytes, 12 + 21);
        question[2] = 0x01;
        question[3] = 0;
        question[7] = 0;
        assert_int_equal(dns_query_parse(span_of(question, 12 + 21), &query), DNS_FAULT_NONE);
        assert_int_equal(dns_response_parse(span_of(m.bytes, m.len), &response), DNS_FAULT_NONE);
        assert_int_equal(dns_answer_next(&response, &cursor, &answer), 1);

        dns_writer_begin(&w, buf, sizeof(buf), &query);
        dns_writer_address(&w, AF_INET6, answer.address, answer.ttl_s);
        len = dns_writer_finish(&w, &query, &end);
        assert_int_equal(len, m.len);
        assert_memory_equal(buf, m.bytes, m.len);
}

/* The letters of the question come back as they were (draft-vixie-dnsext-dns0x20), and each alias owns what follows. */
static void test_write_chain(void **state)
{
        struct dns_end end = {.rcode = DNS_RCODE_NOERROR};
        uint8_t buf[512], ask[64], address[4] = {192, 0, 2, 1};
        static const char *const owners[] = {"wWw.eXample.Com", "a.example.net", "b.example.net"};
        struct dns_cursor cursor = {0};
        struct dns_message query, m;
        struct dns_answer answer;
        struct dns_writer w;
        size_t len;
        int r = dns_query_put(ask, sizeof(ask), 9, owners[0], DNS_TYPE_A, 0);

        assert_int_equal(dns_query_parse(span_of(ask, (size_t)r), &query), DNS_FAULT_NONE);
        dns_writer_begin(&w, buf, sizeof(buf), &query);
        dns_writer_cname(&w, owners[1], 5);
        dns_writer_cname(&w, owners[2], 6);
        dns_writer_address(&w, AF_INET, address, 7);
        len = dns_writer_finish(&w, &query, &end);

        assert_int_equal(dns_response_parse(span_of(buf, len), &m), DNS_FAULT_NONE);
        assert_string_equal(m.name, owners[0]);
        assert_int_equal(m.id, 9);
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(dns_answer_next(&m, &cursor, &answer), 1);
                assert_string_equal(answer.name, owners[i]);
                assert_int_equal(answer.ttl_s, 5 + i);
                if (i < 2)
                        assert_string_equal(answer.target, owners[i + 1]);
        }
        assert_memory_equal(answer.address, address, 4);
        assert_int_equal(dns_answer_next(&m, &cursor, &answer), 0);
}

/* RFC 8914's option, byte by byte, and only for who sent EDNS. */
static void test_write_error(void **state)
{
        static const uint8_t opt[] = {0, 0,  41, 0x04, 0xd0, 0,  0,   0,   0,   0,   11,
                                      0, 15, 0,  7,    0,    15, 'n', 'o', 't', ' ', '!'};
        struct dns_end end = {.rcode = DNS_RCODE_REFUSED, .has_error = true, .error = DNS_EDE_BLOCKED};
        uint8_t buf[512], ask[64];
        char text[300];
        struct dns_message query, m;
        struct dns_writer w;
        size_t len;
        int r;

        end.error_text = "not !";
        r = dns_query_put(ask, sizeof(ask), 9, "x", DNS_TYPE_A, 1232);
        assert_int_equal(dns_query_parse(span_of(ask, (size_t)r), &query), DNS_FAULT_NONE);
        dns_writer_begin(&w, buf, sizeof(buf), &query);
        len = dns_writer_finish(&w, &query, &end);
        assert_int_equal(dns_response_parse(span_of(buf, len), &m), DNS_FAULT_NONE);
        assert_int_equal(m.rcode, DNS_RCODE_REFUSED);
        assert_int_equal(len, 12 + 7 + sizeof(opt));
        assert_memory_equal(buf + 12 + 7, opt, sizeof(opt));

        /* A text that is too long is cut between characters. */
        memset(text, 'a', 254);
        strcpy(text + 254, "\xc3\xbc");
        end.error_text = text;
        dns_writer_begin(&w, buf, sizeof(buf), &query);
        len = dns_writer_finish(&w, &query, &end);
        assert_int_equal(len, 12 + 7 + 11 + 6 + 254);
        assert_int_equal(dns_response_parse(span_of(buf, len), &m), DNS_FAULT_NONE);

        /* The upper bits of a code are in EDNS. */
        end = (struct dns_end){.rcode = DNS_RCODE_BADVERS};
        dns_writer_begin(&w, buf, sizeof(buf), &query);
        len = dns_writer_finish(&w, &query, &end);
        assert_int_equal(dns_response_parse(span_of(buf, len), &m), DNS_FAULT_NONE);
        assert_int_equal(m.rcode, DNS_RCODE_BADVERS);

        query.edns.is_present = false;
        end = (struct dns_end){.rcode = DNS_RCODE_REFUSED, .has_error = true, .error_text = "no"};
        dns_writer_begin(&w, buf, sizeof(buf), &query);
        assert_int_equal(dns_writer_finish(&w, &query, &end), 12 + 7);
}

static void test_truncated(void **state)
{
        struct dns_end end = {.rcode = DNS_RCODE_NOERROR};
        uint8_t buf[DNS_UDP_MAX], ask[64], address[4] = {192, 0, 2, 1};
        struct dns_message query, m;
        struct dns_writer w;
        int r = dns_query_put(ask, sizeof(ask), 9, "x", DNS_TYPE_A, 1232);

        assert_int_equal(dns_query_parse(span_of(ask, (size_t)r), &query), DNS_FAULT_NONE);
        for (size_t n = 29; n <= 31; n++) { /* (512 - 19 - 11) / 16 is 30.1 */
                size_t len;

                dns_writer_begin(&w, buf, sizeof(buf), &query);
                for (size_t i = 0; i < n; i++)
                        dns_writer_address(&w, AF_INET, address, 60);
                len = dns_writer_finish(&w, &query, &end);
                assert_true(len <= sizeof(buf));
                assert_int_equal(dns_response_parse(span_of(buf, len), &m), DNS_FAULT_NONE);
                assert_int_equal(m.is_truncated, n == 31);
                assert_int_equal(m.n_answers, n == 31 ? 0 : n);
                assert_true(m.edns.is_present);
        }
}

static void test_reverse(void **state)
{
        static const uint8_t v4[] = {192, 0, 2, 10}, v6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 0xfe};
        /* RFC 3596, 2.5 has the form; the digits are those of 2001:db8::fe. */
        static const char v6_name[] = "e.f.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
        static const char *const refused[] = {
                "",
                "in-addr.arpa",
                "2.0.192.in-addr.arpa",
                "1.10.2.0.192.in-addr.arpa",
                "256.2.0.192.in-addr.arpa",
                "010.2.0.192.in-addr.arpa",
                "a.2.0.192.in-addr.arpa",
                "10.2.0.192.in-addr.arpa.example",
                "10.2.0.192.example",
                "e.f.0.0.ip6.arpa",
                "0e.f.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
                "g.f.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
        };
        char name[DNS_NAME_TEXT];
        uint8_t address[16];

        dns_name_of_address(AF_INET, v4, name);
        assert_string_equal(name, "10.2.0.192.in-addr.arpa");
        assert_int_equal(dns_name_to_address("10.2.0.192.IN-ADDR.arpa", address), AF_INET);
        assert_memory_equal(address, v4, 4);
        dns_name_of_address(AF_INET6, v6, name);
        assert_string_equal(name, v6_name);
        assert_int_equal(dns_name_to_address("E.F.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.B.D.0.1.0.0.2.ip6.arpa",
                                             address),
                         AF_INET6);
        assert_memory_equal(address, v6, 16);
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
                assert_int_equal(dns_name_to_address(refused[i], address), 0);
}

/* The mnemonics of IANA's registry of DNS RCODEs. */
static void test_rcode_name(void **state)
{
        assert_string_equal(dns_rcode_name(0), "NOERROR");
        assert_string_equal(dns_rcode_name(3), "NXDOMAIN");
        assert_string_equal(dns_rcode_name(5), "REFUSED");
        assert_string_equal(dns_rcode_name(16), "BADVERS");
        assert_string_equal(dns_rcode_name(6), "OTHER");
        assert_string_equal(dns_rcode_name(17), "OTHER");
}

static void test_name_equal(void **state)
{
        assert_true(dns_name_equal("ExAmple.com", "eXaMPLE.COM"));
        assert_false(dns_name_equal("example.com", "example.co"));
        assert_false(dns_name_equal("a@b", "a`b")); /* only letters have a case */
        assert_false(dns_name_equal("a[b", "a{b"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_query),
                cmocka_unit_test(test_response),
                cmocka_unit_test(test_compression_example),
                cmocka_unit_test(test_chain),
                cmocka_unit_test(test_faults),
                cmocka_unit_test(test_query_faults),
                cmocka_unit_test(test_long_names),
                cmocka_unit_test(test_query_put),
                cmocka_unit_test(test_write),
                cmocka_unit_test(test_write_chain),
                cmocka_unit_test(test_write_error),
                cmocka_unit_test(test_truncated),
                cmocka_unit_test(test_reverse),
                cmocka_unit_test(test_name_equal),
                cmocka_unit_test(test_rcode_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
