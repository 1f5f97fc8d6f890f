/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "evidence/manifest.h"
#include "evidence/verdict.h"

#define JUDGE_REASON_SIZE 512

/* A summary, indexed by the manifest's cells. */
struct judge {
        const struct manifest *manifest;
        const json_t **cells;  /* NULL: the cell was left out */
        const json_t **trials; /* [cell * (rounds + 1) + position]; NULL: none */
};

int judge_init(struct judge *judge, const struct manifest *manifest, const json_t *summary);
void judge_done(struct judge *judge);

/* Rounds @first to @last: a whole campaign, or one of several blocks. */
struct block {
        size_t first, last;
};

struct block judge_whole(const struct judge *judge);

/* What a comparison of a thing with itself gave: differences within are noise. */
struct noise_floor {
        bool exists;
        int64_t lower, upper;
};

struct judgement {
        enum outcome outcome;
        char reason[JUDGE_REASON_SIZE];
        size_t rounds; /* that have a value; of a pooled metric: trials */
        bool has_value, has_bounds;
        int64_t value, lower, upper;
        json_t *clusters;  /* NULL: none */
        json_t *bootstrap; /* NULL: not reported */
};

void judgement_done(struct judgement *judgement);

#define _cleanup_judgement_ _cleanup_(judgement_done)

/* judgement_conclude - set outcome and reason */
void judgement_conclude(struct judgement *j, enum outcome outcome, const char *format, ...) _printf_(3, 4);

/* judge_measure - values, bounds, clusters and bootstrap of a rule; where it has no value, also the outcome
 * (inconclusive) and why. Return: 0 or -ENOMEM. */
int judge_measure(const struct judge *judge, const struct manifest_rule *rule, struct block block, int64_t stream,
                  struct judgement *ret);

/* judge_rule - judge @rule over the rounds of @block
 * @floor:  NULL where none applies (controls)
 * @stream: of the bootstrap; negative: no bootstrap
 *
 * Return: 0 or -ENOMEM.
 */
int judge_rule(const struct judge *judge, const struct manifest_rule *rule, struct block block,
               const struct noise_floor *floor, int64_t stream, struct judgement *ret);

/* judge_floor - the noise floor of @rule's metric and form in @block: the widest bounds of the same-same controls */
int judge_floor(const struct judge *judge, const struct manifest_rule *rule, struct block block,
                struct noise_floor *ret);
