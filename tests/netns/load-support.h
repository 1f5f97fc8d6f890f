/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the tests of the instruments share: each instrument in a process of its own, as in a campaign. */

#include <signal.h>
#include <unistd.h>

#include "load/probe.h"
#include "load/reflector.h"
#include "sys/child.h"
#include "tests/netns/support.h"

static volatile int instrument_stop;

static inline void instrument_on_term(int signal)
{
        instrument_stop = 1;
}

static inline void instrument_catch_term(void)
{
        const struct sigaction action = {.sa_handler = instrument_on_term}; /* no SA_RESTART */

        sigaction(SIGTERM, &action, NULL);
}

static inline int run_probe(struct child_side *side, void *userdata)
{
        struct err err = {0};
        int64_t start_ns;

        instrument_catch_term();
        if (probe_open(userdata, &err) < 0)
                return child_failed(side, &err);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 2;
        return probe_run(userdata, start_ns, &instrument_stop, &err) < 0;
}

static inline int run_reflector(struct child_side *side, void *userdata)
{
        struct err err = {0};
        int64_t start_ns;

        instrument_catch_term();
        if (reflector_open(userdata, &err) < 0)
                return child_failed(side, &err);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 2;
        return reflector_run(userdata, &instrument_stop, &err) < 0;
}

/* Starts an instrument in a namespace and waits until it is ready. */
static inline void instrument_start(const struct netns *ns, int (*fn)(struct child_side *, void *), void *instrument,
                                    struct child *ret)
{
        const struct child_options options = {.name = "instrument", .netns = ns};
        struct err err = {0};

        assert_ok(child_start(&options, fn, instrument, ret, &err));
        assert_ok(child_wait_ready(ret, LONG_NS, &err));
}

static inline void instrument_go(struct child *child, int64_t start_ns)
{
        struct err err = {0};

        assert_ok(child_go(child, start_ns, &err));
}

/* Waits for the end of an instrument that ends by itself. */
static inline void instrument_wait(struct child *child)
{
        struct child_status status;
        struct err err = {0};

        assert_int_equal(child_wait(child, LONG_NS, &status), 0);
        assert_ok(child_check("the instrument", &status, &err));
        child_done(child);
}

/* Ends one that runs until it is told to stop. */
static inline void instrument_end(struct child *child)
{
        struct child_status status;
        struct err err = {0};

        assert_int_equal(child_stop(child, LONG_NS, &status), 0);
        assert_ok(child_check("the instrument", &status, &err));
        child_done(child);
}

static inline union address address_of(const struct ip_prefix *prefix, uint16_t port)
{
        struct sockaddr_storage storage;
        union address address = {0};

        ip_prefix_sockaddr(prefix, port, &storage);
        memcpy(&address, &storage, sizeof(address));
        return address;
}

/* A moment that leaves time for a child to be woken. */
static inline int64_t soon_ns(void)
{
        return clock_now_ns(CLOCK_MONOTONIC) + 20 * NSEC_PER_MSEC;
}

/* Every slot has one fate, and every packet one outcome. */
static inline void assert_accounted(const struct slots_counts *c, uint64_t n_slots)
{
        assert_int_equal(c->slots, n_slots);
        assert_int_equal(c->sent + c->missed, n_slots);
        assert_int_equal(c->received + c->lost, c->sent);
        assert_int_equal(c->negative, 0);
}
