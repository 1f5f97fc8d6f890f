/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/number.h"
#include "cli/instrument.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "load/generator.h"
#include "load/receiver.h"
#include "load/udp.h"

#define LOAD_PORT 9862 /* where neither end is told another one */

/* @bytes in @ns as a rate for people. Return: @buf. */
static char *format_mbit(uint64_t bytes, int64_t ns, char buf[static 48])
{
        unsigned __int128 bits = (unsigned __int128)bytes * 8;

        return number_format_scaled(ns > 0 ? (int64_t)(bits * NSEC_PER_SEC / (uint64_t)ns) : 0, 1000000, 3, buf);
}

/* ---- send ---- */

struct send_options {
        int64_t rate_bps, packet_bytes, burst, duration_ns, dscp, cpu, priority, nice;
        const char *source;
        struct instrument_families families;
        bool unlimited, tagged, frames, quiet, json;
};

#define SEND(name) offsetof(struct send_options, name)

static const struct option send_option_table[] = {
        {"rate", 'r', OPTION_QUANTITY, SEND(rate_bps), "RATE", "10mbit", UNIT_RATE, 0, INT64_C(1000000000000),
         .help = "bits of layer 2 a second, such as 600mbit; at 0 only the processor is kept busy"},
        {"unlimited", 0, OPTION_FLAG, SEND(unlimited), .help = "as fast as it goes, instead of a rate",
         .excludes = "rate"},
        {"packet", 'p', OPTION_QUANTITY, SEND(packet_bytes), "SIZE", "1400B", UNIT_BYTES, 44, 65535,
         .help = "length of the IP packet"},
        {"burst", 'b', OPTION_QUANTITY, SEND(burst), "PACKETS", "1p", UNIT_PACKETS, 1, GENERATOR_BURST_MAX,
         .help = "packets that are due at the same moment"},
        {"duration", 't', OPTION_QUANTITY, SEND(duration_ns), "TIME", "10s", UNIT_DURATION, 0, INT64_C(86400000000000),
         .help = "how long; 0 is until it is interrupted"},
        {"tagged", 0, OPTION_FLAG, SEND(tagged), .help = "packets get a VLAN tag on their way, and the rate counts it"},
        {"frames", 0, OPTION_FLAG, SEND(frames),
         .help = "whole Ethernet frames by a packet socket: more with less work, past this host's own rules"},
        INSTRUMENT_OPTION_DSCP(SEND(dscp)),
        INSTRUMENT_OPTION_SOURCE(SEND(source)),
        INSTRUMENT_OPTIONS_PEER_FAMILY(SEND(families.only_v4), SEND(families.only_v6)),
        INSTRUMENT_OPTION_CPU(SEND(cpu)),
        INSTRUMENT_OPTION_PRIORITY(SEND(priority), "0"),
        {"nice", 0, OPTION_QUANTITY, SEND(nice), "N", "0", UNIT_COUNT, -20, 19,
         .help = "nice value to ask for; -20 is served first"},
        INSTRUMENT_OPTION_QUIET(SEND(quiet)),
        {"json", 0, OPTION_FLAG, SEND(json), .help = "print the counts as JSON"},
        {0},
};

static int send_open(void *object, struct err *err)
{
        return generator_open(object, err);
}

static int send_run(void *object, int64_t start_ns, const volatile int *stop, struct err *err)
{
        return generator_run(object, start_ns, stop, err);
}

static void send_tick(void *object, int64_t elapsed_ns)
{
        struct generator_counts c;
        char rate[48];

        generator_counts(object, &c);
        fprintf(stderr, "%4" PRId64 " s  offered %" PRIu64 "  sent %" PRIu64 "  refused %" PRIu64 "  (%s mbit)\n",
                elapsed_ns / NSEC_PER_SEC, c.offered_packets, c.sent_packets, c.refused_packets,
                format_mbit(c.sent_bytes, c.duration_ns, rate));
}

static int send_config(const struct send_options *o, const char *sink, struct generator_config *ret, struct err *err)
{
        struct generator_config c = {
                .packet_bytes = (uint32_t)o->packet_bytes,
                .layer2_bytes = o->tagged ? UDP_ETHERNET_BYTES + UDP_TAG_BYTES : UDP_ETHERNET_BYTES,
                .rate_bps = o->unlimited ? GENERATOR_UNLIMITED : (uint64_t)o->rate_bps,
                .burst = (uint32_t)o->burst,
                .dscp = (uint8_t)o->dscp,
                .is_framed = o->frames,
                .duration_ns = o->duration_ns,
                .sched = instrument_sched(o->cpu, o->priority),
        };
        int r;

        r = instrument_peer(sink, LOAD_PORT, o->source, o->families, &c.peer, &c.local, err);
        if (r < 0)
                return r;
        c.sched.nice = (int)o->nice;
        *ret = c;
        return 0;
}

static void send_print(const struct generator_counts *c)
{
        char took[48], rate[48];

        printf("  %s\n", number_format_ns(c->duration_ns, took));
        printf("  offered %" PRIu64 " packets, %" PRIu64 " bytes of layer 2 (%s mbit)\n", c->offered_packets,
               c->offered_bytes, format_mbit(c->offered_bytes, c->duration_ns, rate));
        printf("  sent    %" PRIu64 " packets, %" PRIu64 " bytes of layer 2 (%s mbit)\n", c->sent_packets,
               c->sent_bytes, format_mbit(c->sent_bytes, c->duration_ns, rate));
        for (size_t i = 0; i < GENERATOR_REFUSALS && c->refusals[i].n > 0; i++)
                printf("  refused %" PRIu64 ": %s\n", c->refusals[i].n, strerror(c->refusals[i].errnum));
        if (c->offered_packets > c->sent_packets + c->refused_packets)
                printf("  %" PRIu64 " were never tried: this processor is too slow for the rate\n",
                       c->offered_packets - c->sent_packets - c->refused_packets);
}

static int send_run_verb(const void *options, int argc, char **argv, struct err *err)
{
        const struct send_options *o = options;
        _cleanup_generator_ struct generator *generator = NULL;
        struct instrument instrument = {.name = "generator",
                                        .open = send_open,
                                        .run = send_run,
                                        .tick = o->quiet ? NULL : send_tick};
        struct generator_config config;
        struct generator_counts counts;
        int r;

        r = send_config(o, argv[0], &config, err);
        if (r >= 0)
                r = generator_new(&config, &generator, err);
        if (r < 0)
                return r;
        instrument.object = generator;
        r = instrument_run(&instrument, err);
        if (r < 0)
                return r;
        generator_counts(generator, &counts);
        if (o->json)
                return print_json(json_pack("{s:i,s:o,s:o}", "assay", 1, "counts", generator_counts_json(&counts),
                                            "notes", generator_notes_json(generator)),
                                  err);
        send_print(&counts);
        return 0;
}

static const struct verb send_verb = {
        .name = "send",
        .arguments = "SINK",
        .summary = "offer UDP at a rate",
        .description =
                "Sends UDP to SINK, an address or name, perhaps with :PORT (9862), at a rate that is really offered:\n"
                "each packet is due by an absolute schedule, and what was late is made up for.",
        .min_args = 1,
        .max_args = 1,
        .options = send_option_table,
        .options_size = sizeof(struct send_options),
        .run = send_run_verb,
};

/* ---- sink ---- */

struct sink_options {
        int64_t duration_ns, cpu;
        const char *interface;
        struct instrument_families families;
        bool quiet, json;
};

#define SINK(name) offsetof(struct sink_options, name)

static const struct option sink_option_table[] = {
        {"bpf", 0, OPTION_STRING, SINK(interface), "INTERFACE",
         .help = "count and drop in the kernel, where packets come in by INTERFACE"},
        {"duration", 't', OPTION_QUANTITY, SINK(duration_ns), "TIME", "0", UNIT_DURATION, 0, INT64_C(86400000000000),
         .help = "how long; 0 is until it is interrupted"},
        INSTRUMENT_OPTIONS_LOCAL_FAMILY(SINK(families.only_v4), SINK(families.only_v6)),
        INSTRUMENT_OPTION_CPU(SINK(cpu)),
        INSTRUMENT_OPTION_QUIET(SINK(quiet)),
        {"json", 0, OPTION_FLAG, SINK(json), .help = "print the counts as JSON"},
        {0},
};

static int sink_open(void *object, struct err *err)
{
        return receiver_open(object, err);
}

static int sink_run(void *object, int64_t start_ns, const volatile int *stop, struct err *err)
{
        return receiver_run(object, stop, err);
}

static void sink_opened(void *object)
{
        char text[ADDRESS_TEXT];

        fprintf(stderr, "counting at %s\n", address_format(receiver_address(object), text));
}

static void sink_tick(void *object, int64_t elapsed_ns)
{
        const struct receiver_counts *c = receiver_counts(object);

        fprintf(stderr, "%4" PRId64 " s  %" PRIu64 " packets, %" PRIu64 " bytes\n", elapsed_ns / NSEC_PER_SEC,
                c->packets, c->bytes);
}

static int sink_config(const struct sink_options *o, const char *address, struct receiver_config *ret, struct err *err)
{
        struct receiver_config c = {.kind = o->interface ? RECEIVER_BPF : RECEIVER_SOCKET,
                                    .sched = instrument_sched(o->cpu, 0)};
        int r;

        r = instrument_local(address, LOAD_PORT, o->families, &c.local, err);
        if (r < 0)
                return r;
        if (o->interface && snprintf(c.interface, sizeof(c.interface), "%s", o->interface) >= (int)sizeof(c.interface))
                return err_set(err, ERR_USAGE, EINVAL, "no interface has a name as long as %s", o->interface);
        *ret = c;
        return 0;
}

static void sink_print(const struct receiver_counts *c, bool is_bpf)
{
        printf("  %" PRIu64 " packets, %" PRIu64 " bytes of %s\n", c->packets, c->bytes, is_bpf ? "layer 2" : "IP");
        if (is_bpf)
                return;
        printf("  %" PRIu64 " senders; %" PRIu64 " lost, %" PRIu64 " duplicates, %" PRIu64 " reordered\n", c->streams,
               c->lost, c->duplicates, c->reordered);
        if (c->unmarked > 0)
                printf("  %" PRIu64 " packets were not sent by `assay load send`, or by one sender too many\n",
                       c->unmarked);
        if (c->overflow > 0)
                printf("  %" PRIu32 " lost here, in a full receive buffer\n", c->overflow);
}

static int sink_run_verb(const void *options, int argc, char **argv, struct err *err)
{
        const struct sink_options *o = options;
        _cleanup_receiver_ struct receiver *receiver = NULL;
        struct instrument instrument = {.name = "sink",
                                        .open = sink_open,
                                        .run = sink_run,
                                        .opened = sink_opened,
                                        .tick = o->quiet ? NULL : sink_tick,
                                        .duration_ns = o->duration_ns};
        struct receiver_config config;
        int r;

        r = sink_config(o, argc > 0 ? argv[0] : NULL, &config, err);
        if (r >= 0)
                r = receiver_new(&config, &receiver, err);
        if (r < 0)
                return r;
        instrument.object = receiver;
        r = instrument_run(&instrument, err);
        if (r < 0)
                return r;
        if (o->json)
                return print_json(json_pack("{s:i,s:o}", "assay", 1, "counts", receiver_counts_json(receiver)), err);
        sink_print(receiver_counts(receiver), config.kind == RECEIVER_BPF);
        return 0;
}

static const struct verb sink_verb = {
        .name = "sink",
        .arguments = "[ADDRESS]",
        .summary = "count UDP that arrives, and drop it",
        .description =
                "Counts UDP that arrives at ADDRESS, perhaps with :PORT (9862), or at all addresses, until it is\n"
                "interrupted. With --bpf every packet to the port counts that comes in by the interface, and no\n"
                "socket sees it.",
        .max_args = 1,
        .options = sink_option_table,
        .options_size = sizeof(struct sink_options),
        .run = sink_run_verb,
};

const struct verb verb_load = {
        .name = "load",
        .summary = "offer background load at a rate, or count what arrives",
        .verbs = (const struct verb *const[]){&send_verb, &sink_verb, NULL},
};
