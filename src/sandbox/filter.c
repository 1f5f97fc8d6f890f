/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/filter.h"

#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/macro.h"
#include "sandbox/attempt.h"

/* Calls that the headers of the oldest supported system do not name. From 424 on, numbers are the same everywhere. */
#define NR_OPEN_TREE_ATTR 467
#define NR_FIRST_UNKNOWN  470 /* what these are for is not known: not there, as on an older kernel */

/* Every way into another namespace. A new time namespace is made by unshare() only: its bit is part of clone()'s
 * signal. */
#define NEW_NAMESPACES                                                                                                 \
        (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define NEW_TIME 0x80u

static const int any_of_ip[] = {SOCK_STREAM, SOCK_DGRAM, -1};
static const int ip_protocols[] = {0, IPPROTO_TCP, IPPROTO_UDP, -1};
static const int netlink_types[] = {SOCK_RAW, SOCK_DGRAM, -1};
static const int netlink_route[] = {NETLINK_ROUTE, -1};
static const int connected_types[] = {SOCK_STREAM, SOCK_SEQPACKET, -1};
static const int no_protocol[] = {0, -1};

/* What socket() may make. Not among them: packet, vsock (which is in no namespace), netlink but for routes, raw,
 * SCTP, MPTCP. Unix sockets are not either: one that is connected by path reaches whatever listens there, in any
 * network namespace, and paths can be neither seen by a filter nor listed in advance. */
static const struct seccomp_socket sockets[] = {
        {AF_INET, any_of_ip, ip_protocols},
        {AF_INET6, any_of_ip, ip_protocols},
        {AF_NETLINK, netlink_types, netlink_route},
};

/* Two ends that are connected to each other for good; a pair of datagram sockets could be connected anew, by path. */
static const struct seccomp_socket pairs[] = {
        {AF_UNIX, connected_types, no_protocol},
};

/* Refused with EPERM, as to a process without rights. */
static const int never[] = {
        /* ways around this filter, and large surfaces of the kernel that no command needs */
        __NR_io_uring_setup,
        __NR_io_uring_enter,
        __NR_io_uring_register,
        __NR_bpf,
        __NR_userfaultfd,
        __NR_perf_event_open,
        /* keys are kept by user, not by namespace; asking for one starts a program outside */
        __NR_keyctl,
        __NR_request_key,
        __NR_add_key,
        /* a file without the folders that lead to it */
        __NR_open_by_handle_at,
};

/* Refused but to a command that may make namespaces of its own. */
static const int not_nested[] = {
        __NR_setns,      __NR_mount,         __NR_umount2,      __NR_pivot_root, __NR_chroot,
        __NR_move_mount, __NR_open_tree,     __NR_fsopen,       __NR_fsconfig,   __NR_fsmount,
        __NR_fspick,     __NR_mount_setattr, NR_OPEN_TREE_ATTR,
};

static void refuse_all(struct seccomp_filter *f, const int *numbers, size_t n)
{
        for (size_t i = 0; i < n; i++)
                seccomp_refuse(f, numbers[i], EPERM);
}

void filter_build(struct seccomp_filter *f, bool nested, bool shares_network, bool is_asked)
{
        seccomp_filter_begin(f);
        if (!shares_network) {
                seccomp_allow_sockets(f, __NR_socket, sockets, ARRAY_SIZE(sockets));
                seccomp_allow_sockets(f, __NR_socketpair, pairs, ARRAY_SIZE(pairs));
        }
        if (is_asked)
                attempts_filter(f);
        /* input typed into the terminal that the command was given would be obeyed by the shell outside */
        seccomp_refuse_value(f, __NR_ioctl, 1, UINT32_MAX, TIOCSTI, EPERM);
        seccomp_refuse_value(f, __NR_ioctl, 1, UINT32_MAX, TIOCLINUX, EPERM);
        if (!nested) {
                seccomp_refuse_bits(f, __NR_clone, 0, NEW_NAMESPACES, EPERM);
                seccomp_refuse_bits(f, __NR_unshare, 0, NEW_NAMESPACES | NEW_TIME, EPERM);
                refuse_all(f, not_nested, ARRAY_SIZE(not_nested));
        }
        /* its flags are in memory, where a filter cannot look: libraries then take clone() */
        seccomp_refuse(f, __NR_clone3, ENOSYS);
        refuse_all(f, never, ARRAY_SIZE(never));
        seccomp_refuse_from(f, NR_FIRST_UNKNOWN, ENOSYS);
        seccomp_filter_end(f);
}
