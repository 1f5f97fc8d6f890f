/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "base/text.h"
#include "bpfvm/elf.h"
#include "bpfvm/oracle.h"

/* Objects that clang makes of the sources in objects/, in the folder that the test gets as its argument. */

static const char *folder;

static int load(const char *name, struct object **ret, struct err *err)
{
        _cleanup_free_ char *path = text_format("%s/%s.o", folder, name), *bytes = NULL;
        size_t len;

        if (file_read(AT_FDCWD, path, ELF_FILE_MAX, &bytes, &len, err) < 0)
                fail_msg("%s", err->text);
        return elf_load(span_of(bytes, len), name, ret, err);
}

static struct object *load_good(const char *name)
{
        struct object *object = NULL;
        struct err err = {0};

        if (load(name, &object, &err) < 0)
                fail_msg("%s", err.text);
        return object;
}

static uint64_t run(const struct object *object, const struct program *program, void *context)
{
        _cleanup_store_ struct store *store = NULL;
        struct oracle_result result = {0};
        struct fault fault = {0};

        assert_int_equal(store_new(object->maps, object->n_maps, &store, NULL), 0);
        if (oracle_run(program, store, context, NULL, &result, &fault, NULL) != 0)
                fail_msg("%s at %u: %s", fault_name(fault.kind), fault.slot, fault.text);
        return result.r0;
}

static void assert_map(const struct map_def *map, const char *name, enum map_kind kind, uint32_t key, uint32_t value,
                       uint32_t entries, bool is_read_only)
{
        assert_string_equal(map->name, name);
        assert_int_equal(map->kind, kind);
        assert_int_equal(map->key_size, key);
        assert_int_equal(map->value_size, value);
        assert_int_equal(map->max_entries, entries);
        assert_int_equal(map->is_read_only, is_read_only);
}

static void test_maps(void **state)
{
        _cleanup_object_ struct object *object = load_good("maps");

        assert_int_equal(object->n_maps, 3);
        assert_map(&object->maps[0], "by_type", MAP_HASH, 8, 16, 100, false);
        assert_map(&object->maps[1], "by_size", MAP_ARRAY, 4, 24, 3, true);
        assert_map(&object->maps[2], "hidden", MAP_RING, 0, 0, 8192, false);
        assert_int_equal(object->n_programs, 1);
        assert_string_equal(object->programs[0]->name, "use_maps");
        assert_string_equal(object->programs[0]->section, "event");
        assert_int_equal(object->programs[0]->context.size, 0);
        assert_int_equal(run(object, object->programs[0], NULL), 0);
}

static void test_calls(void **state)
{
        _cleanup_object_ struct object *object = load_good("calls");
        const struct program *one = object_find(object, "one"), *two = object_find(object, "two");
        int32_t n = 5;

        assert_int_equal(object->n_programs, 3);
        assert_non_null(object_find(object, "three"));
        assert_null(object_find(object, "shared"));
        assert_int_equal(one->n_subs, 4);
        assert_string_equal(one->subs[0].name, "one");
        assert_string_equal(one->subs[1].name, "shared");
        assert_string_equal(one->subs[2].name, "middle");
        assert_string_equal(one->subs[3].name, "leaf");
        assert_string_equal(one->context.name, "input");
        assert_int_equal(one->context.size, 4);
        assert_false(one->context.ranges[0].is_writable);
        assert_true(two->context.ranges[0].is_writable);
        assert_int_equal(object_find(object, "three")->n_subs, 1);

        assert_int_equal((int32_t)run(object, one, &n), 25 + 36 - 5);
        assert_int_equal((int32_t)run(object, two, &n), 625 + 676 - 25 + 1);
        assert_int_equal(n, 25);
}

static void test_globals(void **state)
{
        _cleanup_object_ struct object *object = load_good("globals");
        uint8_t context[192] = {6};

        assert_true(object->n_maps >= 3); /* a compiler may put constants into sections of their own */
        for (uint32_t i = 0; i < object->n_maps; i++) {
                const struct map_def *map = &object->maps[i];

                assert_int_equal(map->kind, MAP_ARRAY);
                assert_int_equal(map->max_entries, 1);
                assert_true(map->is_global);
                assert_int_equal(map->is_read_only, strncmp(map->name, ".rodata", 7) == 0);
                assert_int_equal(map->initial.len, streq(map->name, ".bss") ? 0 : map->value_size);
        }
        assert_string_equal(object->programs[0]->context.name, "__sk_buff");
        /* limit 10, table[6 & 3] = 7, base as an int 0x22334455, counter 0 + 3 */
        assert_int_equal((uint32_t)run(object, object->programs[0], context), 10 + 7 + 0x22334455 + 3);
}

static void test_plain(void **state)
{
        _cleanup_object_ struct object *object = load_good("plain");
        uint64_t word = 0x1234;

        assert_int_equal(object->n_programs, 1);
        assert_string_equal(object->programs[0]->section, ".text");
        assert_int_equal(object->programs[0]->context.size, 8);
        assert_int_equal(run(object, object->programs[0], &word), 0x35);
}

/* Every instruction that the compiler has a line for is found with it, also in functions behind the program's own. */
static void test_source_lines(void **state)
{
        _cleanup_object_ struct object *object = load_good("calls");
        const struct program *one = object_find(object, "one");
        const struct program_line *line = program_line_at(one, one->subs[3].end - 1);

        assert_non_null(line);
        assert_non_null(strstr(line->file, "calls.c"));
        assert_string_equal(line->text, "return x * x;");
        assert_int_equal(line->line, 12);
        line = program_line_at(one, 0);
        assert_string_equal(line->text, "return shared(in->n);");
        for (uint32_t i = 1; i < one->n_lines; i++)
                assert_true(one->lines[i - 1].slot <= one->lines[i].slot);
}

static void test_illegal_beside_legal(void **state)
{
        _cleanup_object_ struct object *object = load_good("illegal");

        assert_int_equal(object->n_programs, 2);
        assert_int_equal(object_find(object, "good")->fault.kind, FAULT_NONE);
        assert_int_equal(object_find(object, "indirect")->fault.kind, FAULT_OPCODE);
        assert_int_equal(run(object, object_find(object, "good"), NULL), 1);
}

static void test_refused(void **state)
{
        static const struct {
                const char *name, *message;
        } cases[] = {
                {"bad-extern", "bad-extern: calls_nowhere+1: calls a function that is nowhere defined: nowhere"},
                {"bad-variable", "bad-variable: uses_nowhere+0: uses a variable that is nowhere defined: nowhere"},
                {"bad-map-type",
                 "bad-map-type: map trie: type 11 is not known here; expected BPF_MAP_TYPE_ARRAY, _HASH or "
                 "_RINGBUF"},
                {"bad-map-member", "bad-map-member: map pinned: member pinning has no meaning here; expected type, "
                                   "max_entries, key, value, key_size, value_size or map_flags"},
                {"bad-core",
                 "bad-core: needs relocation against the kernel's types (CO-RE), of which there are none here; "
                 "do not use preserve_access_index"},
                {"bad-function-address",
                 "bad-function-address: takes_address+0: takes the address of something that is "
                 "neither a map nor a variable: .text"},
                {"bad-old-maps",
                 "bad-old-maps: section maps holds definitions of the old form; define maps with BTF, in "
                 "SEC(\".maps\")"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct object *object = NULL;
                struct err err = {0};

                assert_int_equal(load(cases[i].name, &object, &err), -EINVAL);
                assert_null(object);
                assert_int_equal(err.kind, ERR_DATA);
                assert_string_equal(err.text, cases[i].message);
        }
}

/* Cut off anywhere, an object is refused or still one: nothing else. */
static void test_cut_off(void **state)
{
        _cleanup_free_ char *path = text_format("%s/globals.o", folder), *bytes = NULL;
        struct err err = {0};
        size_t len;

        assert_int_equal(file_read(AT_FDCWD, path, ELF_FILE_MAX, &bytes, &len, &err), 0);
        for (size_t cut = 0; cut < len; cut++) {
                _cleanup_free_ char *part = malloc(cut + 1); /* of its own, so that a sanitizer sees its end */
                _cleanup_object_ struct object *object = NULL;

                memcpy(part, bytes, cut);
                err = (struct err){0};
                if (elf_load(span_of(part, cut), "cut", &object, &err) < 0)
                        assert_int_equal(err.kind, ERR_DATA);
        }
        assert_true(elf_is(span_of(bytes, len)));
        assert_false(elf_is(span_of(bytes, 3)));
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_maps),         cmocka_unit_test(test_calls),
                cmocka_unit_test(test_globals),      cmocka_unit_test(test_plain),
                cmocka_unit_test(test_source_lines), cmocka_unit_test(test_illegal_beside_legal),
                cmocka_unit_test(test_refused),      cmocka_unit_test(test_cut_off),
        };

        folder = argv[1];
        return cmocka_run_group_tests(tests, NULL, NULL);
}
