/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The functions that a program may call by number. One table with prototype and profiles: the verifier checks calls by
 * it, the interpreter carries them out; what they cost is in cost.h. Those that the Linux kernel
 * has too keep its numbers and meaning. */

enum helper_arg {
        HELPER_ARG_NONE,     /* not read */
        HELPER_ARG_SCALAR,   /* any scalar */
        HELPER_ARG_OPTIONAL, /* a scalar, or not initialised: read, but only to be shown */
        HELPER_ARG_MAP,      /* handle of a map of one of the kinds in @map_kinds */
        HELPER_ARG_KEY,      /* initialised memory of that map's key_size */
        HELPER_ARG_VALUE,    /* initialised memory of that map's value_size */
        HELPER_ARG_READ,     /* initialised memory; the next argument is its size */
        HELPER_ARG_SIZE,     /* bytes of the argument before: 1 to HELPER_SIZE_MAX, as an unsigned 64-bit number */
        HELPER_ARG_SIZE_OR_0 /* as HELPER_ARG_SIZE, or 0 */
};

#define HELPER_ARGS     5
#define HELPER_SIZE_MAX (UINT32_C(1) << 20)

enum helper_ret {
        HELPER_RET_SCALAR,        /* any 64 bits, or [ret_min, ret_max] where those are not both 0 */
        HELPER_RET_VALUE_OR_NULL, /* address of a value of the map argument, or null */
};

enum helper_id {
        HELPER_MAP_LOOKUP = 1,
        HELPER_MAP_UPDATE = 2,
        HELPER_MAP_DELETE = 3,
        HELPER_KTIME_NS = 5,
        HELPER_TRACE = 6,
        HELPER_RANDOM_U32 = 7,
        HELPER_RING_OUTPUT = 130,
        HELPER_GPIO_SET = 0x10001,
        HELPER_GPIO_GET = 0x10002,
        HELPER_PWM_WRITE = 0x10003,
        HELPER_MOTOR_PAIR = 0x10004,
};

/* Which profiles allow a helper (bits; see profile.h). */
#define HELPER_IN_EMBEDDED 1
#define HELPER_IN_FULL     2

struct helper {
        uint32_t id;
        const char *name;
        const char *meaning;       /* one sentence */
        uint8_t args[HELPER_ARGS]; /* enum helper_arg */
        uint8_t ret;               /* enum helper_ret */
        uint8_t profiles;          /* HELPER_IN_* */
        uint8_t map_kinds;         /* 1 << enum map_kind, for HELPER_ARG_MAP */
        bool is_actuation;         /* needs the right to actuate */
        bool is_deterministic;     /* same arguments and memory, same result: can be replayed without recording it */
        int64_t ret_min, ret_max;  /* signed range of a scalar result */
};

/* helper_find - the entry with number @id, or NULL */
const struct helper *helper_find(uint64_t id);

/* helper_find_name - the entry with that name, or NULL */
const struct helper *helper_find_name(const char *name);

/* helper_table - all entries, ascending by number */
const struct helper *helper_table(size_t *ret_n);

/* helper_index - position of an entry in the table: what cost tables are indexed by */
size_t helper_index(const struct helper *helper);

/* helper_arity - arguments that have to be there: the first so many of r1..r5 */
unsigned helper_arity(const struct helper *helper);
