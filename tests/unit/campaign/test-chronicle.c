/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"
#include "campaign/chronicle.h"
#include "tests/test.h"

static char *written(const struct chronicle *c)
{
        struct scratch scratch = scratch_make();
        char *text = NULL;
        size_t len;

        assert_int_equal(chronicle_write(c, scratch.fd, NULL), 0);
        assert_int_equal(file_read(scratch.fd, CHRONICLE_NAME, 1 << 20, &text, &len, NULL), 0);
        assert_int_equal(strlen(text), len);
        scratch_remove(&scratch);
        return text;
}

/* A line: right-aligned seconds with six places, two blanks, what happened. Gives what follows the time. */
static const char *after_time(const char *line)
{
        const char *at = line + strspn(line, " ");
        size_t whole = strspn(at, "0123456789"), places = strspn(at + whole + 1, "0123456789");

        if (whole == 0 || at[whole] != '.' || places != 6 || strncmp(at + whole + 7, " s  ", 4) != 0)
                fail_msg("no time: %s", line);
        return at + whole + 11;
}

static void test_lines(void **state)
{
        _cleanup_chronicle_ struct chronicle c = {0};
        _cleanup_free_ char *text = NULL;
        char *rest;

        log_debug("before it is open");
        chronicle_open(&c);
        chronicle_note(&c, "phase %d", 1);
        log_debug("why");
        log_warning("\x1b[2Jclear");
        text = rest = written(&c);
        assert_string_equal(after_time(strsep(&rest, "\n")), "phase 1");
        assert_string_equal(after_time(strsep(&rest, "\n")), "detail: why");
        assert_string_equal(after_time(strsep(&rest, "\n")), "warning: \\x1b[2Jclear");
        assert_string_equal(rest, "");
}

static void test_nothing_after_the_end(void **state)
{
        struct chronicle c = {0};

        chronicle_open(&c);
        chronicle_close(&c);
        log_error("to nobody");
        assert_int_equal(c.text.len, 0);
        chronicle_close(&c); /* a second time, or without having been opened */
}

/* 100,000 lines, most of them of bytes that are written as four. */
static void test_bound(void **state)
{
        _cleanup_chronicle_ struct chronicle c = {0};
        _cleanup_free_ char *text = NULL;
        char last[64];
        const char *at;
        size_t lines = 0;

        chronicle_open(&c);
        for (size_t i = 0; i < 100000; i++)
                chronicle_note(&c, "%s",
                               i % 16 == 0 ? "x" : "\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x03\x04\x05\x06");
        text = written(&c);
        assert_true(strlen(text) <= CHRONICLE_BYTES_MAX + sizeof(last));
        for (at = text; (at = strchr(at, '\n')); at++)
                lines++;
        snprintf(last, sizeof(last), "\n%zu more lines were left out\n", 100000 - (lines - 1));
        if (!strstr(text, last))
                fail_msg("not%s", last);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_nothing_after_the_end),
                cmocka_unit_test(test_bound),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
