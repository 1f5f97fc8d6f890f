/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/verify.h"

#include "base/file.h"
#include "base/macro.h"
#include "base/text.h"
#include "evidence/reload.h"
#include "evidence/summary.h"
#include "evidence/verdict.h"
#include "evidence/verify-internal.h"

#define FROZEN_BYTES_MAX (256u << 20)

bool verify_passed(const struct verify_report *report)
{
        return report->bag.n_faults == 0 && report->differences.n_all == 0;
}

void verify_report_done(struct verify_report *report)
{
        bag_report_done(&report->bag);
        differences_done(&report->differences);
        json_decref(report->summary);
        json_decref(report->verdict);
        json_decref(report->reasons);
        report->summary = report->verdict = report->reasons = NULL;
}

static int add(struct verify_report *report, const char *file, const char *path, const char *frozen, const char *again,
               struct err *err)
{
        return differences_add(&report->differences, file, path, frozen, again) < 0 ? err_set_nomem(err) : 0;
}

/* What could not be made again, because what it is made from is missing or malformed: a difference. Running out of
 * memory, or failing to read, is none. */
static int add_reason(struct verify_report *report, const char *file, int r, struct err *err)
{
        char text[sizeof(err->text) + sizeof(err->position) + 64];

        if (r == -ENOMEM ||
            (err->kind != ERR_DATA && err->kind != ERR_USAGE && err->kind != ERR_INTEGRITY && r != -ENOENT))
                return r;
        err_format(err, text, sizeof(text));
        *err = (struct err){0};
        return add(report, file, "", "is there", text, err);
}

/* Compares a frozen file with what came out. */
static int compare(struct archive *archive, const char *path, const json_t *again, struct verify_report *report,
                   struct err *err)
{
        _cleanup_free_ char *frozen = NULL, *text = json_format(again);
        _cleanup_json_ json_t *json = NULL;
        size_t len = 0, before = report->differences.n_all;
        int r;

        if (!text)
                return err_set_nomem(err);
        r = file_read_beneath(archive_dirfd(archive), path, FROZEN_BYTES_MAX, &frozen, &len, err);
        if (r == 0 && span_equal(span_of(frozen, len), span_of_text(text)))
                return 0;
        if (r == 0)
                r = json_parse(span_of(frozen, len), path, &json, err);
        if (r < 0)
                return add_reason(report, path, r, err);
        if (differences_of_json(&report->differences, path, json, again) < 0)
                return err_set_nomem(err);
        if (report->differences.n_all == before)
                return add(report, path, "", "the same content in other bytes", "the canonical text", err);
        return 0;
}

/* Trials that say of their own validity what the rules do not. */
static int compare_validity(const json_t *summary, struct verify_report *report, struct err *err)
{
        json_t *name;
        size_t i;

        json_array_foreach(json_object_get(summary, "disputed"), i, name)
        {
                _cleanup_free_ char *file = text_format(ARCHIVE_TRIALS "/%s/trial.json", json_string_value(name));
                int r = file ? add(report, file, "valid", "not what the rules say", "see data/summary.json", err)
                             : err_set_nomem(err);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int compare_plan(struct archive *archive, const struct plan *plan, struct verify_report *report, struct err *err)
{
        _cleanup_json_ json_t *json = NULL;
        int r;

        r = plan_to_json(plan, &json, err);
        return r < 0 ? r : compare(archive, ARCHIVE_PLAN, json, report, err);
}

static int make_again(struct archive *archive, const struct kinds *kinds, struct verify_report *report, struct err *err)
{
        _cleanup_manifest_ struct manifest *manifest = NULL;
        _cleanup_plan_ struct plan *plan = NULL;
        int r;

        r = reload_derive(archive, kinds, &manifest, &plan, err);
        if (r < 0)
                return add_reason(report, ARCHIVE_PLAN, r, err);
        r = compare_plan(archive, plan, report, err);
        if (r >= 0)
                r = verify_trials(archive, plan, &report->differences, err);
        if (r < 0)
                return r;
        r = summary_make(archive, plan, &report->summary, err);
        if (r < 0)
                return add_reason(report, ARCHIVE_SUMMARY, r, err);
        r = compare(archive, ARCHIVE_SUMMARY, report->summary, report, err);
        if (r >= 0)
                r = compare_validity(report->summary, report, err);
        if (r >= 0)
                r = verdict_make(manifest, report->summary, &report->verdict, err);
        if (r >= 0)
                r = compare(archive, ARCHIVE_VERDICT, report->verdict, report, err);
        return r;
}

/* An archive of which plan, journal or a trial cannot be read has been reported already; it is invalid. */
static int derive_class(struct archive *archive, struct verify_report *report, struct err *err)
{
        const struct class_input input = {
                .archive = archive,
                .verdict = report->verdict,
                .bag = &report->bag,
                .n_differences = report->differences.n_all,
        };
        int r;

        r = class_derive(&input, &report->class, &report->reasons, err);
        if (r >= 0 || r == -ENOMEM || verify_passed(report))
                return r;
        report->class = CLASS_INVALID;
        report->reasons = json_pack("[{s:s, s:s}]", "class", class_name(CLASS_INVALID), "reason", err->text);
        *err = (struct err){0};
        return report->reasons ? 0 : err_set_nomem(err);
}

int verify_archive(struct archive *archive, const struct kinds *kinds, struct verify_report *ret, struct err *err)
{
        _cleanup_verify_report_ struct verify_report report = {0};
        struct err own = {0};
        int r;

        err = err ?: &own;
        if (!archive_is_finished(archive))
                return err_set(err, ERR_INTEGRITY, EBADMSG,
                               "the archive is not finished: it has no tagmanifest-sha256.txt. If its campaign was "
                               "interrupted, `assay run --resume` goes on with it");
        r = bag_check(archive, BAG_AS_ARCHIVE, &report.bag, err);
        if (r >= 0)
                r = make_again(archive, kinds, &report, err);
        if (r >= 0)
                r = derive_class(archive, &report, err);
        if (r < 0)
                return r;
        *ret = report;
        report = (struct verify_report){0};
        return 0;
}
