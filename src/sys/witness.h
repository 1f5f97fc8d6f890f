/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bpf/witness.h"

/* Who asks for which target in a network namespace, seen by BPF where it asks (bpf/witness.bpf.c). The programs are
 * attached to the control group of this process, whose children are in it, and look at nothing of other network
 * namespaces. They hang on descriptors: nothing stays of them when this process ends, however it ends. */
struct witness;

/* witness_open - look on from now on; to be called inside the network namespace
 * @ret: witness_free() releases it
 *
 * Return: 0; a negative errno, kind unsupported, where BPF may not be loaded, or there is no control group of version 2
 * to attach it to.
 */
int witness_open(struct witness **ret, struct err *err);

void witness_free(struct witness *witness);

DEFINE_CLEANUP(struct witness *, witness_free)
#define _cleanup_witness_ _cleanup_(witness_free_cleanup)

/* witness_place - the PID namespace where the processes are, by one of them: so that their numbers can be told where
 * this process is not in the host's first PID namespace itself */
int witness_place(struct witness *witness, pid_t pid, struct err *err);

/* witness_fd - becomes readable with the next report; borrowed */
int witness_fd(const struct witness *witness);

/* witness_read - call @fn for each question that is not known yet, in their order, without waiting
 * @pid: who asks, as a number of this process's PID namespace; 0: it has none there
 *
 * All that were reported before the call are read. Of those that come meanwhile only so many that it ends, however fast
 * they come: witness_fd() stays readable then.
 */
void witness_read(struct witness *witness, void (*fn)(const struct witness_report *report, pid_t pid, void *userdata),
                  void *userdata);

/* witness_know - from now on a question is counted and no longer reported. Return: 0; -E2BIG where WITNESS_KNOWN_MAX
 * are known; another negative errno. */
int witness_know(struct witness *witness, const struct witness_question *question);

/* witness_forget - forget all questions that are known, and call @fn for each with how often it was asked since */
void witness_forget(struct witness *witness,
                    void (*fn)(const struct witness_question *question, uint64_t times, void *userdata),
                    void *userdata);

/* witness_count_flows - from now on count what connections move that are made after this */
int witness_count_flows(struct witness *witness, struct err *err);

/* witness_stop_flows - what is open from now on is not counted when it is closed */
void witness_stop_flows(struct witness *witness);

/* witness_flows - call @fn for each target to which connections were made that are closed */
void witness_flows(struct witness *witness,
                   void (*fn)(const struct witness_target *to, const struct witness_flows *flows, void *userdata),
                   void *userdata);

/* witness_lost - questions and connections that were not counted, since there were too many at once */
void witness_lost(const struct witness *witness, uint64_t *ret_questions, uint64_t *ret_flows);
