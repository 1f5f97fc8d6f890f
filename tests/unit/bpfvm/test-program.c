/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "bpfvm/cost.h"
#include "bpfvm/profile.h"
#include "tests/unit/bpfvm/made.h"

/* Programs as a whole, and the tables that go with them. */

static void test_lookups_by_slot(void **state)
{
        _cleanup_object_ struct object *object =
                made_of("call f\ncall g\nexit\nf: r0 = 1\nexit\ng: r0 = 2\nexit", NULL, 0);
        struct program *program = object->programs[0];
        static const uint32_t subs[] = {0, 0, 0, 1, 1, 2, 2};

        assert_int_equal(program->n_subs, 3);
        for (uint32_t slot = 0; slot < 7; slot++)
                assert_int_equal(program_sub_at(program, slot), subs[slot]);

        assert_null(program_line_at(program, 3));
        program->lines = calloc(3, sizeof(*program->lines));
        program->n_lines = 3;
        program->lines[0] = (struct program_line){.slot = 1, .line = 10};
        program->lines[1] = (struct program_line){.slot = 4, .line = 20};
        program->lines[2] = (struct program_line){.slot = 4, .line = 21};
        assert_null(program_line_at(program, 0));
        assert_int_equal(program_line_at(program, 1)->line, 10);
        assert_int_equal(program_line_at(program, 3)->line, 10);
        assert_int_equal(program_line_at(program, 4)->line, 21);
        assert_int_equal(program_line_at(program, 6)->line, 21);
        assert_ptr_equal(object_find(object, "t"), program);
        assert_null(object_find(object, "u"));
}

static void test_lengths(void **state)
{
        static const uint8_t bytes[24] = {0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95};
        static const size_t lengths[] = {0, 1, 7, 9, 15, 17};
        uint8_t *large;

        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                _cleanup_object_ struct object *object = NULL;
                struct fault fault;

                assert_int_equal(object_of_slots(span_of(bytes, lengths[i]), "t", NULL, 0, &object, &fault, NULL), 0);
                assert_int_equal(object->programs[0]->fault.kind, FAULT_LENGTH);
                assert_null(object->programs[0]->insns);
        }

        large = calloc(PROFILE_SLOTS_MAX + 1, 8);
        for (size_t i = 0; i <= PROFILE_SLOTS_MAX; i++)
                large[8 * i] = i == PROFILE_SLOTS_MAX ? 0x95 : 0xb7;
        for (size_t n = PROFILE_SLOTS_MAX; n <= PROFILE_SLOTS_MAX + 1; n++) {
                _cleanup_object_ struct object *object = NULL;
                struct fault fault;

                assert_int_equal(object_of_slots(span_of(large, 8 * n), "t", NULL, 0, &object, &fault, NULL), 0);
                assert_int_equal(object->programs[0]->fault.kind, n > PROFILE_SLOTS_MAX ? FAULT_LENGTH : FAULT_NONE);
        }
        free(large);
}

static void test_map_definitions(void **state)
{
        static const struct {
                struct map_def def;
                bool is_good;
        } cases[] = {
                {{.name = "m", .kind = MAP_ARRAY, .key_size = 4, .value_size = 1, .max_entries = 1}, true},
                {{.name = "m", .kind = MAP_ARRAY, .key_size = 8, .value_size = 1, .max_entries = 1}, false},
                {{.name = "m", .kind = MAP_ARRAY, .key_size = 4, .value_size = 0, .max_entries = 1}, false},
                {{.name = "m", .kind = MAP_ARRAY, .key_size = 4, .value_size = 1, .max_entries = 0}, false},
                {{.name = "m", .kind = MAP_ARRAY, .key_size = 4, .value_size = UINT32_MAX, .max_entries = UINT32_MAX},
                 false},
                {{.name = "m", .kind = MAP_HASH, .key_size = MAP_KEY_MAX, .value_size = 1, .max_entries = 1}, true},
                {{.name = "m", .kind = MAP_HASH, .key_size = MAP_KEY_MAX + 1, .value_size = 1, .max_entries = 1},
                 false},
                {{.name = "m", .kind = MAP_HASH, .key_size = 0, .value_size = 1, .max_entries = 1}, false},
                {{.name = "m", .kind = MAP_RING, .max_entries = 4096}, true},
                {{.name = "m", .kind = MAP_RING, .max_entries = 2048}, false},
                {{.name = "m", .kind = MAP_RING, .max_entries = 12288}, false},
                {{.name = "m", .kind = MAP_RING, .key_size = 4, .max_entries = 4096}, false},
                {{.name = "m", .kind = MAP_KINDS}, false},
                {{.name = "m",
                  .kind = MAP_ARRAY,
                  .key_size = 4,
                  .value_size = 2,
                  .max_entries = 1,
                  .initial = {NULL, 3}},
                 false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fault fault = {0};

                assert_int_equal(map_check(&cases[i].def, &fault), !cases[i].is_good);
                if (!cases[i].is_good)
                        assert_int_equal(fault.kind, FAULT_MAP);
        }
        assert_int_equal(map_bytes(&cases[0].def), 8);
        assert_int_equal(map_bytes(&cases[8].def), 4096);
        assert_int_equal(map_bytes(&cases[5].def), 512 + 8 + 12);
}

static void test_faults_have_names(void **state)
{
        for (enum fault_kind kind = 0; kind < FAULT_KINDS; kind++) {
                const char *name = fault_name(kind);

                assert_int_equal(fault_find(name), kind);
                assert_true(name[0] != 0 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(name));
                assert_true(fault_meaning(kind)[0] != 0);
        }
        assert_int_equal(fault_find("no-such"), FAULT_KINDS);
        assert_string_equal(fault_name(FAULT_KINDS), "unknown");
}

static void test_helpers(void **state)
{
        size_t n;
        const struct helper *table = helper_table(&n);

        assert_true(n <= COST_HELPERS_MAX);
        for (size_t i = 0; i < n; i++) {
                const struct insn call = {.kind = INSN_CALL_HELPER, .imm = table[i].id};

                assert_true(i == 0 || table[i - 1].id < table[i].id);
                assert_ptr_equal(helper_find(table[i].id), &table[i]);
                assert_ptr_equal(helper_find_name(table[i].name), &table[i]);
                assert_int_equal(helper_index(&table[i]), i);
                assert_true(cost_default()->helper_ps[i] > 0);
                assert_int_equal(cost_of(cost_default(), &call),
                                 cost_default()->class_ps[COST_CALL] + cost_default()->helper_ps[i]);
                for (unsigned a = 0; a < HELPER_ARGS; a++) {
                        if (table[i].args[a] == HELPER_ARG_READ)
                                assert_true(a + 1 < HELPER_ARGS && table[i].args[a + 1] >= HELPER_ARG_SIZE);
                        if (table[i].args[a] == HELPER_ARG_MAP)
                                assert_true(a == 0 && table[i].map_kinds != 0);
                }
        }
        /* numbers as in the Linux kernel's linux/bpf.h */
        assert_string_equal(helper_find(1)->name, "map_lookup_elem");
        assert_string_equal(helper_find(2)->name, "map_update_elem");
        assert_string_equal(helper_find(3)->name, "map_delete_elem");
        assert_string_equal(helper_find(5)->name, "ktime_get_ns");
        assert_string_equal(helper_find(6)->name, "trace_printk");
        assert_string_equal(helper_find(7)->name, "get_prandom_u32");
        assert_string_equal(helper_find(130)->name, "ringbuf_output");
        assert_int_equal(helper_arity(helper_find(2)), 4);
        assert_int_equal(helper_arity(helper_find(5)), 0);
        assert_int_equal(helper_arity(helper_find(6)), 2);
        assert_null(helper_find(0));
        assert_null(helper_find(UINT64_C(1) << 32 | 1));
}

/* docs/formats/bpf-program.md has a row for each helper, as the table has it. */
static void test_helpers_are_documented(void **state)
{
        _cleanup_free_ char *path = NULL, *page = NULL;
        struct err err = {0};
        size_t n, len;
        const struct helper *table = helper_table(&n);

        assert_true(asprintf(&path, "%s/../../docs/formats/bpf-program.md", getenv("ASSAY_TEST_CASES")) > 0);
        assert_int_equal(file_read(AT_FDCWD, path, 1 << 20, &page, &len, &err), 0);
        for (size_t i = 0; i < n; i++) {
                char begin[96], *row, *end, cells[3][8] = {"", "", ""};

                snprintf(begin, sizeof(begin), "\n| %u | `%s` |", table[i].id, table[i].name);
                row = strstr(page, begin);
                if (!row)
                        fail_msg("%s is not in the page", table[i].name);
                end = strchr(row + 1, '\n');
                assert_non_null(end);
                *end = 0;
                for (int c = 2; c >= 0; c--) {
                        *strrchr(row, '|') = 0;
                        sscanf(strrchr(row, '|') + 1, " %7s", cells[c]);
                }
                assert_int_equal(streq(cells[0], "yes"), (table[i].profiles & HELPER_IN_EMBEDDED) != 0);
                assert_int_equal(streq(cells[1], "yes"), (table[i].profiles & HELPER_IN_FULL) != 0);
                assert_int_equal(streq(cells[2], "yes"), table[i].is_actuation);
                for (char *c = row; c < end; c++) /* put together again for the next search */
                        *c = *c ? *c : '|';
                *end = '\n';
        }
}

static void test_costs(void **state)
{
        const struct cost_table *table = cost_default();

        for (enum cost_class c = 0; c < COST_CLASSES; c++) {
                assert_true(table->class_ps[c] > 0);
                assert_true(strlen(cost_class_name(c)) > 2);
        }
        assert_int_equal(cost_class_of(&(struct insn){.kind = INSN_ALU, .op = ALU_SMOD}), COST_DIVIDE);
        assert_int_equal(cost_class_of(&(struct insn){.kind = INSN_ALU, .op = ALU_MUL}), COST_MULTIPLY);
        assert_int_equal(cost_class_of(&(struct insn){.kind = INSN_BRANCH}), COST_JUMP);
        assert_int_equal(cost_class_of(&(struct insn){.kind = INSN_EXIT}), COST_RETURN);
        assert_int_equal(cost_class_of(&(struct insn){.kind = INSN_WIDE}), COST_ALU);
}

static void test_contexts(void **state)
{
        const struct context_def *skb = context_find("__sk_buff");
        struct context_def flat;

        for (size_t i = 0; i < skb->n_ranges; i++) {
                assert_true(i == 0 || skb->ranges[i - 1].offset + skb->ranges[i - 1].size <= skb->ranges[i].offset);
                assert_true(skb->ranges[i].offset + skb->ranges[i].size <= skb->size);
        }
        assert_int_equal(context_find("none")->size, 0);
        assert_null(context_find("xdp_md"));
        context_flat(&flat, 0, true);
        assert_int_equal(flat.n_ranges, 0);
        context_flat(&flat, 5, true);
        assert_int_equal(flat.ranges[0].size, 5);
        assert_true(flat.ranges[0].is_writable);
        assert_null(profile_find("cloud"));
        assert_false(profile_find("embedded")->allows_loops);
        assert_true(profile_find("full")->allows_loops);
}

static void test_registers_of_instructions(void **state)
{
        static const struct {
                const char *text;
                uint16_t reads, writes;
        } cases[] = {
                {"r1 = r2", 1 << 2, 1 << 1},
                {"r1 = 5", 0, 1 << 1},
                {"r1 += r2", 1 << 1 | 1 << 2, 1 << 1},
                {"r1 = -r1", 1 << 1, 1 << 1},
                {"r1 = (s8)r2", 1 << 2, 1 << 1},
                {"r1 = be16 r1", 1 << 1, 1 << 1},
                {"r3 = *(u8 *)(r4 + 0)", 1 << 4, 1 << 3},
                {"*(u8 *)(r4 + 0) = r3", 1 << 4 | 1 << 3, 0},
                {"*(u8 *)(r4 + 0) = 3", 1 << 4, 0},
                {"lock *(u64 *)(r1 + 0) += r2", 1 << 1 | 1 << 2, 0},
                {"r2 = atomic_fetch_add((u64 *)(r1 + 0), r2)", 1 << 1 | 1 << 2, 1 << 2},
                {"r0 = atomic_cmpxchg((u64 *)(r1 + 0), r0, r2)", 1 << 0 | 1 << 1 | 1 << 2, 1 << 0},
                {"r5 = 7 ll", 0, 1 << 5},
                {"if r1 == r2 goto +0", 1 << 1 | 1 << 2, 0},
                {"if r1 == 2 goto +0", 1 << 1, 0},
                {"goto +0", 0, 0},
                {"call 5", 0, 1 << 0},
                {"exit", 1 << 0, 0},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *text = NULL;
                _cleanup_object_ struct object *object = NULL;

                assert_true(asprintf(&text, "%s\nexit", cases[i].text) > 0);
                object = made_of(text, NULL, 0);
                assert_int_equal(insn_reads(&object->programs[0]->insns[0]), cases[i].reads);
                assert_int_equal(insn_writes(&object->programs[0]->insns[0]), cases[i].writes);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lookups_by_slot),
                cmocka_unit_test(test_lengths),
                cmocka_unit_test(test_map_definitions),
                cmocka_unit_test(test_faults_have_names),
                cmocka_unit_test(test_helpers),
                cmocka_unit_test(test_helpers_are_documented),
                cmocka_unit_test(test_costs),
                cmocka_unit_test(test_contexts),
                cmocka_unit_test(test_registers_of_instructions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
