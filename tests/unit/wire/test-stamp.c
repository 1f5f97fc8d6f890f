/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/stamp.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/macro.h"

#define DAY_NS (86400 * NSEC_PER_SEC)

/* The dates of RFC 5905, figure 4, as days since 1970 and seconds of the NTP era. */
static void test_time_known_dates(void **state)
{
        static const struct {
                int64_t day;
                uint32_t ntp_s;
        } dates[] = {
                {-25568, UINT32_C(4294880896)}, /* 31 Dec 1899, the last day of era -1 */
                {0, UINT32_C(2208988800)},      /* 1 Jan 1970 */
                {730, UINT32_C(2272060800)},    /* 1 Jan 1972 */
                {10956, UINT32_C(3155587200)},  /* 31 Dec 1999 */
                {24144, UINT32_C(63104)},       /* 8 Feb 2036, the first day of era 1 */
        };

        for (size_t i = 0; i < ARRAY_SIZE(dates); i++) {
                uint64_t expected = (uint64_t)dates[i].ntp_s << 32;
                int64_t ns = dates[i].day * DAY_NS, decoded;

                assert_int_equal(stamp_time_encode(STAMP_FORMAT_NTP, ns), expected);
                assert_int_equal(stamp_time_decode(STAMP_FORMAT_NTP, expected, ns + 60 * 365 * DAY_NS, &decoded), 0);
                assert_int_equal(decoded, ns);
                assert_int_equal(stamp_time_decode(STAMP_FORMAT_NTP, expected, ns - 60 * 365 * DAY_NS, &decoded), 0);
                assert_int_equal(decoded, ns);
        }
}

/* Fractions of a second that are exact in binary; and one second less one unit, which rounds up into the next second.
 */
static void test_time_fractions(void **state)
{
        int64_t ns;

        assert_int_equal(stamp_time_encode(STAMP_FORMAT_NTP, 500000000), UINT64_C(2208988800) << 32 | 0x80000000);
        assert_int_equal(stamp_time_encode(STAMP_FORMAT_NTP, 750000000), UINT64_C(2208988800) << 32 | 0xc0000000);
        assert_int_equal(stamp_time_encode(STAMP_FORMAT_NTP, 1953125), UINT64_C(2208988800) << 32 | 0x00800000);
        assert_int_equal(stamp_time_encode(STAMP_FORMAT_NTP, -500000000), UINT64_C(2208988799) << 32 | 0x80000000);

        assert_int_equal(stamp_time_decode(STAMP_FORMAT_NTP, UINT64_C(2208988800) << 32 | UINT32_MAX, 0, &ns), 0);
        assert_int_equal(ns, NSEC_PER_SEC);
        assert_int_equal(stamp_time_decode(STAMP_FORMAT_NTP, UINT64_C(2208988800) << 32 | 1, 0, &ns), 0);
        assert_int_equal(ns, 0); /* 0.23 ns */
}

/* Every nanosecond comes back, in both formats, around a second's ends, across the eras and late in the range. The
 * first second of an era itself is left out: there, all bits 0 mean "none". */
static void test_time_round_trip(void **state)
{
        static const int64_t seconds[] = {1, 1795000000, 2085978495, 2085978497, 2200000000, 4294967295, 4294967297};

        for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
                for (int64_t ns = -3000; ns < NSEC_PER_SEC; ns += ns < 3000 || ns > 999990000 ? 1 : 99991) {
                        int64_t time = seconds[i] * NSEC_PER_SEC + ns, ntp, ptp;

                        assert_int_equal(stamp_time_decode(STAMP_FORMAT_NTP, stamp_time_encode(STAMP_FORMAT_NTP, time),
                                                           time - DAY_NS, &ntp),
                                         0);
                        assert_int_equal(ntp, time);
                        assert_int_equal(stamp_time_decode(STAMP_FORMAT_PTP, stamp_time_encode(STAMP_FORMAT_PTP, time),
                                                           time + DAY_NS, &ptp),
                                         0);
                        assert_int_equal(ptp, time);
                }
        }
}

static void test_time_none_and_not_a_time(void **state)
{
        int64_t ns = 42;

        assert_int_equal(stamp_time_decode(STAMP_FORMAT_NTP, 0, 0, &ns), -ENODATA);
        assert_int_equal(stamp_time_decode(STAMP_FORMAT_PTP, 0, 0, &ns), -ENODATA);
        assert_int_equal(stamp_time_decode(STAMP_FORMAT_PTP, 1000000000, 0, &ns), -ERANGE);
        assert_int_equal(ns, 42);
        assert_int_equal(stamp_time_decode(STAMP_FORMAT_PTP, 999999999, 0, &ns), 0);
        assert_int_equal(ns, 999999999);
}

/* RFC 4656, 4.1.2: estimate = multiplier * 2^-32 * 2^scale seconds. With scale 32 the unit is a second. */
static void test_error_known_values(void **state)
{
        struct stamp_error second = {.scale = 32, .multiplier = 1}, quarter = {.scale = 30, .multiplier = 1},
                           largest = {.scale = 63, .multiplier = 255}, smallest = {.multiplier = 1};

        assert_int_equal(stamp_error_ns(&second), NSEC_PER_SEC);
        assert_int_equal(stamp_error_ns(&quarter), 250000000);
        assert_int_equal(stamp_error_ns(&smallest), 1);
        assert_true(stamp_error_ns(&largest) == UINT64_MAX);
        second = stamp_error_of_ns(true, STAMP_FORMAT_NTP, NSEC_PER_SEC);
        assert_int_equal(stamp_error_ns(&second), NSEC_PER_SEC);
        assert_true(second.is_synchronised);
}

/* Never too small, never 0, at most 1/128 too large (and the unit of the field). */
static void test_error_bounds(void **state)
{
        for (uint64_t ns = 0; ns < UINT64_MAX / 3; ns = ns * 3 / 2 + 1) {
                struct stamp_error error = stamp_error_of_ns(false, STAMP_FORMAT_PTP, ns);
                uint64_t held = stamp_error_ns(&error);

                assert_true(error.multiplier >= 1);
                assert_true(error.scale <= 63);
                assert_true(held >= ns);
                assert_true(held - ns <= ns / 64 + 1);
        }
}

/* Where RFC 8762, figure 2 puts each field. */
static const uint8_t request_bytes[STAMP_LEN] = {
        0x01, 0x02, 0x03, 0x04,                         /* sequence number */
        0xe8, 0x00, 0x00, 0x01, 0x80, 0x00, 0x00, 0x00, /* timestamp */
        0xa0, 0x01,                                     /* S, NTP, scale 32, multiplier 1: synchronised within 1 s */
        0x12, 0x34,                                     /* session identifier of RFC 8972 */
};

/* Where RFC 8762, figure 5 puts each field. */
static const uint8_t reply_bytes[STAMP_LEN] = {
        0x00, 0x00, 0x00, 0x07,                         /* sequence number */
        0xe8, 0x00, 0x00, 0x02, 0x20, 0x00, 0x00, 0x00, /* timestamp */
        0x40, 0x02,                                     /* PTP, not synchronised, scale 0, multiplier 2 */
        0x12, 0x34,                                     /* session identifier of RFC 8972 */
        0xe8, 0x00, 0x00, 0x02, 0x10, 0x00, 0x00, 0x00, /* receive timestamp */
        0x01, 0x02, 0x03, 0x04,                         /* sender's sequence number */
        0xe8, 0x00, 0x00, 0x01, 0x80, 0x00, 0x00, 0x00, /* sender's timestamp */
        0xa0, 0x01,                                     /* sender's error estimate */
        0x00, 0x00, 0xfe,                               /* reserved; sender's TTL */
};

static const struct stamp_request request = {
        .sequence = 0x01020304,
        .timestamp = UINT64_C(0xe800000180000000),
        .error = {.is_synchronised = true, .format = STAMP_FORMAT_NTP, .scale = 32, .multiplier = 1},
        .session = 0x1234,
};

static void test_request_bytes(void **state)
{
        struct stamp_request parsed;
        uint8_t buf[STAMP_LEN];

        stamp_request_put(&request, buf);
        assert_memory_equal(buf, request_bytes, STAMP_LEN);

        assert_int_equal(stamp_request_parse(span_of(request_bytes, STAMP_LEN), &parsed), STAMP_FAULT_NONE);
        assert_int_equal(parsed.sequence, request.sequence);
        assert_int_equal(parsed.timestamp, request.timestamp);
        assert_int_equal(parsed.session, request.session);
        assert_true(parsed.error.is_synchronised);
        assert_int_equal(parsed.error.format, STAMP_FORMAT_NTP);
        assert_int_equal(parsed.error.scale, 32);
        assert_int_equal(parsed.error.multiplier, 1);
}

static void test_reply_bytes(void **state)
{
        struct stamp_reply reply;
        uint8_t buf[STAMP_LEN];

        assert_int_equal(stamp_reply_parse(span_of(reply_bytes, STAMP_LEN), &reply), STAMP_FAULT_NONE);
        assert_int_equal(reply.sequence, 7);
        assert_int_equal(reply.timestamp, UINT64_C(0xe800000220000000));
        assert_false(reply.error.is_synchronised);
        assert_int_equal(reply.error.format, STAMP_FORMAT_PTP);
        assert_int_equal(reply.error.multiplier, 2);
        assert_int_equal(reply.session, 0x1234);
        assert_int_equal(reply.receive_timestamp, UINT64_C(0xe800000210000000));
        assert_int_equal(reply.sender_sequence, request.sequence);
        assert_int_equal(reply.sender_timestamp, request.timestamp);
        assert_true(reply.sender_error.is_synchronised);
        assert_int_equal(reply.sender_ttl, 254);

        stamp_reply_put(&reply, buf);
        assert_memory_equal(buf, reply_bytes, STAMP_LEN);
}

static void test_multiplier_is_never_zero(void **state)
{
        struct stamp_request unset = {.sequence = 1, .timestamp = 2}, parsed;
        uint8_t buf[STAMP_LEN];

        stamp_request_put(&unset, buf);
        assert_int_equal(buf[13], 1);
        buf[13] = 0;
        assert_int_equal(stamp_request_parse(span_of(buf, sizeof(buf)), &parsed), STAMP_FAULT_MULTIPLIER);
}

/* A reflector that answered a reflector's packet would never stop. */
static void test_reply_is_no_request(void **state)
{
        struct stamp_request parsed;
        struct stamp_reply reply;

        assert_int_equal(stamp_reply_parse(span_of(reply_bytes, STAMP_LEN), &reply), STAMP_FAULT_NONE);
        for (int ttl = 0; ttl <= 255; ttl++) { /* also from a reflector that does not copy it */
                uint8_t buf[STAMP_LEN];

                reply.sender_ttl = (uint8_t)ttl;
                stamp_reply_put(&reply, buf);
                assert_int_equal(stamp_request_parse(span_of(buf, STAMP_LEN), &parsed), STAMP_FAULT_REPLY);
        }
}

/* TWAMP Light has 14 octets of header, and its senders may fill the rest with anything. */
static void test_padding_is_a_request(void **state)
{
        static const uint8_t fills[] = {0x00, 0x55, 0xff};

        for (size_t i = 0; i < ARRAY_SIZE(fills); i++) {
                struct stamp_request parsed;
                uint8_t buf[100];

                memset(buf, fills[i], sizeof(buf));
                memcpy(buf, request_bytes, 14);
                assert_int_equal(stamp_request_parse(span_of(buf, sizeof(buf)), &parsed), STAMP_FAULT_NONE);
                assert_int_equal(parsed.sequence, request.sequence);
        }
}

static void test_malformed(void **state)
{
        uint8_t buf[STAMP_LEN];
        struct stamp_request parsed;
        struct stamp_reply reply;

        for (size_t len = 0; len < STAMP_LEN; len++) {
                assert_int_equal(stamp_request_parse(span_of(request_bytes, len), &parsed), STAMP_FAULT_SHORT);
                assert_int_equal(stamp_reply_parse(span_of(reply_bytes, len), &reply), STAMP_FAULT_SHORT);
        }

        memcpy(buf, reply_bytes, STAMP_LEN);
        put_be32(buf + 8, 1000000000); /* nanoseconds of the PTP timestamp */
        assert_int_equal(stamp_reply_parse(span_of(buf, STAMP_LEN), &reply), STAMP_FAULT_TIMESTAMP);
        assert_int_equal(stamp_request_parse(span_of(buf, STAMP_LEN), &parsed), STAMP_FAULT_TIMESTAMP);
        memcpy(buf, reply_bytes, STAMP_LEN);
        put_be32(buf + 20, 1000000000); /* of the receive timestamp */
        assert_int_equal(stamp_reply_parse(span_of(buf, STAMP_LEN), &reply), STAMP_FAULT_TIMESTAMP);
        memcpy(buf, reply_bytes, STAMP_LEN);
        buf[13] = 0;
        assert_int_equal(stamp_reply_parse(span_of(buf, STAMP_LEN), &reply), STAMP_FAULT_MULTIPLIER);
}

/* The probe's sequence number passes 2^32: it continues. */
static void test_sequence_unwrap(void **state)
{
        const uint64_t wrap = UINT64_C(1) << 32;

        assert_int_equal(stamp_sequence_unwrap(wrap - 1, UINT32_MAX), wrap - 1);
        assert_int_equal(stamp_sequence_unwrap(wrap - 1, 0), wrap);
        assert_int_equal(stamp_sequence_unwrap(wrap + 5, UINT32_MAX - 1), wrap - 2);
        assert_int_equal(stamp_sequence_unwrap(7 * wrap + 3, 2), 7 * wrap + 2);
        assert_int_equal(stamp_sequence_unwrap(7 * wrap, UINT32_MAX), 7 * wrap - 1);
        assert_int_equal(stamp_sequence_unwrap(0, 0), 0);
        assert_int_equal(stamp_sequence_unwrap(2, UINT32_MAX), UINT32_MAX); /* there is nothing before 0 */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_time_known_dates),
                cmocka_unit_test(test_time_fractions),
                cmocka_unit_test(test_time_round_trip),
                cmocka_unit_test(test_time_none_and_not_a_time),
                cmocka_unit_test(test_error_known_values),
                cmocka_unit_test(test_error_bounds),
                cmocka_unit_test(test_request_bytes),
                cmocka_unit_test(test_reply_bytes),
                cmocka_unit_test(test_multiplier_is_never_zero),
                cmocka_unit_test(test_reply_is_no_request),
                cmocka_unit_test(test_padding_is_a_request),
                cmocka_unit_test(test_malformed),
                cmocka_unit_test(test_sequence_unwrap),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
