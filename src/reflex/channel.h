/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/span.h"

/* What can be driven: four PWM channels and 28 GPIO lines, numbered together so that a table can be indexed by them. */

#define CHANNEL_PWMS  4
#define CHANNEL_GPIOS 28
#define CHANNELS      (CHANNEL_PWMS + CHANNEL_GPIOS)

/* The number of every channel that there is not. */
#define CHANNEL_NONE UINT32_MAX

/* channel_pwm, channel_gpio - the number of a PWM channel or a line; CHANNEL_NONE where there is no such one */
static inline uint32_t channel_pwm(uint64_t index)
{
        return index < CHANNEL_PWMS ? (uint32_t)index : CHANNEL_NONE;
}

static inline uint32_t channel_gpio(uint64_t index)
{
        return index < CHANNEL_GPIOS ? CHANNEL_PWMS + (uint32_t)index : CHANNEL_NONE;
}

/* channel_parse - the number of "pwm:1" or "gpio:17"; CHANNEL_NONE where there is no channel of that number
 *
 * Return: 0; -EINVAL where it is not a kind, ":" and a number.
 */
int channel_parse(struct span name, uint32_t *ret);

/* channel_format - the name of a channel as channel_parse() reads it; "none" for CHANNEL_NONE
 *
 * Return: @buf.
 */
char *channel_format(uint32_t channel, char buf[static 16]);
