/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "reflex/channel.h"
#include "reflex/output.h"

/* The output driver `sim`: channels that are variables of this process. What was written can be looked at; the same
 * writes give the same state. */

#define SIM_LOG 1024 /* writes that are remembered; a power of two */

struct sim_write {
        uint32_t channel;
        int32_t value;
        int64_t now_ns;
};

extern const struct output_ops sim_ops;

/* sim_value - what was last written to a channel below CHANNELS; 0 before */
int32_t sim_value(const struct output *output, uint32_t channel);

/* sim_set_level - the level that a line reads from now on, whatever is written to it */
void sim_set_level(struct output *output, uint32_t channel, int level);

/* sim_n_writes - how many writes there were */
uint64_t sim_n_writes(const struct output *output);

/* sim_write_at - write number @index, from 0. Return: 1; 0 where there was none, or it is forgotten. */
int sim_write_at(const struct output *output, uint64_t index, struct sim_write *ret);
