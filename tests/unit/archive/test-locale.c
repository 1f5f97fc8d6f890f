/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers are printed and read the same where people write a decimal comma and group their thousands. */

#include <locale.h>
#include <sys/wait.h>

#include "archive/samples.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "tests/skip.h"
#include "tests/test.h"

#define LOCALE "de_DE.UTF-8"

/* Everything that prints, as one text. */
static char *print_all(const struct scratch *scratch, const char *file)
{
        static const struct column columns[] = {{"a_ns", "ns", SAMPLE_CLOCK_NONE, ""}};
        _cleanup_samples_writer_ struct samples_writer *writer = NULL;
        _cleanup_json_ json_t *value = json_pack("{s:I}", "count", (json_int_t)1234567);
        _cleanup_free_ char *json = json_format(value);
        struct text out = {0};
        const int64_t sample = 1234567;
        struct err err = {0};
        char buf[48];

        text_add(&out, number_format_ns(1234567, buf));
        text_add(&out, number_format_scaled(1234567, 1000, 2, buf));
        text_addf(&out, "%d %s", 1234567, json);

        assert_int_equal(samples_create(scratch->fd, file, columns, 1, &writer, NULL), 0);
        assert_int_equal(sample_write(samples_writer_base(writer), &sample, NULL), 0);
        assert_int_equal(samples_finish(writer, NULL), 0);

        err_set_errno(&err, ERR_IO, ENOENT, "x");
        text_add(&out, err.text);
        return text_take(&out);
}

static void check_reading(const struct scratch *scratch, const char *file)
{
        _cleanup_samples_reader_ struct samples_reader *reader = NULL;
        const int64_t *const *columns;
        int64_t value;

        assert_int_equal(number_parse_scaled(span_of_text("1.5"), 10, &value), 0);
        assert_int_equal(value, 15);
        assert_int_equal(number_parse_scaled(span_of_text("1,5"), 10, &value), -EINVAL);
        assert_int_equal(number_parse_i64(span_of_text("1.234"), &value), -EINVAL);
        assert_int_equal(samples_open(scratch->fd, file, &reader, NULL), 0);
        assert_int_equal(samples_read(reader, &columns, NULL), 1);
        assert_int_equal(columns[0][0], 1234567);
}

static void test_same_bytes(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_free_ char *plain = NULL, *german = NULL, *first = NULL, *second = NULL;
        size_t first_len, second_len;
        char decimal[16];

        assert_non_null(setlocale(LC_ALL, "C"));
        plain = print_all(&scratch, "c.zst");

        /* the locale is there and would show: the C library prints a comma */
        assert_non_null(setlocale(LC_ALL, LOCALE));
        snprintf(decimal, sizeof(decimal), "%.1f", 1.5);
        assert_string_equal(decimal, "1,5");

        german = print_all(&scratch, "de.zst");
        assert_string_equal(plain, german);
        check_reading(&scratch, "de.zst");
        assert_int_equal(file_read(scratch.fd, "c.zst", 4096, &first, &first_len, NULL), 0);
        assert_int_equal(file_read(scratch.fd, "de.zst", 4096, &second, &second_len, NULL), 0);
        assert_int_equal(first_len, second_len);
        assert_memory_equal(first, second, first_len);
}

/* Where the system does not have the locale, it is made from the C library's sources of it. */
static bool make_locale(const struct scratch *scratch)
{
        char command[256];
        int status;

        if (setlocale(LC_ALL, LOCALE))
                return true;
        snprintf(command, sizeof(command), "localedef -i de_DE -f UTF-8 %s/" LOCALE " >/dev/null 2>&1", scratch->path);
        status = system(command);
        if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) /* 1 is a warning */
                return false;
        setenv("LOCPATH", scratch->path, 1);
        return setlocale(LC_ALL, LOCALE) != NULL;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_same_bytes),
        };
        _cleanup_scratch_ struct scratch scratch = scratch_make();

        if (!make_locale(&scratch))
                return test_skip("locale", "neither the system nor localedef has " LOCALE);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
