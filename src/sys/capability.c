/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/capability.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "sys/child.h"
#include "sys/classifier.h"
#include "sys/link.h"
#include "sys/netlink.h"
#include "sys/netns.h"
#include "sys/qdisc.h"
#include "sys/sched.h"
#include "sys/slice.h"
#include "sys/userns.h"

#define LOCKED_BYTES     (32 << 20) /* about what a probe with its samples locks */
#define SEND_BUFFER      (8 << 20)
#define CHILD_TIMEOUT_NS (10 * NSEC_PER_SEC)

/* A namespace with a pair of links of two transmit queues, to try things on. */
struct bench {
        struct netns ns;
        struct netlink *nl;
        int index;
};

static void bench_done(struct bench *bench)
{
        netlink_free(bench->nl);
        netns_done(&bench->ns);
}

#define _cleanup_bench_ _cleanup_(bench_done)
#define BENCH_INIT                                                                                                     \
        {                                                                                                              \
                .ns = NETNS_INIT                                                                                       \
        }

static int bench_make(struct bench *bench, struct err *err)
{
        struct link_end end = {.name = "a", .n_tx_queues = 2, .n_rx_queues = 2};
        struct link_end peer = {.name = "b", .n_tx_queues = 2, .n_rx_queues = 2};
        int r;

        r = netns_new(&bench->ns, err);
        if (r == 0)
                r = netlink_open(&bench->ns, &bench->nl, err);
        if (r == 0)
                r = link_add_veth(bench->nl, &end, &peer, NULL, err);
        if (r == 0)
                r = link_find(bench->nl, end.name, &bench->index, err);
        return r;
}

static int try_netns(struct err *err)
{
        _cleanup_netns_ struct netns ns = NETNS_INIT;

        return netns_new(&ns, err);
}

static int try_veth(struct err *err)
{
        _cleanup_bench_ struct bench bench = BENCH_INIT;

        return bench_make(&bench, err);
}

static int try_htb(struct err *err)
{
        struct qdisc_htb htb = {.parent = QDISC_ROOT, .handle = QDISC_HANDLE(1, 0)};
        struct qdisc_htb_class class = {.parent = htb.handle, .classid = QDISC_HANDLE(1, 1), .rate_bps = 1000000};
        _cleanup_bench_ struct bench bench = BENCH_INIT;
        int r;

        r = bench_make(&bench, err);
        if (r == 0)
                r = qdisc_add_htb(bench.nl, bench.index, &htb, err);
        if (r == 0)
                r = qdisc_add_htb_class(bench.nl, bench.index, &class, err);
        if (r == 0)
                r = qdisc_add_fifo(bench.nl, bench.index, class.classid, QDISC_HANDLE(2, 0), QDISC_PACKETS, 10, err);
        return r;
}

static int try_mq(struct err *err)
{
        _cleanup_bench_ struct bench bench = BENCH_INIT;
        int r;

        r = bench_make(&bench, err);
        return r < 0 ? r : qdisc_add_mq(bench.nl, bench.index, QDISC_HANDLE(1, 0), err);
}

static int try_clsact(struct err *err)
{
        _cleanup_bench_ struct bench bench = BENCH_INIT;
        int r;

        r = bench_make(&bench, err);
        return r < 0 ? r : qdisc_add_clsact(bench.nl, bench.index, err);
}

static int try_bpf(struct err *err)
{
        static const struct slice_config empty = {0};
        _cleanup_slice_filter_ struct slice_filter *filter = NULL;
        _cleanup_bench_ struct bench bench = BENCH_INIT;
        int r;

        r = bench_make(&bench, err);
        return r < 0 ? r : slice_filter_attach(bench.nl, bench.index, &empty, &filter, err);
}

static int try_vlan(struct err *err)
{
        _cleanup_bench_ struct bench bench = BENCH_INIT;
        int r;

        r = bench_make(&bench, err);
        return r < 0 ? r : link_add_vlan(bench.nl, bench.index, "a.1", 1, err);
}

static int try_nft(struct err *err)
{
        struct classifier_rule rule = {.network = {.family = AF_INET}, .classid = QDISC_HANDLE(1, 1)};
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        int r;

        r = netns_new(&ns, err);
        return r < 0 ? r : classifier_add(&ns, &rule, 1, err);
}

static int enter_userns(struct child_side *side, void *userdata)
{
        struct err err = {0};

        if (userns_enter(&err) < 0 || try_netns(&err) < 0)
                return child_failed(side, &err);
        child_ready(side);
        return 0;
}

static int try_userns(struct err *err)
{
        struct child_options options = {.name = "assay-userns"};
        _cleanup_child_ struct child child = CHILD_INIT;
        int r;

        r = child_start(&options, enter_userns, NULL, &child, err);
        return r < 0 ? r : child_wait_ready(&child, CHILD_TIMEOUT_NS, err);
}

static int try_fifo(struct err *err)
{
        int r = sched_is_fifo_possible();

        return r < 0 ? err_set_errno(err, ERR_UNSUPPORTED, -r, "the kernel refuses SCHED_FIFO") : 0;
}

static int try_mlock(struct err *err)
{
        void *memory = mmap(NULL, LOCKED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        int r = 0;

        if (memory == MAP_FAILED)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot allocate memory");
        if (mlock(memory, LOCKED_BYTES) < 0)
                r = err_set_errno(err, ERR_UNSUPPORTED, errno, "the kernel refuses to lock %d MiB of memory",
                                  LOCKED_BYTES >> 20);
        munmap(memory, LOCKED_BYTES);
        return r;
}

static int try_send_buffer(struct err *err)
{
        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        int bytes = SEND_BUFFER;

        if (fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open a socket");
        if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0)
                return err_set_errno(err, ERR_UNSUPPORTED, errno, "the kernel refuses a send buffer of %d MiB",
                                     SEND_BUFFER >> 20);
        return 0;
}

#define AS_ROOT "run as root, or as an ordinary user where user namespaces are allowed"

static const struct {
        const char *name, *purpose, *remedy;
        int (*try)(struct err *err);
} table[] = {
        {"netns", "zones and the gateway are network namespaces", AS_ROOT, try_netns},
        {"veth", "links between them", AS_ROOT ", on a kernel with CONFIG_VETH", try_veth},
        {"htb", "guaranteed rates and ceilings of slices", AS_ROOT ", on a kernel with CONFIG_NET_SCH_HTB", try_htb},
        {"mq", "a queue tree per transmit queue", AS_ROOT ", on a kernel with CONFIG_NET_SCHED", try_mq},
        {"clsact", "where BPF programs are attached to links", AS_ROOT ", on a kernel with CONFIG_NET_SCH_INGRESS",
         try_clsact},
        {"bpf", "tags, transmit queues and the sink of background load", "run as root (CAP_BPF and CAP_NET_ADMIN)",
         try_bpf},
        {"vlan", "802.1Q devices of the kernel; BPF programs tag without them",
         "a kernel with CONFIG_VLAN_8021Q (modprobe 8021q)", try_vlan},
        {"nft", "telling slices apart where BPF may not be loaded", AS_ROOT ", on a kernel with CONFIG_NF_TABLES_INET",
         try_nft},
        {"userns", "running as an ordinary user",
         "sysctl user.max_user_namespaces over 0, kernel.unprivileged_userns_clone=1, "
         "kernel.apparmor_restrict_unprivileged_userns=0",
         try_userns},
        {"fifo", "probe and reflector ahead of other processes",
         "run as root, or with a limit of real-time priority (ulimit -r 99)", try_fifo},
        {"mlock", "no page faults while measuring", "run as root, or raise the limit of locked memory (ulimit -l)",
         try_mlock},
        {"send-buffer", "offering more than a queue lets through", "run as root (CAP_NET_ADMIN)", try_send_buffer},
};

size_t capability_count(void)
{
        return ARRAY_SIZE(table);
}

const char *capability_name(size_t i)
{
        return i < ARRAY_SIZE(table) ? table[i].name : NULL;
}

int capability_detect(const char *name, struct capability *ret)
{
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct err err = {0};

                if (!streq(table[i].name, name))
                        continue;
                *ret = (struct capability){
                        .name = table[i].name,
                        .purpose = table[i].purpose,
                        .remedy = table[i].remedy,
                        .is_present = table[i].try(&err) >= 0,
                };
                if (!ret->is_present)
                        snprintf(ret->detail, sizeof(ret->detail), "%s", err.text);
                return 0;
        }
        return -ENOENT;
}

int capability_require(const char *name, struct err *err)
{
        struct capability capability;
        int r;

        r = capability_detect(name, &capability);
        if (r < 0)
                return err_set(err, ERR_BUG, ENOENT, "there is no capability \"%s\"", name);
        if (capability.is_present)
                return 0;
        return err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP, "this host lacks \"%s\" (%s): %s. To get it: %s", name,
                       capability.purpose, capability.detail, capability.remedy);
}
