/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex/output.h"

#include <stddef.h>

#include "base/macro.h"
#include "reflex/sim.h"

static const struct output_ops *const drivers[] = {&sim_ops};

const char *const output_choices[] = {"sim", NULL};

const struct output_ops *output_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
                if (streq(drivers[i]->name, name))
                        return drivers[i];
        return NULL;
}
