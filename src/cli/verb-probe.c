/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/instrument.h"
#include "cli/print-probe.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "load/reflector.h"

/* ---- send ---- */

struct send_options {
        int64_t rate_hz, count, duration_ns, size_bytes, dscp, linger_ns, cpu, priority;
        const char *source;
        struct instrument_families families;
        bool same_clock, user_stamps, quiet, json;
};

#define SEND(name) offsetof(struct send_options, name)

static const struct option send_option_table[] = {
        {"rate", 'r', OPTION_QUANTITY, SEND(rate_hz), "RATE", "1000/s", UNIT_FREQUENCY, 1, 1000000,
         .help = "packets a second, such as 10000/s"},
        {"duration", 't', OPTION_QUANTITY, SEND(duration_ns), "TIME", "10s", UNIT_DURATION, 1, INT64_C(86400000000000),
         .help = "how long to send"},
        {"count", 'c', OPTION_QUANTITY, SEND(count), "N", NULL, UNIT_COUNT, 1, PROBE_SLOTS_MAX,
         .help = "how many packets to send, instead of a duration", .excludes = "duration"},
        {"size", 's', OPTION_QUANTITY, SEND(size_bytes), "SIZE", "44B", UNIT_BYTES, STAMP_LEN, PROBE_SIZE_MAX,
         .help = "payload of the UDP datagram"},
        INSTRUMENT_OPTION_DSCP(SEND(dscp)),
        INSTRUMENT_OPTION_SOURCE(SEND(source)),
        {"linger", 0, OPTION_QUANTITY, SEND(linger_ns), "TIME", "1s", UNIT_DURATION, 0, INT64_C(60000000000),
         .help = "how long to wait for replies after the last packet"},
        INSTRUMENT_OPTIONS_PEER_FAMILY(SEND(families.only_v4), SEND(families.only_v6)),
        {"same-clock", 0, OPTION_FLAG, SEND(same_clock), .help = "both ends read one clock: show one-way delays"},
        {"user-stamps", 0, OPTION_FLAG, SEND(user_stamps),
         .help = "ask the kernel for no stamps of what is sent, which cost each packet time"},
        INSTRUMENT_OPTION_CPU(SEND(cpu)),
        INSTRUMENT_OPTION_PRIORITY(SEND(priority), INSTRUMENT_PROBE_PRIORITY),
        INSTRUMENT_OPTION_QUIET(SEND(quiet)),
        {"json", 0, OPTION_FLAG, SEND(json), .help = "print the result as JSON"},
        {0},
};

/* What the line a second remembers between two of them. */
struct send_job {
        struct probe *probe;
        int64_t *scratch;
        size_t shown;
};

static void send_tick(void *object, int64_t elapsed_ns)
{
        struct send_job *job = object;
        const struct slots *slots = probe_slots(job->probe);
        size_t to = __atomic_load_n(&slots->n_closed, __ATOMIC_ACQUIRE);
        char p50[48], p99[48], max[48];
        struct slots_counts all;
        struct figure_values v;

        slots_count(slots, 0, to, &all);
        fprintf(stderr, "%4" PRId64 " s  sent %" PRIu64 "  answered %" PRIu64 "  missed %" PRIu64,
                elapsed_ns / NSEC_PER_SEC, all.sent, all.received, all.missed);
        /* Of this second; what is still on its way counts as lost until it is answered. */
        if (figure_take(slots, job->shown, to, FIGURE_RTT_USER, job->scratch, &v) == 0)
                fprintf(stderr, "  rtt_user p50 %s  p99 %s  max %s", print_probe_ns(v.p50, p50),
                        print_probe_ns(v.p99, p99), print_probe_ns(v.max, max));
        fputc('\n', stderr);
        job->shown = to;
}

static int send_open(void *object, struct err *err)
{
        return probe_open(((struct send_job *)object)->probe, err);
}

static int send_run(void *object, int64_t start_ns, const volatile int *stop, struct err *err)
{
        return probe_run(((struct send_job *)object)->probe, start_ns, stop, err);
}

static int send_config(const struct send_options *o, const char *reflector, struct probe_config *ret, struct err *err)
{
        const struct schedule schedule = schedule_at_rate(0, (uint64_t)o->rate_hz);
        struct probe_config c = {
                .size_bytes = (uint32_t)o->size_bytes,
                .dscp = (uint8_t)o->dscp,
                .rate_hz = (uint64_t)o->rate_hz,
                .n_slots = o->count > 0 ? (uint64_t)o->count : schedule_count(&schedule, o->duration_ns),
                .linger_ns = o->linger_ns,
                .no_send_stamps = o->user_stamps,
                .sched = instrument_sched(o->cpu, o->priority),
        };
        int r;

        r = instrument_peer(reflector, STAMP_PORT, o->source, o->families, &c.peer, &c.local, err);
        if (r >= 0)
                *ret = c;
        return r;
}

static int send_print(const struct send_options *o, const struct send_job *job, struct err *err)
{
        const struct print_probe result = {.probe = job->probe,
                                           .is_same_clock = o->same_clock,
                                           .scratch = job->scratch};
        _cleanup_text_ struct text out = {0};

        if (o->json)
                return print_json(print_probe_json(&result), err);
        print_probe_text(&result, &out);
        return print_text(&out, err);
}

static int send_run_verb(const void *options, int argc, char **argv, struct err *err)
{
        const struct send_options *o = options;
        _cleanup_free_ int64_t *scratch = NULL;
        _cleanup_probe_ struct probe *probe = NULL;
        struct send_job job = {0};
        struct instrument instrument = {.name = "probe",
                                        .object = &job,
                                        .open = send_open,
                                        .run = send_run,
                                        .tick = o->quiet ? NULL : send_tick};
        struct probe_config config;
        char peer[ADDRESS_TEXT];
        int r;

        r = send_config(o, argv[0], &config, err);
        if (r >= 0)
                r = probe_new(&config, &probe, err);
        if (r < 0)
                return r;
        job.probe = probe;
        job.scratch = scratch = calloc(config.n_slots, sizeof(*scratch));
        if (!scratch)
                return err_set_nomem(err);
        if (!o->quiet)
                fprintf(stderr, "STAMP to %s: %" PRId64 " octets, %" PRId64 "/s, %" PRIu64 " packets\n",
                        address_format(&config.peer, peer), o->size_bytes, o->rate_hz, config.n_slots);
        r = instrument_run(&instrument, err);
        if (r >= 0)
                r = send_print(o, &job, err);
        if (r < 0)
                return r;
        return probe_slots(probe)->n_answered > 0 ? 0 : 1;
}

static const struct verb send_verb = {
        .name = "send",
        .arguments = "REFLECTOR",
        .summary = "send STAMP packets to a reflector and show what comes back",
        .description =
                "Sends STAMP packets (RFC 8762) to REFLECTOR, an address or name, perhaps with :PORT (862), on an\n"
                "absolute schedule, and shows round trips, losses and lateness. Exit 1 where nothing came back.",
        .min_args = 1,
        .max_args = 1,
        .options = send_option_table,
        .options_size = sizeof(struct send_options),
        .run = send_run_verb,
};

/* ---- reflect ---- */

struct reflect_options {
        int64_t duration_ns, cpu, priority;
        struct instrument_families families;
        bool stateless, quiet, json;
};

#define REFLECT(name) offsetof(struct reflect_options, name)

static const struct option reflect_option_table[] = {
        {"duration", 't', OPTION_QUANTITY, REFLECT(duration_ns), "TIME", "0", UNIT_DURATION, 0, INT64_C(86400000000000),
         .help = "how long; 0 is until it is interrupted"},
        {"stateless", 0, OPTION_FLAG, REFLECT(stateless),
         .help = "answer with the sender's sequence number, not with one of its own"},
        INSTRUMENT_OPTIONS_LOCAL_FAMILY(REFLECT(families.only_v4), REFLECT(families.only_v6)),
        INSTRUMENT_OPTION_CPU(REFLECT(cpu)),
        INSTRUMENT_OPTION_PRIORITY(REFLECT(priority), INSTRUMENT_REFLECTOR_PRIORITY),
        INSTRUMENT_OPTION_QUIET(REFLECT(quiet)),
        {"json", 0, OPTION_FLAG, REFLECT(json), .help = "print the counts as JSON"},
        {0},
};

static int reflect_open(void *object, struct err *err)
{
        return reflector_open(object, err);
}

static int reflect_run(void *object, int64_t start_ns, const volatile int *stop, struct err *err)
{
        return reflector_run(object, stop, err);
}

static void reflect_opened(void *object)
{
        char text[ADDRESS_TEXT];
        union address address;

        reflector_address(object, &address);
        fprintf(stderr, "reflecting at %s\n", address_format(&address, text));
}

static void reflect_tick(void *object, int64_t elapsed_ns)
{
        const struct reflector_counts *c = reflector_counts(object);

        fprintf(stderr, "%4" PRId64 " s  received %" PRIu64 "  answered %" PRIu64 "\n", elapsed_ns / NSEC_PER_SEC,
                c->received, c->reflected);
}

static void reflect_print(const struct reflector_counts *c)
{
        printf("  %" PRIu64 " packets received, %" PRIu64 " answered\n", c->received, c->reflected);
        for (int i = STAMP_FAULT_NONE + 1; i < N_STAMP_FAULTS; i++)
                if (c->faults[i] > 0)
                        printf("  %" PRIu64 " not answered: %s\n", c->faults[i], stamp_fault_name((enum stamp_fault)i));
        if (c->not_unicast > 0)
                printf("  %" PRIu64 " not answered: sent to or from a group\n", c->not_unicast);
        if (c->refused > 0)
                printf("  %" PRIu64 " replies were refused by the kernel: %s\n", c->refused, strerror(c->last_refusal));
        if (c->unstamped > 0)
                printf("  %" PRIu64 " without a stamp of the kernel\n", c->unstamped);
        if (c->receive_overflow > 0)
                printf("  %" PRIu32 " lost here, in a full receive buffer\n", c->receive_overflow);
}

static int reflect_config(const struct reflect_options *o, const char *address, struct reflector_config *ret,
                          struct err *err)
{
        struct reflector_config c = {.is_stateless = o->stateless, .sched = instrument_sched(o->cpu, o->priority)};
        int r;

        r = instrument_local(address, STAMP_PORT, o->families, &c.local, err);
        if (r >= 0)
                *ret = c;
        return r;
}

static int reflect_run_verb(const void *options, int argc, char **argv, struct err *err)
{
        const struct reflect_options *o = options;
        _cleanup_reflector_ struct reflector *reflector = NULL;
        struct instrument instrument = {.name = "reflector",
                                        .open = reflect_open,
                                        .run = reflect_run,
                                        .opened = reflect_opened,
                                        .tick = o->quiet ? NULL : reflect_tick,
                                        .duration_ns = o->duration_ns};
        struct reflector_config config;
        int r;

        r = reflect_config(o, argc > 0 ? argv[0] : NULL, &config, err);
        if (r >= 0)
                r = reflector_new(&config, &reflector, err);
        if (r < 0)
                return r;
        instrument.object = reflector;
        r = instrument_run(&instrument, err);
        if (r < 0)
                return r;
        if (o->json)
                return print_json(json_pack("{s:i,s:o}", "assay", 1, "counts", reflector_notes_json(reflector)), err);
        reflect_print(reflector_counts(reflector));
        return 0;
}

static const struct verb reflect_verb = {
        .name = "reflect",
        .arguments = "[ADDRESS]",
        .summary = "answer STAMP packets",
        .description = "Answers STAMP packets (RFC 8762) that arrive at ADDRESS, perhaps with :PORT (862), or at all\n"
                       "addresses, until it is interrupted.",
        .max_args = 1,
        .options = reflect_option_table,
        .options_size = sizeof(struct reflect_options),
        .run = reflect_run_verb,
};

const struct verb verb_probe = {
        .name = "probe",
        .summary = "measure a path with STAMP packets, or answer them",
        .verbs = (const struct verb *const[]){&send_verb, &reflect_verb, NULL},
};
