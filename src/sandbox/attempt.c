/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/attempt.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/macro.h"
#include "sandbox/askers.h"
#include "sandbox/policy.h"
#include "sys/loop.h"

#define PIDFD_OF_THREAD O_EXCL /* Linux 6.9; what headers have no name for yet */

struct attempts {
        struct sandbox *sandbox;
        struct loop_io io;
        int fd;
};

void attempts_filter(struct seccomp_filter *f)
{
        seccomp_ask(f, __NR_connect);
        seccomp_ask_pointer(f, __NR_sendto, 4);
        seccomp_ask(f, __NR_sendmsg);
        seccomp_ask(f, __NR_sendmmsg);
}

/* Bytes of the caller's memory. Return: 0 or a negative errno. */
static int read_memory(pid_t pid, uint64_t address, void *ret, size_t len)
{
        struct iovec to = {.iov_base = ret, .iov_len = len};
        struct iovec from = {.iov_base = (void *)(uintptr_t)address, .iov_len = len};
        ssize_t n = process_vm_readv(pid, &to, 1, &from, 1, 0);

        return n < 0 ? -errno : (size_t)n == len ? 0 : -EFAULT;
}

/* The address that the call was given; family AF_UNSPEC where there is none. Of sendmmsg() the first is looked at.
 * Return: 0 or a negative errno. */
static int read_address(const struct seccomp_question *q, struct sockaddr_storage *ret)
{
        uint64_t at = q->args[q->number == __NR_connect ? 1 : 4];
        size_t len = (uint32_t)q->args[q->number == __NR_connect ? 2 : 5];
        struct msghdr message;
        int r;

        *ret = (struct sockaddr_storage){0};
        if (q->number == __NR_sendmsg || q->number == __NR_sendmmsg) {
                if (q->number == __NR_sendmmsg && q->args[2] == 0)
                        return 0;
                r = read_memory(q->pid, q->args[1], &message, sizeof(message));
                if (r < 0)
                        return r;
                at = (uintptr_t)message.msg_name;
                len = message.msg_namelen;
        }
        return at == 0 || len == 0 ? 0 : read_memory(q->pid, at, ret, MIN(len, sizeof(*ret)));
}

static enum transport transport_of(const struct seccomp_question *q)
{
        _cleanup_close_ int pidfd = pidfd_open(q->pid, PIDFD_OF_THREAD), fd = -1;
        int type = q->number == __NR_connect ? SOCK_STREAM : SOCK_DGRAM;
        socklen_t len = sizeof(type);

        if (pidfd < 0)
                pidfd = pidfd_open(q->pid, 0);
        if (pidfd >= 0)
                fd = pidfd_getfd(pidfd, (int)q->args[0], 0);
        if (fd >= 0)
                getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len);
        return type == SOCK_DGRAM ? TRANSPORT_UDP : TRANSPORT_TCP;
}

/* Return: whether it is an address of IP. */
static bool read_target(const struct sockaddr_storage *address, struct target *ret)
{
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

        *ret = (struct target){.address.family = address->ss_family};
        if (address->ss_family == AF_INET) {
                memcpy(ret->address.bytes, &v4->sin_addr, 4);
                ret->address.length_bits = 32;
                ret->port = ntohs(v4->sin_port);
        } else if (address->ss_family == AF_INET6) {
                memcpy(ret->address.bytes, &v6->sin6_addr, 16);
                ret->address.length_bits = 128;
                ret->port = ntohs(v6->sin6_port);
        } else {
                return false;
        }
        target_address_normalise(&ret->address);
        return true;
}

/* Return: the errno for the caller; 0 lets the call go on. */
static int judge(struct attempts *a, const struct seccomp_question *q)
{
        char text[TARGET_TEXT], rule[DECISION_TEXT];
        struct sockaddr_storage address;
        struct decision decision;
        struct target target;
        struct asker who;

        if (a->sandbox->is_proving) /* that this answer can be got around is what is being tried */
                return 0;
        if (read_address(q, &address) < 0)
                return EFAULT;
        if (!read_target(&address, &target) ||
            (target_address_is_own(&target.address) && !a->sandbox->enforcer->shares_network))
                return 0;
        target.transport = transport_of(q);
        if (!seccomp_question_stands(a->fd, q))
                return EINTR;
        target_format(&target, text);
        asker_read(q->pid, &who);
        if (a->sandbox->enforcer->strength == STRENGTH_UNENFORCED) {
                sandbox_watched(a->sandbox, text, &who);
                return 0;
        }
        policy_decide(a->sandbox->policy, &target, &decision);
        decision_rule_format(&decision, rule);
        sandbox_denied(a->sandbox, text, rule, &who);
        return EPERM;
}

static int on_question(struct loop_io *io, uint32_t events)
{
        struct attempts *a = CONTAINER_OF(io, struct attempts, io);
        struct seccomp_question q;

        if (!(events & EPOLLIN)) { /* nobody is under the filter any more */
                loop_io_remove(io);
                return 0;
        }
        if (seccomp_question_receive(a->fd, &q) == 0)
                seccomp_answer(a->fd, &q, judge(a, &q));
        return 0;
}

int attempts_watch(struct sandbox *sandbox, int listener_fd, struct attempts **ret, struct err *err)
{
        struct attempts *a = calloc(1, sizeof(*a));
        int r;

        if (!a) {
                close(listener_fd);
                return err_set_nomem(err);
        }
        *a = (struct attempts){.sandbox = sandbox, .fd = listener_fd};
        r = loop_io_add(sandbox->loop, &a->io, listener_fd, EPOLLIN, on_question);
        if (r < 0) {
                attempts_free(a);
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot wait for system calls of the command");
        }
        *ret = a;
        return 0;
}

void attempts_free(struct attempts *a)
{
        if (!a)
                return;
        loop_io_remove(&a->io);
        close(a->fd);
        free(a);
}
