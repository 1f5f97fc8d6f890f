/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "evidence/difference.h"
#include "tests/test.h"

static json_t *parse(const char *text)
{
        json_t *json = NULL;

        assert_int_equal(json_parse(span_of_text(text), "test", &json, NULL), 0);
        return json;
}

static void compare(struct differences *d, const char *frozen, const char *again)
{
        _cleanup_json_ json_t *a = parse(frozen), *b = parse(again);

        assert_int_equal(differences_of_json(d, "f.json", a, b), 0);
}

static void test_equal(void **state)
{
        _cleanup_differences_ struct differences d = {0};

        compare(&d, "{\"a\": [1, {\"b\": \"lost\"}], \"c\": true}", "{\"c\": true, \"a\": [1, {\"b\": \"lost\"}]}");
        assert_int_equal(d.n_all, 0);
}

static void test_paths(void **state)
{
        static const char *const expected[][3] = {
                {"cells[1].p99_ns", "7", "\"lost\""},
                {"cells[2]", "{}", "nothing"},
                {"n", "true", "1"},
                {"new", "nothing", "3"},
                {"kind", "[]", "{}"},
                {"old", "null", "nothing"},
        };
        _cleanup_differences_ struct differences d = {0};
        size_t found = 0;

        compare(&d, "{\"cells\": [{}, {\"p99_ns\": 7}, {}], \"n\": true, \"old\": null, \"same\": 1, \"kind\": []}",
                "{\"cells\": [{}, {\"p99_ns\": \"lost\"}], \"n\": 1, \"new\": 3, \"same\": 1, \"kind\": {}}");
        assert_int_equal(d.n, 6);
        for (size_t i = 0; i < d.n; i++)
                for (size_t k = 0; k < 6; k++)
                        if (strcmp(d.items[i].path, expected[k][0]) == 0) {
                                assert_string_equal(d.items[i].file, "f.json");
                                assert_string_equal(d.items[i].frozen, expected[k][1]);
                                assert_string_equal(d.items[i].again, expected[k][2]);
                                found++;
                        }
        assert_int_equal(found, 6);
}

static void test_another_kind_of_document(void **state)
{
        _cleanup_differences_ struct differences d = {0};

        compare(&d, "[1]", "{}");
        assert_int_equal(d.n, 1);
        assert_string_equal(d.items[0].path, "");
        assert_string_equal(d.items[0].frozen, "[1]");
}

static void test_many_are_counted(void **state)
{
        _cleanup_differences_ struct differences d = {0};

        for (size_t i = 0; i < DIFFERENCES_MAX + 50; i++)
                assert_int_equal(differences_add(&d, "f", "p", "1", "2"), 0);
        assert_int_equal(d.n, DIFFERENCES_MAX);
        assert_int_equal(d.n_all, DIFFERENCES_MAX + 50);
}

static void test_long_values_are_cut(void **state)
{
        _cleanup_differences_ struct differences d = {0};
        char text[600];

        snprintf(text, sizeof(text), "\"%0500d\"", 0);
        compare(&d, text, "1");
        assert_true(strlen(d.items[0].frozen) < 200);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_equal),
                cmocka_unit_test(test_paths),
                cmocka_unit_test(test_another_kind_of_document),
                cmocka_unit_test(test_many_are_counted),
                cmocka_unit_test(test_long_values_are_cut),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
