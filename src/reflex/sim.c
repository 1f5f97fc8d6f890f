/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex/sim.h"

#include <stdlib.h>

#define LEVEL_WRITTEN (-1) /* a line reads what was written to it */

struct sim {
        struct output base;
        int32_t values[CHANNELS];
        int levels[CHANNELS];
        uint64_t n_writes;
        struct sim_write log[SIM_LOG];
};

static int sim_open(struct output **ret, struct err *err)
{
        struct sim *sim = calloc(1, sizeof(*sim));

        if (!sim)
                return err_set_nomem(err);
        sim->base.ops = &sim_ops;
        for (uint32_t i = 0; i < CHANNELS; i++)
                sim->levels[i] = LEVEL_WRITTEN;
        *ret = &sim->base;
        return 0;
}

static int sim_write(struct output *output, uint32_t channel, int32_t value, int64_t now_ns)
{
        struct sim *sim = (struct sim *)output;

        sim->values[channel] = value;
        sim->log[sim->n_writes++ % SIM_LOG] = (struct sim_write){channel, value, now_ns};
        return 0;
}

static int sim_read(struct output *output, uint32_t channel)
{
        const struct sim *sim = (const struct sim *)output;

        return sim->levels[channel] == LEVEL_WRITTEN ? sim->values[channel] != 0 : sim->levels[channel];
}

static void sim_close(struct output *output)
{
        free(output);
}

const struct output_ops sim_ops = {
        .name = "sim",
        .summary = "variables of this process",
        .open = sim_open,
        .write = sim_write,
        .read = sim_read,
        .close = sim_close,
};

int32_t sim_value(const struct output *output, uint32_t channel)
{
        return ((const struct sim *)output)->values[channel];
}

void sim_set_level(struct output *output, uint32_t channel, int level)
{
        ((struct sim *)output)->levels[channel] = level != 0;
}

uint64_t sim_n_writes(const struct output *output)
{
        return ((const struct sim *)output)->n_writes;
}

int sim_write_at(const struct output *output, uint64_t index, struct sim_write *ret)
{
        const struct sim *sim = (const struct sim *)output;

        if (index >= sim->n_writes || sim->n_writes - index > SIM_LOG)
                return 0;
        *ret = sim->log[index % SIM_LOG];
        return 1;
}
