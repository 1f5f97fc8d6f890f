/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

#define TRIAL_BYTES_MAX             (4 << 20)
#define TRIAL_VERSION               1
#define TRIAL_REALTIME_STEP_MAX     INT64_C(100000) /* ns */
#define TRIAL_DELIVERED_MIN_PERCENT 97

static int get_natural(const json_t *json, const char *where, const char *key, int64_t *ret, struct err *err)
{
        int64_t value;
        int r;

        r = json_get_i64(json, where, key, &value, err);
        if (r < 0)
                return r;
        if (value < 0)
                return err_set(err, ERR_DATA, EINVAL, "%s: \"%s\" is %" PRId64 ", expected 0 or more", where, key,
                               value);
        *ret = value;
        return 0;
}

static int parse_strings(struct trial *t, const char *where, struct err *err)
{
        const struct {
                const char *key;
                const char **to;
        } strings[] = {{"trial", &t->name},
                       {"cell", &t->cell},
                       {"host", &t->host},
                       {"failure", &t->failure},
                       {"reason", &t->reason}};

        for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
                int r = json_get_string(t->json, where, strings[i].key, strings[i].to, err);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int parse_numbers(struct trial *t, const char *where, struct err *err)
{
        const struct {
                const char *key;
                int64_t *to;
        } numbers[] = {{"index", &t->index},
                       {"round", &t->round},
                       {"extra", &t->extra},
                       {"campaign", &t->campaign},
                       {"warmup_slots", &t->warmup_slots},
                       {"slots", &t->slots},
                       {"started_realtime_ns", &t->started_realtime_ns},
                       {"ended_realtime_ns", &t->ended_realtime_ns}};

        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
                int r = get_natural(t->json, where, numbers[i].key, numbers[i].to, err);

                if (r < 0)
                        return r;
        }
        if (t->warmup_slots > t->slots)
                return err_set(err, ERR_DATA, EINVAL, "%s: %" PRId64 " warm-up slots of %" PRId64 " slots", where,
                               t->warmup_slots, t->slots);
        return 0;
}

static int parse_objects(struct trial *t, const char *where, struct err *err)
{
        json_t *clock;
        int r;

        r = json_get_object(t->json, where, "counts", &t->counts, err);
        if (r >= 0)
                r = json_get_object(t->json, where, "background", &t->background, err);
        if (r >= 0)
                r = json_get_object(t->json, where, "proof", &t->proof, err);
        if (r >= 0)
                r = json_get_bool(t->json, where, "valid", &t->is_valid, err);
        if (r >= 0)
                r = json_get_object(t->json, where, "clock", &clock, err);
        if (r >= 0)
                r = json_get_i64(clock, where, "realtime_step_ns", &t->realtime_step_ns, err);
        return r;
}

int trial_parse(json_t *json, const char *where, struct trial *ret, struct err *err)
{
        _cleanup_trial_ struct trial t = {.json = json_incref(json)};
        int64_t version;
        int r;

        r = json_get_i64(json, where, "assay", &version, err);
        if (r < 0)
                return r;
        if (version != TRIAL_VERSION)
                return err_set(err, ERR_DATA, EINVAL, "%s: version %" PRId64 " of the format, expected %d", where,
                               version, TRIAL_VERSION);
        r = parse_strings(&t, where, err);
        if (r >= 0)
                r = parse_numbers(&t, where, err);
        if (r >= 0)
                r = parse_objects(&t, where, err);
        if (r < 0)
                return r;
        *ret = t;
        t.json = NULL;
        return 0;
}

int trial_load(int trial_dirfd, const char *where, struct trial *ret, struct err *err)
{
        _cleanup_json_ json_t *json = NULL;
        int r;

        r = json_load(trial_dirfd, "trial.json", TRIAL_BYTES_MAX, &json, err);
        if (r < 0) {
                err_prefix(err, "%s", where);
                return r;
        }
        return trial_parse(json, where, ret, err);
}

void trial_done(struct trial *trial)
{
        json_decref(trial->json);
        *trial = (struct trial){0};
}

bool trial_count(const struct trial *trial, const char *name, int64_t *ret)
{
        const json_t *value = json_object_get(trial->counts, name);

        *ret = json_is_integer(value) ? json_integer_value(value) : 0;
        return json_is_integer(value);
}

int64_t trial_missed_max(int64_t slots)
{
        return MAX(slots / 1000, INT64_C(10));
}

static void add_reason(char reason[static TRIAL_REASON_SIZE], const char *format, ...) _printf_(2, 3);

static void add_reason(char reason[static TRIAL_REASON_SIZE], const char *format, ...)
{
        size_t len = strlen(reason);
        va_list args;

        if (len > 0)
                len += (size_t)snprintf(reason + len, TRIAL_REASON_SIZE - len, "; ");
        if (len >= TRIAL_REASON_SIZE)
                return;
        va_start(args, format);
        vsnprintf(reason + len, TRIAL_REASON_SIZE - len, format, args);
        va_end(args);
}

static void judge_proof(const struct trial *t, const char *when, char reason[static TRIAL_REASON_SIZE])
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

static void judge_load(const char *name, const json_t *load, char reason[static TRIAL_REASON_SIZE])
{
        int64_t offered = load_count(load, "offered_bytes"), delivered = load_count(load, "delivered_bytes");
        int64_t duration_ns = load_count(load, "duration_ns"), ceiling_bps = load_count(load, "ceiling_bps");

        if (ceiling_bps > 0 && (__int128)offered * 8 * NSEC_PER_SEC >= (__int128)ceiling_bps * duration_ns)
                return;
        if ((__int128)delivered * 100 < (__int128)offered * TRIAL_DELIVERED_MIN_PERCENT)
                add_reason(reason, "background %s: %" PRId64 " of %" PRId64 " bytes delivered, expected at least %d%%",
                           name, delivered, offered, TRIAL_DELIVERED_MIN_PERCENT);
}

/* In the order of their names, so that the reason is the same for an object in memory and one read back. */
static void judge_background(json_t *background, char reason[static TRIAL_REASON_SIZE])
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

bool trial_judge(const struct trial *trial, int64_t missed, char reason[static TRIAL_REASON_SIZE])
{
        int64_t measured = trial->slots - trial->warmup_slots;

        reason[0] = '\0';
        if (trial->failure[0])
                add_reason(reason, "%s", trial->failure);
        judge_proof(trial, "before", reason);
        judge_proof(trial, "after", reason);
        if (missed > trial_missed_max(measured))
                add_reason(reason, "%" PRId64 " of %" PRId64 " slots missed, at most %" PRId64 " may be", missed,
                           measured, trial_missed_max(measured));
        judge_background(trial->background, reason);
        if (trial->realtime_step_ns > TRIAL_REALTIME_STEP_MAX || trial->realtime_step_ns < -TRIAL_REALTIME_STEP_MAX)
                add_reason(reason, "the real-time clock was set by %" PRId64 " ns during the trial",
                           trial->realtime_step_ns);
        return reason[0] == '\0';
}
