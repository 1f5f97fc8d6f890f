/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "sandbox/policy.h"

/* The record of one run, written at its end as run-bundle.json (docs/formats/run-bundle.md): what was to be in force,
 * what was seen to be, and what the command tried. What could not be observed is null there, and 0 or an empty list is
 * what was observed to be nothing: so each table below exists only after bundle_observes(). Tables are bounded; what
 * does not fit is counted.
 *
 * Functions that record return nothing: where memory runs out, bundle_write() fails. All texts are copied, and those
 * that may come from the command are made visible. Every function but bundle_free() and bundle_write() takes a @bundle
 * of NULL for one that nobody wants. */

struct bundle;

#define BUNDLE_FILE "run-bundle.json"

/* bundle_open - start a record for the folder @path, which is made (mode 0700) where it is missing
 * @path: NULL: it is only kept in memory, and bundle_write() writes nothing
 *
 * Return: 0; a negative errno with the reason in @err, also where the folder holds a record already.
 */
int bundle_open(const char *path, struct bundle **ret, struct err *err);

void bundle_free(struct bundle *bundle);

DEFINE_CLEANUP(struct bundle *, bundle_free)
#define _cleanup_bundle_ _cleanup_(bundle_free_cleanup)

/* How sure it is that the policy holds, weakest first. */
enum bundle_level {
        BUNDLE_PLANNED,     /* it did not come to a run */
        BUNDLE_UNENFORCED,  /* observed only */
        BUNDLE_COOPERATIVE, /* for programs that keep to it */
        BUNDLE_ENFORCED,    /* for every program */
};

/* bundle_plan - what is to be in force
 * @policy:   borrowed until bundle_write(); NULL: there is none that could be read
 * @enforcer: its name; NULL: none could be chosen
 * @argv:     the command, ended by NULL
 */
void bundle_plan(struct bundle *bundle, const struct policy *policy, const char *enforcer, enum bundle_level level,
                 char *const *argv);

enum bundle_proof {
        BUNDLE_PROOF_STOPPED, /* a way out, tried and found closed */
        BUNDLE_PROOF_ESCAPED, /* a way out, tried and found open */
        BUNDLE_PROOF_ARRIVED, /* a control: something allowed, which arrived */
        BUNDLE_PROOF_LOST,    /* a control that did not arrive */
        BUNDLE_PROOF_UNTRIED, /* could not be tried here; @detail says why */
};

/* bundle_proof - what came of one attempt of the prober
 * @detail:    such as "connect: EPERM"; may be NULL
 * @is_cached: it is the result of an earlier run, of the same program, filters, kernel and boot
 */
void bundle_proof(struct bundle *bundle, const char *attempt, enum bundle_proof result, const char *detail,
                  bool is_cached);

/* What an enforcer, or the supervisor, is able to see. */
enum bundle_table {
        BUNDLE_DENIED,  /* attempts that were denied */
        BUNDLE_ALLOWED, /* attempts that were allowed */
        BUNDLE_DNS,     /* questions to the resolver */
        BUNDLE_BYTES,   /* bytes of each destination */
        N_BUNDLE_TABLES,
};

/* bundle_observes - from now on @table says that nothing happened where nothing is recorded */
void bundle_observes(struct bundle *bundle, enum bundle_table table);

/* bundle_omits - @n more happened that are not recorded one by one */
void bundle_omits(struct bundle *bundle, enum bundle_table table, uint64_t n);

/* One thing that the command tried. */
struct bundle_attempt {
        const char *target; /* target_format(), or for what is no such destination "icmp 192.0.2.1", "name x.example" */
        const char *rule;   /* decision_rule_format(); NULL: not known */
        const char *executable; /* path of the process's program; NULL: not known */
        int64_t pid;            /* in the host's numbers; 0: not known */
        bool is_allowed;
};

/* bundle_attempt - count @times attempts; those that differ in their pid only are counted together, under the first */
void bundle_attempt(struct bundle *bundle, const struct bundle_attempt *attempt, uint64_t times);

/* bundle_bytes - add what went to @target (target_format()) and came from it, as payload of its transport */
void bundle_bytes(struct bundle *bundle, const char *target, uint64_t sent, uint64_t received, uint64_t flows);

/* bundle_question - count a question to the resolver
 * @type:      "A", "AAAA", "PTR", or "TYPE65"
 * @answer:    "NOERROR", "REFUSED", "NXDOMAIN", "SERVFAIL"
 * @addresses: those of the answer, @n of them; the first 16 are kept
 * @rule:      decision_rule_format(); NULL: not known
 */
void bundle_question(struct bundle *bundle, const char *name, const char *type, const char *answer,
                     const struct ip_prefix *addresses, size_t n, const char *rule);

/* bundle_weaker - a sentence about something that is weaker than planned, such as a layer that this kernel lacks */
void bundle_weaker(struct bundle *bundle, const char *sentence);

/* bundle_started, bundle_ended - the command runs; and how it ended
 * @status: as wait() gives it
 * @usage:  NULL: not known
 */
void bundle_started(struct bundle *bundle);
void bundle_ended(struct bundle *bundle, int status, const struct rusage *usage);

/* bundle_failed - the run was not, or not to its end; the reason is that of @err */
void bundle_failed(struct bundle *bundle, const struct err *err);

/* bundle_is_non_bypassable - what the record says of it so far: 1 every way out that was tried is closed and every
 * control arrived, under an enforcer that is to stop every program; 0 not so; -1 nothing was tried */
int bundle_is_non_bypassable(const struct bundle *bundle);

/* bundle_to_json - what would be written; a new reference, NULL if memory ran out at any time */
json_t *bundle_to_json(const struct bundle *bundle);

/* bundle_write - write the record, mode 0600, all of it or nothing
 *
 * To be called once, at the end, also after bundle_failed(). A supervisor that is killed leaves no record.
 * Return: 0; a negative errno with the reason in @err.
 */
int bundle_write(const struct bundle *bundle, struct err *err);
