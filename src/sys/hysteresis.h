/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"

/* HTB's hysteresis, which makes a class send in batches.
 *
 * Without, HTB sets a timer for each packet of a class that is over its rate: the class becomes sendable when its
 * tokens reach 0, sends one packet, and is below 0 again. In a virtual machine a timer can cost 20 us of processor,
 * more than all the rest of the packet's way, and no sender on that processor can then overload a link of 500 mbit.
 * With hysteresis a class that may send goes on until its burst is used up, and then waits until its tokens are 0: one
 * timer a burst, the same rate over time (kernel, net/sched/sch_htb.c, htb_lowater() and htb_hiwater()).
 *
 * It is a parameter of the kernel's module: it counts for all HTB queues of the host, in all namespaces. So it is held:
 * while at least one process holds it, it is on; the last one that lets go puts back what was there. Where holders were
 * killed, the next holder does that when it lets go, or hysteresis_sweep(). The value to put back is kept in a file
 * that only root can write, whose lock is what holders share. */
struct hysteresis {
        const char *parameter; /* file of the kernel's parameter */
        const char *state;     /* file that keeps the value from before */
        int fd;                /* of the state, locked; -1: not held */
};

#define HYSTERESIS_OF_HOST                                                                                             \
        ((struct hysteresis){                                                                                          \
                .parameter = "/sys/module/sch_htb/parameters/htb_hysteresis",                                          \
                .state = "/run/assay-htb-hysteresis",                                                                  \
                .fd = -1,                                                                                              \
        })

/* hysteresis_hold - switch it on until hysteresis_release(), or until this process and all that it forked have ended
 *
 * Return: 0; a negative errno where this process may not (-EACCES in a user namespace, -ENOENT without HTB): then
 * nothing has changed.
 */
int hysteresis_hold(struct hysteresis *h);

/* hysteresis_is_held - whether hysteresis_hold() succeeded */
static inline bool hysteresis_is_held(const struct hysteresis *h)
{
        return h->fd >= 0;
}

/* hysteresis_release - let go; nothing where it is not held */
void hysteresis_release(struct hysteresis *h);

/* hysteresis_sweep - put back what was there before holders that were all killed; nothing where one holds it */
void hysteresis_sweep(struct hysteresis *h);

#define _cleanup_hysteresis_ _cleanup_(hysteresis_release)
