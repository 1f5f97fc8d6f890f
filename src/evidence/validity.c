/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/validity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

#define REALTIME_STEP_MAX     INT64_C(100000) /* ns */
#define SENT_MIN_PERCENT      97
#define DELIVERED_MIN_PERCENT 97

int64_t validity_missed_max(int64_t slots)
{
        return MAX(slots / 1000, INT64_C(10));
}

static void add_reason(char reason[static VALIDITY_REASON_SIZE], const char *format, ...) _printf_(2, 3);

static void add_reason(char reason[static VALIDITY_REASON_SIZE], const char *format, ...)
{
        size_t len = strlen(reason);
        va_list args;

        if (len > 0)
                len += (size_t)snprintf(reason + len, VALIDITY_REASON_SIZE - len, "; ");
        if (len >= VALIDITY_REASON_SIZE)
                return;
        va_start(args, format);
        vsnprintf(reason + len, VALIDITY_REASON_SIZE - len, format, args);
        va_end(args);
}

static void judge_proof(const struct trial *t, const char *when, char reason[static VALIDITY_REASON_SIZE])
{
        const json_t *proof = json_object_get(t->proof, when);
        const char *why = json_string_value(json_object_get(proof, "reason"));

        if (!json_is_true(json_object_get(proof, "holds")))
                add_reason(reason, "path not proven %s the measurement: %s", when, why ? why : "no proof was taken");
}

static int64_t load_count(const json_t *load, const char *key)
{
        return json_integer_value(json_object_get(load, key));
}

static void judge_load(const char *name, const json_t *load, char reason[static VALIDITY_REASON_SIZE])
{
        int64_t offered = load_count(load, "offered_bytes"), delivered = load_count(load, "delivered_bytes");
        int64_t duration_ns = load_count(load, "duration_ns"), ceiling_bps = load_count(load, "ceiling_bps");
        int64_t sent = load_count(load, "sent_bytes");

        if ((__int128)sent * 100 < (__int128)offered * SENT_MIN_PERCENT) {
                add_reason(reason, "background %s: %" PRId64 " of %" PRId64 " bytes sent, expected at least %d%%", name,
                           sent, offered, SENT_MIN_PERCENT);
                return; /* that less arrived follows from it */
        }
        if (ceiling_bps > 0 && (__int128)offered * 8 * NSEC_PER_SEC >= (__int128)ceiling_bps * duration_ns)
                return;
        if ((__int128)delivered * 100 < (__int128)offered * DELIVERED_MIN_PERCENT)
                add_reason(reason, "background %s: %" PRId64 " of %" PRId64 " bytes delivered, expected at least %d%%",
                           name, delivered, offered, DELIVERED_MIN_PERCENT);
}

/* In the order of their names, so that the reason is the same for an object in memory and one read back. */
static void judge_background(json_t *background, char reason[static VALIDITY_REASON_SIZE])
{
        const char *last = NULL;

        for (size_t i = json_object_size(background); i > 0; i--) {
                const char *next = NULL, *name;
                json_t *load;

                json_object_foreach(background, name, load)
                {
                        if ((!last || strcmp(name, last) > 0) && (!next || strcmp(name, next) < 0))
                                next = name;
                }
                judge_load(next, json_object_get(background, next), reason);
                last = next;
        }
}

bool validity_check(const struct trial *trial, const struct series_set *set, char reason[static VALIDITY_REASON_SIZE])
{
        int64_t measured = trial->slots - trial->warmup_slots;

        reason[0] = '\0';
        if (trial->failure[0]) {
                add_reason(reason, "%s", trial->failure);
                return false; /* whatever else is missing follows from it */
        }
        judge_proof(trial, "before", reason);
        judge_proof(trial, "after", reason);
        if (set->missed > validity_missed_max(measured))
                add_reason(reason, "%" PRId64 " of %" PRId64 " slots missed, at most %" PRId64 " may be", set->missed,
                           measured, validity_missed_max(measured));
        if (set->negative > 0)
                add_reason(reason, "%" PRId64 " duration%s negative", set->negative,
                           set->negative == 1 ? " is" : "s are");
        judge_background(trial->background, reason);
        if (trial->realtime_step_ns > REALTIME_STEP_MAX || trial->realtime_step_ns < -REALTIME_STEP_MAX)
                add_reason(reason, "the real-time clock was set by %" PRId64 " ns during the trial",
                           trial->realtime_step_ns);
        return reason[0] == '\0';
}

int validity_judge(int trial_dirfd, json_t *record, bool *ret_is_valid, char reason[static VALIDITY_REASON_SIZE],
                   struct err *err)
{
        _cleanup_series_set_ struct series_set set = {0};
        _cleanup_trial_ struct trial trial = {0};
        bool is_valid;
        int r;

        r = trial_parse(record, "trial.json", &trial, err);
        if (r < 0)
                return r;
        r = series_read(trial_dirfd, &trial, &set, err);
        if (r < 0)
                return r;
        is_valid = validity_check(&trial, &set, reason);
        if (json_object_set_new(record, "valid", json_boolean(is_valid)) < 0 ||
            json_object_set_new(record, "reason", json_string(reason)) < 0)
                return err_set_nomem(err);
        *ret_is_valid = is_valid;
        return 0;
}
