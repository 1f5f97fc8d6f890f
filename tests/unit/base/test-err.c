/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "tests/test.h"

static void test_set(void **state)
{
        struct err err = {0};

        assert_int_equal(err_set(&err, ERR_IO, ENOSPC, "cannot write %s", "x"), -ENOSPC);
        assert_int_equal(err.kind, ERR_IO);
        assert_int_equal(err.errnum, ENOSPC);
        assert_string_equal(err.text, "cannot write x");
        assert_int_equal(err_set(&err, ERR_USAGE, 0, "no"), -EINVAL);
        assert_int_equal(err_set(NULL, ERR_USAGE, EPERM, "nowhere to put it"), -EPERM);
        assert_int_equal(err_set_nomem(&err), -ENOMEM);
        assert_string_equal(err.text, "out of memory");
}

static void test_description(void **state)
{
        struct err err = {0};

        assert_int_equal(err_set_errno(&err, ERR_IO, ENOENT, "cannot open %s", "x"), -ENOENT);
        assert_string_equal(err.text, "cannot open x: No such file or directory");
        assert_int_equal(err_set_errno(&err, ERR_IO, 9999, "x"), -9999);
        assert_string_equal(err.text, "x: unknown error");
}

static void test_position(void **state)
{
        struct position at = {.file = "exp.yaml", .line = 3, .column = 7};
        struct err err = {0};
        char text[64];

        assert_int_equal(err_set_at(&err, ERR_USAGE, &at, "unknown key"), -EINVAL);
        err_format(&err, text, sizeof(text));
        assert_string_equal(text, "exp.yaml:3:7: unknown key");
        err_prefix(&err, "arm %s", "tree");
        err_format(&err, text, sizeof(text));
        assert_string_equal(text, "exp.yaml:3:7: arm tree: unknown key");

        at.line = 0;
        err_set_at(&err, ERR_USAGE, &at, "empty");
        err_format(&err, text, sizeof(text));
        assert_string_equal(text, "exp.yaml: empty");

        err_set(&err, ERR_USAGE, 0, "no position is left over");
        err_format(&err, text, sizeof(text));
        assert_string_equal(text, "no position is left over");
        err_format(&err, text, 5);
        assert_string_equal(text, "no p");
}

static void test_long_texts(void **state)
{
        char x[2000];
        struct err err = {0};

        memset(x, 'x', sizeof(x));
        x[sizeof(x) - 1] = '\0';
        err_set_errno(&err, ERR_IO, ENOENT, "%s", x);
        assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
        err_prefix(&err, "%s", x);
        assert_true(strlen(err.text) < sizeof(err.text));
}

static void test_nothing_to_prefix(void **state)
{
        struct err err = {0};

        err_prefix(&err, "x");
        err_prefix(NULL, "x");
        assert_string_equal(err.text, "");
}

/* The exit codes that users and scripts rely on. */
static void test_exit_codes(void **state)
{
        static const struct {
                enum err_kind kind;
                int code;
        } cases[] = {
                {ERR_NONE, 0}, {ERR_USAGE, 2},     {ERR_UNSUPPORTED, 6}, {ERR_ENVIRONMENT, 1},
                {ERR_DATA, 2}, {ERR_INTEGRITY, 5}, {ERR_IO, 1},          {ERR_BUG, 70},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_int_equal(err_exit_code(cases[i].kind), cases[i].code);
        assert_int_equal(err_exit_code((enum err_kind)99), 70);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_set),
                cmocka_unit_test(test_description),
                cmocka_unit_test(test_position),
                cmocka_unit_test(test_long_texts),
                cmocka_unit_test(test_nothing_to_prefix),
                cmocka_unit_test(test_exit_codes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
