/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/inspector.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"

/* Allows "good.example" and nothing else; remembers what it was asked. */
struct asked {
        unsigned n;
        char sni[64], host[64];
        bool opaque;
};

static bool is_allowed(void *userdata, const char *sni, const char *http_host)
{
        struct asked *asked = userdata;

        asked->n++;
        strcpy(asked->sni, sni ? sni : "-");
        strcpy(asked->host, http_host ? http_host : "-");
        asked->opaque = sni && http_host && !sni[0] && !http_host[0];
        return asked->opaque || (sni && strcmp(sni, "good.example") == 0) ||
               (http_host && strcmp(http_host, "good.example") == 0);
}

/* All of @text at once, and then octet by octet: the same comes out. Return: what went through, or -EPERM. */
static int through(const char *text, size_t len, bool is_strict, struct asked *ret)
{
        struct inspector whole, pieces;
        size_t passed = 0, n = 0;
        const char *why;
        int r, again = 0;

        *ret = (struct asked){0};
        whole = pieces = (struct inspector){.is_strict = is_strict, .is_allowed = is_allowed, .userdata = ret};
        for (size_t end = 1; end <= len && again == 0; end++) {
                again = inspector_read(&pieces, span_of(text + passed, end - passed), end == len, &n, &why);
                if (again == 0)
                        passed += n;
        }
        *ret = (struct asked){0};
        r = inspector_read(&whole, span_of(text, len), true, &n, &why);
        assert_int_equal(again, r);
        if (r == 0)
                assert_int_equal(passed, n);
        return r < 0 ? r : (int)n;
}

static void requests(void **state)
{
        static const struct {
                const char *text;
                bool passes;
                unsigned n_asked;
        } cases[] = {
                {"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n", true, 1},
                {"GET / HTTP/1.1\r\nHost: GOOD.example.:80\r\n\r\n", true, 1},
                {"GET / HTTP/1.1\r\nHost: bad.example\r\n\r\n", false, 1},
                {"GET / HTTP/1.1\r\nHost: good.example\r\n\r\nGET / HTTP/1.1\r\nHost: good.example\r\n\r\n", true, 2},
                {"GET / HTTP/1.1\r\nHost: good.example\r\n\r\nGET / HTTP/1.1\r\nHost: bad.example\r\n\r\n", false, 2},
                {"POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 5\r\n\r\nhello", true, 1},
                /* the body is no request, and what follows it is one */
                {"POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 3\r\n\r\nGETGET / HTTP/1.1\r\nHost: "
                 "bad.example\r\n\r\n",
                 false, 2},
                {"POST / HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
                 "GET / HTTP/1.1\r\nHost: bad.example\r\n\r\n",
                 false, 2},
                {"GET / HTTP/1.1\r\nHost: good.example\r\nHost: good.example\r\n\r\n", false, 0},
                {"GET http://bad.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", false, 0},
                {"\r\nGET / HTTP/1.1\r\nHost: bad.example\r\n\r\n", false, 0},
                {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false, 0},
                /* an offer of HTTP/2 may be made, but what would follow where it is taken is refused */
                {"GET / HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                 "Content-Length: 0\r\nHTTP2-Settings: AAMAAABkAAQ\r\n\r\nGET / HTTP/1.1\r\nHost: good.example\r\n\r\n",
                 true, 2},
                {"GET / HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                 "HTTP2-Settings: AAMAAABkAAQ\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                 false, 1},
                {"FROB / HTTP/1.1\r\nHost: bad.example\r\n\r\n", false, 1},
                {"POST / HTTP/1.1\r\nHost: good.example\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx"
                 "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n",
                 false, 1},
                {"GET / HTTP/1.1\r\nHost: good.exam", false, 0}, /* the end in the head */
                {"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n\0\0\1\2", true, 1},
                {"* OK ready\r\n", true, 1},
                /* HTTP/0.9 names no host, and what comes after it could; a store's key is no path */
                {"GET /\r\n", false, 0},
                {"\r\n get \t/index.html\n", false, 0},
                {"GET /\r\nGET / HTTP/1.1\r\nHost: bad.example\r\n\r\n", false, 0},
                {"GET key\r\n", true, 1},
                {"GETS /\r\n", true, 1},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct asked asked;
                int r = through(cases[i].text, strlen(cases[i].text), false, &asked);

                if ((r >= 0) != cases[i].passes || asked.n != cases[i].n_asked)
                        fail_msg("%s: %d, asked %u times", cases[i].text, r, asked.n);
                if (r >= 0)
                        assert_int_equal(r, strlen(cases[i].text));
        }
}

/* Servers are lenient in different ways: whatever one of them could take for a request with a host is read as one. */
static void requests_to_lenient_servers(void **state)
{
        static const char rest[] = "\r\nHost: bad.example\r\n\r\n";
        static const struct {
                const char *line;
                size_t len;
        } cases[] = {
                {" GET / HTTP/1.1", 15},    {"\tGET / HTTP/1.1", 15},  {"\x1cGET / HTTP/1.1", 15},
                {"\xa0GET / HTTP/1.1", 15}, {"GET\t/\tHTTP/1.1", 14},  {"\r\n GET / HTTP/1.1", 17},
                {"0GET / HTTP/1.1", 15},    {"!GET / HTTP/1.1", 15},   {"get / http/1.1", 14},
                {"GET /\0 HTTP/1.1", 15},   {" GET /\0 HTTP/1.1", 16},
        };
        struct asked asked;
        char buf[64];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                memcpy(buf, cases[i].line, cases[i].len);
                memcpy(buf + cases[i].len, rest, sizeof(rest));
                if (through(buf, cases[i].len + sizeof(rest) - 1, false, &asked) != -EPERM || asked.opaque)
                        fail_msg("case %zu was let through", i);
        }
}

static void a_first_line_that_is_too_long(void **state)
{
        static char text[9000] = "GET /";
        struct asked asked;

        memset(text + 5, 'a', 8500);
        strcpy(text + 8505, " HTTP/1.1\r\nHost: bad.example\r\n\r\n");
        assert_int_equal(through(text, strlen(text), false, &asked), -EPERM);
        assert_int_equal(asked.n, 0);
}

/* One that never ends is given up, long before a mebibyte of it is held. */
static void a_head_that_is_too_long(void **state)
{
        static const char start[] = "GET / HTTP/1.1\r\nHost: good.example\r\n", field[] = "X: a\r\n";
        static char text[1 << 20];
        struct asked asked = {0};
        struct inspector in = {.is_allowed = is_allowed, .userdata = &asked};
        size_t len = sizeof(start) - 1, through = 0, given = 0;
        const char *why = NULL;
        int r = 0;

        memcpy(text, start, len);
        for (; len + sizeof(field) + 1 < sizeof(text); len += sizeof(field) - 1)
                memcpy(text + len, field, sizeof(field) - 1);
        memcpy(text + len, "\r\n", 2);
        for (; r == 0 && given < sizeof(text); given += 1024)
                r = inspector_read(&in, span_of(text, given), false, &through, &why);
        assert_int_equal(r, -EPERM);
        assert_int_equal(through, 0);
        assert_true(given <= 64 * 1024);
        assert_non_null(why);
        assert_int_equal(asked.n, 0);
}

/* Their octets go on as soon as they cannot be a request: whoever sends them waits for an answer. */
static void protocols_without_lines(void **state)
{
        static const struct {
                const char *text;
                size_t len;
        } cases[] = {
                {"AMQP\0\0\x09\x01", 8},                                         /* AMQP 0-9-1, 4.2.2 */
                {"0032git-upload-pack /project.git\0host=myserver.com\0", 0x32}, /* git's gitprotocol-pack */
                {"\0\0\0\x08\x04\xd2\x16\x2f", 8},                               /* PostgreSQL's SSLRequest */
                {"\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0", 14},                    /* MQTT 3.1.1, 3.1 */
                {"\x13"
                 "BitTorrent protocol\0\0\0\0\0\0\0\0",
                 28}, /* BEP 3 */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct asked asked = {0};
                struct inspector in = {.is_allowed = is_allowed, .userdata = &asked};
                size_t len = 0;
                const char *why;

                assert_int_equal(inspector_read(&in, span_of(cases[i].text, cases[i].len), false, &len, &why), 0);
                assert_int_equal(len, cases[i].len);
                assert_true(asked.opaque);
        }
}

static void an_upgrade_is_refused_where_hosts_have_to_be_seen(void **state)
{
        static const char upgrade[] = "GET / HTTP/1.1\r\nHost: good.example\r\nConnection: upgrade\r\n"
                                      "Upgrade: websocket\r\n\r\nanything";
        struct asked asked;

        assert_int_equal(through(upgrade, strlen(upgrade), true, &asked), -EPERM);
        assert_int_equal(through(upgrade, strlen(upgrade), false, &asked), strlen(upgrade));
}

/* A ClientHello of TLS 1.2 with one cipher suite and one extension, by RFC 5246 7.4.1.2 and RFC 6066 3: of type 0 its
 * content is a server name. */
static size_t put_hello_with(uint8_t *buf, uint16_t type, const char *name)
{
        size_t name_len = strlen(name), list = name_len + 3, extension = list + 2, extensions = extension + 4;
        size_t body = 2 + 32 + 1 + 4 + 2 + 2 + extensions, n = 0;

        memset(buf, 0, 9 + body);
        buf[n++] = 22;
        buf[n++] = 3;
        buf[n++] = 1;
        put_be16(buf + n, (uint16_t)(body + 4));
        n += 2;
        buf[n] = 1;
        put_be16(buf + n + 2, (uint16_t)body);
        n += 4;
        put_be16(buf + n, 0x0303);
        n += 2 + 32 + 1; /* the random octets are zeros, and the session has no id */
        put_be16(buf + n, 2);
        put_be16(buf + n + 2, 0x002f);
        n += 4;
        buf[n++] = 1;
        buf[n++] = 0;
        put_be16(buf + n, (uint16_t)extensions);
        put_be16(buf + n + 2, type);
        put_be16(buf + n + 4, (uint16_t)extension);
        put_be16(buf + n + 6, (uint16_t)list);
        put_be16(buf + n + 9, (uint16_t)name_len);
        memcpy(buf + n + 11, name, name_len);
        return n + 11 + name_len;
}

static size_t put_hello(uint8_t *buf, const char *name)
{
        return put_hello_with(buf, 0, name);
}

/* It asks for nobody by name: what a rule for a server name does not allow. */
static void no_server_name(void **state)
{
        const uint16_t others[] = {0xff01 /* RFC 5746 */, 0xfe0d /* RFC 9849, without a name outside */};

        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                struct asked asked;
                uint8_t buf[256];
                size_t len = put_hello_with(buf, others[i], "good.example");

                assert_int_equal(through((char *)buf, len, true, &asked), -EPERM);
                assert_int_equal(asked.n, 1);
                assert_string_equal(asked.sni, "");
                assert_string_equal(asked.host, "-");
        }
}

static void server_names(void **state)
{
        struct asked asked;
        uint8_t buf[256];
        size_t len;

        len = put_hello(buf, "good.example");
        assert_int_equal(through((char *)buf, len, true, &asked), len);
        assert_string_equal(asked.sni, "good.example");
        assert_string_equal(asked.host, "-");
        len = put_hello(buf, "bad.example");
        assert_int_equal(through((char *)buf, len, true, &asked), -EPERM);
        assert_int_equal(asked.n, 1);
        assert_int_equal(through((char *)buf, len - 3, true, &asked), -EPERM); /* cut off */
        assert_int_equal(asked.n, 0);
        /* some servers pass over a warning that comes before it, RFC 8446 6 */
        memcpy(buf, "\x15\3\1\0\2\1\x5a", 7);
        len = 7 + put_hello(buf + 7, "bad.example");
        assert_int_equal(through((char *)buf, len, false, &asked), -EPERM);
        assert_int_equal(asked.n, 0);
        len = put_hello(buf, "bad.example");
        buf[5] = 2; /* a server's hello from a client */
        assert_int_equal(through((char *)buf, len, false, &asked), -EPERM);
        assert_int_equal(asked.n, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(requests),
                cmocka_unit_test(requests_to_lenient_servers),
                cmocka_unit_test(a_first_line_that_is_too_long),
                cmocka_unit_test(a_head_that_is_too_long),
                cmocka_unit_test(protocols_without_lines),
                cmocka_unit_test(an_upgrade_is_refused_where_hosts_have_to_be_seen),
                cmocka_unit_test(server_names),
                cmocka_unit_test(no_server_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
