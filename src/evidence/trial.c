/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/trial.h"

#include <inttypes.h>

#include "base/macro.h"

#define TRIAL_BYTES_MAX (4 << 20)
#define TRIAL_VERSION   1

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
        } strings[] = {{"trial", &t->name}, {"cell", &t->cell}, {"host", &t->host}, {"failure", &t->failure}};

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
                       {"started_realtime_ns", &t->started_realtime_ns},
                       {"ended_realtime_ns", &t->ended_realtime_ns}};

        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
                int r = get_natural(t->json, where, numbers[i].key, numbers[i].to, err);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int parse_slots(struct trial *t, const char *where, struct err *err)
{
        trial_count(t, "slots", &t->slots);
        trial_count(t, "warmup_slots", &t->warmup_slots);
        if (t->warmup_slots < 0 || t->warmup_slots > t->slots)
                return err_set(err, ERR_DATA, EINVAL, "%s: %" PRId64 " warm-up slots of %" PRId64 " slots", where,
                               t->warmup_slots, t->slots);
        return 0;
}

static int parse_objects(struct trial *t, const char *where, struct err *err)
{
        json_t *clock = NULL;
        const struct {
                const char *key;
                json_t **to;
        } objects[] = {{"boundary", &t->boundary},
                       {"counts", &t->counts},
                       {"background", &t->background},
                       {"proof", &t->proof},
                       {"clock", &clock}};

        for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
                int r = json_get_object(t->json, where, objects[i].key, objects[i].to, err);

                if (r < 0)
                        return r;
        }
        return json_get_i64(clock, where, "realtime_step_ns", &t->realtime_step_ns, err);
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
        if (r >= 0)
                r = parse_slots(&t, where, err);
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
