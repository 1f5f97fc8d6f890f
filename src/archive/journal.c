/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/archive-internal.h"
#include "base/file.h"

/* Room for hundreds of thousands of trials. */
#define JOURNAL_BYTES_MAX ((size_t)256 * 1024 * 1024)

/* A line of its own: an object that says what happened, and of a trial, which. */
static int check_line(const json_t *line, const struct position *at, struct err *err)
{
        const char *event = json_string_value(json_object_get(line, "event"));
        const char *trial = json_string_value(json_object_get(line, "trial"));

        if (!event)
                return err_set_at(err, ERR_DATA, at, "expected an object with a string \"event\"");
        if (streq(event, "trial") && (!trial || !archive_trial_name_is_valid(trial)))
                return err_set_at(err, ERR_DATA, at, "expected the name of the trial in \"trial\"");
        return 0;
}

static int parse_line(struct span s, unsigned number, json_t *lines, struct err *err)
{
        struct position at = {.file = ARCHIVE_JOURNAL, .line = number, .column = 1};
        _cleanup_json_ json_t *line = NULL;
        int r;

        r = json_parse(s, ARCHIVE_JOURNAL, &line, err);
        if (r < 0) {
                if (err && err->position.file[0])
                        err->position.line = number;
                return r;
        }
        r = check_line(line, &at, err);
        if (r < 0)
                return r;
        return json_array_append(lines, line) < 0 ? err_set_nomem(err) : 0;
}

int journal_parse(struct span s, json_t **ret, struct err *err)
{
        _cleanup_json_ json_t *lines = json_array();
        unsigned number = 1;
        size_t at = 0;

        if (!lines)
                return err_set_nomem(err);
        for (;;) {
                const uint8_t *end = at < s.len ? memchr(s.data + at, '\n', s.len - at) : NULL;
                size_t len;
                int r;

                if (!end)
                        break;
                len = (size_t)(end - (s.data + at));
                r = parse_line(span_of(s.data + at, len), number, lines, err);
                if (r < 0)
                        return r;
                at += len + 1;
                number++;
        }
        *ret = TAKE_PTR(lines);
        return 0;
}

int archive_journal_read(const struct archive *archive, json_t **ret, struct err *err)
{
        _cleanup_close_ int fd = file_open_beneath(archive_dirfd(archive), ARCHIVE_JOURNAL);
        _cleanup_free_ char *data = NULL;
        size_t len = 0;
        int r;

        if (fd < 0 && fd != -ENOENT)
                return file_open_failed(err, -fd, ARCHIVE_JOURNAL);
        if (fd >= 0) {
                r = file_read_fd(fd, ARCHIVE_JOURNAL, JOURNAL_BYTES_MAX, &data, &len, err);
                if (r < 0)
                        return r;
        }
        return journal_parse(span_of(data, len), ret, err);
}

/* Length of the file up to and with its last line feed. */
static int whole_lines(int fd, off_t *ret)
{
        char block[4096];
        struct stat st;
        off_t end;

        if (fstat(fd, &st) < 0)
                return -errno;
        for (end = st.st_size; end > 0;) {
                off_t start = end > (off_t)sizeof(block) ? end - (off_t)sizeof(block) : 0;
                ssize_t n = pread(fd, block, (size_t)(end - start), start);
                const char *feed;

                if (n != end - start)
                        return n < 0 ? -errno : -EIO;
                feed = memrchr(block, '\n', (size_t)n);
                if (feed) {
                        *ret = start + (feed - block) + 1;
                        return 0;
                }
                end = start;
        }
        *ret = 0;
        return 0;
}

int journal_cut(int fd)
{
        struct stat st;
        off_t len = 0;
        int r;

        r = whole_lines(fd, &len);
        if (r < 0)
                return r;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (len == st.st_size)
                return 0;
        return ftruncate(fd, len) < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int open_for_append(int archive_fd, int *ret)
{
        _cleanup_close_ int data = file_open_dir(archive_fd, "data"), fd = -1;
        bool is_new;

        if (data < 0)
                return data;
        is_new = faccessat(data, "journal.jsonl", F_OK, AT_SYMLINK_NOFOLLOW) < 0;
        fd = openat(data, "journal.jsonl", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0)
                return -errno;
        if (is_new && fsync(data) < 0)
                return -errno;
        *ret = TAKE_FD(fd);
        return 0;
}

static int write_line(int fd, const char *text, size_t len)
{
        off_t start;
        int r;

        r = journal_cut(fd);
        if (r < 0)
                return r;
        start = lseek(fd, 0, SEEK_END);
        if (start < 0)
                return -errno;
        r = file_write_all(fd, text, len);
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        /* If this fails too, the line is torn and is cut off later, or it is whole and counts. */
        if (r < 0)
                (void)!ftruncate(fd, start);
        return r;
}

int journal_append(int archive_fd, const json_t *line, struct err *err)
{
        _cleanup_close_ int fd = -1;
        _cleanup_free_ char *text = json_format_line(line);
        size_t len;
        int r;

        if (!text)
                return err_set_nomem(err);
        len = strlen(text);
        text[len] = '\n'; /* in place of the NUL: one write brings the line and what makes it whole */

        r = open_for_append(archive_fd, &fd);
        if (r == 0)
                r = write_line(fd, text, len + 1);
        if (r < 0)
                return err_set_errno(err, ERR_IO, -r, "cannot append to %s", ARCHIVE_JOURNAL);
        return 0;
}
