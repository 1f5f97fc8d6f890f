/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/oracle-internal.h"

static int check_allowed(struct run *run, const struct insn *insn, const struct helper **ret)
{
        const struct helper *helper = helper_find((uint64_t)insn->imm);
        const struct profile *profile = run->options.profile;

        if (!helper)
                return fault_set(run->fault, FAULT_HELPER_UNKNOWN, run->slot, "no helper has number %" PRIi64,
                                 insn->imm);
        if (profile && !(helper->profiles & profile->helper_bit))
                return fault_set(run->fault, FAULT_HELPER_FORBIDDEN, run->slot, "profile %s does not allow %s",
                                 profile->name, helper->name);
        if (profile && helper->is_actuation && !run->options.may_actuate)
                return fault_set(run->fault, FAULT_HELPER_FORBIDDEN, run->slot, "%s needs the right to actuate",
                                 helper->name);
        *ret = helper;
        return 0;
}

static int check_map(struct run *run, const struct helper *helper, unsigned reg, uint32_t *ret_map)
{
        const struct value *value = run_reg(run, reg);

        if (run->options.is_lax)
                *ret_map = store_find_handle(run->store, value->bits);
        else
                *ret_map = value->kind == VALUE_MAP ? value->index : store_count(run->store);
        if (*ret_map >= store_count(run->store))
                return fault_set(run->fault, FAULT_HELPER_ARGUMENT, run->slot, "r%u is %s; %s expects a map", reg,
                                 oracle_value_name(value), helper->name);
        if (!(helper->map_kinds & 1 << store_def(run->store, *ret_map)->kind))
                return fault_set(run->fault, FAULT_HELPER_ARGUMENT, run->slot, "%s does not work on a map of kind %s",
                                 helper->name, map_kind_name(store_def(run->store, *ret_map)->kind));
        return 0;
}

/* A scalar argument; an optional one may be missing. */
static int check_scalar(struct run *run, const struct helper *helper, unsigned reg, bool is_optional)
{
        const struct value *value = run_reg(run, reg);

        if (value->kind == VALUE_UNINIT && !is_optional)
                return fault_set(run->fault, FAULT_UNINIT_REGISTER, run->slot, "%s reads r%u, which was not written",
                                 helper->name, reg);
        if (value_is_pointer(value))
                return fault_set(run->fault, FAULT_POINTER_LEAK, run->slot, "passes %s as number r%u of %s",
                                 oracle_value_name(value), reg, helper->name);
        return 0;
}

static int check_memory(struct run *run, const struct helper *helper, unsigned reg, uint64_t size,
                        uint64_t *ret_address)
{
        const uint8_t *at;
        int r;

        if (run_reg(run, reg)->kind == VALUE_UNINIT)
                return fault_set(run->fault, FAULT_UNINIT_REGISTER, run->slot, "%s reads r%u, which was not written",
                                 helper->name, reg);
        r = oracle_readable(run, reg, size, &at);
        if (r == 0)
                *ret_address = (uintptr_t)at;
        return r;
}

/* Memory whose size is the next argument. */
static int check_sized(struct run *run, const struct helper *helper, unsigned reg, enum helper_arg size_kind,
                       uint64_t *ret_address)
{
        uint64_t size = run_reg(run, reg + 1)->bits;
        int r;

        r = check_scalar(run, helper, reg + 1, false);
        if (r)
                return r;
        if (size > HELPER_SIZE_MAX || (size == 0 && size_kind == HELPER_ARG_SIZE))
                return fault_set(run->fault, FAULT_HELPER_ARGUMENT, run->slot,
                                 "r%u is a size of %" PRIu64 " bytes; %s allows %d to %" PRIu32, reg + 1, size,
                                 helper->name, size_kind == HELPER_ARG_SIZE, HELPER_SIZE_MAX);
        return check_memory(run, helper, reg, size, ret_address);
}

static int check_argument(struct run *run, const struct helper *helper, unsigned i, uint32_t *map, uint64_t *arg)
{
        enum helper_arg kind = helper->args[i];
        unsigned reg = i + 1;

        *arg = run_reg(run, reg)->bits;
        switch (kind) {
        case HELPER_ARG_SCALAR:
        case HELPER_ARG_OPTIONAL:
                return check_scalar(run, helper, reg, kind == HELPER_ARG_OPTIONAL);
        case HELPER_ARG_MAP:
                if (run_reg(run, reg)->kind == VALUE_UNINIT)
                        return check_scalar(run, helper, reg, false);
                return check_map(run, helper, reg, map);
        case HELPER_ARG_KEY:
                return check_memory(run, helper, reg, store_def(run->store, *map)->key_size, arg);
        case HELPER_ARG_VALUE:
                return check_memory(run, helper, reg, store_def(run->store, *map)->value_size, arg);
        case HELPER_ARG_READ:
                return check_sized(run, helper, reg, helper->args[i + 1], arg);
        default: /* a size was checked with its memory */
                return 0;
        }
}

/* What a helper may have changed: r0 holds its result, r1..r5 nothing. */
static void set_result(struct run *run, const struct helper *helper, uint32_t map, uint64_t result)
{
        struct value *r0 = run_reg(run, 0);

        *r0 = value_scalar(result);
        if (run->options.is_lax)
                return;
        if (helper->ret == HELPER_RET_VALUE_OR_NULL)
                *r0 = (struct value){.kind = VALUE_MAP_VALUE,
                                     .may_be_null = true,
                                     .index = map,
                                     .lookup = ++run->n_lookups,
                                     .bits = result,
                                     .origin = result};
        for (unsigned reg = 1; reg <= HELPER_ARGS; reg++)
                *run_reg(run, reg) = (struct value){.kind = VALUE_UNINIT};
}

int oracle_call_helper(struct run *run, const struct insn *insn)
{
        const struct helper *helper = NULL;
        uint64_t args[HELPER_ARGS] = {0};
        uint32_t map = 0;
        int r;

        r = check_allowed(run, insn, &helper);
        if (r)
                return r;
        for (unsigned i = 0; i < HELPER_ARGS; i++) {
                r = check_argument(run, helper, i, &map, &args[i]);
                if (r)
                        return r;
        }
        set_result(run, helper, map, embed_call(&run->embed, run->store, helper->id, args));
        return 0;
}
