/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* What carries values out, behind one table: drivers embed struct output as their first member. Nothing but a pipeline
 * writes to one, and only what a monitor decided. */

struct output {
        const struct output_ops *ops;
};

struct output_ops {
        const char *name;
        const char *summary; /* one line, without full stop */

        int (*open)(struct output **ret, struct err *err);

        /* apply a value to a channel that exists; @now_ns is the pipeline's time. Return: 0 or a negative errno. */
        int (*write)(struct output *output, uint32_t channel, int32_t value, int64_t now_ns);

        /* level of a line. Return: 0, 1 or a negative errno. */
        int (*read)(struct output *output, uint32_t channel);

        /* accepts NULL */
        void (*close)(struct output *output);
};

/* output_find - the driver of that name, or NULL */
const struct output_ops *output_find(const char *name);

/* output_choices - the names of all drivers, ended by NULL */
extern const char *const output_choices[];
