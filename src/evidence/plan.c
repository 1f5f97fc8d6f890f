/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/plan.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/macro.h"
#include "base/number.h"
#include "base/rng.h"
#include "seal/digest.h"

#define PLAN_VERSION 1

/* Each round draws from a stream of its own, so that one can be derived without the others. */
#define STREAM_WARMUP (UINT64_C(1) << 32)
#define STREAM_EXTRA  (UINT64_C(2) << 32)

static const char *const control_names[] = {
        [CONTROL_NONE] = "none", [CONTROL_HARM] = "harm", [CONTROL_SAME_SAME] = "same-same"};

/* ---- making ---- */

bool plan_is_skipped(const struct plan *plan, size_t cell)
{
        for (size_t i = 0; i < plan->n_skipped; i++)
                if (plan->skipped[i] == cell)
                        return true;
        return false;
}

static size_t cells_in_round(const struct plan *plan)
{
        return plan->manifest->n_cells - plan->n_skipped;
}

/* What the trials of one round have in common. */
struct round {
        uint64_t stream;
        uint32_t first; /* index of its first trial */
        uint32_t round, extra, campaign;
        char letter;
        uint32_t number; /* in the names, after the letter */
};

/* Fills in the trials of a round, as many as cells_in_round(): first all cells are shuffled, then each trial, in the
 * order of the round, gets the next number as its seed. */
static int make_round(const struct plan *plan, const struct round *round, struct plan_trial *trials, struct err *err)
{
        const struct manifest *m = plan->manifest;
        size_t n = cells_in_round(plan), at = 0;
        _cleanup_free_ size_t *order = calloc(n, sizeof(*order));
        struct rng rng;

        if (!order)
                return err_set_nomem(err);
        for (size_t cell = 0; cell < m->n_cells; cell++)
                if (!plan_is_skipped(plan, cell))
                        order[at++] = cell;
        rng_seed_stream(&rng, m->seed, round->stream);
        rng_shuffle(&rng, order, n);

        for (size_t i = 0; i < n; i++) {
                const struct manifest_cell *cell = &m->cells[order[i]];
                struct plan_trial *trial = &trials[i];

                *trial = (struct plan_trial){
                        .index = round->first + (uint32_t)i,
                        .round = round->round,
                        .extra = round->extra,
                        .campaign = round->campaign,
                        .cell = order[i],
                        .seed = rng_next(&rng),
                };
                snprintf(trial->name, sizeof(trial->name), "%04" PRIu32 "-%s-%s-%c%" PRIu32, trial->index,
                         m->arms[cell->arm].name, m->points[cell->point].name, round->letter, round->number);
        }
        return 0;
}

static int make_trials(struct plan *plan, struct err *err)
{
        const struct manifest *m = plan->manifest;
        uint32_t rounds = m->warmup_rounds + m->rounds;
        size_t n = cells_in_round(plan);

        plan->trials = calloc(rounds * n, sizeof(*plan->trials));
        if (!plan->trials)
                return err_set_nomem(err);
        for (uint32_t i = 0; i < rounds; i++) {
                bool is_warmup = i < m->warmup_rounds;
                uint32_t number = is_warmup ? i + 1 : i + 1 - m->warmup_rounds;
                struct round round = {
                        .stream = is_warmup ? STREAM_WARMUP + number : number,
                        .first = (uint32_t)plan->n_trials + 1,
                        .round = is_warmup ? 0 : number,
                        .campaign = is_warmup ? 0 : (number - 1) / (m->rounds / m->campaigns) + 1,
                        .letter = is_warmup ? 'w' : 'r',
                        .number = number,
                };
                int r = make_round(plan, &round, plan->trials + plan->n_trials, err);

                if (r < 0)
                        return r;
                plan->n_trials += n;
        }
        return 0;
}

static int estimate(struct plan *plan, const struct kinds *kinds, struct err *err)
{
        const struct manifest *m = plan->manifest;
        int64_t times = (int64_t)m->warmup_rounds + m->rounds;

        for (size_t i = 0; i < m->n_cells; i++) {
                struct trial_estimate e;
                int r;

                if (plan_is_skipped(plan, i))
                        continue;
                r = kinds->estimate(m->cells[i].config, &e, err);
                if (r < 0)
                        return r;
                if (__builtin_mul_overflow(e.duration_ns, times, &e.duration_ns) ||
                    __builtin_mul_overflow(e.disk_bytes, times, &e.disk_bytes) ||
                    __builtin_add_overflow(plan->expected_duration_ns, e.duration_ns, &plan->expected_duration_ns) ||
                    __builtin_add_overflow(plan->expected_disk_bytes, e.disk_bytes, &plan->expected_disk_bytes))
                        return err_set(err, ERR_USAGE, ERANGE,
                                       "the campaign would take longer than 292 years or more than 8 EiB");
        }
        return 0;
}

static int take_options(struct plan *plan, const struct manifest_options *options, const size_t *skipped,
                        size_t n_skipped, struct err *err)
{
        plan->is_short = options && options->is_short;
        if (options && options->n_overrides > 0) {
                plan->overrides = calloc(options->n_overrides, sizeof(*plan->overrides));
                if (!plan->overrides)
                        return err_set_nomem(err);
        }
        for (size_t i = 0; options && i < options->n_overrides; i++) {
                plan->overrides[plan->n_overrides] = strdup(options->overrides[i]);
                if (!plan->overrides[plan->n_overrides++])
                        return err_set_nomem(err);
        }

        plan->skipped = calloc(MAX(n_skipped, (size_t)1), sizeof(*plan->skipped));
        if (!plan->skipped)
                return err_set_nomem(err);
        for (size_t i = 0; i < n_skipped; i++)
                if (skipped[i] < plan->manifest->n_cells && !plan_is_skipped(plan, skipped[i]))
                        plan->skipped[plan->n_skipped++] = skipped[i];
        if (cells_in_round(plan) == 0)
                return err_set(err, ERR_UNSUPPORTED, ENOTSUP, "no cell of %s can run on this host", plan->manifest->id);
        return 0;
}

int plan_make(const struct manifest *manifest, const struct kinds *kinds, const struct manifest_options *options,
              const size_t *skipped, size_t n_skipped, struct plan **ret, struct err *err)
{
        _cleanup_plan_ struct plan *plan = calloc(1, sizeof(*plan));
        int r;

        if (!plan)
                return err_set_nomem(err);
        plan->manifest = manifest;
        r = take_options(plan, options, skipped, n_skipped, err);
        if (r >= 0)
                r = make_trials(plan, err);
        if (r >= 0)
                r = estimate(plan, kinds, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(plan);
        return 0;
}

void plan_free(struct plan *plan)
{
        if (!plan)
                return;
        for (size_t i = 0; i < plan->n_overrides; i++)
                free(plan->overrides[i]);
        free(plan->overrides);
        free(plan->skipped);
        free(plan->trials);
        free(plan);
}

int plan_round(const struct plan *plan, uint32_t extra, struct plan_trial **ret, size_t *ret_n, struct err *err)
{
        size_t n = cells_in_round(plan);
        struct round round = {
                .stream = STREAM_EXTRA + extra,
                .first = (uint32_t)(plan->n_trials + (extra - 1) * n + 1),
                .extra = extra,
                .letter = 'x',
                .number = extra,
        };
        _cleanup_free_ struct plan_trial *trials = NULL;
        int r;

        if (extra == 0 || extra > plan_extra_rounds_max(plan))
                return err_set(err, ERR_BUG, EINVAL, "extra round %" PRIu32 " of at most %" PRIu32, extra,
                               plan_extra_rounds_max(plan));
        trials = calloc(n, sizeof(*trials));
        if (!trials)
                return err_set_nomem(err);
        r = make_round(plan, &round, trials, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(trials);
        *ret_n = n;
        return 0;
}

/* The trial of that index among @n of them whose first has index @first. */
static const struct plan_trial *trial_of_index(const struct plan_trial *trials, size_t n, uint64_t first,
                                               uint64_t index)
{
        return index >= first && index - first < n ? &trials[index - first] : NULL;
}

int plan_find(const struct plan *plan, const char *name, struct plan_trial *ret, struct err *err)
{
        _cleanup_free_ struct plan_trial *extra = NULL;
        const struct plan_trial *found;
        size_t n = cells_in_round(plan), zeros = strspn(name, "0");
        uint64_t index, round;

        if (number_parse_u64(span_of(name + zeros, strspn(name + zeros, "0123456789")), &index) < 0)
                return 0;
        found = trial_of_index(plan->trials, plan->n_trials, 1, index);
        round = !found && index > plan->n_trials ? (index - plan->n_trials - 1) / n + 1 : 0;
        if (round > 0 && round <= plan_extra_rounds_max(plan)) {
                int r = plan_round(plan, (uint32_t)round, &extra, &n, err);

                if (r < 0)
                        return r;
                found = trial_of_index(extra, n, extra[0].index, index);
        }
        if (!found || !streq(found->name, name))
                return 0;
        *ret = *found;
        return 1;
}

char *plan_seed_format(uint64_t seed, char buf[static PLAN_SEED_SIZE])
{
        snprintf(buf, PLAN_SEED_SIZE, "%016" PRIx64, seed);
        return buf;
}

uint32_t plan_extra_rounds_max(const struct plan *plan)
{
        return MAX(UINT32_C(2), plan->manifest->rounds / 5);
}

/* ---- as JSON ---- */

/* Each of these gives a new reference, or NULL. */

static json_t *inputs_to_json(const struct manifest *m)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < m->n_inputs; i++) {
                const struct manifest_input *input = &m->inputs[i];
                char hex[DIGEST_HEX_SIZE];
                struct digest digest;

                if (digest_of_bytes(span_of(input->data, input->len), &digest, NULL) < 0 ||
                    json_array_append_new(array,
                                          json_pack("{s:s, s:I, s:s}", "path", input->path, "bytes",
                                                    (json_int_t)input->len, "sha256", digest_format(&digest, hex))) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

static json_t *cells_to_json(const struct manifest *m)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < m->n_cells; i++) {
                const struct manifest_cell *cell = &m->cells[i];
                const struct manifest_arm *arm = &m->arms[cell->arm];

                if (json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:s, s:o}", "cell", cell->name, "arm",
                                                           arm->name, "point", m->points[cell->point].name, "control",
                                                           control_names[arm->control], "config",
                                                           node_to_json(cell->config))) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

static json_t *trials_to_json(const struct plan *plan)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < plan->n_trials; i++) {
                const struct plan_trial *trial = &plan->trials[i];
                char seed[PLAN_SEED_SIZE];

                if (json_array_append_new(array,
                                          json_pack("{s:I, s:s, s:s, s:I, s:I, s:s}", "index", (json_int_t)trial->index,
                                                    "trial", trial->name, "cell",
                                                    plan->manifest->cells[trial->cell].name, "round",
                                                    (json_int_t)trial->round, "campaign", (json_int_t)trial->campaign,
                                                    "seed", plan_seed_format(trial->seed, seed))) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

static json_t *skipped_to_json(const struct plan *plan)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < plan->n_skipped; i++)
                if (json_array_append_new(array, json_string(plan->manifest->cells[plan->skipped[i]].name)) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

static json_t *overrides_to_json(const struct plan *plan)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < plan->n_overrides; i++)
                if (json_array_append_new(array, json_string(plan->overrides[i])) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

int plan_to_json(const struct plan *plan, json_t **ret, struct err *err)
{
        const struct manifest *m = plan->manifest;
        const struct {
                const char *key;
                json_t *value;
        } members[] = {
                {"assay", json_integer(PLAN_VERSION)},
                {"manifest", json_pack("{s:s, s:s}", "id", m->id, "sha256", m->sha256)},
                {"inputs", inputs_to_json(m)},
                {"short", json_boolean(plan->is_short)},
                {"overrides", overrides_to_json(plan)},
                {"skipped", skipped_to_json(plan)},
                {"seed", json_integer((json_int_t)m->seed)},
                {"rounds", json_integer(m->rounds)},
                {"warmup_rounds", json_integer(m->warmup_rounds)},
                {"campaigns", json_integer(m->campaigns)},
                {"extra_rounds_max", json_integer(plan_extra_rounds_max(plan))},
                {"cells", cells_to_json(m)},
                {"trials", trials_to_json(plan)},
                {"expected", json_pack("{s:I, s:I}", "duration_ns", (json_int_t)plan->expected_duration_ns,
                                       "disk_bytes", (json_int_t)plan->expected_disk_bytes)},
        };
        _cleanup_json_ json_t *json = json_object();
        bool failed = !json;

        for (size_t i = 0; i < ARRAY_SIZE(members); i++)
                failed |= json_object_set_new(json, members[i].key, members[i].value) < 0;
        if (failed)
                return err_set_nomem(err);
        *ret = TAKE_PTR(json);
        return 0;
}

/* ---- made again ---- */

static int get_strings(const json_t *json, const char *key, const char ***ret, size_t *ret_n, struct err *err)
{
        _cleanup_free_ const char **strings = NULL;
        json_t *array;
        size_t n;
        int r;

        r = json_get_array(json, "plan.json", key, &array, err);
        if (r < 0)
                return r;
        n = json_array_size(array);
        strings = calloc(MAX(n, (size_t)1), sizeof(*strings));
        if (!strings)
                return err_set_nomem(err);
        for (size_t i = 0; i < n; i++) {
                const json_t *item = json_array_get(array, i);

                if (!json_is_string(item))
                        return err_set(err, ERR_DATA, EINVAL, "plan.json: \"%s\" holds something that is not a string",
                                       key);
                strings[i] = json_string_value(item);
        }
        *ret_n = n;
        *ret = TAKE_PTR(strings);
        return 0;
}

int plan_options_from_json(const json_t *json, struct manifest_options *ret, const char ***ret_overrides,
                           struct err *err)
{
        struct manifest_options options = {0};
        const char **overrides;
        int64_t version;
        int r;

        r = json_get_i64(json, "plan.json", "assay", &version, err);
        if (r < 0)
                return r;
        if (version != PLAN_VERSION)
                return err_set(err, ERR_DATA, EINVAL, "plan.json: version %" PRId64 " of the format, expected %d",
                               version, PLAN_VERSION);
        r = json_get_bool(json, "plan.json", "short", &options.is_short, err);
        if (r >= 0)
                r = get_strings(json, "overrides", &overrides, &options.n_overrides, err);
        if (r < 0)
                return r;
        options.overrides = overrides;
        *ret = options;
        *ret_overrides = overrides;
        return 0;
}

int plan_skipped_from_json(const json_t *json, const struct manifest *manifest, size_t **ret, size_t *ret_n,
                           struct err *err)
{
        _cleanup_free_ const char **names = NULL;
        _cleanup_free_ size_t *skipped = NULL;
        size_t n = 0;
        int r;

        r = get_strings(json, "skipped", &names, &n, err);
        if (r < 0)
                return r;
        skipped = calloc(MAX(n, (size_t)1), sizeof(*skipped));
        if (!skipped)
                return err_set_nomem(err);
        for (size_t i = 0; i < n; i++) {
                while (skipped[i] < manifest->n_cells && !streq(manifest->cells[skipped[i]].name, names[i]))
                        skipped[i]++;
                if (skipped[i] == manifest->n_cells)
                        return err_set(err, ERR_DATA, EINVAL, "plan.json: \"skipped\" names %.128s, which is no cell",
                                       names[i]);
        }
        *ret = TAKE_PTR(skipped);
        *ret_n = n;
        return 0;
}

int plan_expected_from_json(const json_t *json, struct plan *plan, struct err *err)
{
        int64_t duration_ns = 0, disk_bytes = 0;
        json_t *expected = NULL;
        int r;

        r = json_get_object(json, "plan.json", "expected", &expected, err);
        if (r >= 0)
                r = json_get_i64(expected, "plan.json: expected", "duration_ns", &duration_ns, err);
        if (r >= 0)
                r = json_get_i64(expected, "plan.json: expected", "disk_bytes", &disk_bytes, err);
        if (r < 0)
                return r;
        if (duration_ns < 0 || disk_bytes < 0)
                return err_set(err, ERR_DATA, EINVAL, "plan.json: \"expected\" is negative");
        plan->expected_duration_ns = duration_ns;
        plan->expected_disk_bytes = disk_bytes;
        return 0;
}
