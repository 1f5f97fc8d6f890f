/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "cli/option.h"
#include "load/address.h"
#include "sys/sched.h"

/* An instrument that a verb runs by itself: in a process of its own, so that what prints does not disturb what
 * measures, while the verb shows a line a second and waits for the end or for SIGINT. */
struct instrument {
        const char *name;
        void *object; /* in memory that the child inherits; its results in memory that is shared */
        int (*open)(void *object, struct err *err);
        int (*run)(void *object, int64_t start_ns, const volatile int *stop, struct err *err);
        void (*opened)(void *object);                   /* called in the parent once the child is ready; may be NULL */
        void (*tick)(void *object, int64_t elapsed_ns); /* every second in the parent; may be NULL */
        int64_t duration_ns;                            /* tell it to end after so long; 0: it ends by itself */
};

/* instrument_run - open it, run it, and wait for it; SIGINT, SIGTERM and SIGHUP end it early, which is no failure
 *
 * Return: 0, or a negative errno with the reason, the child's own where it had one.
 */
int instrument_run(const struct instrument *instrument, struct err *err);

/* Real-time priorities that are asked for unless told otherwise. A probe that spins must not keep a reflector on the
 * same processor from it. */
#define INSTRUMENT_PROBE_PRIORITY     "50"
#define INSTRUMENT_REFLECTOR_PRIORITY "51"

/* instrument_sched - what the options --cpu and --priority ask of the scheduler */
struct sched_request instrument_sched(int64_t cpu, int64_t priority);

/* Options that instruments share; @offset is the member of the verb's options that takes the value. */
#define INSTRUMENT_OPTION_CPU(offset)                                                                                  \
        {                                                                                                              \
                "cpu", 0, OPTION_QUANTITY, offset, "N", "-1", UNIT_COUNT, -1, 8191,                                    \
                        .help = "processor to run on; -1 leaves it to the kernel"                                      \
        }
#define INSTRUMENT_OPTION_PRIORITY(offset, fallback)                                                                   \
        {                                                                                                              \
                "priority", 0, OPTION_QUANTITY, offset, "N", fallback, UNIT_COUNT, 0, 99,                              \
                        .help = "real-time priority to ask for; 0 asks for none"                                       \
        }
#define INSTRUMENT_OPTION_DSCP(offset)                                                                                 \
        {                                                                                                              \
                "dscp", 0, OPTION_QUANTITY, offset, "N", "0", UNIT_COUNT, 0, 63,                                       \
                        .help = "differentiated services code point"                                                   \
        }
#define INSTRUMENT_OPTION_SOURCE(offset)                                                                               \
        {                                                                                                              \
                "source", 0, OPTION_STRING, offset, "ADDRESS", .help = "where to send from, perhaps with :PORT"        \
        }
#define INSTRUMENT_OPTION_QUIET(offset)                                                                                \
        {                                                                                                              \
                "quiet", 'q', OPTION_FLAG, offset, .help = "no line a second"                                          \
        }

/* Who sends takes the first pair of --ipv4 and --ipv6, who listens the second. */
#define INSTRUMENT_OPTIONS_PEER_FAMILY(offset_v4, offset_v6)                                                           \
        {"ipv4", '4', OPTION_FLAG, offset_v4, .help = "look the name up for IPv4 only"},                               \
        {                                                                                                              \
                "ipv6", '6', OPTION_FLAG, offset_v6, .help = "look the name up for IPv6 only"                          \
        }
#define INSTRUMENT_OPTIONS_LOCAL_FAMILY(offset_v4, offset_v6)                                                          \
        {"ipv4", '4', OPTION_FLAG, offset_v4, .help = "without ADDRESS: listen on all of IPv4 (default)"},             \
        {                                                                                                              \
                "ipv6", '6', OPTION_FLAG, offset_v6, .help = "without ADDRESS: listen on all of IPv6"                  \
        }

/* What the flags --ipv4 and --ipv6 leave of the address families; both at once are refused. */
struct instrument_families {
        bool only_v4, only_v6;
};

/* instrument_peer - whom to send to, and from where
 * @peer:   an address or a name, perhaps with a port
 * @port:   where @peer has none
 * @source: NULL leaves @ret_local alone
 *
 * Return: 0, or a negative errno with the reason (kind usage).
 */
int instrument_peer(const char *peer, uint16_t port, const char *source, struct instrument_families families,
                    union address *ret_peer, union address *ret_local, struct err *err);

/* instrument_local - where to listen: @address, which may be NULL for all addresses of the family; else as
 * instrument_peer() */
int instrument_local(const char *address, uint16_t port, struct instrument_families families, union address *ret,
                     struct err *err);

/* instrument_add_grant - lines that say what the scheduler granted, and what it refused and why */
void instrument_add_grant(const struct sched_grant *grant, struct text *out);
