/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/reload.h"

#include "base/cleanup.h"
#include "base/file.h"

#define PLAN_LIMIT_BYTES     (64u << 20)
#define MANIFEST_LIMIT_BYTES (1u << 20)

static int reload_manifest(struct archive *archive, const struct kinds *kinds, const struct manifest_options *options,
                           struct manifest **ret, struct err *err)
{
        _cleanup_free_ char *bytes = NULL;
        _cleanup_close_ int inputs = -1;
        size_t len = 0;
        int r;

        r = file_read_beneath(archive_dirfd(archive), ARCHIVE_MANIFEST, MANIFEST_LIMIT_BYTES, &bytes, &len, err);
        if (r < 0)
                return r;
        inputs = file_open_dir(archive_dirfd(archive), ARCHIVE_INPUTS); /* absent where nothing is included */
        return manifest_parse(span_of(bytes, len), ARCHIVE_MANIFEST, inputs, kinds, options, ret, err);
}

int reload_derive(struct archive *archive, const struct kinds *kinds, struct manifest **ret_manifest,
                  struct plan **ret_plan, struct err *err)
{
        _cleanup_manifest_ struct manifest *manifest = NULL;
        _cleanup_plan_ struct plan *plan = NULL;
        _cleanup_free_ const char **overrides = NULL;
        _cleanup_free_ size_t *skipped = NULL;
        _cleanup_free_ char *stored = NULL;
        _cleanup_json_ json_t *json = NULL;
        struct manifest_options options = {0};
        size_t len = 0, n_skipped = 0;
        int r;

        r = file_read_beneath(archive_dirfd(archive), ARCHIVE_PLAN, PLAN_LIMIT_BYTES, &stored, &len, err);
        if (r >= 0)
                r = json_parse(span_of(stored, len), ARCHIVE_PLAN, &json, err);
        if (r >= 0)
                r = plan_options_from_json(json, &options, &overrides, err);
        if (r >= 0)
                r = reload_manifest(archive, kinds, &options, &manifest, err);
        if (r >= 0)
                r = plan_skipped_from_json(json, manifest, &skipped, &n_skipped, err);
        if (r >= 0)
                r = plan_make(manifest, kinds, &options, skipped, n_skipped, &plan, err);
        if (r >= 0)
                r = plan_expected_from_json(json, plan, err);
        if (r < 0)
                return r;
        *ret_manifest = TAKE_PTR(manifest);
        *ret_plan = TAKE_PTR(plan);
        return 0;
}

static int compare_plan(struct archive *archive, const struct plan *plan, struct err *err)
{
        _cleanup_free_ char *stored = NULL, *text = NULL;
        _cleanup_json_ json_t *json = NULL;
        size_t len = 0;
        int r;

        r = file_read_beneath(archive_dirfd(archive), ARCHIVE_PLAN, PLAN_LIMIT_BYTES, &stored, &len, err);
        if (r >= 0)
                r = plan_to_json(plan, &json, err);
        if (r < 0)
                return r;
        text = json_format(json);
        if (!text)
                return err_set_nomem(err);
        if (!streq(text, stored))
                return err_set(err, ERR_INTEGRITY, EBADMSG,
                               ARCHIVE_PLAN " is not the plan that " ARCHIVE_MANIFEST " and its options give");
        return 0;
}

int reload_plan(struct archive *archive, const struct kinds *kinds, struct manifest **ret_manifest,
                struct plan **ret_plan, struct err *err)
{
        _cleanup_manifest_ struct manifest *manifest = NULL;
        _cleanup_plan_ struct plan *plan = NULL;
        int r;

        r = reload_derive(archive, kinds, &manifest, &plan, err);
        if (r >= 0)
                r = compare_plan(archive, plan, err);
        if (r < 0)
                return r;
        *ret_manifest = TAKE_PTR(manifest);
        *ret_plan = TAKE_PTR(plan);
        return 0;
}
