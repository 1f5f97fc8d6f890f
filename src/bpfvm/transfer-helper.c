/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/macro.h"
#include "bpfvm/helper.h"
#include "bpfvm/transfer-internal.h"

/* One call: what its arguments are checked by, and what is learned on the way. */
struct call {
        struct transfer *t;
        struct state *state;
        const struct helper *helper;
        uint32_t slot;
        uint32_t map; /* of the map argument */
};

static int check_allowed(struct call *call, int64_t number)
{
        const struct profile *profile = call->t->profile;

        call->helper = helper_find((uint64_t)number);
        if (!call->helper)
                return fault_set(call->t->fault, FAULT_HELPER_UNKNOWN, call->slot, "no helper has number %" PRIi64,
                                 number);
        if (!(call->helper->profiles & profile->helper_bit))
                return fault_set(call->t->fault, FAULT_HELPER_FORBIDDEN, call->slot, "profile %s does not allow %s",
                                 profile->name, call->helper->name);
        if (call->helper->is_actuation && !call->t->may_actuate)
                return fault_set(call->t->fault, FAULT_HELPER_FORBIDDEN, call->slot, "%s needs the right to actuate",
                                 call->helper->name);
        return 0;
}

static int refuse_uninit(const struct call *call, unsigned reg)
{
        return fault_set(call->t->fault, FAULT_UNINIT_REGISTER, call->slot,
                         "%s reads r%u, which was not written on every path here", call->helper->name, reg);
}

static int check_scalar(const struct call *call, unsigned reg, bool is_optional)
{
        const struct reg *arg = &call->state->regs[reg];

        if (arg->kind == REG_SCALAR || (arg->kind == REG_UNINIT && is_optional))
                return 0;
        if (arg->kind == REG_UNINIT)
                return refuse_uninit(call, reg);
        return fault_set(call->t->fault, FAULT_POINTER_LEAK, call->slot, "passes %s as number r%u of %s",
                         reg_kind_name(arg), reg, call->helper->name);
}

static int check_map(struct call *call, unsigned reg)
{
        const struct reg *arg = &call->state->regs[reg];

        if (arg->kind == REG_UNINIT)
                return refuse_uninit(call, reg);
        if (arg->kind != REG_MAP)
                return fault_set(call->t->fault, FAULT_HELPER_ARGUMENT, call->slot, "r%u is %s; %s expects a map", reg,
                                 reg_kind_name(arg), call->helper->name);
        call->map = arg->index;
        if (!(call->helper->map_kinds & 1 << call->t->program->maps[call->map].kind))
                return fault_set(call->t->fault, FAULT_HELPER_ARGUMENT, call->slot,
                                 "%s does not work on a map of kind %s", call->helper->name,
                                 map_kind_name(call->t->program->maps[call->map].kind));
        return 0;
}

/* Memory whose size, at most, the next argument gives. */
static int check_sized(const struct call *call, unsigned reg, enum helper_arg size_kind)
{
        const struct reg *size = &call->state->regs[reg + 1];
        uint64_t least = size_kind == HELPER_ARG_SIZE;
        int r;

        r = check_scalar(call, reg + 1, false);
        if (r)
                return r;
        if (size->value.word.umin < least || size->value.word.umax > HELPER_SIZE_MAX)
                return fault_set(call->t->fault, FAULT_HELPER_ARGUMENT, call->slot,
                                 "r%u is a size of %" PRIu64 " to %" PRIu64 " bytes; %s allows %" PRIu64 " to %" PRIu32,
                                 reg + 1, size->value.word.umin, size->value.word.umax, call->helper->name, least,
                                 HELPER_SIZE_MAX);
        return transfer_readable(call->t, call->state, call->slot, reg, size->value.word.umax);
}

static int check_argument(struct call *call, unsigned i)
{
        const struct map_def *maps = call->t->program->maps;
        unsigned reg = i + 1;

        switch ((enum helper_arg)call->helper->args[i]) {
        case HELPER_ARG_SCALAR:
                return check_scalar(call, reg, false);
        case HELPER_ARG_OPTIONAL:
                return check_scalar(call, reg, true);
        case HELPER_ARG_MAP:
                return check_map(call, reg);
        case HELPER_ARG_KEY:
                return transfer_readable(call->t, call->state, call->slot, reg, maps[call->map].key_size);
        case HELPER_ARG_VALUE:
                return transfer_readable(call->t, call->state, call->slot, reg, maps[call->map].value_size);
        case HELPER_ARG_READ:
                return check_sized(call, reg, call->helper->args[i + 1]);
        case HELPER_ARG_NONE:
        case HELPER_ARG_SIZE: /* checked with its memory */
        case HELPER_ARG_SIZE_OR_0:
                break;
        }
        return 0;
}

static struct reg result_of(struct call *call)
{
        const struct helper *helper = call->helper;
        struct scalar any = scalar_unknown();

        if (helper->ret == HELPER_RET_VALUE_OR_NULL) {
                struct scalar start = scalar_const(0);

                return (struct reg){.kind = REG_VALUE,
                                    .may_be_null = true,
                                    .index = (uint16_t)call->map,
                                    .id = transfer_new_id(call->state),
                                    .value = start};
        }
        if (helper->ret_min != 0 || helper->ret_max != 0) {
                any.word = range_of_signed(helper->ret_min, helper->ret_max, 64);
                scalar_reduce(&any);
        }
        return reg_scalar(&any);
}

int transfer_helper(struct transfer *t, struct state *state, uint32_t slot)
{
        struct call call = {.t = t, .state = state, .slot = slot};
        int r;

        r = check_allowed(&call, t->program->insns[slot].imm);
        if (r)
                return r;
        for (unsigned i = 0; i < HELPER_ARGS; i++) {
                r = check_argument(&call, i);
                if (r)
                        return r;
        }
        state->regs[0] = result_of(&call);
        for (unsigned reg = 1; reg <= HELPER_ARGS; reg++)
                state->regs[reg].kind = REG_UNINIT;
        return 0;
}
