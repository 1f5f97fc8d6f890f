/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"
#include "testbed/holder-internal.h"

#define SOCKET_NAME "testbed.sock"
#define LOCK_NAME   "testbed.lock"
#define FAILED_NAME "testbed.failed"
#define BACKLOG     16
#define PATIENCE_MS 10000 /* for an answer, or for the end of the holder */

const char *holder_state_name(enum holder_state state)
{
        static const char *const names[] = {
                [HOLDER_DOWN] = "down",
                [HOLDER_UP] = "up",
                [HOLDER_DEGRADED] = "degraded",
                [HOLDER_FAILED] = "failed",
        };

        return names[state];
}

void holder_status_done(struct holder_status *status)
{
        free(status->detail);
        json_decref(status->json);
        *status = (struct holder_status){0};
}

/* ---- the folder ---- */

/* The folder is nobody else's, or whoever made it could pose as the holder. */
static int open_folder(struct err *err)
{
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        _cleanup_close_ int fd = -1;
        char path[PATH_MAX];
        struct stat st;

        snprintf(path, sizeof(path), "%s/assay", runtime && runtime[0] == '/' ? runtime : "/run");
        fd = file_make_dir(AT_FDCWD, path, 0700);
        if (fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -fd,
                                     "cannot open the folder %s (set XDG_RUNTIME_DIR to a folder of your own)", path);
        if (fstat(fd, &st) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot examine the folder %s", path);
        if (st.st_uid != geteuid() || st.st_mode & 077)
                return err_set(err, ERR_ENVIRONMENT, EPERM,
                               "the folder %s has to belong to this user and to nobody else (chmod 700)", path);
        return TAKE_FD(fd);
}

static int lock_folder(int dirfd, struct err *err)
{
        _cleanup_close_ int fd = openat(dirfd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0 || flock(fd, LOCK_EX) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot lock the standing testbed");
        return TAKE_FD(fd);
}

/* The path is made short by the folder's descriptor: a socket's may have 107 bytes. */
static void socket_address(int dirfd, struct sockaddr_un *ret)
{
        *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
        snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" SOCKET_NAME, dirfd);
}

/* ---- the client's side ---- */

/* A connection to the holder; -ENOENT without a reason where there is none. What a dead one left is removed where
 * @sweeps, which needs the lock. */
static int connect_holder(int dirfd, bool sweeps, struct err *err)
{
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
        struct sockaddr_un address;

        if (fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open a socket");
        socket_address(dirfd, &address);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
                if (errno == ECONNREFUSED && sweeps)
                        unlinkat(dirfd, SOCKET_NAME, 0);
                if (errno == ENOENT || errno == ECONNREFUSED)
                        return -ENOENT;
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot reach the standing testbed");
        }
        if (!holder_is_trusted(fd))
                return err_set(err, ERR_ENVIRONMENT, EPERM, "the standing testbed belongs to another user");
        return TAKE_FD(fd);
}

/* What a command works with: the folder, locked, and the holder. */
struct visit {
        int dirfd, lock_fd;
        int fd; /* -1: nothing stands */
};

static void visit_done(struct visit *v)
{
        close_cleanup(&v->dirfd);
        close_cleanup(&v->lock_fd);
        close_cleanup(&v->fd);
}

#define _cleanup_visit_ _cleanup_(visit_done)

static int visit_holder(struct visit *v, struct err *err)
{
        int r;

        v->dirfd = open_folder(err);
        if (v->dirfd < 0)
                return v->dirfd;
        v->lock_fd = lock_folder(v->dirfd, err);
        if (v->lock_fd < 0)
                return v->lock_fd;
        testbed_sweep();
        r = connect_holder(v->dirfd, true, err);
        v->fd = r < 0 ? -1 : r;
        return r == -ENOENT ? 0 : MIN(r, 0);
}

static int receive_fd(struct msghdr *msg)
{
        for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
                if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int))) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
                        return fd;
                }
        return -1;
}

/* The holder ended while it was asked. */
static int holder_is_gone(struct err *err)
{
        return err_set(err, ERR_ENVIRONMENT, ECONNRESET, "the process that holds the testbed has just ended");
}

/* The holder is there, and says nothing: who it is, so that it can be looked at. */
static int set_silent(int fd, struct err *err)
{
        struct ucred peer = {0};
        socklen_t len = sizeof(peer);

        (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
        return err_set(err, ERR_ENVIRONMENT, EPIPE,
                       "the process that holds the testbed (%d) did not answer within %d s; if it never does, "
                       "`kill -9 %d` takes the testbed down",
                       (int)peer.pid, PATIENCE_MS / 1000, (int)peer.pid);
}

static int receive_reply(int fd, json_t **ret, int *ret_fd, struct err *err)
{
        _cleanup_free_ char *buf = malloc(HOLDER_REPLY_MAX);
        union {
                char buf[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control;
        struct iovec iov = {.iov_base = buf, .iov_len = HOLDER_REPLY_MAX};
        struct msghdr msg = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.buf,
                             .msg_controllen = sizeof(control.buf)};
        _cleanup_close_ int passed = -1;
        _cleanup_json_ json_t *reply = NULL;
        const char *why;
        ssize_t n;
        int r;

        if (!buf)
                return err_set_nomem(err);
        n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
        if (n > 0)
                passed = receive_fd(&msg);
        if (n == 0 || (n < 0 && errno == ECONNRESET))
                return holder_is_gone(err);
        if (n < 0 || msg.msg_flags & MSG_TRUNC)
                return set_silent(fd, err);
        r = json_parse(span_of(buf, (size_t)n), "answer of the testbed", &reply, err);
        if (r < 0)
                return r;
        why = json_string_value(json_object_get(reply, "error"));
        if (why)
                return err_set(err, ERR_USAGE, ENOENT, "%s", why);
        if (ret_fd)
                *ret_fd = TAKE_FD(passed);
        *ret = TAKE_PTR(reply);
        return 0;
}

static int request(int fd, const char *op, const char *name, json_t **ret, int *ret_fd, struct err *err)
{
        _cleanup_json_ json_t *object =
                name ? json_pack("{s:s, s:s}", "op", op, "name", name) : json_pack("{s:s}", "op", op);
        _cleanup_free_ char *text = object ? json_format_line(object) : NULL;

        if (!text)
                return name ? err_set(err, ERR_USAGE, EINVAL, "the name is not valid UTF-8") : err_set_nomem(err);
        if (strlen(text) > HOLDER_REQUEST_MAX)
                return err_set(err, ERR_USAGE, ENOENT, "the name is too long for a node or link");
        if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
                return errno == EPIPE || errno == ECONNRESET
                               ? holder_is_gone(err)
                               : err_set_errno(err, ERR_ENVIRONMENT, errno,
                                               "cannot ask the process that holds the testbed");
        return receive_reply(fd, ret, ret_fd, err);
}

static int nothing_stands(struct err *err)
{
        return err_set(err, ERR_ENVIRONMENT, ENOENT, "no testbed stands; bring one up with `assay testbed up`");
}

static int ask_for_fd(const char *op, const char *name, struct netns *ret, char *ret_device, struct err *err)
{
        _cleanup_close_ int dirfd = open_folder(err), fd = -1, passed = -1;
        _cleanup_json_ json_t *reply = NULL;
        int r;

        if (dirfd < 0)
                return dirfd;
        fd = connect_holder(dirfd, false, err);
        if (fd == -ENOENT)
                return nothing_stands(err);
        if (fd < 0)
                return fd;
        r = request(fd, op, name, &reply, &passed, err);
        if (r < 0)
                return r;
        if (passed < 0)
                return err_set(err, ERR_ENVIRONMENT, EPROTO, "the answer of the testbed has no namespace in it");
        if (ret_device)
                snprintf(ret_device, 16, "%s", json_string_value(json_object_get(reply, "device")) ?: "");
        ret->fd = TAKE_FD(passed);
        return 0;
}

int holder_netns(const char *name, struct netns *ret, struct err *err)
{
        return ask_for_fd("netns", name, ret, NULL, err);
}

int holder_link(const char *name, struct netns *ret, char ret_device[static 16], struct err *err)
{
        return ask_for_fd("link", name, ret, ret_device, err);
}

/* ---- status ---- */

/* Nothing stands: was that meant? */
static int status_without_holder(int dirfd, struct holder_status *s, struct err *err)
{
        size_t len;
        int r;

        s->state = HOLDER_FAILED;
        r = file_read(dirfd, FAILED_NAME, sizeof(err->text) + 1, &s->detail, &len, NULL);
        if (r < 0) {
                s->state = HOLDER_DOWN;
                s->detail = strdup("");
        }
        s->json = s->detail ? json_pack("{s:i, s:s, s:s}", "assay", 1, "state", holder_state_name(s->state), "detail",
                                        s->detail)
                            : NULL;
        return s->json ? 0 : err_set_nomem(err);
}

static int status_of_holder(int fd, struct holder_status *s, struct err *err)
{
        const char *state, *detail;
        int r;

        r = request(fd, "status", NULL, &s->json, NULL, err);
        if (r >= 0)
                r = json_get_string(s->json, "answer of the testbed", "state", &state, err);
        if (r >= 0)
                r = json_get_string(s->json, "answer of the testbed", "detail", &detail, err);
        if (r < 0)
                return r;
        s->state = streq(state, "up") ? HOLDER_UP : HOLDER_DEGRADED;
        s->detail = strdup(detail);
        return s->detail ? 0 : err_set_nomem(err);
}

int holder_status(struct holder_status *ret, struct err *err)
{
        _cleanup_visit_ struct visit v = {-1, -1, -1};
        _cleanup_holder_status_ struct holder_status s = {0};
        int r;

        r = visit_holder(&v, err);
        if (r >= 0 && v.fd >= 0)
                r = status_of_holder(v.fd, &s, err);
        if (r == -ECONNRESET || (r >= 0 && v.fd < 0))
                r = status_without_holder(v.dirfd, &s, err);
        if (r < 0)
                return r;
        *ret = s;
        s = (struct holder_status){0};
        return 0;
}

/* ---- up ---- */

static int listen_at(int dirfd, struct err *err)
{
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un address;
        mode_t mask;
        int r;

        socket_address(dirfd, &address);
        mask = umask(0177);
        r = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof(address));
        umask(mask);
        if (r < 0 || listen(fd, BACKLOG) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open the testbed's socket");
        return TAKE_FD(fd);
}

/* Keeps the folder and the report open, and nothing else: not the lock, nor what the program had open. */
static void close_others(int a, int b)
{
        int low = MIN(a, b), high = MAX(a, b), null = open("/dev/null", O_RDWR);

        for (int i = 0; i < 3 && null >= 0; i++)
                dup2(null, i);
        close_range(3, (unsigned)low - 1, 0);
        close_range((unsigned)low + 1, (unsigned)high - 1, 0);
        close_range((unsigned)high + 1, ~0u, 0);
}

static void report(int fd, const struct err *err)
{
        (void)!write(fd, err, sizeof(*err));
}

/* The holder's whole life, from the fork to its end. */
static void hold(const struct topology *topology, const char *identity, int dirfd, int report_fd)
{
        _cleanup_testbed_ struct testbed *tb = NULL;
        _cleanup_close_ int listen_fd = -1;
        struct err err = {0};

        log_set_sink(NULL, LOG_ERROR, NULL);
        signal(SIGPIPE, SIG_IGN);
        close_others(dirfd, report_fd);
        (void)!chdir("/");
        if (testbed_up(topology, &tb, &err) >= 0)
                listen_fd = listen_at(dirfd, &err);
        report(report_fd, &err);
        close(report_fd);
        if (listen_fd < 0)
                return;
        holder_serve(tb, identity, listen_fd);
        unlinkat(dirfd, SOCKET_NAME, 0);
}

static int start(const struct topology *topology, const char *identity, int dirfd, struct err *err)
{
        int fds[2];
        ssize_t n;
        pid_t pid;
        struct err outcome;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open a pipe");
        pid = fork();
        if (pid == 0) {
                setsid();
                if (fork() == 0) /* init's child, not this process's: nobody has to wait for it */
                        hold(topology, identity, dirfd, fds[1]);
                _exit(0);
        }
        close(fds[1]);
        n = pid < 0 ? 0 : read(fds[0], &outcome, sizeof(outcome));
        close(fds[0]);
        if (pid > 0)
                waitpid(pid, NULL, 0);
        if (pid < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot start the process that holds the testbed");
        if (n != sizeof(outcome))
                return err_set(err, ERR_ENVIRONMENT, EPIPE, "the process that was to hold the testbed ended early");
        if (outcome.kind == ERR_NONE)
                return 0;
        if (err)
                *err = outcome;
        return outcome.errnum > 0 ? -outcome.errnum : -EINVAL;
}

/* Whether what stands is what is asked for: 1, or an error. */
static int compare(int fd, const char *identity, struct err *err)
{
        _cleanup_holder_status_ struct holder_status s = {0};
        const char *standing;
        int r;

        r = status_of_holder(fd, &s, err);
        if (r >= 0)
                r = json_get_string(s.json, "answer of the testbed", "identity", &standing, err);
        if (r < 0)
                return r;
        if (streq(standing, identity))
                return 1;
        return err_set(err, ERR_ENVIRONMENT, EEXIST,
                       "another testbed stands already; take it down first with `assay testbed down`");
}

int holder_up(const struct topology *topology, const char *identity, struct err *err)
{
        _cleanup_visit_ struct visit v = {-1, -1, -1};
        struct err why = {0};
        int r;

        r = visit_holder(&v, err);
        if (r < 0)
                return r;
        if (v.fd >= 0)
                return compare(v.fd, identity, err);
        unlinkat(v.dirfd, FAILED_NAME, 0);
        r = start(topology, identity, v.dirfd, &why);
        if (r < 0) {
                file_write_atomic(v.dirfd, FAILED_NAME, 0600, span_of_text(why.text), NULL);
                if (err)
                        *err = why;
        }
        return r;
}

/* A descriptor of the process at the other end, which becomes readable when it has ended. */
static int open_peer(int fd)
{
        struct ucred peer;
        socklen_t len = sizeof(peer);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
                return -errno;
        return pidfd_open(peer.pid, 0);
}

int holder_down(struct err *err)
{
        _cleanup_visit_ struct visit v = {-1, -1, -1};
        _cleanup_close_ int process = -1;
        _cleanup_json_ json_t *reply = NULL;
        struct pollfd ended;
        int r;

        r = visit_holder(&v, err);
        if (r < 0)
                return r;
        unlinkat(v.dirfd, FAILED_NAME, 0);
        if (v.fd < 0)
                return 1;
        process = open_peer(v.fd);
        r = request(v.fd, "down", NULL, &reply, NULL, err);
        if (r < 0 && r != -ECONNRESET)
                return r;
        ended = (struct pollfd){.fd = process, .events = POLLIN};
        if (process >= 0 && poll(&ended, 1, PATIENCE_MS) == 0)
                return err_set(err, ERR_ENVIRONMENT, ETIMEDOUT, "the process that holds the testbed does not end");
        unlinkat(v.dirfd, SOCKET_NAME, 0); /* where it was killed in between */
        return 0;
}
