/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a program that actuates is written against: include it and compile with `clang -target bpf -O2 -g`.
 *
 *         #include <assay/reflex.h>
 *
 *         __attribute__((section("reflex"), used)) long tick(const struct reflex_event *event)
 *         {
 *                 return pwm_write(1, event->sequence & 1 ? 10 : 20);
 *         }
 */

/* What r1 points to, read only. */
struct reflex_event {
        unsigned long long sequence; /* of the event at its attach point, from 0; what a timer missed is counted, too */
        unsigned long long time_ns;  /* of the monotonic clock, when the program was entered */
        unsigned long long missed;   /* a timer's expirations since the event before that nobody was there for */
};

#ifdef __bpf__

/* Ask for an actuation. What is applied is the monitor's decision.
 *
 * Return: 0 applied as asked; 1 applied after clamping; 2 the safe value was applied instead; -19 (ENODEV) no such
 * channel; -1 (EPERM) not with this authority; -5 (EIO) the output failed. */
static long (*const gpio_set)(unsigned long long line, long long level) = (void *)0x10001;
static long (*const pwm_write)(unsigned long long channel, long long value) = (void *)0x10003;

/* Both motors, PWM channels 1 and 2, or none of them. Return: as above, the larger of the two. */
static long (*const motor_pair)(long long left, long long right) = (void *)0x10004;

/* Level of a line, or -19. */
static long (*const gpio_get)(unsigned long long line) = (void *)0x10002;

static unsigned long long (*const ktime_get_ns)(void) = (void *)5;

#endif
