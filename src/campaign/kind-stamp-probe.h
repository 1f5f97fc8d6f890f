/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "campaign/adapter.h"
#include "evidence/kind.h"

/* The workload `stamp-probe`: STAMP packets from a zone to a reflector in another one, in one slice. */

struct stamp_probe_keys {
        char *from, *to, *slice;
        int64_t rate_hz;
        int64_t duration_ns, warmup_ns;
        int64_t packet_bytes; /* of the IP packet */
        int family;           /* index into {"ipv4", "ipv6"} */
        int64_t cpu, reflector_cpu;
};

extern const struct key_table stamp_probe_table;
extern const struct metric stamp_probe_metrics[];
extern const struct workload_ops stamp_probe_ops;

/* stamp_probe_size - of a trial with these keys */
int stamp_probe_size(const struct node *map, struct workload_size *ret, struct err *err);
