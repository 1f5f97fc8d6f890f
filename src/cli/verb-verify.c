/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>

#include "archive/archive.h"
#include "base/number.h"
#include "campaign/kinds.h"
#include "cli/print-class.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "evidence/verify.h"

#define EXIT_INTEGRITY 5

struct verify_options {
        bool json;
};

static const struct option options[] = {
        {"json", 0, OPTION_FLAG, offsetof(struct verify_options, json), .help = "print the report as JSON"},
        {0},
};

static void add_bag(struct text *out, const struct bag_report *bag)
{
        char megabytes[48];

        text_addf(out, "digests: %" PRIu64 " file%s, %s MB: %s\n", bag->files, text_plural(bag->files),
                  number_format_scaled((int64_t)MIN(bag->bytes, (uint64_t)INT64_MAX), 1000000, 1, megabytes),
                  bag->n_faults == 0 ? "all agree" : "not all agree");
        for (size_t i = 0; i < bag->n_faults; i++) {
                text_addf(out, "  %s: ", bag_fault_name(bag->faults[i].kind));
                print_visible(out, bag->faults[i].path);
                if (bag->faults[i].detail && bag->faults[i].detail[0]) {
                        text_add(out, " (");
                        print_visible(out, bag->faults[i].detail);
                        text_add(out, ")");
                }
                text_add(out, "\n");
        }
}

static void add_differences(struct text *out, const struct differences *d)
{
        text_add(out, d->n_all == 0
                              ? "plan, summary and verdict: made again from manifest, journal and samples, they are "
                                "the same bytes\n"
                              : "plan, journal, trials, summary or verdict are not what comes out again\n");
        for (size_t i = 0; i < d->n; i++) {
                text_add(out, "  ");
                print_visible(out, d->items[i].file);
                if (d->items[i].path[0]) {
                        text_add(out, ": ");
                        print_visible(out, d->items[i].path);
                }
                text_add(out, "\n    frozen: ");
                print_visible(out, d->items[i].frozen);
                text_add(out, "\n    again:  ");
                print_visible(out, d->items[i].again);
                text_add(out, "\n");
        }
        if (d->n_all > d->n)
                text_addf(out, "  and %zu more\n", d->n_all - d->n);
}

static int print(const char *path, const struct verify_report *report, struct err *err)
{
        _cleanup_text_ struct text out = {0};

        add_bag(&out, &report->bag);
        add_differences(&out, &report->differences);
        print_class_text(&out, report->class, report->reasons);
        print_visible(&out, path);
        text_add(&out, verify_passed(report) ? ": verified\n" : ": NOT VERIFIED\n");
        return print_text(&out, err);
}

static json_t *faults_to_json(const struct bag_report *bag)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; i < bag->n_faults; i++) {
                _cleanup_text_ struct text path = {0};

                print_visible(&path, bag->faults[i].path);
                if (path.failed ||
                    json_array_append_new(array,
                                          json_pack("{s:s, s:s, s:s}", "kind", bag_fault_name(bag->faults[i].kind),
                                                    "path", path.data ? path.data : "", "detail",
                                                    bag->faults[i].detail ? bag->faults[i].detail : "")) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

static json_t *differences_to_json(const struct differences *d)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; i < d->n; i++)
                if (json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:s}", "file", d->items[i].file, "path",
                                                           d->items[i].path, "frozen", d->items[i].frozen, "again",
                                                           d->items[i].again)) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

static json_t *to_json(const char *path, const struct verify_report *report)
{
        return json_pack("{s:s, s:b, s:I, s:I, s:o, s:I, s:o, s:s, s:O}", "archive", path, "verified",
                         verify_passed(report), "files", (json_int_t)report->bag.files, "bytes",
                         (json_int_t)report->bag.bytes, "faults", faults_to_json(&report->bag), "n_differences",
                         (json_int_t)report->differences.n_all, "differences",
                         differences_to_json(&report->differences), "class", class_name(report->class), "reasons",
                         report->reasons);
}

static int run(const void *opts, int argc, char **argv, struct err *err)
{
        const struct verify_options *o = opts;
        _cleanup_archive_ struct archive *archive = NULL;
        _cleanup_verify_report_ struct verify_report report = {0};
        int r;

        r = archive_open(AT_FDCWD, argv[0], &archive, err);
        if (r >= 0)
                r = verify_archive(archive, kinds_all(), &report, err);
        if (r >= 0)
                r = o->json ? print_json(to_json(argv[0], &report), err) : print(argv[0], &report, err);
        if (r < 0)
                return r;
        return verify_passed(&report) ? 0 : EXIT_INTEGRITY;
}

const struct verb verb_verify = {
        .name = "verify",
        .arguments = "ARCHIVE",
        .summary = "check an archive, and compute it again",
        .description =
                "Compares every file with its digest, then makes plan, summary and verdict again from manifest,\n"
                "journal and samples, and compares them with what is frozen, and each trial with plan and journal.\n"
                "Names each file that is changed, missing or extra, and each value that differs.\n"
                "Exit code: 0 all agrees, whatever the verdict is; 5 something does not.",
        .min_args = 1,
        .max_args = 1,
        .options = options,
        .options_size = sizeof(struct verify_options),
        .run = run,
};
