/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the programs that look on where a command asks for a target (bpf/witness.bpf.c) share with who loads them
 * (sys/witness.c). */

#include <linux/types.h>

struct witness_target {
        __be32 address[4]; /* of IPv4, also where an IPv6 socket asks for it: the first, the rest are 0 */
        __be16 port;
        __u8 protocol; /* IPPROTO_TCP, IPPROTO_UDP */
        __u8 version;  /* 4, 6 */
};

/* Who asked for what. */
struct witness_question {
        __u32 pid; /* of the process, in the first PID namespace of the host */
        struct witness_target to;
};

/* What is looked on at. */
struct witness_scope {
        __u64 netns_cookie; /* of sockets in this network namespace; of others nothing is noted */
};

/* Where the command is; all 0 before that is known. */
struct witness_place {
        __u64 pid_ns_dev, pid_ns_inode;
};

struct witness_report {
        struct witness_question question;
        __u32 inner_pid; /* in the PID namespace of struct witness_place; 0: in another one */
        char comm[16];   /* the thread's name, which is its program's where it did not choose another */
};

struct witness_flows {
        __u64 n;
        __u64 sent_bytes; /* payload that the far end has acknowledged */
        __u64 received_bytes;
};

#define WITNESS_KNOWN_MAX   16384
#define WITNESS_TARGETS_MAX 4096
#define WITNESS_RING_BYTES  (256 * 1024)
