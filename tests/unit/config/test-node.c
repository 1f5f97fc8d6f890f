/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "config/node.h"
#include "tests/test.h"

static struct node *parse(const char *text)
{
        struct node *node = NULL;
        struct err err = {0};

        if (node_parse(span_of_text(text), "f", NULL, &node, &err) < 0)
                fail_msg("%u:%u: %s", err.position.line, err.position.column, err.text);
        return node;
}

static void assert_json(const struct node *node, const char *expected)
{
        _cleanup_json_ json_t *json = node_to_json(node);
        _cleanup_free_ char *text = json_format_line(json);

        assert_non_null(text);
        assert_string_equal(text, expected);
}

static void test_tree(void **state)
{
        _cleanup_node_ struct node *root = parse("a: 1\n"
                                                 "b: {c: [x, \"1\", ''], d: }  # comment\n"
                                                 "e:\n"
                                                 "  - f: long\n"
                                                 "      text\n"
                                                 "  - >-\n"
                                                 "    folded\n"
                                                 "    text\n");
        const struct node *c = node_at(root, "b.c");

        assert_json(root, "{\"a\":\"1\",\"b\":{\"c\":[\"x\",\"1\",\"\"],\"d\":\"\"},"
                          "\"e\":[{\"f\":\"long text\"},\"folded text\"]}");
        assert_string_equal(root->keys[2], "e");
        assert_int_equal(root->key_positions[1].line, 2);
        assert_int_equal(root->key_positions[1].column, 1);
        assert_string_equal(root->position.file, "f");
        assert_int_equal(c->items[1]->position.line, 2);
        assert_int_equal(c->items[1]->position.column, 12);
        assert_false(c->items[0]->is_quoted);
        assert_true(c->items[1]->is_quoted);
        assert_true(c->items[2]->is_quoted);

        /* a value that was left out stands where its key does */
        assert_int_equal(node_at(root, "b.d")->position.column, 22);
        assert_false(node_at(root, "b.d")->is_quoted);
        assert_int_equal(node_count(root), 12);
}

/* Texts of the styles as YAML 1.2 folds, escapes and trims them (chapters 7.3 and 8.1). */
static void test_styles(void **state)
{
        static const struct {
                const char *text, *value;
        } cases[] = {
                {"a: 'it''s'\n", "it's"},
                {"a: 'it''s ''so'''\n", "it's 'so'"},
                {"a: ''''\n", "'"},
                {"a: \"\\x41\\u00e9\\U0001F600\"\n", "A\xc3\xa9\xf0\x9f\x98\x80"},
                {"a: \"one\n  two\\\n   three\"\n", "one twothree"},
                {"a: \"\\\"\\\\\\/\"\n", "\"\\/"},
                {"a: 'one\n  two'\n", "one two"},
                {"a: one\n  two # three\n", "one two"},
                {"a: one#two\n", "one#two"},
                {"a: >-\n  one\n  two\n", "one two"},
                {"a: |-\n  one\n", "one"},
                {"a: add:10\n", "add:10"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_node_ struct node *root = parse(cases[i].text);

                assert_string_equal(node_scalar_at(root, "a"), cases[i].value);
        }
}

static void test_empty(void **state)
{
        static const char *const texts[] = {"", "\n", "# nothing\n", "---\n", "\xef\xbb\xbf"};

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_node_ struct node *root = parse(texts[i]);

                assert_int_equal(root->kind, NODE_MAPPING);
                assert_int_equal(root->n_items, 0);
                assert_int_equal(root->position.line, 1);
        }
}

static void test_mark_and_line_ends(void **state)
{
        _cleanup_node_ struct node *root = parse("\xef\xbb\xbf"
                                                 "a: 1\r\nb: \xc3\xa9\r\n");

        assert_json(root, "{\"a\":\"1\",\"b\":\"\xc3\xa9\"}");
}

static const struct {
        const char *text;
        unsigned line, column;
        const char *reason;
} bad[] = {
        {"a: &x 1\nb: *x\n", 1, 4, "an anchor (\"&name\"): anchors are not read"},
        {"a: [1]\nb: *x\n", 2, 4, "an alias (\"*name\"): aliases are not read; write it out, or quote a text"},
        {"a: !!int 1\n", 1, 4, "a tag (\"!name\"): tags are not read"},
        {"a: !x {b: 1}\n", 1, 4, "a tag (\"!name\"): tags are not read"},
        {"%YAML 1.1\n---\na: 1\n", 1, 1, "a line that begins with \"%\": directives are not read"},
        {"a: 1\n---\nb: 1\n", 2, 1, "a second document; only one is read"},
        {"a: 1\n...\nb: 1\n", 2, 1, "a second document; only one is read"},
        {"a: 1\nb: 2\na: 3\n", 3, 1, "key \"a\" stands here twice"},
        {"{a: 1, \"a\": 3}\n", 1, 8, "key \"a\" stands here twice"},
        {"? [a]\n: 1\n", 1, 3, "a key that is not a plain text"},
        {"{[a]: 1}\n", 1, 2, "a key that is not a plain text"},
        {": 1\n", 1, 1, "an empty key"},
        {"a: \"x\\ny\"\n", 1, 4, "control character U+000A in a text; a text over several lines is folded with \">-\""},
        {"a: |\n  x\n", 2, 1, "control character U+000A in a text; a text over several lines is folded with \">-\""},
        {"a: \"x\\ty\"\n", 1, 4, "control character U+0009 in a text"},
        {"a: \"\\0\"\n", 1, 4, "control character U+0000 in a text"},
        {"\"a\\e\": 1\n", 1, 1, "control character U+001B in a text"},
        {"a: \"\\N\"\n", 1, 4, "control character U+0085 in a text"},
        {"a: \"\\u2028\"\n", 1, 4, "control character U+2028 in a text"},
        {"a: x\x1b[2J\n", 1, 5, "control character U+001B, which is not allowed here"},
        {"a: b\n\xc3\xa9: \xc2\x85\n", 2, 4, "control character U+0085, which is not allowed here"},
        {"a: 1\rb: 2\n", 1, 5, "control character U+000D, which is not allowed here"},
        {"a: \xe2\x80\xa8\n", 1, 4, "control character U+2028, which is not allowed here"},
        {"a: b\nc: \xc3\xa9\xc3\x28\n", 2, 5, "byte 0xC3 is not UTF-8; the whole input has to be"},
        {"\xff\xfe"
         "a", /* UTF-16 */
         1, 1, "byte 0xFF is not UTF-8; the whole input has to be"},
        {"a: \xed\xa0\x80\n", 1, 4, "byte 0xED is not UTF-8; the whole input has to be"},
        {"a: 'x''''y'\n", 1, 4, "two single quotes side by side in a single-quoted text; put it in double quotes"},
        {"a: ''''''\n", 1, 4, "two single quotes side by side in a single-quoted text; put it in double quotes"},
        {"a: [1\n", 2, 1, "not valid YAML: flow sequence without a closing bracket"},
        {"a: b: c\n", 1, 5, "not valid YAML: invalid nested block mapping on the same line"},
};

static void test_bad(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct node *node = NULL;
                struct err err = {0};

                print_message("%zu: %s\n", i, bad[i].reason);
                assert_int_equal(node_parse(span_of_text(bad[i].text), "f", NULL, &node, &err), -EINVAL);
                assert_null(node);
                assert_int_equal(err.kind, ERR_USAGE);
                assert_string_equal(err.text, bad[i].reason);
                assert_int_equal(err.position.line, bad[i].line);
                assert_int_equal(err.position.column, bad[i].column);
        }
}

static void test_nul(void **state)
{
        struct node *node = NULL;
        struct err err = {0};

        assert_int_equal(node_parse(span_of("a: b\0c\n", 7), "f", NULL, &node, &err), -EINVAL);
        assert_string_equal(err.text, "control character U+0000, which is not allowed here");
        assert_int_equal(err.position.column, 5);
}

static void repeat(struct text *text, const char *what, size_t n)
{
        for (size_t i = 0; i < n; i++)
                text_add(text, what);
        assert_false(text->failed);
}

static void assert_refused(const struct text *text, const char *reason)
{
        struct node *node = NULL;
        struct err err = {0};

        assert_int_equal(node_parse(span_of(text->data, text->len), "f", NULL, &node, &err), -EINVAL);
        assert_string_equal(err.text, reason);
}

static void test_limits(void **state)
{
        static const struct {
                const char *repeated;
                size_t n;
                const char *reason;
        } cases[] = {
                {"[", 1000000, "nested deeper than 32 levels"},
                {"{", 1000000, "a key that is not a plain text"},
                {"{a: ", 200000, "nested deeper than 32 levels"},
                {"[\n", 500000, "nested deeper than 32 levels"},
                {"- ", 500000, "nested deeper than 32 levels"},
                {"[a: ", 200000, "nested deeper than 32 levels"},
                {"? ", 500000, "a key that is not a plain text"},
                {"- a\n", 250000, "more than 20000 keys and values"},
                {"%", 1000000, "a line that begins with \"%\": directives are not read"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_text_ struct text text = {0};

                print_message("%s\n", cases[i].repeated);
                repeat(&text, cases[i].repeated, cases[i].n);
                assert_refused(&text, cases[i].reason);
        }
}

static void test_limit_of_bytes(void **state)
{
        _cleanup_text_ struct text text = {0};

        repeat(&text, "# a comment line\n", 620000);
        assert_refused(&text, "10540000 bytes; at most 1048576 are read");
}

static void test_limit_of_keys(void **state)
{
        _cleanup_text_ struct text text = {0};

        for (int i = 0; i < 1000; i++)
                text_addf(&text, "k%d: 1\n", i);
        node_free(parse(text.data));
        text_add(&text, "more: 1\n");
        assert_refused(&text, "a mapping of more than 1000 keys");
}

/* 32 levels are read, 33 are not. */
static void test_limit_of_depth(void **state)
{
        _cleanup_text_ struct text text = {0}, deeper = {0};

        repeat(&text, "[", 32);
        repeat(&text, "]", 32);
        node_free(parse(text.data));
        text_addf(&deeper, "[%s]", text.data);
        assert_refused(&deeper, "nested deeper than 32 levels");
}

/* Each level would double the size of the one before. */
static void test_alias_bomb(void **state)
{
        _cleanup_text_ struct text text = {0};

        text_add(&text, "a0: &a0 [x, x]\n");
        for (int i = 1; i < 64; i++)
                text_addf(&text, "a%d: &a%d [*a%d, *a%d]\n", i, i, i - 1, i - 1);
        assert_refused(&text, "an anchor (\"&name\"): anchors are not read");
}

static void assert_merge(const char *into, const char *over, const char *expected)
{
        _cleanup_node_ struct node *a = parse(into), *b = parse(over);

        assert_int_equal(node_merge(a, b), 0);
        assert_json(a, expected);
}

static void test_merge(void **state)
{
        assert_merge("{a: 1, b: {c: 2, d: 3}}", "{b: {c: 4}, e: 5}",
                     "{\"a\":\"1\",\"b\":{\"c\":\"4\",\"d\":\"3\"},\"e\":\"5\"}");
        assert_merge("{a: [1, 2]}", "{a: [3]}", "{\"a\":[\"3\"]}");
        assert_merge("{a: {b: 1}}", "{a: 2}", "{\"a\":\"2\"}");
        assert_merge("{a: 1}", "{a: {b: 2}}", "{\"a\":{\"b\":\"2\"}}");
        assert_merge("{a: 1}", "{}", "{\"a\":\"1\"}");
}

static void test_merge_of_a_kind(void **state)
{
        /* another kind: what the old one had is gone; its own keys and the neighbours stay */
        assert_merge("{w: {kind: http, threads: 8, body: 1KiB}, b: {kind: none}}", "{w: {kind: escape, tries: 3}}",
                     "{\"b\":{\"kind\":\"none\"},\"w\":{\"kind\":\"escape\",\"tries\":\"3\"}}");
        /* the same kind: a merge like any other */
        assert_merge("{w: {kind: http, threads: 8}}", "{w: {kind: http, body: 2KiB}}",
                     "{\"w\":{\"body\":\"2KiB\",\"kind\":\"http\",\"threads\":\"8\"}}");
        /* a first kind drops nothing */
        assert_merge("{w: {threads: 8}}", "{w: {kind: http}}", "{\"w\":{\"kind\":\"http\",\"threads\":\"8\"}}");
}

static void test_merge_copies(void **state)
{
        _cleanup_node_ struct node *a = parse("{}"), *b = parse("{a: {b: [1]}}");

        assert_int_equal(node_merge(a, b), 0);
        node_free(TAKE_PTR(b));
        assert_json(a, "{\"a\":{\"b\":[\"1\"]}}");
}

static void test_set(void **state)
{
        _cleanup_node_ struct node *root = parse("{w: {kind: http, threads: 8}, s: {v1.2: {rate: 1}}, l: [1]}");
        struct position position = {.file = "--set w.threads=4"};
        struct err err = {0};

        assert_int_equal(node_set(root, "w.threads", "4", &position, &err), 0);
        assert_string_equal(node_scalar_at(root, "w.threads"), "4");
        assert_string_equal(node_at(root, "w.threads")->position.file, "--set w.threads=4");
        assert_int_equal(node_set(root, "x.y.z", "5", NULL, &err), 0);
        assert_string_equal(node_scalar_at(root, "x.y.z"), "5");
        /* a key with a dot in it is found before its parts are */
        assert_int_equal(node_set(root, "s.v1.2.rate", "7", NULL, &err), 0);
        assert_int_equal(node_get(root, "s")->n_items, 1);
        assert_string_equal(node_scalar_at(root, "s.v1.2.rate"), "7");
        /* as in every override, another kind drops the old one's keys */
        assert_int_equal(node_set(root, "w.kind", "none", NULL, &err), 0);
        assert_json(node_get(root, "w"), "{\"kind\":\"none\"}");
}

static void test_set_refused(void **state)
{
        static const struct {
                const char *path;
                const char *reason;
        } cases[] = {
                {"", "\"\" is not a path of keys such as workload.duration"},
                {".w", "\".w\" is not a path of keys such as workload.duration"},
                {"w..x", "\"w..x\" is not a path of keys such as workload.duration"},
                {"w.", "\"w.\" is not a path of keys such as workload.duration"},
                {"w.kind.x", "cannot set \"w.kind.x\": \"w.kind\" is not a mapping"},
                {"l.0", "cannot set \"l.0\": \"l\" is not a mapping"},
        };
        _cleanup_node_ struct node *root = parse("{w: {kind: http}, l: [1]}");
        _cleanup_text_ struct text deep = {0};
        struct err err = {0};

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(node_set(root, cases[i].path, "1", NULL, &err), -EINVAL);
                assert_string_equal(err.text, cases[i].reason);
        }
        repeat(&deep, "a.", 100000);
        text_add(&deep, "a");
        assert_int_equal(node_set(root, deep.data, "1", NULL, &err), -EINVAL);
        assert_json(root, "{\"l\":[\"1\"],\"w\":{\"kind\":\"http\"}}");
}

static void test_lookup(void **state)
{
        _cleanup_node_ struct node *root = parse("{a: {b: {c: 1}}, d: 2}");

        assert_string_equal(node_scalar_at(root, "a.b.c"), "1");
        assert_null(node_scalar_at(root, "a.b"));
        assert_null(node_scalar_at(root, "a.x.c"));
        assert_null(node_scalar_at(root, "d.x"));
        assert_null(node_at(root, ""));
        assert_null(node_get(NULL, "a"));
        assert_null(node_get(node_get(root, "d"), "a"));
        assert_int_equal(node_at(root, "a.b")->kind, NODE_MAPPING);
}

static void test_remove(void **state)
{
        _cleanup_node_ struct node *root = parse("{a: 1, b: 2, c: 3}");

        node_remove(root, "a");
        node_remove(root, "x");
        assert_json(root, "{\"b\":\"2\",\"c\":\"3\"}");
        assert_string_equal(root->keys[0], "b");
        assert_int_equal(root->key_positions[0].column, 8);
        node_remove(root, "c");
        node_remove(root, "b");
        assert_int_equal(root->n_items, 0);
}

static void test_equal(void **state)
{
        static const struct {
                const char *a, *b;
                bool equal;
        } cases[] = {
                {"{a: 1, b: [x]}", "b: ['x']\na: 1\n", true},
                {"{a: 1}", "{a: 2}", false},
                {"{a: 1}", "{b: 1}", false},
                {"{a: 1}", "{a: 1, b: 1}", false},
                {"{a: [1, 2]}", "{a: [2, 1]}", false},
                {"{a: 1}", "{a: [1]}", false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_node_ struct node *a = parse(cases[i].a), *b = parse(cases[i].b);

                assert_int_equal(node_equal(a, b), cases[i].equal);
                assert_int_equal(node_equal(b, a), cases[i].equal);
        }
}

static void test_json(void **state)
{
        _cleanup_node_ struct node *root = parse("{a: 1, b: {c: [x, '']}}"), *again = NULL;
        _cleanup_json_ json_t *json = node_to_json(root);

        assert_int_equal(node_from_json(json, "plan.json", &again, NULL), 0);
        assert_true(node_equal(root, again));
        assert_string_equal(again->position.file, "plan.json");
}

static void test_json_refused(void **state)
{
        static const char *const texts[] = {"1", "[true]", "{\"a\": null}", "{\"a\": {\"b\": 3}}"};
        _cleanup_text_ struct text deep = {0};

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_json_ json_t *json = NULL;
                struct node *node = NULL;
                struct err err = {0};

                assert_int_equal(json_parse(span_of_text(texts[i]), "f", &json, NULL), 0);
                assert_int_equal(node_from_json(json, "f", &node, &err), -EINVAL);
                assert_int_equal(err.kind, ERR_DATA);
                assert_null(node);
        }
        for (int depth = 32; depth <= 33; depth++) {
                _cleanup_json_ json_t *json = NULL;
                _cleanup_node_ struct node *node = NULL;

                text_done(&deep);
                repeat(&deep, "[", (size_t)depth);
                repeat(&deep, "]", (size_t)depth);
                assert_int_equal(json_parse(span_of(deep.data, deep.len), "f", &json, NULL), 0);
                assert_int_equal(node_from_json(json, "f", &node, NULL), depth == 32 ? 0 : -EINVAL);
        }
}

static void test_kind_text(void **state)
{
        _cleanup_node_ struct node *root =
                parse("{a: , b: '', c: x, d: [], e: 01234567890123456789012345678901234567890}");
        char buf[64];

        assert_string_equal(node_kind_text(root, buf), "a mapping");
        assert_string_equal(node_kind_text(node_get(root, "a"), buf), "nothing");
        assert_string_equal(node_kind_text(node_get(root, "b"), buf), "\"\"");
        assert_string_equal(node_kind_text(node_get(root, "c"), buf), "\"x\"");
        assert_string_equal(node_kind_text(node_get(root, "d"), buf), "a sequence");
        assert_string_equal(node_kind_text(node_get(root, "e"), buf),
                            "\"0123456789012345678901234567890123456789...\"");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_tree),          cmocka_unit_test(test_styles),
                cmocka_unit_test(test_empty),         cmocka_unit_test(test_mark_and_line_ends),
                cmocka_unit_test(test_bad),           cmocka_unit_test(test_nul),
                cmocka_unit_test(test_limits),        cmocka_unit_test(test_limit_of_bytes),
                cmocka_unit_test(test_limit_of_keys), cmocka_unit_test(test_limit_of_depth),
                cmocka_unit_test(test_merge),         cmocka_unit_test(test_merge_of_a_kind),
                cmocka_unit_test(test_merge_copies),  cmocka_unit_test(test_set),
                cmocka_unit_test(test_set_refused),   cmocka_unit_test(test_lookup),
                cmocka_unit_test(test_remove),        cmocka_unit_test(test_equal),
                cmocka_unit_test(test_json),          cmocka_unit_test(test_json_refused),
                cmocka_unit_test(test_kind_text),     cmocka_unit_test(test_alias_bomb),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
