/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print-archive.h"

#include <fcntl.h>

#include "archive/archive.h"
#include "base/file.h"
#include "cli/print-campaign.h"
#include "cli/print-class.h"
#include "cli/print.h"
#include "config/node.h"
#include "evidence/class.h"

#define FROZEN_BYTES_MAX (256u << 20)

/* What is frozen in an archive. */
struct frozen {
        struct archive *archive;
        json_t *summary, *verdict, *reasons;
        enum evidence_class class;
        struct node *manifest; /* as written; NULL where it cannot be read */
        struct err unread;     /* why */
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

/* Title and caveats are for people only: without them the result is shown all the same. */
static void load_manifest(struct frozen *f)
{
        _cleanup_free_ char *bytes = NULL;
        size_t len;
        int r;

        r = file_read_beneath(archive_dirfd(f->archive), ARCHIVE_MANIFEST, node_limits_default.bytes, &bytes, &len,
                              &f->unread);
        if (r >= 0)
                (void)node_parse(span_of(bytes, len), ARCHIVE_MANIFEST, NULL, &f->manifest, &f->unread);
}

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
                load_manifest(f);
        return r;
}

static void add_scalar(struct text *out, const struct node *node)
{
        print_visible(out, node ? node->scalar : NULL);
}

static void add_title(struct text *out, const struct frozen *f)
{
        if (f->manifest) {
                add_scalar(out, node_get(f->manifest, "id"));
                text_add(out, ": ");
                add_scalar(out, node_get(f->manifest, "title"));
        } else {
                print_visible(out, f->unread.text);
        }
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

static int print_frozen(const struct frozen *f, const char *path, const char *series, struct err *err)
{
        _cleanup_text_ struct text out = {0};

        add_title(&out, f);
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

/* That some cell has a series of this name; otherwise an error that says which there are. */
static int check_series(const json_t *summary, const char *name, struct err *err)
{
        const json_t *cells = json_object_get(summary, "cells");
        _cleanup_text_ struct text names = {0};
        const char *key;
        json_t *cell, *series;
        size_t i;

        json_array_foreach(cells, i, cell)
        {
                if (json_object_get(json_object_get(cell, "series"), name))
                        return 0;
        }
        json_object_foreach(json_object_get(json_array_get(cells, 0), "series"), key, series)
        {
                text_add(&names, names.len > 0 ? ", " : "");
                print_visible(&names, key);
        }
        if (names.failed)
                return err_set_nomem(err);
        return err_set(err, ERR_USAGE, ENOENT, "no cell has a series of this name (--series %.40s); there are: %s",
                       name, names.len > 0 ? names.data : "none");
}

int print_archive(const char *path, const char *series, bool is_json, struct err *err)
{
        _cleanup_frozen_ struct frozen frozen = {0};
        int r;

        r = frozen_load(path, &frozen, err);
        if (r >= 0 && series)
                r = check_series(frozen.summary, series, err);
        if (r < 0)
                return r;
        return is_json ? print_json(to_json(&frozen, path), err) : print_frozen(&frozen, path, series, err);
}
