/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex/routine-internal.h"

#include "base/macro.h"
#include "bpf/reflex.h"

/* A second line of defence behind the verifier's argument that the program ends. It runs at most as many instructions
 * as the cheapest class fits into its cost, and each jump back or call among them takes at most the program's length
 * from the budget; so no run that keeps to its cost exceeds the product. */
static uint64_t budget_of(const struct program *program, const struct cost_table *costs, uint64_t cost_ps)
{
        uint64_t cheapest_ps = UINT64_MAX, budget;

        for (unsigned c = 0; c < COST_CLASSES; c++)
                if (c != COST_ENTRY)
                        cheapest_ps = MIN(cheapest_ps, (uint64_t)costs->class_ps[c]);
        if (cheapest_ps == 0 || __builtin_mul_overflow(cost_ps / cheapest_ps, program->n_insns, &budget))
                return UINT64_MAX;
        return budget;
}

static int verify(struct program *program, const struct routine_options *options, struct verdict *ret, struct err *err)
{
        struct verifier_options verifier = {
                .profile = options->profile ? options->profile : profile_find("embedded"),
                .costs = options->costs,
                .may_actuate = options->may_actuate,
        };

        context_flat(&program->context, sizeof(struct reflex_event), false);
        return verifier_check(program, &verifier, ret, err);
}

int routine_new(struct object **object, struct program *program, const struct routine_options *options,
                struct routine **ret, struct verdict *ret_verdict, struct err *err)
{
        _cleanup_routine_ struct routine *routine = calloc(1, sizeof(*routine));
        struct verdict verdict;
        int r;

        if (!routine)
                return err_set_nomem(err);
        r = verify(program, options, &verdict, err);
        if (r < 0)
                return r;
        if (r > 0) {
                *ret_verdict = verdict;
                return r;
        }
        r = store_new((*object)->maps, (*object)->n_maps, &routine->store, err);
        if (r < 0) {
                verdict_done(&verdict);
                return r;
        }

        *ret_verdict = verdict;
        routine->program = program;
        routine->cost_ps = verdict.cost_ps;
        routine->budget = budget_of(program, options->costs ? options->costs : cost_default(), verdict.cost_ps);
        routine->object = TAKE_PTR(*object);
        *ret = TAKE_PTR(routine);
        return 0;
}

void routine_free(struct routine *routine)
{
        if (!routine)
                return;
        interp_free(routine->interp);
        store_free(routine->store);
        object_free(routine->object);
        free(routine);
}

const char *routine_name(const struct routine *routine)
{
        return routine->program->name;
}

uint64_t routine_cost_ps(const struct routine *routine)
{
        return routine->cost_ps;
}
