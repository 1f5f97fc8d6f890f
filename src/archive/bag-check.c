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

/* Room for half a million files of an archive. */
#define TAG_FILE_BYTES_MAX ((size_t)64 * 1024 * 1024)

/* What one check works on. */
struct check {
        int dirfd;
        enum bag_flags flags;
        struct tree tree;
        struct bag_report report;
};

static void check_done(struct check *check)
{
        tree_done(&check->tree);
        bag_report_done(&check->report);
}

const char *bag_fault_name(enum bag_fault_kind kind)
{
        static const char *const names[] = {
                [BAG_MISSING] = "missing",     [BAG_EXTRA] = "extra",           [BAG_CHANGED] = "changed",
                [BAG_MALFORMED] = "malformed", [BAG_UNREADABLE] = "unreadable",
        };

        return (size_t)kind < ARRAY_SIZE(names) ? names[kind] : "unknown";
}

int bag_report_add(struct bag_report *report, enum bag_fault_kind kind, const char *path, const char *format, ...)
{
        _cleanup_free_ char *copy = strdup(path);
        _cleanup_text_ struct text detail = {0};
        va_list args;

        va_start(args, format);
        text_addv(&detail, format, args);
        va_end(args);
        if (!copy || detail.failed)
                return -ENOMEM;
        if (report->n_faults == report->allocated) {
                size_t more = report->allocated ? 2 * report->allocated : 16;
                struct bag_fault *faults = realloc(report->faults, more * sizeof(*faults));

                if (!faults)
                        return -ENOMEM;
                report->faults = faults;
                report->allocated = more;
        }
        report->faults[report->n_faults++] =
                (struct bag_fault){.kind = kind, .path = TAKE_PTR(copy), .detail = text_take(&detail)};
        return 0;
}

void bag_report_done(struct bag_report *report)
{
        for (size_t i = 0; i < report->n_faults; i++) {
                free(report->faults[i].path);
                free(report->faults[i].detail);
        }
        free(report->faults);
        *report = (struct bag_report){0};
}

static int compare_faults(const void *a, const void *b)
{
        const struct bag_fault *x = a, *y = b;
        int order = strcmp(x->path, y->path);

        return order ? order : strcmp(x->detail, y->detail);
}

static int compare_to_tree_entry(const void *path, const void *entry)
{
        return strcmp(path, ((const struct tree_entry *)entry)->path);
}

/* What lies at @path, or NULL. */
static const struct tree_entry *find_entry(const struct tree *tree, const char *path)
{
        if (tree->n == 0)
                return NULL;
        return bsearch(path, tree->entries, tree->n, sizeof(*tree->entries), compare_to_tree_entry);
}

static int compare_to_listed(const void *path, const void *entry)
{
        return strcmp(path, ((const struct bag_entry *)entry)->path);
}

static bool is_listed(const struct bag_manifest *manifest, const char *path)
{
        return manifest->n > 0 &&
               bsearch(path, manifest->entries, manifest->n, sizeof(*manifest->entries), compare_to_listed) != NULL;
}

/* Adds the fault of a file that cannot be opened or read. */
static int add_unreadable(struct check *check, const char *path, int errnum)
{
        const char *why = strerrordesc_np(errnum);

        return bag_report_add(&check->report, BAG_UNREADABLE, path, "cannot be read: %s", why ? why : "unknown error");
}

static const char *type_name(mode_t mode)
{
        return S_ISLNK(mode)    ? "a symbolic link"
               : S_ISDIR(mode)  ? "a folder"
               : S_ISCHR(mode)  ? "a character device"
               : S_ISBLK(mode)  ? "a block device"
               : S_ISFIFO(mode) ? "a FIFO"
                                : "a socket";
}

/* Compares a listed file with its digest. Return: 0, also where there is a fault, or a negative errno. */
static int check_file(struct check *check, const struct bag_entry *listed, bool is_payload, struct err *err)
{
        const struct tree_entry *found = find_entry(&check->tree, listed->path);
        char expected[DIGEST_HEX_SIZE], actual[DIGEST_HEX_SIZE];
        struct err reason = {0};
        struct digest digest;
        uint64_t bytes = 0;
        int fd, r;

        if (!found)
                return bag_report_add(&check->report, BAG_MISSING, listed->path, "listed, but not there");
        if (found->errnum && !S_ISDIR(found->mode))
                return add_unreadable(check, listed->path, found->errnum);
        if (!S_ISREG(found->mode))
                return bag_report_add(&check->report, BAG_UNREADABLE, listed->path, "is %s, expected a regular file",
                                      type_name(found->mode));
        fd = file_open_beneath(check->dirfd, listed->path);
        if (fd < 0)
                return add_unreadable(check, listed->path, -fd);
        r = digest_of_file(fd, &digest, &bytes, &reason);
        close(fd);
        if (r < 0 && reason.kind == ERR_IO)
                return add_unreadable(check, listed->path, -r);
        if (r < 0) {
                if (err)
                        *err = reason;
                return r;
        }
        if (is_payload) {
                check->report.files++;
                check->report.bytes += bytes;
        }
        if (digest_equal(&digest, &listed->digest))
                return 0;
        return bag_report_add(&check->report, BAG_CHANGED, listed->path,
                              "%" PRIu64 " bytes with digest %s, expected %s", bytes, digest_format(&digest, actual),
                              digest_format(&listed->digest, expected));
}

static bool is_payload_path(const char *path)
{
        return strncmp(path, "data/", 5) == 0;
}

/* Whether no manifest has to list the tag file @path. */
static bool is_free(const char *path)
{
        return strncmp(path, "tagmanifest-", strlen("tagmanifest-")) == 0 || streq(path, ARCHIVE_ATTESTATION);
}

/* Reports what is there and not listed in the manifest of the payload or of the tag files. */
static int check_unlisted(struct check *check, const struct bag_manifest *manifest, bool is_payload)
{
        for (size_t i = 0; i < check->tree.n; i++) {
                const struct tree_entry *entry = &check->tree.entries[i];
                int r = 0;

                if (is_payload_path(entry->path) != is_payload || (!is_payload && is_free(entry->path)) ||
                    is_listed(manifest, entry->path))
                        continue;
                if (entry->errnum)
                        r = add_unreadable(check, entry->path, entry->errnum);
                else if (!S_ISDIR(entry->mode))
                        r = bag_report_add(&check->report, BAG_EXTRA, entry->path, "there, but not listed");
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads the tag file @name. Return: 1; 0 where it cannot be read, which is a fault unless it may be absent and is; or a
 * negative errno. */
static int read_tag_file(struct check *check, const char *name, bool is_optional, char **ret, size_t *ret_len)
{
        _cleanup_close_ int fd = file_open_beneath(check->dirfd, name);
        struct err reason = {0};
        int r;

        if (fd == -ENOENT && is_optional)
                return 0;
        if (fd == -ENOENT)
                return bag_report_add(&check->report, BAG_MISSING, name, "a bag has to have it");
        if (fd < 0)
                return add_unreadable(check, name, -fd);
        r = file_read_fd(fd, name, TAG_FILE_BYTES_MAX, ret, ret_len, &reason);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return bag_report_add(&check->report, BAG_UNREADABLE, name, "%s", reason.text);
        return 1;
}

static int check_declaration(struct check *check)
{
        _cleanup_free_ char *data = NULL;
        size_t len = 0;
        int r = read_tag_file(check, BAG_DECLARATION, false, &data, &len);

        return r > 0 ? bag_declaration_parse(span_of(data, len), &check->report) : r;
}

/* Checks the files that @name lists, and those that it should list. Return: 0 or a negative errno. */
static int check_manifest(struct check *check, const char *name, bool is_payload, struct err *err)
{
        _cleanup_bag_manifest_ struct bag_manifest manifest = {0};
        bool is_strict = is_payload || (check->flags & BAG_AS_ARCHIVE);
        _cleanup_free_ char *data = NULL;
        size_t len = 0;
        int r;

        r = read_tag_file(check, name, !is_strict, &data, &len);
        if (r <= 0)
                return r;
        r = bag_manifest_parse(span_of(data, len), name, is_payload, &manifest, &check->report);
        for (size_t i = 0; r == 0 && i < manifest.n; i++)
                r = check_file(check, &manifest.entries[i], is_payload, err);
        return r == 0 && is_strict ? check_unlisted(check, &manifest, is_payload) : r;
}

/* Compares Payload-Oxum with what lies there; where files differ, they are faults of their own, and this would be the
 * same again. */
static int check_info(struct check *check)
{
        _cleanup_free_ char *data = NULL;
        struct bag_oxum oxum, found = {0};
        size_t len = 0;
        int r;

        for (size_t i = 0; i < check->report.n_faults; i++)
                if (is_payload_path(check->report.faults[i].path))
                        return 0;
        r = read_tag_file(check, BAG_INFO, true, &data, &len);
        if (r <= 0)
                return r;
        r = bag_info_parse(span_of(data, len), &oxum, &check->report);
        if (r < 0 || !oxum.is_present)
                return r;
        for (size_t i = 0; i < check->tree.n; i++) {
                const struct tree_entry *entry = &check->tree.entries[i];

                if (is_payload_path(entry->path) && S_ISREG(entry->mode)) {
                        found.bytes += entry->size;
                        found.files++;
                }
        }
        if (found.bytes == oxum.bytes && found.files == oxum.files)
                return 0;
        return bag_report_add(&check->report, BAG_CHANGED, BAG_INFO,
                              "Payload-Oxum says %" PRIu64 " bytes in %" PRIu64 " files, found %" PRIu64
                              " bytes in %" PRIu64 " files",
                              oxum.bytes, oxum.files, found.bytes, found.files);
}

int bag_check(struct archive *archive, enum bag_flags flags, struct bag_report *ret, struct err *err)
{
        _cleanup_(check_done) struct check check = {.dirfd = archive_dirfd(archive), .flags = flags};
        int r;

        r = tree_list(check.dirfd, &check.tree, err);
        if (r < 0)
                return r;
        r = check_declaration(&check);
        if (r == 0)
                r = check_manifest(&check, BAG_MANIFEST, true, err);
        if (r == 0)
                r = check_manifest(&check, BAG_TAG_MANIFEST, false, err);
        if (r == 0)
                r = check_info(&check);
        if (r < 0)
                return r == -ENOMEM ? err_set_nomem(err) : r;

        if (check.report.n_faults > 0)
                qsort(check.report.faults, check.report.n_faults, sizeof(*check.report.faults), compare_faults);
        *ret = check.report;
        check.report = (struct bag_report){0};
        return 0;
}
