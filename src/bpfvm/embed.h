/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bpfvm/helper.h"
#include "bpfvm/store.h"

/* What stands behind the helpers that reach outside: given by whoever embeds the interpreter. A member that is NULL has
 * a default: the monotonic clock; bits of the clock, spread; lines dropped; -ENOSYS. */
struct embed {
        void *userdata;
        uint64_t (*time_ns)(void *userdata);
        uint32_t (*random_u32)(void *userdata);
        void (*trace)(void *userdata, const char *text, size_t len);

        /* gpio_set, gpio_get, pwm_write, motor_pair: @args are r1 and r2. Return: the helper's result. */
        int64_t (*actuate)(void *userdata, enum helper_id helper, const uint64_t args[static 2]);
};

/* embed_call - carry out helper number @id
 * @args: r1..r5; memory that they point to has been checked, by the verifier or by the caller, against the prototype
 *
 * Return: r0. An unknown helper gives -ENOSYS.
 */
uint64_t embed_call(const struct embed *embed, struct store *store, uint64_t id,
                    const uint64_t args[static HELPER_ARGS]);
