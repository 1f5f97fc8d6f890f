/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "load/address.h"
#include "sys/netns.h"

/* Where commands of a trial run, and what they reach: a network namespace that stands for the host's, so that neither
 * the host's firewall nor its connection tracking is in any arm, with lo and a veth pair on whose one end the origin
 * listens. It is held by a descriptor, and goes when the trial's processes have gone. */

#define STAGE_ORIGIN_PORT 8080
#define STAGE_PROXY_PORT  3128

struct stage {
        struct netns netns;   /* -1: not there */
        union address origin; /* where an origin listens */
        union address proxy;  /* where a proxy listens that a boundary may have, at the same address */
};

#define STAGE_INIT                                                                                                     \
        {                                                                                                              \
                .netns = NETNS_INIT                                                                                    \
        }

/* stage_up - make it. Return: 0; a negative errno with the reason, kind unsupported where the right is missing. */
int stage_up(struct stage *stage, struct err *err);

/* stage_down - let go of it; accepts STAGE_INIT, and may be called twice */
void stage_down(struct stage *stage);
