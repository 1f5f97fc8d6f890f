/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* A PID controller in fixed point, with its integral clamped, for a PWM channel. */
static long (*pwm_write)(__u32 channel, __u32 value) = (void *)0x10003;

struct reading {
        __s32 target, actual;
};

static __s64 integral;
static __s32 last;

static __s64 clamp(__s64 value, __s64 least, __s64 most)
{
        return value < least ? least : value > most ? most : value;
}

SEC("event")
int controller(const struct reading *r)
{
        __s32 error = r->target - r->actual;
        __s64 output;

        integral = clamp(integral + error, -100000, 100000);
        output = (3 * (__s64)error + (integral >> 4) + 2 * ((__s64)error - last)) >> 6;
        last = error;
        return pwm_write(1, clamp(output + 45, 0, 90));
}
