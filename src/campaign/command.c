/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/command.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

#define READY_NS        (10 * NSEC_PER_SEC)
#define CANNOT_RUN      126
#define COMPLAINT_BYTES 400

void command_line_done(struct command_line *line)
{
        for (size_t i = 0; i < line->n; i++)
                free(line->words[i]);
        *line = (struct command_line){0};
}

static void add_word(struct command_line *line, char *word)
{
        if (!word || line->n == COMMAND_WORDS_MAX) {
                free(word);
                line->failed = true;
                return;
        }
        line->words[line->n++] = word;
}

void command_line_add(struct command_line *line, const char *format, ...)
{
        char *word = NULL;
        va_list args;

        va_start(args, format);
        if (vasprintf(&word, format, args) < 0)
                word = NULL;
        va_end(args);
        add_word(line, word);
}

void command_line_append(struct command_line *line, const struct command_line *more)
{
        for (size_t i = 0; i < more->n; i++)
                add_word(line, strdup(more->words[i]));
        line->failed = line->failed || more->failed;
}

int command_line_check(const struct command_line *line, struct err *err)
{
        if (!line->failed)
                return 0;
        if (line->n == COMMAND_WORDS_MAX)
                return err_set(err, ERR_USAGE, E2BIG, "a command of more than %d words", COMMAND_WORDS_MAX);
        return err_set_nomem(err);
}

int command_self(char *buf, size_t size, struct err *err)
{
        ssize_t n = readlink("/proc/self/exe", buf, size - 1);

        if (n < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot find out where this program is");
        buf[n] = '\0';
        return 0;
}

int command_find(const char *program, char *buf, size_t size, struct err *err)
{
        const char *path = getenv("PATH");

        for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
                size_t len = strcspn(at, ":");

                snprintf(buf, size, "%.*s/%s", (int)len, at, program);
                if (len > 0 && access(buf, X_OK) == 0)
                        return 0;
                at += len + (at[len] == ':');
        }
        return err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP, "the program %s is not installed", program);
}

struct start {
        const struct command *command;
        const struct command_line *line;
};

/* In mounts of its own a file of the system's place, that nobody else sees and that goes with it. The memory that it is
 * in has to be somewhere for a moment. */
static int use_name_server(const char *address, struct err *err)
{
        static const char place[] = "/tmp", path[] = "/tmp/resolv.conf";
        _cleanup_free_ char *text = text_format("nameserver %s\n", address);
        _cleanup_close_ int fd = -1;

        if (!text)
                return err_set_nomem(err);
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
            mount("assay", place, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755") < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot mount a file of name servers");
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0 || file_write_all(fd, text, strlen(text)) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot write a file of name servers");
        if (mount(path, "/etc/resolv.conf", NULL, MS_BIND, NULL) < 0 || umount2(place, MNT_DETACH) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot mount a file over /etc/resolv.conf");
        return 0;
}

/* In the new process. The kernel keeps its promise to kill it with its parent over exec, too. */
static int become(struct child_side *side, void *userdata)
{
        const struct start *start = userdata;
        struct err err = {0};
        int64_t start_ns;

        if ((start->command->in_fd >= 0 && dup2(start->command->in_fd, STDIN_FILENO) < 0) ||
            dup2(start->command->out_fd, STDOUT_FILENO) < 0 || dup2(start->command->err_fd, STDERR_FILENO) < 0) {
                err_set_errno(&err, ERR_ENVIRONMENT, errno, "cannot redirect the output");
                return child_failed(side, &err);
        }
        if (start->command->name_server && use_name_server(start->command->name_server, &err) < 0)
                return child_failed(side, &err);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return CANNOT_RUN;
        if (start_ns > 0)
                (void)clock_sleep_until_ns(CLOCK_MONOTONIC, start_ns, NULL);
        execvp(start->line->words[0], start->line->words);
        dprintf(STDERR_FILENO, "cannot run %s: %s\n", start->line->words[0], strerror(errno));
        return CANNOT_RUN;
}

int command_input(struct command *command, const char *text, struct err *err)
{
        int r;

        command->in_fd = memfd_create("input", MFD_CLOEXEC);
        r = command->in_fd < 0 ? -errno : file_write_all(command->in_fd, text, strlen(text));
        if (r == 0 && lseek(command->in_fd, 0, SEEK_SET) < 0)
                r = -errno;
        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "no memory for the input of a command") : 0;
}

int command_prepare(const char *name, const struct netns *netns, const struct command_line *line, struct command *ret,
                    struct err *err)
{
        struct start start = {.command = ret, .line = line};
        struct child_options options = {.name = name, .netns = netns};
        int fds[3], r;

        ret->name = name;
        ret->out_fd = memfd_create("output", MFD_CLOEXEC);
        ret->err_fd = memfd_create("messages", MFD_CLOEXEC);
        if (ret->out_fd < 0 || ret->err_fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "no memory for the output of %s", name);
        fds[0] = ret->out_fd;
        fds[1] = ret->err_fd;
        fds[2] = ret->in_fd;
        options.keep_fds = fds;
        options.n_keep_fds = ret->in_fd >= 0 ? 3 : 2;
        r = child_start(&options, become, &start, &ret->child, err);
        if (r >= 0)
                r = child_wait_ready(&ret->child, READY_NS, err);
        if (r < 0)
                err_prefix(err, "%s", name);
        return r;
}

void command_complaint(struct command *command, char *buf, size_t size)
{
        _cleanup_text_ struct text visible = {0};
        char text[COMPLAINT_BYTES];
        off_t end = lseek(command->err_fd, 0, SEEK_END);
        ssize_t n = pread(command->err_fd, text, sizeof(text), MAX(end - (off_t)sizeof(text), (off_t)0));

        while (n > 0 && text[n - 1] == '\n')
                n--;
        for (ssize_t i = 0; i < n; i++)
                if (text[i] == '\n')
                        text[i] = ' ';
        if (n > 0)
                text_add_visible(&visible, text, (size_t)n);
        snprintf(buf, size, "%s", visible.data ? visible.data : "");
}

int command_wait(struct command *command, int64_t timeout_ns, int *ret_exit_code, struct err *err)
{
        struct child_status status = {0};
        char complaint[COMPLAINT_BYTES];
        int r;

        r = child_wait(&command->child, timeout_ns, &status);
        if (r < 0)
                return err_set(err, ERR_ENVIRONMENT, -r, "%s did not end", command->name);
        if (status.exit_code >= 0 && status.exit_code != CANNOT_RUN) {
                *ret_exit_code = status.exit_code;
                return 0;
        }
        r = child_check(command->name, &status, err);
        command_complaint(command, complaint, sizeof(complaint));
        if (complaint[0])
                r = err_set(err, ERR_ENVIRONMENT, EIO, "%s failed: %s", command->name, complaint);
        return r;
}

int command_output(struct command *command, size_t limit_bytes, char **ret, size_t *ret_len, struct err *err)
{
        if (lseek(command->out_fd, 0, SEEK_SET) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot read the output of %s", command->name);
        return file_read_fd(command->out_fd, command->name, limit_bytes, ret, ret_len, err);
}

void command_done(struct command *command)
{
        child_done(&command->child);
        close_cleanup(&command->in_fd);
        close_cleanup(&command->out_fd);
        close_cleanup(&command->err_fd);
        *command = (struct command)COMMAND_INIT;
}
