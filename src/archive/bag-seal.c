/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/bag-internal.h"
#include "archive/tree.h"
#include "base/file.h"
#include "base/version.h"

struct payload {
        uint64_t bytes, files;
        struct text manifest;
};

static int add_digest(struct text *manifest, int dirfd, const char *path, uint64_t *ret_bytes, struct err *err)
{
        _cleanup_close_ int fd = file_open_beneath(dirfd, path);
        _cleanup_free_ char *encoded = bag_encode_path(path);
        struct digest digest;
        char hex[DIGEST_HEX_SIZE];
        int r;

        if (!encoded)
                return err_set_nomem(err);
        if (fd < 0)
                return err_set_errno(err, ERR_IO, -fd, "cannot open %s", path);
        r = digest_of_file(fd, &digest, ret_bytes, err);
        if (r < 0) {
                err_prefix(err, "%s", path);
                return r;
        }
        /* two blanks, as sha256sum writes a line */
        text_addf(manifest, "%s  %s\n", digest_format(&digest, hex), encoded);
        return manifest->failed ? err_set_nomem(err) : 0;
}

static int add_payload(struct payload *payload, int dirfd, const struct tree_entry *entry, struct err *err)
{
        uint64_t bytes = 0;
        int r;

        if (entry->errnum)
                return err_set_errno(err, ERR_IO, entry->errnum, "cannot examine %s", entry->path);
        if (S_ISDIR(entry->mode))
                return 0;
        if (!S_ISREG(entry->mode))
                return err_set(err, ERR_DATA, EINVAL, "%s is neither a regular file nor a folder", entry->path);
        if (!text_is_utf8(entry->path, strlen(entry->path)))
                return err_set(err, ERR_DATA, EILSEQ, "a file name in the archive is not UTF-8");
        r = add_digest(&payload->manifest, dirfd, entry->path, &bytes, err);
        payload->bytes += bytes;
        payload->files++;
        return r;
}

static int digest_payload(int dirfd, struct payload *payload, struct err *err)
{
        _cleanup_tree_ struct tree tree = {0};
        int r;

        r = tree_list(dirfd, &tree, err);
        for (size_t i = 0; r == 0 && i < tree.n; i++)
                if (strncmp(tree.entries[i].path, "data/", 5) == 0)
                        r = add_payload(payload, dirfd, &tree.entries[i], err);
        return r;
}

/* A value with its line breaks as blanks. */
static void add_value(struct text *text, const char *value)
{
        for (;;) {
                size_t len = strcspn(value, "\r\n");

                text_add_bytes(text, value, len);
                if (!value[len])
                        break;
                text_add(text, " ");
                value += len + 1;
        }
}

static int write_info(int dirfd, const struct bag_info *info, size_t n_info, const struct payload *payload,
                      struct err *err)
{
        _cleanup_text_ struct text text = {0};

        for (size_t i = 0; i < n_info; i++) {
                if (!*info[i].label || info[i].label[strcspn(info[i].label, ":\r\n")])
                        return err_set(err, ERR_BUG, EINVAL, "\"%s\" cannot be a label of bag-info.txt", info[i].label);
                text_addf(&text, "%s: ", info[i].label);
                add_value(&text, info[i].value);
                text_add(&text, "\n");
        }
        text_addf(&text, "Bag-Software-Agent: assay %s\n", version_number());
        text_addf(&text, "Payload-Oxum: %" PRIu64 ".%" PRIu64 "\n", payload->bytes, payload->files);
        if (text.failed)
                return err_set_nomem(err);
        return file_write_atomic(dirfd, BAG_INFO, 0644, span_of(text.data, text.len), err);
}

static int write_tag_manifest(int dirfd, struct err *err)
{
        static const char *const tag_files[] = {BAG_INFO, BAG_DECLARATION, BAG_MANIFEST};
        _cleanup_text_ struct text text = {0};

        for (size_t i = 0; i < ARRAY_SIZE(tag_files); i++) {
                int r = add_digest(&text, dirfd, tag_files[i], NULL, err);

                if (r < 0)
                        return r;
        }
        return file_write_atomic(dirfd, BAG_TAG_MANIFEST, 0644, span_of(text.data, text.len), err);
}

int bag_seal(struct archive *archive, const struct bag_info *info, size_t n_info, struct err *err)
{
        static const char declaration[] = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";
        struct payload payload = {0};
        int dirfd = archive_dirfd(archive), r;

        r = archive_trials_sweep(archive, err);
        if (r == 0)
                r = digest_payload(dirfd, &payload, err);
        if (r == 0)
                r = file_write_atomic(dirfd, BAG_DECLARATION, 0644, span_of_text(declaration), err);
        if (r == 0)
                r = write_info(dirfd, info, n_info, &payload, err);
        if (r == 0)
                r = file_write_atomic(dirfd, BAG_MANIFEST, 0644, span_of(payload.manifest.data, payload.manifest.len),
                                      err);
        if (r == 0)
                r = write_tag_manifest(dirfd, err);
        text_done(&payload.manifest);
        if (r < 0)
                err_prefix(err, "cannot seal the archive");
        return r;
}
