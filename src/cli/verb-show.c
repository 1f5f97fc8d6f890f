/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>

#include "archive/archive.h"
#include "cli/print-campaign.h"
#include "cli/print-class.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "config/node.h"
#include "evidence/class.h"

#define FROZEN_BYTES_MAX (256u << 20)

struct show_options {
        bool json;
        const char *series;
};

static const struct option options[] = {
        {"series", 0, OPTION_STRING, offsetof(struct show_options, series), "NAME",
         .help = "durations to show: rtt, rtt_user, response, lateness, or what else the workload has"},
        {"json", 0, OPTION_FLAG, offsetof(struct show_options, json),
         .help = "print summary, verdict and class as JSON"},
        {0},
};

/* What is frozen in an archive. */
struct frozen {
        struct archive *archive;
        json_t *summary, *verdict, *reasons;
        enum evidence_class class;
        struct node *manifest; /* as written; NULL where it cannot be read */
};

static void frozen_done(struct frozen *f)
{
        archive_free(f->archive);
        json_decref(f->summary);
        json_decref(f->verdict);
        json_decref(f->reasons);
        node_free(f->manifest);
}

#define _cleanup_frozen_ _cleanup_(frozen_done)

static int frozen_load(const char *path, struct frozen *f, struct err *err)
{
        int r;

        r = archive_open(AT_FDCWD, path, &f->archive, err);
        if (r < 0)
                return r;
        if (!archive_is_finished(f->archive))
                return err_set(
                        err, ERR_DATA, EBADMSG,
                        "%s is not finished, so there is no result to show; `assay run --resume %s` goes on with "
                        "it",
                        path, path);
        r = json_load(archive_dirfd(f->archive), ARCHIVE_SUMMARY, FROZEN_BYTES_MAX, &f->summary, err);
        if (r >= 0)
                r = json_load(archive_dirfd(f->archive), ARCHIVE_VERDICT, FROZEN_BYTES_MAX, &f->verdict, err);
        if (r >= 0) {
                const struct class_input input = {.archive = f->archive, .verdict = f->verdict};

                r = class_derive(&input, &f->class, &f->reasons, err);
        }
        if (r >= 0)
                (void)node_load(archive_dirfd(f->archive), ARCHIVE_MANIFEST, NULL, &f->manifest, NULL, NULL, NULL);
        return r;
}

static void add_scalar(struct text *out, const struct node *node)
{
        print_visible(out, node ? node->scalar : NULL);
}

static void add_title(struct text *out, const struct node *manifest)
{
        if (!manifest)
                return;
        add_scalar(out, node_get(manifest, "id"));
        text_add(out, ": ");
        add_scalar(out, node_get(manifest, "title"));
        text_add(out, "\n\n");
}

static void add_caveats(struct text *out, const struct node *manifest)
{
        const struct node *caveats = node_get(manifest, "caveats");

        for (size_t i = 0; caveats && i < caveats->n_items; i++) {
                text_add(out, i == 0 ? "\ncaveats\n  " : "  ");
                add_scalar(out, caveats->items[i]);
                text_add(out, "\n");
        }
}

static int print(const struct frozen *f, const char *path, const char *series, struct err *err)
{
        _cleanup_text_ struct text out = {0};

        add_title(&out, f->manifest);
        print_campaign_text(&out, path, series, f->summary, f->verdict);
        print_class_text(&out, f->class, f->reasons);
        add_caveats(&out, f->manifest);
        return print_text(&out, err);
}

static json_t *to_json(const struct frozen *f, const char *path)
{
        return json_pack("{s:s, s:O, s:O, s:s, s:O}", "archive", path, "summary", f->summary, "verdict", f->verdict,
                         "class", class_name(f->class), "reasons", f->reasons);
}

static int run(const void *opts, int argc, char **argv, struct err *err)
{
        const struct show_options *o = opts;
        _cleanup_frozen_ struct frozen frozen = {0};
        int r;

        r = frozen_load(argv[0], &frozen, err);
        if (r < 0)
                return r;
        return o->json ? print_json(to_json(&frozen, argv[0]), err) : print(&frozen, argv[0], o->series, err);
}

const struct verb verb_show = {
        .name = "show",
        .arguments = "ARCHIVE",
        .summary = "print the result of an archive",
        .description = "Prints what an archive has frozen: cells, loads, controls, hypotheses, and the class of the\n"
                       "evidence. Nothing is checked; `assay verify` does that.",
        .min_args = 1,
        .max_args = 1,
        .options = options,
        .options_size = sizeof(struct show_options),
        .run = run,
};
