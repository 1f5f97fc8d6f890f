/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/escape-native.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/listener.h"
#include "sandbox/way.h"

#define ARRIVE_MS 200 /* what has not arrived by then does not */

struct job {
        struct listener listener;
        struct escape_counts *counts; /* shared */
        struct err *failure;          /* shared */
};

static void note(char names[static ESCAPE_NAMES_BYTES], const char *name, const char *detail)
{
        size_t len = strlen(names);

        snprintf(names + len, ESCAPE_NAMES_BYTES - len, "%s%s (%s)", len > 0 ? ", " : "", name, detail);
}

/* What a kernel says of what it does not have, whoever asks. */
static bool is_absent(int errnum)
{
        return errnum == EAFNOSUPPORT || errnum == EPROTONOSUPPORT || errnum == ESOCKTNOSUPPORT || errnum == ENOSYS ||
               errnum == ENOPROTOOPT || errnum == EOPNOTSUPP || errnum == ENOENT;
}

/* Each in a process of its own, which it may change for good. Return: as try() does. */
static int try_apart(const struct way *way, const struct ip_prefix *to, uint16_t port)
{
        pid_t pid = fork();
        int status;

        if (pid < 0)
                return -errno;
        if (pid == 0)
                _exit(-way->try(to, port) & 0xff);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

static bool has_arrived(struct listener *l)
{
        struct pollfd fds[] = {{.fd = l->tcp_fd, .events = POLLIN}, {.fd = l->udp_fd, .events = POLLIN}};

        return poll(fds, 2, ARRIVE_MS) > 0 && listener_drain(l) > 0;
}

static void try_one(struct job *job, const struct way *way, const struct ip_prefix *to)
{
        struct escape_counts *c = job->counts;
        int r = try_apart(way, to, job->listener.port);
        bool is_out = to ? has_arrived(&job->listener) : r == 0;
        const char *detail = r < 0 ? strerrorname_np(-r) : "did not arrive";
        char address[IP_TEXT_MAX] = "", name[128];

        if (to)
                ip_prefix_format(to, address);
        snprintf(name, sizeof(name), "%s%s%s", way->name, to ? " to " : "", address);
        c->attempts++;
        if (is_out) {
                c->arrived++;
        } else if (r < 0 && is_absent(-r)) {
                c->absent++;
                note(c->absent_names, name, detail ? detail : "?");
        } else {
                c->unproven++;
                note(c->unproven_names, name, detail ? detail : "?");
        }
}

static void try_all(struct job *job)
{
        const struct way *way;

        for (size_t i = 0; (way = way_at(i)); i++) {
                if (way->families == 0) {
                        try_one(job, way, NULL);
                        continue;
                }
                for (size_t k = 0; k < job->listener.n; k++)
                        if (way->families & (job->listener.at[k].family == AF_INET ? WAY_V4 : WAY_V6))
                                try_one(job, way, &job->listener.at[k]);
        }
}

/* Packets to a group are for those who asked for them; the ways out send to this one. */
static void join_group(const struct listener *l)
{
        const struct ipv6_mreq group = {.ipv6mr_multiaddr.s6_addr = {0xff, 0x0e, [15] = 1}};

        (void)setsockopt(l->udp_fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &group, sizeof(group));
}

/* As process 1 of its own numbers, with mounts that nobody else sees. */
static int be_init(struct job *job)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return err_set_errno(job->failure, ERR_ENVIRONMENT, errno, "cannot make mounts private");
        if (listener_open(&job->listener, job->failure) < 0)
                return -1;
        join_group(&job->listener);
        try_all(job);
        listener_done(&job->listener);
        return 0;
}

int escape_native(struct escape_counts *ret, struct err *err)
{
        struct shared {
                struct escape_counts counts;
                struct err failure;
        } *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct job job = {.listener = LISTENER_INIT};
        int status = -1;
        pid_t pid;

        if (shared == MAP_FAILED)
                return err_set_nomem(err);
        job.counts = &shared->counts;
        job.failure = &shared->failure;
        if (unshare(CLONE_NEWNS | CLONE_NEWPID) < 0)
                return err_set_errno(err, ERR_UNSUPPORTED, errno, "mount and PID namespaces cannot be made");
        pid = fork();
        if (pid == 0)
                _exit(be_init(&job) < 0);
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot run the ways out");
        *ret = shared->counts;
        *err = shared->failure;
        munmap(shared, sizeof(*shared));
        if (err->kind != ERR_NONE)
                return -EIO;
        return status == 0 ? 0 : err_set(err, ERR_ENVIRONMENT, EIO, "the ways out were not all tried");
}
