/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "campaign/kinds.h"
#include "cli/experiment.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "evidence/manifest.h"
#include "evidence/plan.h"

struct list_options {
        bool json;
};

static const struct option options[] = {
        {"json", 0, OPTION_FLAG, offsetof(struct list_options, json), .help = "print the list as JSON"},
        {0},
};

/* What is known of one experiment without running it. */
struct entry {
        struct manifest *manifest;
        int64_t full_ns, short_ns;
};

static int expected_ns(const char *path, bool is_short, struct manifest **ret_manifest, int64_t *ret, struct err *err)
{
        const struct manifest_options o = {.is_short = is_short};
        _cleanup_manifest_ struct manifest *manifest = NULL;
        _cleanup_plan_ struct plan *plan = NULL;
        int r;

        r = manifest_load(AT_FDCWD, path, kinds_all(), &o, &manifest, err);
        if (r < 0)
                return r;
        r = plan_make(manifest, kinds_all(), &o, NULL, 0, &plan, err);
        if (r < 0)
                return r;
        *ret = plan->expected_duration_ns;
        if (ret_manifest)
                *ret_manifest = TAKE_PTR(manifest);
        return 0;
}

static int entry_read(const char *path, struct entry *ret, struct err *err)
{
        int r;

        *ret = (struct entry){0};
        r = expected_ns(path, false, &ret->manifest, &ret->full_ns, err);
        return r < 0 ? r : expected_ns(path, true, NULL, &ret->short_ns, err);
}

static int64_t minutes(int64_t ns)
{
        return (ns + 60 * NSEC_PER_SEC - 1) / (60 * NSEC_PER_SEC);
}

static void print_entry(const struct entry *e, const char *path)
{
        printf("%-10s %s\n", e->manifest->id, e->manifest->title);
        for (size_t i = 0; i < e->manifest->n_hypotheses; i++)
                printf("           %s: %s\n", e->manifest->hypotheses[i].name, e->manifest->hypotheses[i].claim);
        printf("           %zu cell%s, %u rounds, about %lld min (--short: %lld min); %s\n\n", e->manifest->n_cells,
               text_plural(e->manifest->n_cells), e->manifest->rounds, (long long)minutes(e->full_ns),
               (long long)minutes(e->short_ns), path);
}

static json_t *entry_to_json(const struct entry *e, const char *path)
{
        return json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:I}", "id", e->manifest->id, "title", e->manifest->title,
                         "path", path, "cells", (int)e->manifest->n_cells, "rounds", (int)e->manifest->rounds,
                         "expected_duration_ns", (json_int_t)e->full_ns, "expected_duration_short_ns",
                         (json_int_t)e->short_ns);
}

static int run(const void *opts, int argc, char **argv, struct err *err)
{
        const struct list_options *o = opts;
        _cleanup_json_ json_t *all = json_array();
        struct experiment_list list = {0};
        int r, first = 0;

        r = experiment_list(&list, err);
        if (r < 0)
                return r;
        if (list.n == 0)
                log_warning("no experiments in %s or %s; ASSAY_EXPERIMENTS names another folder", experiment_folder(0),
                            experiment_folder(1));
        for (size_t i = 0; i < list.n; i++) {
                struct entry e;

                r = entry_read(list.paths[i], &e, err);
                if (r < 0 && first == 0)
                        first = r;
                if (r >= 0 && o->json)
                        json_array_append_new(all, entry_to_json(&e, list.paths[i]));
                else if (r >= 0)
                        print_entry(&e, list.paths[i]);
                manifest_free(e.manifest);
        }
        experiment_list_done(&list);
        if (o->json) {
                r = print_json(TAKE_PTR(all), err);
                if (r < 0)
                        return r;
        }
        return first;
}

const struct verb verb_list = {
        .name = "list",
        .summary = "the experiments that can be run by name",
        .options = options,
        .options_size = sizeof(struct list_options),
        .run = run,
};
