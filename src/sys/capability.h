/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* What this host and this user can do, found out by trying it in namespaces and processes made for it, of which nothing
 * is left. */
struct capability {
        const char *name;    /* stable; as in messages, in evidence and in ASSAY_MUST_RUN */
        const char *purpose; /* what needs it */
        const char *remedy;  /* how to get it */
        bool is_present;
        char detail[256]; /* why it is missing; empty where it is present */
};

/* capability_count, capability_name - what there is to ask for: netns, veth, htb, mq, clsact, bpf, vlan, nft, userns,
 * fifo, mlock, send-buffer */
size_t capability_count(void);
const char *capability_name(size_t i);

/* capability_detect - try one
 *
 * Return: 0, whether it is present or not; -ENOENT where there is none of that name.
 */
int capability_detect(const char *name, struct capability *ret);

/* capability_require - be sure of one
 *
 * Return: 0; -EOPNOTSUPP, kind unsupported, with name, reason and remedy where it is missing; -ENOENT.
 */
int capability_require(const char *name, struct err *err);
