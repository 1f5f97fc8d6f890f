/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "bpfvm/oracle.h"
#include "tests/unit/bpfvm/made.h"

/* What single rules say is in tests/cases/bpf; here is what surrounds a run: the observer, limits, profiles, embedding.
 */

struct seen {
        uint32_t slots[64], depths[64];
        unsigned n, stop_at;
        struct value r1, r0, fill;
        uint8_t state_before, state_after;
};

static int observe(void *userdata, const struct oracle_view *view)
{
        struct seen *seen = userdata;
        const struct oracle_frame *frame = &view->frames[view->depth - 1];

        assert_int_equal(view->steps, seen->n);
        seen->slots[seen->n] = view->slot;
        seen->depths[seen->n++] = view->depth;
        if (view->slot == 0) {
                seen->r1 = frame->regs[1];
                seen->r0 = frame->regs[0];
                seen->state_before = frame->states[PROFILE_FRAME_BYTES - 8];
        }
        if (view->slot == 1) {
                seen->state_after = frame->states[PROFILE_FRAME_BYTES - 8];
                seen->fill = frame->spills[PROFILE_FRAME_BYTES / 8 - 1];
        }
        return seen->n == seen->stop_at;
}

static void test_observer(void **state)
{
        _cleanup_object_ struct object *object =
                made_of("*(u64 *)(r10 - 8) = r1\ncall f\nexit\nf: r0 = 4\nexit", NULL, 0);
        _cleanup_store_ struct store *store = NULL;
        struct seen seen = {0};
        struct oracle_options options = {.observe = observe, .userdata = &seen};
        struct oracle_result result = {0};
        struct fault fault = {0};
        uint8_t context[16] = {0};
        static const uint32_t slots[] = {0, 1, 3, 4, 2}, depths[] = {1, 1, 2, 2, 1};

        context_flat(&object->programs[0]->context, sizeof(context), false);
        assert_int_equal(store_new(NULL, 0, &store, NULL), 0);
        assert_int_equal(oracle_run(object->programs[0], store, context, &options, &result, &fault, NULL), 0);
        assert_int_equal(result.r0, 4);
        assert_int_equal(result.steps, 5);
        assert_int_equal(seen.n, 5);
        assert_memory_equal(seen.slots, slots, sizeof(slots));
        assert_memory_equal(seen.depths, depths, sizeof(depths));
        assert_int_equal(seen.r1.kind, VALUE_CONTEXT);
        assert_int_equal(value_offset(&seen.r1), 0);
        assert_int_equal(seen.r0.kind, VALUE_UNINIT);
        assert_int_equal(seen.state_before, STACK_UNINIT);
        assert_int_equal(seen.state_after, STACK_POINTER);
        assert_int_equal(seen.fill.kind, VALUE_CONTEXT);

        seen = (struct seen){.stop_at = 3};
        assert_int_equal(oracle_run(object->programs[0], store, context, &options, &result, &fault, NULL), 2);
        assert_int_equal(seen.n, 3);
        assert_int_equal(result.steps, 2);
}

static int run(struct object *object, struct oracle_options *options, struct fault *fault)
{
        _cleanup_store_ struct store *store = NULL;
        struct oracle_result result = {0};

        assert_int_equal(store_new(object->maps, object->n_maps, &store, NULL), 0);
        return oracle_run(object->programs[0], store, NULL, options, &result, fault, NULL);
}

static void test_step_limit_is_exact(void **state)
{
        _cleanup_object_ struct object *object = made_of("r0 = 1\nr0 = 2\nexit", NULL, 0);
        struct oracle_options options = {.max_steps = 3};
        struct fault fault = {0};

        assert_int_equal(run(object, &options, &fault), 0);
        options.max_steps = 2;
        assert_int_equal(run(object, &options, &fault), 1);
        assert_int_equal(fault.kind, FAULT_STEP_LIMIT);
        assert_int_equal(fault.slot, 2);
}

static void test_profiles(void **state)
{
        _cleanup_object_ struct object *trace = made_of("*(u64 *)(r10 - 8) = 0\n"
                                                        "r1 = r10\n"
                                                        "r1 += -8\n"
                                                        "r2 = 8\n"
                                                        "call trace_printk\n"
                                                        "exit",
                                                        NULL, 0);
        _cleanup_object_ struct object *pwm = made_of("r1 = 1\nr2 = 2\ncall pwm_write\nexit", NULL, 0);
        struct oracle_options options = {.profile = profile_find("embedded")};
        struct fault fault = {0};

        assert_int_equal(run(trace, &options, &fault), 1);
        assert_int_equal(fault.kind, FAULT_HELPER_FORBIDDEN);
        assert_int_equal(run(pwm, &options, &fault), 1);
        assert_int_equal(fault.kind, FAULT_HELPER_FORBIDDEN);
        options.may_actuate = true;
        assert_int_equal(run(pwm, &options, &fault), 0);
        options.profile = profile_find("full");
        assert_int_equal(run(trace, &options, &fault), 0);
}

/* A program that no graph was built of can still run off its end. */
static void test_fall_through(void **state)
{
        _cleanup_object_ struct object *object = made_of("r0 = 1\nr0 = 2", NULL, 0);
        struct oracle_options options = {0};
        struct fault fault = {0};

        assert_int_equal(run(object, &options, &fault), 1);
        assert_int_equal(fault.kind, FAULT_FALL_THROUGH);
}

static void test_lax(void **state)
{
        struct oracle_options options = {.is_lax = true};
        struct fault fault = {0};
        static const struct {
                const char *text;
                enum fault_kind kind;
        } cases[] = {
                {"r0 = r3\nr0 += r10\nw0 = w0\nexit", FAULT_NONE},                    /* any arithmetic */
                {"r0 = *(u64 *)(r10 - 8)\nexit", FAULT_NONE},                         /* bytes that were not written */
                {"r0 = *(u64 *)(r10 - 4)\nexit", FAULT_BOUNDS},                       /* past the frame's end */
                {"r0 = *(u8 *)(r10 - 513)\nexit", FAULT_BOUNDS},                      /* before it */
                {"r0 = *(u8 *)(r1 + 0)\nexit", FAULT_NULL},                           /* no context */
                {"r1 = 0x123456789000 ll\nr0 = *(u8 *)(r1 + 0)\nexit", FAULT_BOUNDS}, /* anywhere */
                {"r1 = -4\nr0 = *(u64 *)(r1 + 0)\nexit", FAULT_BOUNDS},               /* that wraps */
                {"r1 = 0x123456789000 ll\nr2 = r10\ncall map_lookup_elem\nexit", FAULT_HELPER_ARGUMENT},
                {"r1 = map[0]\nr2 = r10\ncall map_lookup_elem\nexit", FAULT_BOUNDS}, /* a key outside */
                {"r1 = map_value[1]\n*(u8 *)(r1 + 0) = 1\nr0 = 0\nexit", FAULT_READ_ONLY},
                {"r1 = map_value[1]\nr0 = *(u64 *)(r1 + 2)\nexit", FAULT_BOUNDS},
        };
        static const struct map_def maps[] = {
                {.name = "a", .kind = MAP_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 2},
                {.name = "r",
                 .kind = MAP_ARRAY,
                 .key_size = 4,
                 .value_size = 8,
                 .max_entries = 1,
                 .is_read_only = true},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_object_ struct object *object = made_of(cases[i].text, maps, 2);
                int r;

                fault = (struct fault){0};
                r = run(object, &options, &fault);
                if (r != (cases[i].kind != FAULT_NONE) || fault.kind != cases[i].kind)
                        fail_msg("%s: %s: %s", cases[i].text, fault_name(fault.kind), fault.text);
        }
}

static void test_refuses_what_is_not_its_own(void **state)
{
        static const struct map_def map = {
                .name = "a", .kind = MAP_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 2};
        _cleanup_object_ struct object *object = made_of("r0 = 1\nexit", NULL, 0);
        _cleanup_store_ struct store *store = NULL;
        struct oracle_result result;
        struct fault fault;
        struct err err = {0};

        assert_int_equal(store_new(&map, 1, &store, NULL), 0);
        assert_int_equal(oracle_run(object->programs[0], store, NULL, NULL, &result, &fault, &err), -EINVAL);
        assert_int_equal(err.kind, ERR_BUG);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_observer), cmocka_unit_test(test_step_limit_is_exact),
                cmocka_unit_test(test_profiles), cmocka_unit_test(test_fall_through),
                cmocka_unit_test(test_lax),      cmocka_unit_test(test_refuses_what_is_not_its_own),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
