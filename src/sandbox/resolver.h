/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sandbox/pins.h"
#include "sandbox/policy.h"
#include "sys/loop.h"
#include "wire/dns.h"

/* The resolver of a sandbox. It answers what a command asks over UDP and TCP, and asks the host's servers on its
 * behalf:
 *
 * - Only names that the policy lets be reached are asked for upstream, in lower case; of the others nobody outside
 * hears. They do not exist (NXDOMAIN, which ends the search of every client at once; after REFUSED some wait for
 * another server), with the rule as extended error.
 * - A and AAAA only, and PTR of addresses that it gave itself. Other types of an allowed name have no data.
 * - localhost, and names below it, are 127.0.0.1 and ::1.
 * - A chain of aliases has to end in a name that may be reached, too.
 * - Addresses that the policy does not let be reached under the name, such as private ones, are left out.
 * - The others are pinned, and admitted by the enforcer, before the answer leaves: for the time to live or
 * RESOLVER_PIN_S, whichever is longer, and RESOLVER_KEEP_S more. An address with an open flow stays pinned.
 * - What is malformed, whether from the command or from upstream, is never passed on.
 */

#define RESOLVER_PIN_S  60
#define RESOLVER_KEEP_S 20    /* how often open flows are looked for */
#define RESOLVER_TTL_S  86400 /* the longest time to live that is believed, and passed on */

#define RESOLVER_QUERIES_MAX 256 /* asked upstream at once */
#define RESOLVER_CLIENTS_MAX 64  /* connections over TCP */

enum resolver_outcome {
        RESOLVER_ANSWERED,
        RESOLVER_EMPTY,          /* there is no such name, or no such data */
        RESOLVER_NAME_DENIED,    /* by the policy, or because it is no name of a host */
        RESOLVER_ALIAS_DENIED,   /* the name is an alias of one that the policy denies */
        RESOLVER_ADDRESS_DENIED, /* the name has only addresses that the policy denies */
        RESOLVER_UNSUPPORTED,    /* another type or class, or no query */
        RESOLVER_MALFORMED,      /* what came from the command is no message */
        RESOLVER_FAILED,         /* upstream did not answer, or not sensibly; or there was no room */
        N_RESOLVER_OUTCOMES,
};

/* resolver_outcome_name - stable lower-case name, such as "name-denied" */
const char *resolver_outcome_name(enum resolver_outcome outcome);

/* One question and what became of it. Everything is borrowed. */
struct resolver_question {
        const char *name; /* as it was asked; "" where it could not be read */
        uint16_t type;    /* DNS_TYPE_x, or another */
        enum resolver_outcome outcome;
        enum dns_rcode rcode;   /* of the answer */
        const char *target;     /* of a denial: what was denied, "name www.example.org" or an address; else NULL */
        const char *reason;     /* of a denial: the rule; of a failure: what happened; else NULL */
        const struct pin *pins; /* what was given out, with the name that was asked */
        size_t n_pins;
};

struct resolver_options {
        struct loop *loop;
        const struct policy *policy;
        struct pins *pins;
        const char *servers; /* to ask, as "192.0.2.53,[2001:db8::53]:5353"; NULL: those of the host's resolv.conf */
        int sockdiag_fd;     /* of the sandbox's network namespace (sys/sockdiag.h); -1: pins of open flows run out */

        /* Lets addresses in, see struct enforcer_ops; NULL: there is nothing to do. */
        int (*admit)(void *userdata, const struct pin *pins, size_t n, struct err *err);

        /* Is told of each question when it is answered; NULL: nobody is. */
        void (*note)(void *userdata, const struct resolver_question *question);
        void *userdata;
};

struct resolver;

/* resolver_new - @options is copied; what it points to has to stay until resolver_free()
 *
 * The process opens sockets to the host's servers in its own network namespace.
 */
int resolver_new(const struct resolver_options *options, struct resolver **ret, struct err *err);

/* resolver_free - closes its sockets, and answers no more */
void resolver_free(struct resolver *resolver);

DEFINE_CLEANUP(struct resolver *, resolver_free)
#define _cleanup_resolver_ _cleanup_(resolver_free_cleanup)

/* resolver_serve - answer what comes to a socket, a bound one for datagrams or a listening one for streams
 * @fd: becomes the resolver's, also on failure; any number may be given
 */
int resolver_serve(struct resolver *resolver, int fd, struct err *err);

/* resolver_keep - extend the pins of open flows, and drop those that have expired. Every RESOLVER_KEEP_S that is done
 * by itself; for who wants it at once. */
void resolver_keep(struct resolver *resolver);

/* resolver_count - how many questions had an outcome so far */
uint64_t resolver_count(const struct resolver *resolver, enum resolver_outcome outcome);
