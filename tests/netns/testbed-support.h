/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the tests of whole testbeds share: the topology of exp-001 and its variants, built for real. */

#include "support.h"
#include "testbed/testbed.h"
#include "tests/unit/testbed/fixture.h"

/* Edits of exp_001 that make the other schedulers and shapes. */
#define PER_QUEUE                                                                                                      \
        "scheduler: tree", "scheduler: tree-per-queue", "guarantee: 100mbit, ceiling: 500mbit",                        \
                "guarantee: 100mbit, ceiling: 100mbit", "guarantee: 350mbit, ceiling: 500mbit",                        \
                "guarantee: 400mbit, ceiling: 400mbit"
#define ONE_QUEUE "scheduler: tree", "scheduler: one-queue"
#define CHAIN_3   "topology: star", "topology: daisy-chain\nhops: 3"
#define DIRECT    "topology: star", "topology: direct"

enum { FRONT_LEFT, REAR_RIGHT, CENTRAL_HPC, GATEWAY };
enum { ADAS, INFOTAINMENT };

struct bed {
        struct topology *topology;
        struct testbed *tb;
};

static inline void bed_up(struct bed *b, const char *const *edits)
{
        struct err err = {0};

        *b = (struct bed){.topology = topology_of(edits)};
        assert_ok(testbed_up(b->topology, &b->tb, &err));
}

/* Whether this process runs in another user namespace than the host's. */
static inline bool in_user_namespace(void)
{
        unsigned inside = 0, outside = 0, count = 0;
        FILE *f = fopen("/proc/self/uid_map", "re");
        bool is_whole = f && fscanf(f, "%u %u %u", &inside, &outside, &count) == 3 && count == UINT32_MAX;

        if (f)
                fclose(f);
        return !is_whole;
}

/* Whether this process may load BPF programs; root of a user namespace may not, and gets the weaker mechanism. */
static inline bool has_bpf(void)
{
        struct err err = {0};
        bool has = can_load_bpf(&err) == 0;

        if (!has && !in_user_namespace() && test_must_run("bpf"))
                fail_msg("bpf must be there: %s", err.text);
        return has;
}

static inline void bed_down(struct bed *b)
{
        testbed_down(b->tb);
        topology_free(b->topology);
}

/* Proves the path and compares the reason; NULL: it has to hold. */
static inline void assert_path(struct bed *b, const char *reason)
{
        _cleanup_testbed_proof_ struct testbed_proof proof = {0};
        struct err err = {0};

        assert_ok(testbed_prove(b->tb, &proof, &err));
        assert_string_equal(proof.path.reason, reason ? reason : "");
        assert_int_equal(proof.path.holds, !reason);
}
