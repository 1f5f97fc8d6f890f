/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/text.h"
#include "tests/fault.h"
#include "tests/test.h"

static json_t *parse(const char *text)
{
        json_t *value = NULL;
        struct err err = {0};

        if (json_parse(span_of_text(text), "test", &value, &err) < 0)
                fail_msg("%s: %s", text, err.text);
        return value;
}

static void test_canonical_form(void **state)
{
        _cleanup_json_ json_t *value =
                parse(" {\"b\":[1,{},[]],\"a\":{\"z\":null,\"Z\":true},\"\\u00e9\":\"\\n/\\u0001\","
                      "\"aa\":-9223372036854775808} ");
        _cleanup_free_ char *text = json_format(value), *line = json_format_line(value);

        assert_string_equal(text, "{\n"
                                  "  \"a\": {\n"
                                  "    \"Z\": true,\n"
                                  "    \"z\": null\n"
                                  "  },\n"
                                  "  \"aa\": -9223372036854775808,\n"
                                  "  \"b\": [\n"
                                  "    1,\n"
                                  "    {},\n"
                                  "    []\n"
                                  "  ],\n"
                                  "  \"\xc3\xa9\": \"\\n/\\u0001\"\n"
                                  "}\n");
        assert_string_equal(line, "{\"a\":{\"Z\":true,\"z\":null},\"aa\":-9223372036854775808,\"b\":[1,{},[]],"
                                  "\"\xc3\xa9\":\"\\n/\\u0001\"}");
}

static void test_scalars(void **state)
{
        static const char *const values[] = {"1", "\"x\"", "true", "null"};

        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                _cleanup_json_ json_t *value = parse(values[i]);
                _cleanup_free_ char *line = json_format_line(value);

                assert_string_equal(line, values[i]);
        }
}

static void test_refused(void **state)
{
        static const char *const cases[] = {
                "",
                " ",
                "{",
                "{\"a\":1,\"a\":2}", /* a duplicate key, however it is written */
                "{\"a\":1,\"\\u0061\":2}",
                "{\"x\":{\"a\":1,\"a\":1}}",
                "{} {}",
                "[1,]",
                "{\"a\":1,}",
                "{a:1}",
                "{'a':1}",
                "[01]",
                "[+1]",
                "[0x1]",
                "[1.0]",
                "[1e3]",
                "[0.1]",
                "[-0.0]",
                "[NaN]",
                "[Infinity]",
                "[9223372036854775808]",
                "[\"\xff\"]",
                "[\"\xc0\x80\"]",
                "[\"\xed\xa0\x80\"]",
                "[\"\\ud800\"]",
                "[\"\\u0000\"]",
                "[\"\n\"]",
                "// comment\n[]",
                "\xef\xbb\xbf[]",
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                json_t *value = NULL;
                struct err err = {0};

                if (json_parse(span_of_text(cases[i]), "name", &value, &err) != -EINVAL)
                        fail_msg("%s was accepted", cases[i]);
                assert_int_equal(err.kind, ERR_DATA);
                assert_string_equal(err.position.file, "name");
                assert_null(value);
        }
        assert_int_equal(json_parse(span_of("[]\0", 3), "name", &(json_t *){NULL}, NULL), -EINVAL);
        assert_int_equal(json_parse(span_of(NULL, 0), "name", &(json_t *){NULL}, NULL), -EINVAL);
}

static void test_position_of_an_error(void **state)
{
        json_t *value = NULL;
        struct err err = {0};

        assert_int_equal(json_parse(span_of_text("{\n  \"a\": 1,\n  \"b\" 2\n}"), "x.json", &value, &err), -EINVAL);
        assert_int_equal(err.position.line, 3);
        assert_true(err.position.column >= 3);
}

static void test_nesting(void **state)
{
        for (int depth = 64; depth <= 65; depth++) {
                _cleanup_text_ struct text text = {0};
                _cleanup_json_ json_t *value = NULL;
                struct err err = {0};

                for (int i = 0; i < depth; i++)
                        text_add(&text, i % 2 ? "[" : "{\"a\":");
                text_add(&text, "1");
                for (int i = depth - 1; i >= 0; i--)
                        text_add(&text, i % 2 ? "]" : "}");
                assert_int_equal(json_parse(span_of(text.data, text.len), "x", &value, &err),
                                 depth == 64 ? 0 : -EINVAL);
        }
}

/* Brackets within strings do not nest, whatever escapes stand before them. */
static void test_brackets_in_strings(void **state)
{
        _cleanup_text_ struct text text = {0};
        _cleanup_json_ json_t *value = NULL;

        text_add(&text, "[\"\\\\\\\"");
        for (int i = 0; i < 100; i++)
                text_add(&text, "[{");
        text_add(&text, "\\\\\"]");
        value = parse(text.data);
        assert_int_equal(json_array_size(value), 1);
}

/* Millions of brackets end in an error, not in an exhausted stack. */
static void test_deep_nesting(void **state)
{
        size_t len = 10 * 1000 * 1000;
        _cleanup_free_ char *text = malloc(len);
        json_t *value = NULL;

        assert_non_null(text);
        memset(text, '[', len);
        assert_int_equal(json_parse(span_of(text, len), "x", &value, NULL), -EINVAL);
}

static void test_no_reals_are_written(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_json_ json_t *value = json_pack("{s:[{s:f}]}", "a", "b", 0.5);
        struct err err = {0};

        assert_non_null(value);
        assert_null(json_format(value));
        assert_null(json_format_line(value));
        assert_int_equal(json_save(scratch.fd, "x.json", value, &err), -EINVAL);
        assert_int_equal(err.kind, ERR_BUG);
        assert_int_equal(faccessat(scratch.fd, "x.json", F_OK, 0), -1);
}

static void test_files(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_json_ json_t *value = parse("{\"a\": 1}"), *again = NULL;
        struct err err = {0};

        assert_int_equal(json_save(scratch.fd, "x.json", value, NULL), 0);
        assert_int_equal(json_load(scratch.fd, "x.json", 100, &again, NULL), 0);
        assert_true(json_equal(value, again));
        assert_int_equal(json_load(scratch.fd, "x.json", 5, &(json_t *){NULL}, &err), -EFBIG);
        assert_int_equal(json_load(scratch.fd, "y.json", 5, &(json_t *){NULL}, &err), -ENOENT);
        assert_int_equal(symlinkat("x.json", scratch.fd, "link.json"), 0);
        assert_int_equal(json_load(scratch.fd, "link.json", 100, &(json_t *){NULL}, &err), -ELOOP);
}

static void test_members(void **state)
{
        _cleanup_json_ json_t *value = parse("{\"s\":\"x\",\"i\":-5,\"b\":false,\"a\":[],\"o\":{}}");
        const char *string = NULL;
        int64_t integer = 0;
        bool boolean = true;
        json_t *member = NULL;
        struct err err = {0};

        assert_int_equal(json_get_string(value, "w", "s", &string, NULL), 0);
        assert_string_equal(string, "x");
        assert_int_equal(json_get_i64(value, "w", "i", &integer, NULL), 0);
        assert_int_equal(integer, -5);
        assert_int_equal(json_get_bool(value, "w", "b", &boolean, NULL), 0);
        assert_false(boolean);
        assert_int_equal(json_get_array(value, "w", "a", &member, NULL), 0);
        assert_int_equal(json_get_object(value, "w", "o", &member, NULL), 0);

        assert_int_equal(json_get_string(value, "plan.json", "i", &string, &err), -EINVAL);
        assert_string_equal(err.text, "plan.json: \"i\" is not a string");
        assert_int_equal(json_get_i64(value, "plan.json", "none", &integer, &err), -EINVAL);
        assert_string_equal(err.text, "plan.json: \"none\" is missing, expected an integer");
        assert_int_equal(json_get_bool(value, "w", "i", &boolean, &err), -EINVAL);
        assert_int_equal(json_get_array(value, "w", "o", &member, &err), -EINVAL);
        assert_int_equal(json_get_object(value, "w", "a", &member, &err), -EINVAL);
        assert_int_equal(json_get_string(NULL, "w", "s", &string, &err), -EINVAL);
        assert_int_equal(err.kind, ERR_DATA);
}

/* Reading and writing again under each failed allocation gives the same bytes, or an error. */
static void test_out_of_memory(void **state)
{
        static const char text[] = "{\"name-of-some-length\":[\"another-string-of-some-length\",1,{\"a\":null}]}";

        for (unsigned n = 1;; n++) {
                _cleanup_json_ json_t *value = NULL;
                _cleanup_free_ char *line = NULL;
                struct err err = {0};
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                r = json_parse(span_of_text(text), "x", &value, &err);
                line = r == 0 ? json_format_line(value) : NULL;
                if (line)
                        assert_string_equal(line, text);
                if (!fault_disarm()) {
                        assert_non_null(line);
                        assert_true(n > 5);
                        break;
                }
                if (r < 0)
                        assert_int_equal(r, -ENOMEM);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_canonical_form), cmocka_unit_test(test_scalars),
                cmocka_unit_test(test_refused),        cmocka_unit_test(test_position_of_an_error),
                cmocka_unit_test(test_nesting),        cmocka_unit_test(test_brackets_in_strings),
                cmocka_unit_test(test_deep_nesting),   cmocka_unit_test(test_no_reals_are_written),
                cmocka_unit_test(test_files),          cmocka_unit_test(test_members),
                cmocka_unit_test(test_out_of_memory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
