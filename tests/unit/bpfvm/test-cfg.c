/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "base/text.h"
#include "bpfvm/assemble.h"
#include "bpfvm/cfg.h"
#include "bpfvm/profile.h"

struct graph {
        struct object *object;
        struct cfg *cfg;
        struct fault fault;
        int r;
};

static struct graph graph_of(const char *text)
{
        _cleanup_free_ uint8_t *slots = NULL;
        struct graph g = {0};
        struct err err = {0};
        size_t len;

        if (assemble_text(span_of_text(text), "t", &slots, &len, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(object_of_slots(span_of(slots, len), "t", NULL, 0, &g.object, &g.fault, &err), 0);
        assert_int_equal(g.object->programs[0]->fault.kind, FAULT_NONE);
        g.r = cfg_build(g.object->programs[0], &g.cfg, &g.fault, &err);
        return g;
}

static void graph_done(struct graph *g)
{
        cfg_free(g->cfg);
        object_free(g->object);
}

static void assert_block(const struct cfg *cfg, uint32_t b, uint32_t start, uint32_t end, uint32_t fall, uint32_t jump)
{
        assert_int_equal(cfg->blocks[b].start, start);
        assert_int_equal(cfg->blocks[b].end, end);
        assert_int_equal(cfg->blocks[b].next[0], fall);
        assert_int_equal(cfg->blocks[b].next[1], jump);
        for (uint32_t slot = start; slot < end; slot++)
                assert_int_equal(cfg->block_of[slot], b);
}

static void test_diamond(void **state)
{
        _cleanup_(graph_done) struct graph g = graph_of("if r1 == 0 goto else\n"
                                                        "r0 = 5 ll\n"
                                                        "goto end\n"
                                                        "else: r0 = 2\n"
                                                        "end: exit");
        const struct cfg *cfg = g.cfg;

        assert_int_equal(g.r, 0);
        assert_int_equal(cfg->n_blocks, 4);
        assert_block(cfg, 0, 0, 1, 1, 2);
        assert_block(cfg, 1, 1, 4, CFG_NONE, 3);
        assert_block(cfg, 2, 4, 5, 3, CFG_NONE);
        assert_block(cfg, 3, 5, 6, CFG_NONE, CFG_NONE);
        assert_int_equal(cfg->n_edges, 4);
        assert_int_equal(cfg->n_back_edges, 0);
        assert_int_equal(cfg->blocks[3].n_preds, 2);
        assert_int_equal(cfg->preds[cfg->blocks[3].first_pred], 1);
        assert_int_equal(cfg->preds[cfg->blocks[3].first_pred + 1], 2);
        assert_int_equal(cfg->order[0], 0);
        assert_int_equal(cfg->order[3], 3);
}

/* A wide load at a block's end: its last instruction is the first half. */
static void test_last_is_no_tail(void **state)
{
        _cleanup_(graph_done) struct graph g = graph_of("r0 = 5 ll\nback: r1 = 7 ll\nexit\n");

        assert_int_equal(g.r, 0);
        assert_int_equal(g.cfg->n_blocks, 1);

        _cleanup_(graph_done) struct graph h = graph_of("r0 = 5 ll\nback: if r0 == 0 goto back\nexit\n");
        assert_int_equal(h.cfg->blocks[0].last, 0);
        assert_int_equal(h.cfg->blocks[0].end, 2);
        assert_int_equal(h.cfg->n_back_edges, 1);
        assert_true(h.cfg->blocks[1].is_loop_head);
        assert_int_equal(h.cfg->back_edges[0].from, 1);
        assert_int_equal(h.cfg->back_edges[0].to, 1);
}

static void test_nested_loops(void **state)
{
        _cleanup_(graph_done) struct graph g = graph_of("r1 = 3\n"
                                                        "outer: r2 = 3\n"
                                                        "inner: r2 -= 1\n"
                                                        "if r2 != 0 goto inner\n"
                                                        "r1 -= 1\n"
                                                        "if r1 != 0 goto outer\n"
                                                        "r0 = 0\n"
                                                        "exit");

        assert_int_equal(g.r, 0);
        assert_int_equal(g.cfg->n_back_edges, 2);
        assert_true(g.cfg->blocks[g.cfg->block_of[1]].is_loop_head);
        assert_true(g.cfg->blocks[g.cfg->block_of[2]].is_loop_head);
        assert_false(g.cfg->blocks[g.cfg->block_of[0]].is_loop_head);
        assert_false(g.cfg->blocks[g.cfg->block_of[4]].is_loop_head);
}

/* Two ways into a loop: one edge still closes each cycle. */
static void test_irreducible(void **state)
{
        _cleanup_(graph_done) struct graph g = graph_of("if r1 == 0 goto b\n"
                                                        "a: r1 -= 1\n"
                                                        "b: r1 -= 2\n"
                                                        "if r1 != 0 goto a\n"
                                                        "r0 = 0\n"
                                                        "exit");

        assert_int_equal(g.r, 0);
        assert_int_equal(g.cfg->n_back_edges, 1);
}

static void test_branch_to_next_has_two_edges(void **state)
{
        _cleanup_(graph_done) struct graph g = graph_of("r0 = 0\nif r0 == 0 goto +0\nexit");

        assert_int_equal(g.cfg->n_edges, 2);
        assert_int_equal(g.cfg->blocks[1].n_preds, 2);
}

static void test_functions(void **state)
{
        _cleanup_(graph_done) struct graph g = graph_of("call f\n"
                                                        "call g\n"
                                                        "exit\n"
                                                        "f: call g\n"
                                                        "exit\n"
                                                        "g: r0 = 1\n"
                                                        "exit");
        const struct cfg *cfg = g.cfg;

        assert_int_equal(g.r, 0);
        assert_int_equal(cfg->n_subs, 3);
        assert_int_equal(cfg->n_calls, 3);
        assert_int_equal(cfg->subs[0].depth, 3);
        assert_int_equal(cfg->subs[1].depth, 2);
        assert_int_equal(cfg->subs[2].depth, 1);
        assert_int_equal(cfg->subs[0].n_calls, 2);
        assert_int_equal(cfg->calls[0].callee, 1);
        assert_int_equal(cfg->calls[1].callee, 2);
        assert_int_equal(cfg->calls[2].callee, 2);
        assert_int_equal(cfg->sub_order[0], 2);
        assert_int_equal(cfg->sub_order[1], 1);
        assert_int_equal(cfg->sub_order[2], 0);
        /* a call ends its block, and falls through to the next */
        assert_block(cfg, 0, 0, 1, 1, CFG_NONE);
        assert_int_equal(cfg->subs[1].entry, cfg->block_of[3]);
        for (uint32_t s = 0; s < 3; s++)
                for (uint32_t rank = cfg->subs[s].first_rank; rank < cfg->subs[s].first_rank + cfg->subs[s].n_blocks;
                     rank++)
                        assert_int_equal(cfg->blocks[cfg->order[rank]].sub, s);
}

/* A function that is called in eight frames by one path and in nine by another. */
static void test_depth_is_of_the_longest_path(void **state)
{
        _cleanup_text_ struct text text = {0};

        text_add(&text, "call f7\ncall f1\nexit\n");
        for (int i = 1; i <= 7; i++)
                text_addf(&text, "f%d: call f%d\nexit\n", i, i + 1);
        text_add(&text, "f8: r0 = 0\nexit\n");

        _cleanup_(graph_done) struct graph g = graph_of(text.data);
        assert_int_equal(g.r, 1);
        assert_int_equal(g.fault.kind, FAULT_CALL_DEPTH);
        assert_int_equal(g.fault.slot, 3 + 2 * 6); /* in f7, which is frame 8 when f1 leads there */
}

/* As many blocks in a row as a program can have, without recursion. */
static void test_long_chain(void **state)
{
        const uint32_t n = 60000;
        _cleanup_text_ struct text text = {0};

        for (uint32_t i = 0; i < n; i++)
                text_add(&text, "if r1 == 0 goto +0\n");
        text_add(&text, "r0 = 0\nexit\n");

        _cleanup_(graph_done) struct graph g = graph_of(text.data);
        assert_int_equal(g.r, 0);
        assert_int_equal(g.cfg->n_blocks, n + 1);
        for (uint32_t b = 0; b <= n; b++)
                assert_int_equal(g.cfg->order[b], b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_diamond),
                cmocka_unit_test(test_last_is_no_tail),
                cmocka_unit_test(test_nested_loops),
                cmocka_unit_test(test_irreducible),
                cmocka_unit_test(test_branch_to_next_has_two_edges),
                cmocka_unit_test(test_functions),
                cmocka_unit_test(test_depth_is_of_the_longest_path),
                cmocka_unit_test(test_long_chain),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
