/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/macro.h"
#include "sandbox/way.h"

/* Calls that have to be refused. What one of them gives is given back at once. */

static int opened(int fd)
{
        if (fd < 0)
                return -errno;
        close(fd);
        return 0;
}

static int called(long r)
{
        return r < 0 ? -errno : 0;
}

/* ---- sockets ---- */

static int make(int family, int type, int protocol)
{
        return opened(socket(family, type | SOCK_CLOEXEC, protocol));
}

#define SOCKET_WAY(function, family, type, protocol)                                                                   \
        static int function(const struct ip_prefix *to, uint16_t port)                                                 \
        {                                                                                                              \
                return make(family, type, protocol);                                                                   \
        }

#define PROTOCOL_MPTCP 262 /* newer than the oldest headers */

SOCKET_WAY(try_raw4, AF_INET, SOCK_RAW, IPPROTO_RAW)
SOCKET_WAY(try_raw6, AF_INET6, SOCK_RAW, IPPROTO_RAW)
SOCKET_WAY(try_icmp4, AF_INET, SOCK_DGRAM, IPPROTO_ICMP)
SOCKET_WAY(try_icmp6, AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6)
SOCKET_WAY(try_old_packet, AF_INET, SOCK_PACKET, 0x0300)
SOCKET_WAY(try_packet, AF_PACKET, SOCK_RAW, 0x0300)
SOCKET_WAY(try_vsock, AF_VSOCK, SOCK_STREAM, 0)
SOCKET_WAY(try_unix, AF_UNIX, SOCK_STREAM, 0)
SOCKET_WAY(try_unix_datagram, AF_UNIX, SOCK_DGRAM, 0)
SOCKET_WAY(try_xdp, AF_XDP, SOCK_RAW, 0)
SOCKET_WAY(try_alg, AF_ALG, SOCK_SEQPACKET, 0)
SOCKET_WAY(try_mptcp, AF_INET, SOCK_STREAM, PROTOCOL_MPTCP)
SOCKET_WAY(try_sctp, AF_INET, SOCK_STREAM, IPPROTO_SCTP)
SOCKET_WAY(try_udplite, AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE)
SOCKET_WAY(try_netfilter, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER)
SOCKET_WAY(try_generic, AF_NETLINK, SOCK_RAW, NETLINK_GENERIC)
SOCKET_WAY(try_diag, AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG)

static int try_unix_pair(const struct ip_prefix *to, uint16_t port)
{
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
                return -errno;
        close(pair[0]);
        close(pair[1]);
        return 0;
}

/* ---- the network namespace itself ---- */

/* Setting the flags of lo to what they are needs the same right as setting others. */
static int try_link(const struct ip_prefix *to, uint16_t port)
{
        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq request = {.ifr_name = "lo"};

        if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
                return -errno;
        return called(ioctl(fd, SIOCSIFFLAGS, &request));
}

static int try_forwarding(const struct ip_prefix *to, uint16_t port)
{
        return opened(open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC));
}

static int try_setns(const struct ip_prefix *to, uint16_t port)
{
        _cleanup_close_ int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

        return fd < 0 ? -errno : called(setns(fd, CLONE_NEWNET));
}

/* ---- namespaces and mounts of its own ---- */

/* In a process of its own, since there is no way back. Return: what @fn returned there; -EINTR where it was killed. */
static int apart(int (*fn)(void))
{
        pid_t pid = fork();
        int status;

        if (pid < 0)
                return -errno;
        if (pid == 0)
                _exit(-fn());
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

static int unshare_user(void)
{
        return called(unshare(CLONE_NEWUSER));
}

static int unshare_network(void)
{
        return called(unshare(CLONE_NEWUSER | CLONE_NEWNET));
}

static int clone_user(void)
{
        long pid = syscall(__NR_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);

        if (pid == 0)
                _exit(0);
        return called(pid);
}

static int try_unshare_user(const struct ip_prefix *to, uint16_t port)
{
        return apart(unshare_user);
}

static int try_unshare_network(const struct ip_prefix *to, uint16_t port)
{
        return apart(unshare_network);
}

static int try_clone_user(const struct ip_prefix *to, uint16_t port)
{
        return apart(clone_user);
}

/* Without arguments it fails in any case; where it is let through, with another errno than the filter's. */
static int try_clone3(const struct ip_prefix *to, uint16_t port)
{
        return syscall(__NR_clone3, NULL, 0) < 0 && errno == ENOSYS ? -ENOSYS : 0;
}

static int try_mount(const struct ip_prefix *to, uint16_t port)
{
        return called(mount("none", "/tmp", "tmpfs", 0, NULL));
}

static int try_open_tree(const struct ip_prefix *to, uint16_t port)
{
        return opened(open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

/* ---- around the filter ---- */

/* Refused by the filter, and not only for what is missing in the arguments. */
static int refused_by_filter(long number)
{
        return syscall(number, NULL, NULL, NULL, NULL, NULL, NULL) < 0 && errno == EPERM ? -EPERM : 0;
}

#define CALL_WAY(function, number)                                                                                     \
        static int function(const struct ip_prefix *to, uint16_t port)                                                 \
        {                                                                                                              \
                return refused_by_filter(number);                                                                      \
        }

CALL_WAY(try_io_uring, __NR_io_uring_setup)
CALL_WAY(try_bpf, __NR_bpf)
CALL_WAY(try_userfaultfd, __NR_userfaultfd)
CALL_WAY(try_keyctl, __NR_keyctl)
CALL_WAY(try_request_key, __NR_request_key)
CALL_WAY(try_perf, __NR_perf_event_open)

#ifdef __x86_64__
static int call_i386(void)
{
        long r;

        __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L /* getpid() */) : "memory", "r8", "r9", "r10", "r11");
        return 0;
}

static int try_foreign_abi(const struct ip_prefix *to, uint16_t port)
{
        return apart(call_i386);
}
#endif

/* Typed into the terminal that it has, if it has one; without one the descriptor is refused later than by the filter.
 */
static int try_terminal_input(const struct ip_prefix *to, uint16_t port)
{
        return ioctl(STDIN_FILENO, TIOCSTI, "x") < 0 && errno == EPERM ? -EPERM : 0;
}

/* ---- rights, and other processes ---- */

static int try_capability(const struct ip_prefix *to, uint16_t port)
{
        struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {{.effective = 1u << CAP_NET_ADMIN, .permitted = 1u << CAP_NET_ADMIN}};

        return called(syscall(__NR_capset, &head, data));
}

static int try_trace_init(const struct ip_prefix *to, uint16_t port)
{
        return called(ptrace(PTRACE_SEIZE, 1, NULL, NULL));
}

static int try_init_descriptors(const struct ip_prefix *to, uint16_t port)
{
        _cleanup_closedir_ DIR *folder = opendir("/proc/1/fd");

        return folder ? 0 : -errno;
}

static int try_take_descriptor(const struct ip_prefix *to, uint16_t port)
{
        _cleanup_close_ int pidfd = pidfd_open(1, 0);

        return pidfd < 0 ? -errno : opened(pidfd_getfd(pidfd, 3, 0));
}

/* A group that counts and limits processes, such as the one that this process is in. */
static int try_control_group(const struct ip_prefix *to, uint16_t port)
{
        static const char *const paths[] = {"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs",
                                            "/sys/fs/cgroup/pids/cgroup.procs"};

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
                if (access(paths[i], F_OK) == 0)
                        return 0;
        return -errno;
}

const struct way kernel_ways[] = {
        {"raw4", .try = try_raw4},
        {"raw6", .try = try_raw6},
        {"icmp4", .try = try_icmp4},
        {"icmp6", .try = try_icmp6},
        {"packet", .try = try_packet},
        {"packet-of-inet", .try = try_old_packet},
        {"vsock", .try = try_vsock},
        {"unix", .try = try_unix},
        {"unix-datagram", .try = try_unix_datagram},
        {"unix-datagram-pair", .try = try_unix_pair},
        {"xdp", .try = try_xdp},
        {"alg", .try = try_alg},
        {"mptcp", .try = try_mptcp},
        {"sctp", .try = try_sctp},
        {"udplite", .try = try_udplite},
        {"netlink-netfilter", .try = try_netfilter},
        {"netlink-generic", .try = try_generic},
        {"netlink-diag", .try = try_diag},
        {"change-link", .try = try_link},
        {"change-forwarding", .try = try_forwarding},
        {"setns", .nested_allows = true, .try = try_setns},
        {"unshare-user", .nested_allows = true, .try = try_unshare_user},
        {"unshare-network", .nested_allows = true, .try = try_unshare_network},
        {"clone-user", .nested_allows = true, .try = try_clone_user},
        {"clone3", .try = try_clone3},
        {"mount", .nested_allows = true, .try = try_mount},
        {"open-tree", .nested_allows = true, .try = try_open_tree},
        {"io-uring", .try = try_io_uring},
        {"bpf", .try = try_bpf},
        {"userfaultfd", .try = try_userfaultfd},
        {"keyctl", .try = try_keyctl},
        {"request-key", .try = try_request_key},
        {"perf", .try = try_perf},
#ifdef __x86_64__
        {"foreign-abi", .try = try_foreign_abi},
#endif
        {"terminal-input", .try = try_terminal_input},
        {"capability", .try = try_capability},
        {"trace-init", .try = try_trace_init},
        {"init-descriptors", .try = try_init_descriptors},
        {"take-descriptor", .try = try_take_descriptor},
        {"control-group", .try = try_control_group},
};

const size_t n_kernel_ways = ARRAY_SIZE(kernel_ways);
