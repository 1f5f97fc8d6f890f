/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <signal.h>

#include "sys/bpf.h"
#include "sys/child.h"
#include "sys/qdisc.h"

/* What a process built is gone when it was killed: namespaces, links, queues, BPF programs, processes. */

#define N_ZONES 3

struct victim {
        const struct netns *home; /* the namespace that the links lead to */
        int pipe_fd;              /* held by the victim and by all that it starts */
        bool has_bpf;
};

static int stay(struct child_side *side, void *userdata)
{
        child_ready(side);
        pause();
        return 1;
}

/* A zone with a link to the home namespace, a queue tree, filters, and a process inside. */
static int build_zone(struct victim *v, size_t i, struct netns *ns, struct child *child, struct err *err)
{
        struct qdisc_htb htb = {.parent = QDISC_ROOT, .handle = QDISC_HANDLE(1, 0)};
        struct child_options options = {.name = "resident", .netns = ns, .keep_fds = &v->pipe_fd, .n_keep_fds = 1};
        static const struct slice_config config = {0};
        struct link_end inside = {.name = "up"}, outside = {0};
        _cleanup_netlink_ struct netlink *nl = NULL;
        struct slice_filter *filter;
        char name[16];
        int index, r;

        snprintf(name, sizeof(name), "zone%zu", i);
        outside.name = name;
        r = netns_new(ns, err);
        if (r == 0)
                r = netlink_open(ns, &nl, err);
        if (r == 0)
                r = link_add_veth(nl, &inside, &outside, v->home, err);
        if (r == 0)
                r = link_find(nl, "up", &index, err);
        if (r == 0)
                r = link_set_up(nl, index, true, err);
        if (r == 0)
                r = qdisc_add_htb(nl, index, &htb, err);
        if (r == 0 && v->has_bpf)
                r = slice_filter_attach(nl, index, &config, &filter, err);
        if (r == 0)
                r = child_start(&options, stay, NULL, child, err);
        return r < 0 ? r : child_wait_ready(child, LONG_NS, err);
}

static int build_and_stay(struct child_side *side, void *userdata)
{
        struct netns zones[N_ZONES];
        struct child residents[N_ZONES];
        struct victim *v = userdata;
        struct err err = {0};

        for (size_t i = 0; i < N_ZONES; i++)
                if (build_zone(v, i, &zones[i], &residents[i], &err) < 0)
                        return child_failed(side, &err);
        return stay(side, NULL);
}

/* Numbers of the programs that the kernel holds and that are called as ours. */
static size_t list_programs(uint32_t *ids, size_t size)
{
        uint32_t id = 0;
        size_t n = 0;

        while (n < size && bpf_prog_get_next_id(id, &id) == 0) {
                _cleanup_close_ int fd = bpf_prog_get_fd_by_id(id);
                struct bpf_prog_info info = {0};
                uint32_t len = sizeof(info);

                if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0 &&
                    (streq(info.name, "push") || streq(info.name, "pop")))
                        ids[n++] = id;
        }
        return n;
}

static bool contains(const uint32_t *ids, size_t n, uint32_t id)
{
        for (size_t i = 0; i < n; i++)
                if (ids[i] == id)
                        return true;
        return false;
}

/* The kernel frees programs in the background and tells nobody. */
static void wait_for_program_to_go(uint32_t id)
{
        int64_t end = clock_now_ns(CLOCK_MONOTONIC) + LONG_NS;

        for (;;) {
                _cleanup_close_ int fd = bpf_prog_get_fd_by_id(id);

                if (fd < 0 && errno == ENOENT)
                        return;
                assert_true(clock_now_ns(CLOCK_MONOTONIC) < end);
                poll(NULL, 0, 1);
        }
}

static int open_link_events(const struct netns *ns)
{
        struct sockaddr_nl where = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
        struct timeval patience = {.tv_sec = 20};
        struct err err = {0};
        int fd = netns_socket(ns, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, &err);

        assert_true(fd >= 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&where, sizeof(where)), 0);
        return fd;
}

/* A link goes when the namespace of its other end does. */
static void wait_for_link_to_go(struct netlink *nl, int events, const char *name)
{
        struct err err = {0};
        uint8_t buf[4096];
        int index;

        while (link_find(nl, name, &index, &err) == 0)
                assert_true(recv(events, buf, sizeof(buf), 0) > 0);
        assert_int_equal(err.errnum, ENODEV);
}

static void nothing_is_left_of_a_killed_builder(void **state)
{
        _cleanup_netlink_ struct netlink *nl = NULL;
        _cleanup_netns_ struct netns home = NETNS_INIT;
        _cleanup_child_ struct child child = CHILD_INIT;
        uint32_t before[1024], during[1024];
        size_t n_before, n_during, n_ours = 0;
        struct victim v = {.home = &home, .has_bpf = *(bool *)*state};
        struct err err = {0};
        int ends[2], events;
        char byte;

        assert_ok(netns_new(&home, &err));
        assert_ok(netlink_open(&home, &nl, &err));
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        v.pipe_fd = ends[1];
        events = open_link_events(&home);
        n_before = list_programs(before, ARRAY_SIZE(before));
        {
                int keep[] = {ends[1], home.fd};
                struct child_options options = {.name = "builder", .keep_fds = keep, .n_keep_fds = 2};

                assert_ok(child_start(&options, build_and_stay, &v, &child, &err));
        }
        close(ends[1]);
        assert_ok(child_wait_ready(&child, LONG_NS, &err));
        n_during = list_programs(during, ARRAY_SIZE(during));
        for (size_t i = 0; i < N_ZONES; i++) {
                char name[16];
                int index;

                snprintf(name, sizeof(name), "zone%zu", i);
                assert_ok(link_find(nl, name, &index, &err));
        }

        assert_int_equal(child_signal(&child, SIGKILL), 0);
        assert_int_equal(poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, (int)(LONG_NS / NSEC_PER_MSEC)), 1);
        assert_int_equal(read(ends[0], &byte, 1), 0); /* the residents are gone, too */
        for (size_t i = 0; i < N_ZONES; i++) {
                char name[16];

                snprintf(name, sizeof(name), "zone%zu", i);
                wait_for_link_to_go(nl, events, name);
        }
        for (size_t i = 0; i < n_during; i++)
                if (!contains(before, n_before, during[i])) {
                        n_ours++;
                        wait_for_program_to_go(during[i]);
                }
        assert_true(!v.has_bpf || n_ours >= 2 * N_ZONES);
        close(ends[0]);
        close(events);
}

int main(void)
{
        static bool has_bpf;
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_prestate(nothing_is_left_of_a_killed_builder, &has_bpf),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        has_bpf = can_load_bpf(&err) == 0;
        return cmocka_run_group_tests_name("remains", tests, NULL, NULL);
}
