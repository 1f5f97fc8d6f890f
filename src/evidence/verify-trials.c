/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "base/text.h"
#include "evidence/trial.h"
#include "evidence/verify-internal.h"

/* Whether each trial says of itself what the plan and the journal say of it. */

/* What the journal repeats of a trial.json; times only since it has them. */
static const char *const repeated[] = {"cell", "round", "valid", "reason"};
static const char *const times[] = {"started_realtime_ns", "ended_realtime_ns"};

static json_t *expected_of(const struct plan *plan, const struct plan_trial *trial)
{
        char seed[PLAN_SEED_SIZE];

        return json_pack("{s:I, s:s, s:I, s:I, s:I, s:s}", "index", (json_int_t)trial->index, "cell",
                         plan->manifest->cells[trial->cell].name, "round", (json_int_t)trial->round, "extra",
                         (json_int_t)trial->extra, "campaign", (json_int_t)trial->campaign, "seed",
                         plan_seed_format(trial->seed, seed));
}

/* Those members of @object that @like has; a new reference. */
static json_t *members_like(const json_t *object, const json_t *like)
{
        _cleanup_json_ json_t *members = json_object();
        const char *key;
        json_t *value;

        json_object_foreach((json_t *)like, key, value)
        {
                json_t *member = json_object_get(object, key);

                if (member && json_object_set(members, key, member) < 0)
                        return NULL;
        }
        return TAKE_PTR(members);
}

static int compare_with_plan(const struct plan *plan, const struct trial *trial, struct differences *differences,
                             struct err *err)
{
        _cleanup_free_ char *file = text_format(ARCHIVE_TRIALS "/%s/trial.json", trial->name);
        _cleanup_json_ json_t *says = NULL, *expected = NULL;
        struct plan_trial planned;
        int r;

        if (!file)
                return err_set_nomem(err);
        r = plan_find(plan, trial->name, &planned, err);
        if (r < 0)
                return r;
        if (r == 0)
                return differences_add(differences, file, "trial", trial->name, "no trial of the plan") < 0
                               ? err_set_nomem(err)
                               : 0;
        expected = expected_of(plan, &planned);
        says = members_like(trial->json, expected);
        if (!says || !expected || differences_of_json(differences, file, says, expected) < 0)
                return err_set_nomem(err);
        /* what the clock was set by during the trial is known, so the time that passed is too */
        if (trial->ended_realtime_ns - trial->started_realtime_ns < trial->realtime_step_ns &&
            differences_add(differences, file, "ended_realtime_ns", "before started_realtime_ns", "after it") < 0)
                return err_set_nomem(err);
        return 0;
}

/* Puts @trial's own members of that name, where it has them, into @into. */
static int put_members(json_t *into, const json_t *trial, const char *const *names, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                json_t *member = json_object_get(trial, names[i]);

                if (member && json_object_set(into, names[i], member) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int compare_with_journal(const json_t *line, const struct trial *trial, struct differences *differences,
                                struct err *err)
{
        _cleanup_json_ json_t *says = NULL, *expected = json_object();
        _cleanup_json_ json_t *named = NULL, *named_expected = NULL;
        int r;

        r = put_members(expected, trial->json, repeated, ARRAY_SIZE(repeated));
        for (size_t i = 0; i < ARRAY_SIZE(times) && r == 0; i++)
                if (json_object_get(line, times[i]))
                        r = put_members(expected, trial->json, &times[i], 1);
        says = members_like(line, expected);
        if (r < 0 || !says)
                return err_set_nomem(err);
        named = json_pack("{s:O}", trial->name, says);
        named_expected = json_pack("{s:O}", trial->name, expected);
        if (!named || !named_expected || differences_of_json(differences, ARCHIVE_JOURNAL, named, named_expected) < 0)
                return err_set_nomem(err);
        return 0;
}

/* What cannot be read has been reported by whoever makes the summary. */
static int compare_trial(struct archive *archive, const struct plan *plan, const json_t *line,
                         struct differences *differences, struct err *err)
{
        const char *name = json_string_value(json_object_get(line, "trial"));
        _cleanup_trial_ struct trial trial = {0};
        _cleanup_close_ int dirfd = -1;
        struct err unread = {0};
        int r;

        if (!name)
                return 0;
        dirfd = archive_trial_open(archive, name, &unread);
        if (dirfd < 0 || trial_load(dirfd, name, &trial, &unread) < 0 || !streq(trial.name, name))
                return unread.errnum == ENOMEM ? err_set_nomem(err) : 0;
        r = compare_with_plan(plan, &trial, differences, err);
        return r < 0 ? r : compare_with_journal(line, &trial, differences, err);
}

int verify_trials(struct archive *archive, const struct plan *plan, struct differences *differences, struct err *err)
{
        _cleanup_json_ json_t *journal = NULL;
        struct err unread = {0};
        json_t *line;
        size_t i;

        if (archive_journal_read(archive, &journal, &unread) < 0)
                return unread.errnum == ENOMEM ? err_set_nomem(err) : 0;
        json_array_foreach(journal, i, line)
        {
                const char *event = json_string_value(json_object_get(line, "event"));
                int r = 0;

                if (event && streq(event, "trial"))
                        r = compare_trial(archive, plan, line, differences, err);
                if (r < 0)
                        return r;
        }
        return 0;
}
