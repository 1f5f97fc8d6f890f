/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/macro.h"
#include "config/key.h"
#include "tests/test.h"

struct door {
        char *colour;
        int64_t width;
};

static const struct key door_keys[] = {
        {.name = "colour", .type = KEY_STRING, .offset = offsetof(struct door, colour), .is_required = true},
        {.name = "width",
         .type = KEY_QUANTITY,
         .offset = offsetof(struct door, width),
         .unit = UNIT_BYTES,
         .min = 1,
         .max = 2048,
         .fallback = "1KiB",
         .help = "How wide it is."},
        {0},
};

static const struct key_table door_table = {.name = "door",
                                            .help = "A way in.",
                                            .size = sizeof(struct door),
                                            .keys = door_keys};

enum { ROOF_FLAT, ROOF_STEEP };

static const char *const roofs[] = {"flat", "steep", NULL};

struct house {
        char *name, *title, *drawing;
        bool is_lit;
        int64_t rate, offset;
        int roof;
        struct key_names streets, notes;
        struct door front;
        struct key_tables doors, windows;
        const struct node *extra;
};

static const struct key house_keys[] = {
        {.name = "name", .type = KEY_NAME, .offset = offsetof(struct house, name), .is_required = true},
        {.name = "title", .type = KEY_STRING, .offset = offsetof(struct house, title), .fallback = "A house"},
        {.name = "drawing", .type = KEY_FILE, .offset = offsetof(struct house, drawing)},
        {.name = "lit", .type = KEY_BOOL, .offset = offsetof(struct house, is_lit), .fallback = "true"},
        {.name = "rate", .type = KEY_QUANTITY, .offset = offsetof(struct house, rate), .unit = UNIT_RATE},
        {.name = "offset",
         .type = KEY_QUANTITY,
         .offset = offsetof(struct house, offset),
         .unit = UNIT_DURATION,
         .min = -5000,
         .max = 5000},
        {.name = "roof",
         .type = KEY_CHOICE,
         .offset = offsetof(struct house, roof),
         .choices = roofs,
         .fallback = "steep"},
        {.name = "streets", .type = KEY_NAMES, .offset = offsetof(struct house, streets)},
        {.name = "notes", .type = KEY_STRINGS, .offset = offsetof(struct house, notes)},
        {.name = "front", .type = KEY_TABLE, .offset = offsetof(struct house, front), .table = &door_table},
        {.name = "doors", .type = KEY_TABLES, .offset = offsetof(struct house, doors), .table = &door_table},
        {.name = "windows", .type = KEY_LIST, .offset = offsetof(struct house, windows), .table = &door_table},
        {.name = "extra", .type = KEY_NODE, .offset = offsetof(struct house, extra)},
        {0},
};

static const struct key_table house_table = {.name = "house",
                                             .help = "Where people live.",
                                             .size = sizeof(struct house),
                                             .has_kind = true,
                                             .keys = house_keys};

static struct node *parse(const char *text)
{
        struct node *node = NULL;

        assert_int_equal(node_parse(span_of_text(text), "f", NULL, &node, NULL), 0);
        return node;
}

static void test_all_types(void **state)
{
        _cleanup_node_ struct node *node = parse("kind: anything\n"
                                                 "name: a.b-1\n"
                                                 "title: \"Nine\"\n"
                                                 "drawing: plans/front.pdf\n"
                                                 "lit: false\n"
                                                 "rate: 10mbit\n"
                                                 "offset: -2us\n"
                                                 "roof: flat\n"
                                                 "streets: [x, y]\n"
                                                 "notes: [one two, one two]\n"
                                                 "front: {colour: red}\n"
                                                 "doors: {b: {colour: blue, width: 7B}, a: {colour: green}}\n"
                                                 "windows: [{colour: clear}]\n"
                                                 "extra: {any: thing}\n");
        struct house h = {0};
        struct err err = {0};
        const struct door *doors;

        assert_int_equal(key_table_read(&house_table, node, "", &h, &err), 0);
        doors = h.doors.entries;
        assert_string_equal(h.name, "a.b-1");
        assert_string_equal(h.title, "Nine");
        assert_string_equal(h.drawing, "plans/front.pdf");
        assert_false(h.is_lit);
        assert_int_equal(h.rate, 10000000);
        assert_int_equal(h.offset, -2000);
        assert_int_equal(h.roof, ROOF_FLAT);
        assert_int_equal(h.streets.n, 2);
        assert_string_equal(h.streets.names[1], "y");
        assert_int_equal(h.notes.n, 2);
        assert_string_equal(h.front.colour, "red");
        assert_int_equal(h.front.width, 1024);
        assert_int_equal(h.doors.n, 2);
        assert_string_equal(h.doors.names[0], "b");
        assert_string_equal(doors[1].colour, "green");
        assert_int_equal(doors[0].width, 7);
        assert_int_equal(h.doors.positions[1].line, 12);
        assert_int_equal(h.windows.n, 1);
        assert_null(h.windows.names);
        assert_ptr_equal(h.extra, node_get(node, "extra"));
        key_table_done(&house_table, &h);
        assert_null(h.name);
        assert_int_equal(h.doors.n, 0);
}

static void test_defaults(void **state)
{
        _cleanup_node_ struct node *node = parse("name: x\n");
        struct house h = {0};
        struct err err = {0};

        assert_int_equal(key_table_read(&house_table, node, "", &h, &err), 0);
        assert_string_equal(h.title, "A house");
        assert_true(h.is_lit);
        assert_int_equal(h.rate, 0);
        assert_int_equal(h.roof, ROOF_STEEP);
        /* of a table that is not there: its keys' defaults, and what it requires is not asked for */
        assert_int_equal(h.front.width, 1024);
        assert_null(h.front.colour);
        assert_null(h.drawing);
        assert_null(h.extra);
        key_table_done(&house_table, &h);
}

static void test_one_mapping_is_a_list(void **state)
{
        _cleanup_node_ struct node *node = parse("name: x\nwindows: {colour: clear}\n");
        struct house h = {0};

        assert_int_equal(key_table_read(&house_table, node, "", &h, NULL), 0);
        assert_int_equal(h.windows.n, 1);
        assert_string_equal(((struct door *)h.windows.entries)->colour, "clear");
        key_table_done(&house_table, &h);
}

static const struct {
        const char *text;
        unsigned line, column;
        const char *reason;
} bad[] = {
        {"{}", 1, 1, "key \"name\" is missing; expected a name (a-z, 0-9, \".\" and \"-\", at most 64)"},
        {"[]", 1, 1, "house: a sequence is not a mapping"},
        {"name: x\ntittle: y\n", 2, 1, "unknown key \"tittle\"; did you mean \"title\"?"},
        {"name: x\nzzzzzz: y\n", 2, 1,
         "unknown key \"zzzzzz\"; expected one of name, title, drawing, lit, rate, offset, roof, streets, notes, "
         "front, "
         "doors, windows, extra"},
        {"name: X\n", 1, 7, "name: \"X\" is not a name (a-z, 0-9, \".\" and \"-\", at most 64)"},
        {"name: [x]\n", 1, 7, "name: a sequence is not a name (a-z, 0-9, \".\" and \"-\", at most 64)"},
        {"name: x\ntitle:\n", 2, 1, "title: nothing is not a text"},
        {"name: x\ndrawing: ../x\n", 2, 10, "drawing: \"../x\" is not a file below the manifest's folder"},
        {"name: x\ndrawing: /etc/passwd\n", 2, 10,
         "drawing: \"/etc/passwd\" is not a file below the manifest's folder"},
        {"name: x\nlit: yes\n", 2, 6, "lit: \"yes\" is not true or false"},
        {"name: x\nrate: 10mbps\n", 2, 7, "rate: \"10mbps\" is not a rate such as 500mbit (bit, kbit, mbit, gbit)"},
        {"name: x\nrate: -1mbit\n", 2, 7, "rate: -1mbit is below 0, the least allowed"},
        {"name: x\nrate: 0.1bit\n", 2, 7, "rate: \"0.1bit\" is not a whole number of bits a second"},
        {"name: x\nrate: {}\n", 2, 7, "rate: a mapping is not a rate such as 500mbit (bit, kbit, mbit, gbit)"},
        {"name: x\noffset: 6us\n", 2, 9, "offset: 6us is out of range, expected -5us to 5us"},
        {"name: x\noffset: 6\n", 2, 9,
         "offset: \"6\" is not a duration such as 30s (ns, us, ms, s, min, h), from -5us to 5us"},
        {"name: x\nroof: round\n", 2, 7, "roof: \"round\" is not one of flat, steep"},
        {"name: x\nstreets: x\n", 2, 10, "streets: \"x\" is not a list of names such as [a, b]"},
        {"name: x\nstreets: [x, x]\n", 2, 14, "streets: \"x\" stands here twice"},
        {"name: x\nstreets: [x, Y]\n", 2, 14, "streets: \"Y\" is not a list of names such as [a, b]"},
        {"name: x\nfront: red\n", 2, 8, "front: \"red\" is not a mapping"},
        {"name: x\nfront: {width: 2B}\n", 2, 8, "front: key \"colour\" is missing; expected a text"},
        {"name: x\nfront: {colour: red, width: 4KiB}\n", 2, 29,
         "front.width: 4KiB is out of range, expected 1B to 2KiB"},
        {"name: x\ndoors: {A: {colour: red}}\n", 2, 9,
         "doors: \"A\" is not a name (a-z, 0-9, \".\" and \"-\", at most 64)"},
        {"name: x\ndoors: {a: {colour: red, with: 1B}}\n", 2, 26,
         "doors.a: unknown key \"with\"; did you mean \"width\"?"},
        {"name: x\ndoors: [a]\n", 2, 8, "doors: a sequence is not a mapping of names to mappings (door)"},
        {"name: x\nwindows: [{colour: a}, {}]\n", 2, 24, "windows[2]: key \"colour\" is missing; expected a text"},
        {"name: x\nwindows: clear\n", 2, 10, "windows: \"clear\" is not a list of mappings"},
};

static void test_bad(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                _cleanup_node_ struct node *node = parse(bad[i].text);
                struct err err = {0};

                print_message("%s\n", bad[i].reason);
                assert_int_equal(key_table_check(&house_table, node, "", &err), -EINVAL);
                assert_string_equal(err.text, bad[i].reason);
                assert_int_equal(err.kind, ERR_USAGE);
                assert_int_equal(err.position.line, bad[i].line);
                assert_int_equal(err.position.column, bad[i].column);
        }
}

static void test_kind_is_unknown_without_leave(void **state)
{
        _cleanup_node_ struct node *node = parse("{kind: x, colour: red}");
        struct err err = {0};

        assert_int_equal(key_table_check(&door_table, node, "door", &err), -EINVAL);
        assert_string_equal(err.text, "door: unknown key \"kind\"; expected one of colour, width");
}

static int collect(const struct node *file, void *userdata)
{
        struct text *text = userdata;

        text_addf(text, "%s ", file->scalar);
        return streq(file->scalar, "stop") ? 7 : 0;
}

static const struct key shelf_keys[] = {
        {.name = "book", .type = KEY_FILE},
        {.name = "one", .type = KEY_TABLE, .table = &house_table},
        {.name = "many", .type = KEY_TABLES, .table = &house_table},
        {.name = "list", .type = KEY_LIST, .table = &house_table},
        {0},
};

static void test_files(void **state)
{
        static const struct key_table shelf = {.name = "shelf", .keys = shelf_keys};
        _cleanup_node_ struct node *node = parse("{many: {x: {drawing: c}, y: {drawing: d}}, list: [{drawing: e}, {}], "
                                                 "one: {drawing: b}, book: a}");
        _cleanup_node_ struct node *single = parse("{list: {drawing: stop}, book: a}");
        _cleanup_text_ struct text text = {0};

        assert_int_equal(key_table_files(&shelf, node, collect, &text), 0);
        assert_string_equal(text.data, "a b c d e ");
        assert_int_equal(key_table_files(&shelf, single, collect, &text), 7);
        assert_string_equal(text.data, "a b c d e a stop ");
}

static void test_document(void **state)
{
        _cleanup_text_ struct text text = {0};
        const char *first;

        key_table_document(&house_table, &text);
        assert_non_null(strstr(text.data, "### house\n\nWhere people live.\n\n| key | value | default | meaning |\n"));
        assert_non_null(strstr(text.data, "| `kind` | `house` | required | Which keys the mapping has. |\n"));
        assert_non_null(strstr(text.data, "| `roof` | one of flat, steep | `steep` |  |\n"));
        assert_non_null(strstr(text.data, "| `width` | a size such as 1400B (B, KiB, MiB, GiB), from 1B to 2KiB | "
                                          "`1KiB` | How wide it is. |\n"));
        assert_non_null(strstr(text.data, "| `colour` | a text | required |  |\n"));
        /* a table that is named three times is described once */
        first = strstr(text.data, "### door\n");
        assert_non_null(first);
        assert_null(strstr(first + 1, "### door\n"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_types),
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_one_mapping_is_a_list),
                cmocka_unit_test(test_bad),
                cmocka_unit_test(test_kind_is_unknown_without_leave),
                cmocka_unit_test(test_files),
                cmocka_unit_test(test_document),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
