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
                {"FROB / HTTP/1.1\r\nHost: bad.example\r\n\r\n", false, 1},
                {"POST / HTTP/1.1\r\nHost: good.example\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx"
                 "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n",
                 false, 1},
                {"GET / HTTP/1.1\r\nHost: good.exam", false, 0}, /* the end in the head */
                {"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n\0\0\1\2", true, 1},
                {"* OK ready\r\n", true, 1},
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

static void an_upgrade_is_refused_where_hosts_have_to_be_seen(void **state)
{
        static const char upgrade[] = "GET / HTTP/1.1\r\nHost: good.example\r\nConnection: upgrade\r\n"
                                      "Upgrade: websocket\r\n\r\nanything";
        struct asked asked;

        assert_int_equal(through(upgrade, strlen(upgrade), true, &asked), -EPERM);
        assert_int_equal(through(upgrade, strlen(upgrade), false, &asked), strlen(upgrade));
}

/* A ClientHello of TLS 1.2 with one cipher suite and a server name, by RFC 5246 7.4.1.2 and RFC 6066 3. */
static size_t put_hello(uint8_t *buf, const char *name)
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
        put_be16(buf + n + 2, 0);
        put_be16(buf + n + 4, (uint16_t)extension);
        put_be16(buf + n + 6, (uint16_t)list);
        put_be16(buf + n + 9, (uint16_t)name_len);
        memcpy(buf + n + 11, name, name_len);
        return n + 11 + name_len;
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
        buf[5] = 2; /* a server's hello from a client */
        assert_int_equal(through((char *)buf, len, false, &asked), -EPERM);
        assert_int_equal(asked.n, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(requests),
                cmocka_unit_test(an_upgrade_is_refused_where_hosts_have_to_be_seen),
                cmocka_unit_test(server_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
