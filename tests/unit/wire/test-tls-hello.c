/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tls-hello.h"

#include "base/hex.h"
#include "tests/test.h"

#define assert_fault(got, expected)                                                                                    \
        do {                                                                                                           \
                enum tls_hello_fault _got = (got);                                                                     \
                if (_got != (expected))                                                                                \
                        fail_msg("%s: %s", #got, tls_hello_fault_name(_got));                                          \
        } while (0)

/* RFC 8448, 3: the record of the first ClientHello; its server is named "server". */
static const char rfc8448[] =
        "16030100c4010000c00303cb34ecb1e78163ba1c38c6dacb196a6dffa21a8d9912ec18a2ef6283024dece70000061301130313"
        "02010000910000000b0009000006736572766572ff01000100000a00140012001d001700180019010001010102010301040023"
        "0000003300260024001d002099381de560e4bd43d23d8e435a7dbafeb3c06e51c13cae4d5413691e529aaf2c002b0003020304"
        "000d0020001e040305030603020308040805080604010501060102010402050206020202002d00020101001c00024001";

/* What OpenSSL 3.0 sent: s_client -servername Example.COM -alpn http/1.1 */
static const char openssl[] =
        "160301014701000143030325e5f34223750415cd2f1db9f7aa9fa34a9c932fb498df05b4603ce0c7d42df220c99af2fe2892"
        "0365af8790011071d50c372415afcbf125f1cbc17b72bf22cbf5003e130213031301c02cc030009fcca9cca8ccaac02bc02f"
        "009ec024c028006bc023c0270067c00ac0140039c009c0130033009d009c003d003c0035002f00ff010000bc00000010000e"
        "00000b4578616d706c652e434f4d000b000403000102000a00160014001d0017001e00190018010001010102010301040023"
        "00000010000b000908687474702f312e310016000000170000000d002a0028040305030603080708080809080a080b080408"
        "050806040105010601030303010302040205020602002b0009080304030303020301002d00020101003300260024001d0020"
        "d174aefbd4c202e230690f27b8bf5325bcdb719eb1489e4250d47491c0807427";

static void test_rfc_example(void **state)
{
        _cleanup_free_ uint8_t *bytes = NULL;
        struct tls_hello hello;
        size_t len, offset;

        assert_int_equal(hex_decode(span_of_text(rfc8448), &bytes, &len, &offset), 0);
        assert_int_equal(len, 201);
        for (size_t n = 0; n < len; n++)
                assert_fault(tls_hello_parse(span_of(bytes, n), &hello), TLS_HELLO_FAULT_INCOMPLETE);
        assert_fault(tls_hello_parse(span_of(bytes, len), &hello), TLS_HELLO_FAULT_NONE);
        assert_true(hello.has_name);
        assert_string_equal(hello.name.text, "server");
        assert_false(hello.has_encrypted_hello);
        assert_int_equal(hello.alpn_len, 0);
        assert_false(tls_hello_offers(&hello, "h2"));
}

static void test_openssl(void **state)
{
        _cleanup_free_ uint8_t *bytes = NULL;
        struct tls_hello hello;
        size_t len, offset;

        assert_int_equal(hex_decode(span_of_text(openssl), &bytes, &len, &offset), 0);
        assert_fault(tls_hello_parse(span_of(bytes, len), &hello), TLS_HELLO_FAULT_NONE);
        assert_string_equal(hello.name.text, "example.com");
        assert_true(tls_hello_offers(&hello, "http/1.1"));
        assert_false(tls_hello_offers(&hello, "h2"));
        assert_false(hello.has_encrypted_hello);
}

/* The same message in records of every size. */
static void test_fragmented(void **state)
{
        _cleanup_free_ uint8_t *bytes = NULL;
        size_t len, offset;

        assert_int_equal(hex_decode(span_of_text(rfc8448), &bytes, &len, &offset), 0);
        for (size_t size = 1; size < len - 5; size++) {
                uint8_t stream[6 * 200];
                size_t n = 0;
                struct tls_hello hello;

                for (size_t at = 5; at < len; at += size) {
                        size_t part = MIN(size, len - at);

                        memcpy(stream + n, bytes, 3);
                        put_be16(stream + n + 3, (uint16_t)part);
                        memcpy(stream + n + 5, bytes + at, part);
                        n += 5 + part;
                }
                for (size_t cut = 0; cut < n; cut++)
                        assert_fault(tls_hello_parse(span_of(stream, cut), &hello), TLS_HELLO_FAULT_INCOMPLETE);
                assert_fault(tls_hello_parse(span_of(stream, n), &hello), TLS_HELLO_FAULT_NONE);
                assert_string_equal(hello.name.text, "server");
        }
}

/* A ClientHello in one record with the extensions that @hex spells. Return: its length. */
static size_t hello_of(const char *hex, uint8_t stream[static 1024])
{
        static const uint8_t start[] = {22, 3, 1, 0, 0, 1, 0, 0, 0, 3, 3}, end[] = {0, 0, 2, 0x13, 0x01, 1, 0};
        _cleanup_free_ uint8_t *extensions = NULL;
        size_t len, offset, n = sizeof(start);

        assert_int_equal(hex_decode(span_of_text(hex), &extensions, &len, &offset), 0);
        memcpy(stream, start, n);
        memset(stream + n, 0x5a, 32);
        n += 32;
        memcpy(stream + n, end, sizeof(end));
        n += sizeof(end);
        put_be16(stream + n, (uint16_t)len);
        memcpy(stream + n + 2, extensions, len);
        n += 2 + len;
        put_be16(stream + 3, (uint16_t)(n - 5));
        put_be16(stream + 7, (uint16_t)(n - 9));
        return n;
}

static enum tls_hello_fault parse(const char *hex, struct tls_hello *ret)
{
        uint8_t stream[1024];
        size_t n = hello_of(hex, stream);

        return tls_hello_parse(span_of(stream, n), ret);
}

/* "a.b" as a server name, and "h2", "http/1.1" as protocols. */
#define NAME "0000 0008 0006 00 0003 612e62"
#define ALPN "0010 000e 000c 02 6832 08 687474702f312e31"

static void test_extensions(void **state)
{
        struct tls_hello hello;

        assert_fault(parse("", &hello), TLS_HELLO_FAULT_NONE);
        assert_false(hello.has_name);

        assert_fault(parse("0a0a 0000" ALPN NAME "ff01 0001 00", &hello), TLS_HELLO_FAULT_NONE);
        assert_true(hello.has_name);
        assert_string_equal(hello.name.text, "a.b");
        assert_true(tls_hello_offers(&hello, "h2"));
        assert_true(tls_hello_offers(&hello, "http/1.1"));
        assert_false(tls_hello_offers(&hello, "h"));
        assert_false(tls_hello_offers(&hello, "http/1.0"));
        assert_false(hello.has_encrypted_hello);

        assert_fault(parse(NAME "fe0d 0003 000001", &hello), TLS_HELLO_FAULT_NONE);
        assert_true(hello.has_encrypted_hello);
        assert_fault(parse("ffce 0000" NAME, &hello), TLS_HELLO_FAULT_NONE);
        assert_true(hello.has_encrypted_hello);

        /* One normal form. */
        assert_fault(parse("0000 0009 0007 00 0004 412e422e", &hello), TLS_HELLO_FAULT_NONE);
        assert_string_equal(hello.name.text, "a.b");
}

static void test_refused(void **state)
{
        static const struct {
                const char *extensions;
                enum tls_hello_fault fault;
        } rows[] = {
                {NAME NAME, TLS_HELLO_FAULT_TWICE},
                {ALPN ALPN, TLS_HELLO_FAULT_TWICE},
                {"fe0d 0000 fe0d 0000", TLS_HELLO_FAULT_TWICE},
                {"fe0d 0000 ffce 0000", TLS_HELLO_FAULT_TWICE},
                {"0000 0000", TLS_HELLO_FAULT_NAME},                                    /* as servers answer it */
                {"0000 0002 0000", TLS_HELLO_FAULT_NAME},                               /* an empty list */
                {"0000 0005 0003 00 0000", TLS_HELLO_FAULT_NAME},                       /* an empty name */
                {"0000 0008 0006 01 0003 612e62", TLS_HELLO_FAULT_NAME},                /* another type of name */
                {"0000 000e 000c 00 0003 612e62 00 0003 632e64", TLS_HELLO_FAULT_NAME}, /* two names */
                {"0000 0008 0005 00 0003 612e62", TLS_HELLO_FAULT_NAME},                /* lengths that differ */
                {"0000 0008 0007 00 0003 612e62", TLS_HELLO_FAULT_NAME},
                {"0000 0008 0006 00 0002 612e62", TLS_HELLO_FAULT_NAME},
                {"0000 0008 0006 00 0004 612e62", TLS_HELLO_FAULT_NAME},
                {"0000 0008 0006 00 0003 610062", TLS_HELLO_FAULT_NAME},         /* NUL */
                {"0000 000c 000a 00 0007 312e322e332e34", TLS_HELLO_FAULT_NAME}, /* 1.2.3.4 */
                {"0000 000a 0008 00 0005 5b3a3a315d", TLS_HELLO_FAULT_NAME},     /* [::1] */
                {"0010 0000", TLS_HELLO_FAULT_ALPN},
                {"0010 0002 0000", TLS_HELLO_FAULT_ALPN},
                {"0010 0003 0001 00", TLS_HELLO_FAULT_ALPN}, /* an empty protocol */
                {"0010 0005 0003 03 6832", TLS_HELLO_FAULT_ALPN},
                {"0010 0005 0004 02 6832", TLS_HELLO_FAULT_ALPN},
                {"0010 0104", TLS_HELLO_FAULT_ALPN},
                {"0000 0200", TLS_HELLO_FAULT_NAME},
                {"0015 0001", TLS_HELLO_FAULT_LENGTH}, /* padding that is not there */
                {"0015 00", TLS_HELLO_FAULT_LENGTH},
        };
        struct tls_hello hello;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                enum tls_hello_fault fault = parse(rows[i].extensions, &hello);

                if (fault != rows[i].fault)
                        fail_msg("%s: %s", rows[i].extensions, tls_hello_fault_name(fault));
                assert_false(hello.has_name);
        }
}

static void test_not_a_hello(void **state)
{
        static const struct {
                const char *hex;
                enum tls_hello_fault fault;
        } rows[] = {
                {"474554", TLS_HELLO_FAULT_RECORD},         /* GET */
                {"5353482d", TLS_HELLO_FAULT_RECORD},       /* SSH- */
                {"802e0103010015", TLS_HELLO_FAULT_RECORD}, /* SSL 2 */
                {"16", TLS_HELLO_FAULT_INCOMPLETE},
                {"1602", TLS_HELLO_FAULT_RECORD},
                {"17", TLS_HELLO_FAULT_RECORD},
                {"1603010000", TLS_HELLO_FAULT_RECORD},               /* empty */
                {"1603014001", TLS_HELLO_FAULT_RECORD},               /* over 2^14 */
                {"160301000402", TLS_HELLO_FAULT_TYPE},               /* ServerHello */
                {"1603010004 01 010001", TLS_HELLO_FAULT_LENGTH},     /* over the limit */
                {"1603010005 01 000001 03", TLS_HELLO_FAULT_LENGTH},  /* shorter than what is in it */
                {"1603010006 01 000040 02 00", TLS_HELLO_FAULT_TYPE}, /* of SSL 2 */
                {"1603010001 01 1703030001", TLS_HELLO_FAULT_RECORD}, /* another kind of record within it */
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_free_ uint8_t *bytes = NULL;
                struct tls_hello hello;
                size_t len, offset;

                assert_int_equal(hex_decode(span_of_text(rows[i].hex), &bytes, &len, &offset), 0);
                assert_fault(tls_hello_parse(span_of(bytes, len), &hello), rows[i].fault);
        }
}

static void test_lengths(void **state)
{
        uint8_t stream[1024];
        size_t n = hello_of(NAME, stream);
        struct tls_hello hello;

        /* What follows the hello in its record is no hello; what follows the record is not looked at. */
        stream[n] = 22;
        assert_fault(tls_hello_parse(span_of(stream, n + 1), &hello), TLS_HELLO_FAULT_NONE);
        put_be16(stream + 3, (uint16_t)(n - 5 + 1));
        assert_fault(tls_hello_parse(span_of(stream, n + 1), &hello), TLS_HELLO_FAULT_LENGTH);

        /* The extensions have to end where the hello does. */
        n = hello_of(NAME, stream);
        stream[51]--;
        assert_fault(tls_hello_parse(span_of(stream, n), &hello), TLS_HELLO_FAULT_LENGTH);
        stream[51] += 2;
        assert_fault(tls_hello_parse(span_of(stream, n), &hello), TLS_HELLO_FAULT_LENGTH);
        stream[51]--;
        assert_fault(tls_hello_parse(span_of(stream, n), &hello), TLS_HELLO_FAULT_NONE);

        stream[43] = 33; /* of the session */
        assert_fault(tls_hello_parse(span_of(stream, n), &hello), TLS_HELLO_FAULT_LENGTH);

        /* None at all. */
        n = hello_of("", stream) - 2;
        put_be16(stream + 3, (uint16_t)(n - 5));
        put_be16(stream + 7, (uint16_t)(n - 9));
        assert_fault(tls_hello_parse(span_of(stream, n), &hello), TLS_HELLO_FAULT_NONE);
        assert_false(hello.has_name);
}

/* A hello in so many records that their headers alone pass the limit. */
static void test_endless(void **state)
{
        _cleanup_free_ uint8_t *stream = malloc(2 * TLS_HELLO_MAX);
        static const uint8_t header[41] = {1, 0, 0xf0,     0,
                                           3, 3, [38] = 0, [39] = 0xe0}; /* up to 57344 octets of suites */
        struct tls_hello hello;
        size_t n = 0;

        assert_non_null(stream);
        for (size_t i = 0; n + 6 <= 2 * TLS_HELLO_MAX; i++, n += 6) {
                const uint8_t record[] = {22, 3, 1, 0, 1, i < sizeof(header) ? header[i] : 2};

                memcpy(stream + n, record, sizeof(record));
        }
        assert_fault(tls_hello_parse(span_of(stream, TLS_HELLO_MAX - 1), &hello), TLS_HELLO_FAULT_INCOMPLETE);
        assert_fault(tls_hello_parse(span_of(stream, TLS_HELLO_MAX), &hello), TLS_HELLO_FAULT_LENGTH);
        assert_fault(tls_hello_parse(span_of(stream, n), &hello), TLS_HELLO_FAULT_LENGTH);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rfc_example), cmocka_unit_test(test_openssl), cmocka_unit_test(test_fragmented),
                cmocka_unit_test(test_extensions),  cmocka_unit_test(test_refused), cmocka_unit_test(test_not_a_hello),
                cmocka_unit_test(test_lengths),     cmocka_unit_test(test_endless),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
