/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "evidence/kind.h"

/* The workload `bpf-verify`: one program, verified again and again, by the verifier here or by the running kernel's. */

struct bpf_verify_keys {
        char *program; /* of bpfvm/specimen.h */
        int verifier;
        int profile;
        int64_t batch;
        int64_t samples, warmup_samples;
        int64_t cpu;
};

extern const struct key_table bpf_verify_table;
extern const struct metric bpf_verify_metrics[];
extern const struct workload_ops bpf_verify_ops;

/* bpf_verify_check - what its table cannot see: whether there is such a program. Errors carry a position. */
int bpf_verify_check(const struct node *map, struct err *err);

/* bpf_verify_size - of a trial with these keys; its time is a guess */
int bpf_verify_size(const struct node *map, struct workload_size *ret, struct err *err);

/* bpf_verify_missing - whether its processor and its verifier may be used. Return: 0; -EOPNOTSUPP. */
int bpf_verify_missing(const struct node *map, struct err *err);
