/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/runner-internal.h"
#include "sys/userns.h"

#define STACK_BYTES ((size_t)1 << 20)

#define INIT_NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

struct birth {
        struct run *run;
        pid_t supervisor;
        char *setup_stack, *init_stack; /* their upper ends */
        int result;
        struct err err;
};

/* By the old interface: what the library of the new one costs to start is more than all the rest here. */
static int set_up_loopback(struct err *err)
{
        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK};

        if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot bring up the loopback inside the sandbox");
        return 0;
}

static int set_up_network(struct birth *b)
{
        const struct enforcer_ops *enforcer = b->run->sandbox.enforcer;
        int r;

        r = netns_open_self(&b->run->sandbox.netns, &b->err);
        if (r == 0)
                r = set_up_loopback(&b->err);
        if (r == 0 && enforcer->inside)
                r = enforcer->inside(&b->run->sandbox, &b->err);
        return r;
}

static int be_init(void *userdata)
{
        const struct birth *b = userdata;

        return init_main(b->run);
}

/* Its parent is the supervisor, whose end is therefore its own. */
static int start_init(struct birth *b)
{
        int pidfd = -1;
        pid_t pid;

        pid = clone(be_init, b->init_stack, INIT_NAMESPACES | CLONE_PARENT | CLONE_PIDFD, b, &pidfd);
        if (pid < 0)
                return err_set_errno(&b->err, errno == EPERM ? ERR_UNSUPPORTED : ERR_ENVIRONMENT, errno,
                                     "cannot start a process in namespaces of its own");
        b->run->sandbox.init = pid;
        b->run->init_pidfd = pidfd;
        return 0;
}

/* In the setup process: the memory and the descriptors are the supervisor's, who waits; the namespaces are new. */
static int set_up(void *userdata)
{
        struct birth *b = userdata;
        const struct identity *id = &b->run->identity;
        int r = 0;

        /* Else it would go on in the memory of a thread that is gone, and might wait for it for ever, N in its hands.
         */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != b->supervisor)
                return 0;
        if (id->is_rootless)
                r = userns_map_self(0, 0, id->uid, id->gid, &b->err);
        if (r == 0 && !b->run->sandbox.enforcer->shares_network)
                r = set_up_network(b);
        if (r == 0)
                r = start_init(b);
        b->result = r;
        return 0;
}

static int refused(const struct run *run, int errnum, struct err *err)
{
        if (run->identity.is_rootless)
                return userns_not_allowed(err, errnum);
        return err_set_errno(err, errnum == EPERM ? ERR_UNSUPPORTED : ERR_ENVIRONMENT, errnum,
                             "cannot create a network namespace, which needs CAP_SYS_ADMIN");
}

static int run_setup(struct birth *b, struct err *err)
{
        int flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, status;
        pid_t pid;

        if (b->run->identity.is_rootless)
                flags |= CLONE_NEWUSER;
        if (!b->run->sandbox.enforcer->shares_network)
                flags |= CLONE_NEWNET;
        b->result = -EIO;
        err_set(&b->err, ERR_ENVIRONMENT, EIO, "the process that sets up the sandbox was killed");
        pid = clone(set_up, b->setup_stack, flags, b);
        if (pid < 0)
                return refused(b->run, errno, err);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (b->result < 0)
                *err = b->err;
        return b->result;
}

int birth_give(struct run *run, struct err *err)
{
        struct birth b = {.run = run, .supervisor = getpid()};
        sigset_t all, old;
        char *stacks;
        int r;

        stacks =
                mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks == MAP_FAILED)
                return err_set_nomem(err);
        b.setup_stack = stacks + STACK_BYTES;
        b.init_stack = stacks + 2 * STACK_BYTES;
        /* A handler must not run in a process that shares this memory. Init keeps the signals blocked. */
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, &old);
        r = run_setup(&b, err);
        sigprocmask(SIG_SETMASK, &old, NULL);
        munmap(stacks, 2 * STACK_BYTES);
        return r;
}
