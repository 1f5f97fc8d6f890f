/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/witness.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "bpf/witness-bpf.h"
#include "sys/bpf.h"

/* Of Linux 6.11; what headers have no name for yet. */
#ifndef NS_GET_TGID_FROM_PIDNS
#define NS_GET_TGID_FROM_PIDNS _IOR(0xb7, 0x7, int)
#endif

#define FIRST_PID_NS_INODE 0xeffffffcu /* of a PID namespace that has no other above it, in every kernel */

static const char *const hooks[] = {"witness_connect4", "witness_connect6", "witness_sendmsg4", "witness_sendmsg6"};

struct witness {
        struct bpf_image *image;
        struct ring_buffer *ring;
        int cgroup_fd, pid_ns_fd;
        int links[ARRAY_SIZE(hooks) + 1];
        bool is_first; /* this process is in the host's first PID namespace */
        size_t left;   /* reports that may still be read at once */
        void (*fn)(const struct witness_report *report, pid_t pid, void *userdata);
        void *userdata;
};

/* ---- the control group ---- */

static int no_group(struct err *err, const char *why)
{
        return err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP,
                       "there is no control group of version 2 to look on at processes with: %s", why);
}

/* Where the tree of version 2 is mounted, and which part of it that is. Return: whether there is one. */
static bool find_tree(char root[static PATH_MAX], char where[static PATH_MAX])
{
        _cleanup_free_ char *line = NULL;
        FILE *f = fopen("/proc/self/mountinfo", "re");
        bool found = false;
        size_t size = 0;

        while (f && !found && getline(&line, &size, f) > 0)
                found = strstr(line, " - cgroup2 ") &&
                        sscanf(line, "%*s %*s %*s %4095s %4095s", root, where) == 2; /* PATH_MAX */
        if (f)
                fclose(f);
        return found;
}

/* This process's own, as a path from the root of its control group namespace. Return: whether there is one. */
static bool find_own(char path[static PATH_MAX])
{
        _cleanup_free_ char *line = NULL;
        FILE *f = fopen("/proc/self/cgroup", "re");
        bool found = false;
        size_t size = 0;

        while (f && !found && getline(&line, &size, f) > 0)
                found = strncmp(line, "0::/", 4) == 0;
        if (f)
                fclose(f);
        if (found) {
                line[strcspn(line, "\n")] = '\0';
                snprintf(path, PATH_MAX, "%s", line + 3);
        }
        return found;
}

static int open_own_group(struct err *err)
{
        char root[PATH_MAX], where[PATH_MAX], own[PATH_MAX];
        _cleanup_free_ char *path = NULL;
        size_t len;
        int fd;

        if (!find_tree(root, where))
                return no_group(err, "none is mounted");
        if (!find_own(own))
                return no_group(err, "this process is in none");
        len = streq(root, "/") ? 0 : strlen(root);
        if (strncmp(own, root, len) != 0 || (own[len] != '/' && own[len] != '\0'))
                return no_group(err, "this process's own is not in the part that is mounted");
        if (asprintf(&path, "%s%s", where, own + len) < 0)
                return err_set_nomem(err);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? err_set_errno(err, ERR_UNSUPPORTED, errno, "cannot open the control group %s", path) : fd;
}

/* ---- life ---- */

static int cookie_here(__u64 *ret, struct err *err)
{
        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        socklen_t len = sizeof(*ret);

        if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, ret, &len) < 0)
                return err_set_errno(err, ERR_UNSUPPORTED, errno,
                                     "the kernel does not tell a network namespace's cookie (since Linux 5.14)");
        return 0;
}

static int on_report(void *userdata, void *data, size_t len)
{
        const struct witness_report *report = data;
        struct witness *witness = userdata;
        int pid = 0;

        if (len < sizeof(*report) || !witness->fn)
                return 0;
        if (witness->is_first)
                pid = (int)report->question.pid;
        else if (witness->pid_ns_fd >= 0 && report->inner_pid > 0)
                pid = ioctl(witness->pid_ns_fd, NS_GET_TGID_FROM_PIDNS, report->inner_pid);
        witness->fn(report, MAX(pid, 0), witness->userdata);
        return --witness->left > 0 ? 0 : -EAGAIN;
}

static int load(struct witness *witness, struct err *err)
{
        struct witness_scope scope;
        int r, fd;

        r = cookie_here(&scope.netns_cookie, err);
        if (r == 0)
                r = bpf_image_open(span_of(witness_bpf, sizeof(witness_bpf)), "witness", &witness->image, err);
        if (r == 0)
                r = bpf_image_set_constants(witness->image, &scope, sizeof(scope), err);
        if (r == 0)
                r = bpf_image_load(witness->image, err);
        if (r < 0)
                return r;
        fd = bpf_image_map(witness->image, "reports", err);
        if (fd < 0)
                return fd;
        witness->ring = ring_buffer__new(fd, on_report, witness, NULL);
        return witness->ring ? 0
                             : err_set_errno(err, ERR_UNSUPPORTED, errno, "cannot read a ring buffer of the kernel");
}

static bool is_in_first_pid_ns(void)
{
        struct stat st;

        return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST_PID_NS_INODE;
}

int witness_open(struct witness **ret, struct err *err)
{
        _cleanup_witness_ struct witness *witness = calloc(1, sizeof(*witness));
        int r = 0;

        if (!witness)
                return err_set_nomem(err);
        witness->pid_ns_fd = -1;
        for (size_t i = 0; i < ARRAY_SIZE(witness->links); i++)
                witness->links[i] = -1;
        witness->is_first = is_in_first_pid_ns();
        witness->cgroup_fd = open_own_group(err);
        if (witness->cgroup_fd < 0)
                return witness->cgroup_fd;
        r = load(witness, err);
        for (size_t i = 0; i < ARRAY_SIZE(hooks) && r == 0; i++) {
                witness->links[i] = bpf_image_hold_group(witness->image, hooks[i], witness->cgroup_fd, err);
                r = MIN(witness->links[i], 0);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(witness);
        return 0;
}

void witness_free(struct witness *witness)
{
        if (!witness)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(witness->links); i++)
                close_cleanup(&witness->links[i]);
        close_cleanup(&witness->cgroup_fd);
        close_cleanup(&witness->pid_ns_fd);
        ring_buffer__free(witness->ring);
        bpf_image_free(witness->image);
        free(witness);
}

int witness_place(struct witness *witness, pid_t pid, struct err *err)
{
        struct witness_place place;
        uint32_t first = 0;
        struct stat st;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
        witness->pid_ns_fd = open(path, O_RDONLY | O_CLOEXEC);
        if (witness->pid_ns_fd < 0 || fstat(witness->pid_ns_fd, &st) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open %s", path);
        place = (struct witness_place){.pid_ns_dev = st.st_dev, .pid_ns_inode = st.st_ino};
        return bpf_image_put(witness->image, "place", &first, &place, err);
}

int witness_fd(const struct witness *witness)
{
        return ring_buffer__epoll_fd(witness->ring);
}

/* ---- what is seen ---- */

void witness_read(struct witness *witness, void (*fn)(const struct witness_report *report, pid_t pid, void *userdata),
                  void *userdata)
{
        witness->fn = fn;
        witness->userdata = userdata;
        witness->left = WITNESS_RING_BYTES / sizeof(struct witness_report);
        ring_buffer__consume(witness->ring);
}

int witness_know(struct witness *witness, const struct witness_question *question)
{
        const uint64_t none = 0;

        return bpf_map_update_elem(bpf_image_map(witness->image, "known", NULL), question, &none, BPF_NOEXIST) < 0
                       ? -errno
                       : 0;
}

void witness_forget(struct witness *witness,
                    void (*fn)(const struct witness_question *question, uint64_t times, void *userdata), void *userdata)
{
        int fd = bpf_image_map(witness->image, "known", NULL);
        struct witness_question question;
        uint64_t times;

        while (bpf_map_get_next_key(fd, NULL, &question) == 0 &&
               bpf_map_lookup_and_delete_elem(fd, &question, &times) == 0)
                fn(&question, times, userdata);
}

int witness_count_flows(struct witness *witness, struct err *err)
{
        int *link = &witness->links[ARRAY_SIZE(hooks)];

        *link = bpf_image_hold_group(witness->image, "witness_flow", witness->cgroup_fd, err);
        return MIN(*link, 0);
}

void witness_stop_flows(struct witness *witness)
{
        int *link = &witness->links[ARRAY_SIZE(hooks)];

        close_cleanup(link);
        *link = -1;
}

void witness_flows(struct witness *witness,
                   void (*fn)(const struct witness_target *to, const struct witness_flows *flows, void *userdata),
                   void *userdata)
{
        int fd = bpf_image_map(witness->image, "flows", NULL);
        struct witness_target before, to;
        struct witness_flows flows;
        bool is_first = true;

        while (bpf_map_get_next_key(fd, is_first ? NULL : &before, &to) == 0) {
                if (bpf_map_lookup_elem(fd, &to, &flows) == 0)
                        fn(&to, &flows, userdata);
                before = to;
                is_first = false;
        }
}

void witness_lost(const struct witness *witness, uint64_t *ret_questions, uint64_t *ret_flows)
{
        uint64_t lost[2] = {0};

        bpf_image_sum_counters(witness->image, "lost", 0, 2, 1, lost, NULL);
        *ret_questions = lost[0];
        *ret_flows = lost[1];
}
