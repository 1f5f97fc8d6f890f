/* SPDX-License-Identifier: Apache-2.0 */
#include "load/datagram.h"

#include <arpa/inet.h>
#include <string.h>

#include "tests/test.h"

static struct datagram_question echo_of(size_t bytes)
{
        return (struct datagram_question){.bytes = bytes};
}

static struct datagram_question lookup(void)
{
        struct datagram_question question = {.name = "a.test"};

        inet_pton(AF_INET, "192.0.2.1", &question.address);
        return question;
}

static void test_echo(void **state)
{
        static uint8_t asked[DATAGRAM_BYTES_MAX], back[DATAGRAM_BYTES_MAX];
        const size_t sizes[] = {DATAGRAM_BYTES_MIN, 64, 1000, DATAGRAM_BYTES_MAX};

        for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
                const struct datagram_question question = echo_of(sizes[k]);

                assert_int_equal(datagram_ask(&question, 7, asked), sizes[k]);
                assert_int_equal(datagram_reply(&question, span_of(asked, sizes[k]), back), sizes[k]);
                assert_int_equal(datagram_check(&question, 7, span_of(back, sizes[k])), DATAGRAM_RIGHT);
                assert_int_equal(datagram_check(&question, 8, span_of(back, sizes[k])), DATAGRAM_STALE);
                assert_int_equal(datagram_check(&question, 6, span_of(back, sizes[k])), DATAGRAM_WRONG);
                assert_int_equal(datagram_check(&question, 7, span_of(back, sizes[k] - 1)), DATAGRAM_WRONG);
        }
}

/* Whichever octet comes back otherwise. */
static void test_echo_of_other_octets(void **state)
{
        const struct datagram_question question = echo_of(64);
        uint8_t back[64];

        for (size_t at = 0; at < sizeof(back); at++) {
                datagram_ask(&question, 1 << 20, back);
                back[at] ^= 0x40;
                assert_int_equal(datagram_check(&question, 1 << 20, span_of(back, sizeof(back))), DATAGRAM_WRONG);
        }
        assert_int_equal(datagram_check(&question, 1, span_of(back, 0)), DATAGRAM_WRONG);
}

/* By the layout of RFC 1035, 4.1: header, question, answer. */
static const uint8_t query[] = "\x01\x02\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
                               "\x01"
                               "a\x04test\x00\x00\x01\x00\x01";
static const uint8_t response[] = "\x01\x02\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00"
                                  "\x01"
                                  "a\x04test\x00\x00\x01\x00\x01"
                                  "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x01";

#define NUMBER       0x0102
#define QUERY_LEN    (sizeof(query) - 1)
#define RESPONSE_LEN (sizeof(response) - 1)
#define ADDRESS_AT   (RESPONSE_LEN - 4)
#define NAME_AT      13
#define RCODE_AT     3
#define ANSWERS_AT   7
#define TYPE_AT      (QUERY_LEN - 3)

static void test_lookup(void **state)
{
        const struct datagram_question question = lookup();
        uint8_t buf[DATAGRAM_BYTES_MAX];

        assert_int_equal(datagram_ask(&question, NUMBER, buf), QUERY_LEN);
        assert_memory_equal(buf, query, QUERY_LEN);
        assert_int_equal(datagram_check(&question, NUMBER, span_of(response, RESPONSE_LEN)), DATAGRAM_RIGHT);
        assert_int_equal(datagram_check(&question, NUMBER + 65536, span_of(response, RESPONSE_LEN)), DATAGRAM_RIGHT);
        assert_int_equal(datagram_check(&question, NUMBER + 1, span_of(response, RESPONSE_LEN)), DATAGRAM_STALE);
}

static void test_lookup_answered_wrongly(void **state)
{
        const struct {
                size_t at;
                uint8_t value;
        } changes[] = {
                {ADDRESS_AT + 3, 2}, {ADDRESS_AT, 10}, {NAME_AT, 'b'}, {RCODE_AT, 0x83}, {ANSWERS_AT, 0}, {TYPE_AT, 28},
        };
        const struct datagram_question question = lookup();

        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                uint8_t buf[sizeof(response)];

                memcpy(buf, response, sizeof(buf));
                buf[changes[i].at] = changes[i].value;
                assert_int_equal(datagram_check(&question, NUMBER, span_of(buf, RESPONSE_LEN)), DATAGRAM_WRONG);
        }
        for (size_t len = 0; len < RESPONSE_LEN; len++)
                assert_int_equal(datagram_check(&question, NUMBER, span_of(response, len)), DATAGRAM_WRONG);
}

static void test_name_server(void **state)
{
        const struct datagram_question question = lookup();
        uint8_t asked[sizeof(query)], buf[DATAGRAM_BYTES_MAX];
        size_t len = datagram_reply(&question, span_of(query, QUERY_LEN), buf);

        assert_int_equal(datagram_check(&question, NUMBER, span_of(buf, len)), DATAGRAM_RIGHT);
        memcpy(asked, query, sizeof(asked));
        asked[NAME_AT] = 'b';
        len = datagram_reply(&question, span_of(asked, QUERY_LEN), buf);
        assert_true(len >= QUERY_LEN);
        assert_int_equal(buf[RCODE_AT] & 0xf, 3); /* NXDOMAIN */
        memcpy(asked, query, sizeof(asked));
        asked[TYPE_AT] = 28;
        len = datagram_reply(&question, span_of(asked, QUERY_LEN), buf);
        assert_true(len >= QUERY_LEN);
        assert_int_equal(buf[RCODE_AT] & 0xf, 0);
        assert_int_equal(buf[ANSWERS_AT], 0);
        for (size_t i = 0; i < QUERY_LEN; i++)
                assert_int_equal(datagram_reply(&question, span_of(query, i), buf), 0);
        assert_int_equal(datagram_reply(&question, span_of(response, RESPONSE_LEN), buf), 0);
}

static void test_no_name(void **state)
{
        const struct datagram_question question = {.name = "a..test"};
        uint8_t buf[512];

        assert_int_equal(datagram_ask(&question, 0, buf), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_echo),        cmocka_unit_test(test_echo_of_other_octets),
                cmocka_unit_test(test_lookup),      cmocka_unit_test(test_lookup_answered_wrongly),
                cmocka_unit_test(test_name_server), cmocka_unit_test(test_no_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
