/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the tests of the instruments share: each instrument in a process of its own, as in a campaign. */

#include <signal.h>
#include <unistd.h>

#include "load/generator.h"
#include "load/probe.h"
#include "load/receiver.h"
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

/* Waits for a counter in shared memory: a reply may be here before the reflector has counted it. */
static inline void await_count(const uint64_t *counter, uint64_t n)
{
        int64_t until_ns = clock_now_ns(CLOCK_MONOTONIC) + LONG_NS;

        while (__atomic_load_n(counter, __ATOMIC_RELAXED) != n && clock_now_ns(CLOCK_MONOTONIC) < until_ns)
                sched_yield();
        assert_int_equal(__atomic_load_n(counter, __ATOMIC_RELAXED), n);
}

/* The state of a test: a pair. */
static inline int pair_set_up(void **state)
{
        struct pair *p = malloc(sizeof(*p));

        pair_up(p, 1);
        *state = p;
        return 0;
}

static inline int pair_tear_down(void **state)
{
        pair_down(*state);
        free(*state);
        return 0;
}

/* Every slot has one fate, and every packet one outcome. */
static inline void assert_accounted(const struct slots_counts *c, uint64_t n_slots)
{
        assert_int_equal(c->slots, n_slots);
        assert_int_equal(c->sent + c->missed, n_slots);
        assert_int_equal(c->received + c->lost, c->sent);
        assert_int_equal(c->negative, 0);
}

/* ---- load from the first namespace of a pair to the second ---- */

#define LOAD_PORT     9
#define PACKET_BYTES  1400
#define LAYER2_BYTES  14
#define DURATION_NS   (200 * NSEC_PER_MSEC)
#define PACKETS_RATE  5000
#define BITS_OF(rate) ((uint64_t)(rate) * (PACKET_BYTES + LAYER2_BYTES) * 8)

static inline int run_generator(struct child_side *side, void *userdata)
{
        struct err err = {0};
        int64_t start_ns;

        instrument_catch_term();
        if (generator_open(userdata, &err) < 0)
                return child_failed(side, &err);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 2;
        return generator_run(userdata, start_ns, &instrument_stop, &err) < 0;
}

static inline int run_receiver(struct child_side *side, void *userdata)
{
        struct err err = {0};
        int64_t start_ns;

        instrument_catch_term();
        if (receiver_open(userdata, &err) < 0)
                return child_failed(side, &err);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 2;
        return receiver_run(userdata, &instrument_stop, &err) < 0;
}

static inline struct generator *make_generator(const union address *peer, struct generator_config config)
{
        struct generator *generator;
        struct err err = {0};

        config.peer = *peer;
        config.packet_bytes = config.packet_bytes ? config.packet_bytes : PACKET_BYTES;
        config.layer2_bytes = LAYER2_BYTES;
        config.burst = config.burst ? config.burst : 1;
        config.duration_ns = DURATION_NS;
        config.sched.cpu = SCHED_CPU_ANY;
        assert_ok(generator_new(&config, &generator, &err));
        return generator;
}

static inline struct receiver *make_receiver(const union address *local, enum receiver_kind kind)
{
        const struct receiver_config config = {.kind = kind,
                                               .local = *local,
                                               .interface = "b",
                                               .sched = {.cpu = SCHED_CPU_ANY}};
        struct receiver *receiver;
        struct err err = {0};

        assert_ok(receiver_new(&config, &receiver, &err));
        return receiver;
}

static inline void run_load(struct pair *p, struct generator *generator, struct receiver *receiver)
{
        struct child generator_child = CHILD_INIT, receiver_child = CHILD_INIT;

        instrument_start(&p->ns[1], run_receiver, receiver, &receiver_child);
        instrument_go(&receiver_child, 0);
        instrument_start(&p->ns[0], run_generator, generator, &generator_child);
        instrument_go(&generator_child, soon_ns());
        instrument_wait(&generator_child);
        instrument_end(&receiver_child);
}

static inline void check_load(const struct generator_counts *sent, uint64_t offered)
{
        assert_int_equal(sent->offered_packets, offered);
        assert_int_equal(sent->offered_bytes, offered * (PACKET_BYTES + LAYER2_BYTES));
        assert_int_equal(sent->refused_packets, 0);
        assert_true(sent->sent_packets > 0 && sent->sent_packets <= offered);
        assert_int_equal(sent->sent_bytes, sent->sent_packets * (PACKET_BYTES + LAYER2_BYTES));
        assert_int_equal(sent->duration_ns, DURATION_NS);
}
