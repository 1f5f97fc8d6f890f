/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/helper.h"

#include "base/macro.h"
#include "bpfvm/map.h"

#define EVERYWHERE (HELPER_IN_EMBEDDED | HELPER_IN_FULL)
#define KEYED      (1 << MAP_ARRAY | 1 << MAP_HASH)

static const struct helper table[] = {
        {.id = HELPER_MAP_LOOKUP,
         .name = "map_lookup_elem",
         .meaning = "address of the value stored under a key, or null",
         .args = {HELPER_ARG_MAP, HELPER_ARG_KEY},
         .ret = HELPER_RET_VALUE_OR_NULL,
         .profiles = EVERYWHERE,
         .map_kinds = KEYED,
         .is_deterministic = true},
        {.id = HELPER_MAP_UPDATE,
         .name = "map_update_elem",
         .meaning = "store a value under a key; flags 0 always, 1 only if new, 2 only if there; 0 or a negative errno",
         .args = {HELPER_ARG_MAP, HELPER_ARG_KEY, HELPER_ARG_VALUE, HELPER_ARG_SCALAR},
         .profiles = EVERYWHERE,
         .map_kinds = KEYED,
         .is_deterministic = true},
        {.id = HELPER_MAP_DELETE,
         .name = "map_delete_elem",
         .meaning = "remove a key; 0 or a negative errno (always for an array)",
         .args = {HELPER_ARG_MAP, HELPER_ARG_KEY},
         .profiles = EVERYWHERE,
         .map_kinds = KEYED,
         .is_deterministic = true},
        {.id = HELPER_KTIME_NS,
         .name = "ktime_get_ns",
         .meaning = "nanoseconds of the monotonic clock",
         .profiles = EVERYWHERE},
        {.id = HELPER_TRACE,
         .name = "trace_printk",
         .meaning = "write a line, its format and up to three numbers, to the log; bytes written or a negative errno",
         .args = {HELPER_ARG_READ, HELPER_ARG_SIZE, HELPER_ARG_OPTIONAL, HELPER_ARG_OPTIONAL, HELPER_ARG_OPTIONAL},
         .profiles = HELPER_IN_FULL},
        {.id = HELPER_RANDOM_U32,
         .name = "get_prandom_u32",
         .meaning = "32 pseudo-random bits",
         .profiles = HELPER_IN_FULL,
         .ret_max = UINT32_MAX},
        {.id = HELPER_RING_OUTPUT,
         .name = "ringbuf_output",
         .meaning = "append a record to a ring; 0 or a negative errno",
         .args = {HELPER_ARG_MAP, HELPER_ARG_READ, HELPER_ARG_SIZE_OR_0, HELPER_ARG_SCALAR},
         .profiles = EVERYWHERE,
         .map_kinds = 1 << MAP_RING,
         .is_deterministic = true},
        {.id = HELPER_GPIO_SET,
         .name = "gpio_set",
         .meaning = "ask for a level on an output line (line, level)",
         .args = {HELPER_ARG_SCALAR, HELPER_ARG_SCALAR},
         .profiles = EVERYWHERE,
         .is_actuation = true},
        {.id = HELPER_GPIO_GET,
         .name = "gpio_get",
         .meaning = "level of an input line, or a negative errno",
         .args = {HELPER_ARG_SCALAR},
         .profiles = EVERYWHERE},
        {.id = HELPER_PWM_WRITE,
         .name = "pwm_write",
         .meaning = "ask for a value on a PWM channel (channel, value)",
         .args = {HELPER_ARG_SCALAR, HELPER_ARG_SCALAR},
         .profiles = EVERYWHERE,
         .is_actuation = true},
        {.id = HELPER_MOTOR_PAIR,
         .name = "motor_pair",
         .meaning = "ask for the speeds of two motors (left, right)",
         .args = {HELPER_ARG_SCALAR, HELPER_ARG_SCALAR},
         .profiles = EVERYWHERE,
         .is_actuation = true},
};

const struct helper *helper_table(size_t *ret_n)
{
        *ret_n = ARRAY_SIZE(table);
        return table;
}

const struct helper *helper_find(uint64_t id)
{
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (table[i].id == id)
                        return &table[i];
        return NULL;
}

const struct helper *helper_find_name(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (streq(table[i].name, name))
                        return &table[i];
        return NULL;
}

size_t helper_index(const struct helper *helper)
{
        return (size_t)(helper - table);
}

unsigned helper_arity(const struct helper *helper)
{
        unsigned n = 0;

        while (n < HELPER_ARGS && helper->args[n] != HELPER_ARG_NONE && helper->args[n] != HELPER_ARG_OPTIONAL)
                n++;
        return n;
}
