/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "sys/ip.h"
#include "sys/netns.h"

struct asker;
struct askers;
struct bundle;
struct denials;
struct loop;
struct pin;
struct policy;
struct target;

/* What keeps a command to its policy: one file an enforcer, behind one table.
 *
 * Life of a run, in the order of the calls:
 *   able()    in the supervisor, nothing exists yet
 *   inside()  in N, the command's network namespace, with every right over it (see below)
 *   up()      in the supervisor, in the host's network namespace; sandbox->netns is N. The command does not run yet
 *   admit()   while the command runs, before an answer that names new addresses leaves the resolver
 *   down()    always at the end, also after a failure of any of these; idempotent
 * Whatever is up has to fail closed when the supervisor is killed between any two instructions: then the command dies
 * with its PID namespace, N with its last process, and down() is not called. */

enum strength {
        STRENGTH_UNENFORCED, /* looks on, and stops nothing */
        STRENGTH_ENFORCED,   /* what the policy does not allow does not leave */
};

/* A run as enforcers see it. */
struct sandbox {
        const struct policy *policy; /* what was asked for, combined */
        const struct enforcer_ops *enforcer;
        struct loop *loop;  /* of the supervisor: sockets, timers; a callback's negative errno ends the run (125) */
        struct netns netns; /* N; -1 before inside() has returned, and where the enforcer has none */
        bool is_rootless;   /* N belongs to a user namespace of ours: BPF, links to the host: not possible */
        pid_t init;         /* of the command's PID namespace, as a number of the supervisor's; 0 before it exists */
        void *state;        /* the enforcer's own */
        /* Set by up(), where there is expose(): an address of this host to which the command's packets would come if
         * they were let through; family 0: there is none. */
        struct ip_prefix control;

        bool is_proving; /* what is tried now is a prober's, and is not to be told or counted; see prove.h */
        bool is_raw;     /* the user's terminal is relayed */
        struct denials *denials;
        struct bundle *bundle; /* NULL: none is written */
        struct askers *askers; /* NULL: nobody looks on, see askers.h; the enforcer's, set by inside() */

        /* Set by inside(): where the command's resolver is. Goes into its resolv.conf; empty: 127.0.0.1, where nobody
         * answers. */
        char resolver[INET6_ADDRSTRLEN];
};

struct enforcer_ops {
        const char *name; /* as in --enforce */
        enum strength strength;
        bool is_asked; /* what the command asks for passes by the supervisor (attempt.h), which refuses it: for where
                        * there is no way out of N anyway. What is not enforced is looked at there for a record. */
        bool shares_network; /* the command stays in the host's network namespace: no N, inside() is not called */

        /* Whether it can enforce every rule of @policy here.
         * Return: 1; 0 where it cannot, and @err names the rule and the capability that is missing; a negative errno
         * where that could not be found out. */
        int (*able)(const struct policy *policy, struct err *err);

        /* Makes what N needs: addresses, routes, rules, listening sockets. NULL: nothing but lo, which is up already.
         *
         * Runs in a process of its own that shares memory AND descriptors with the supervisor, which waits: so sockets
         * opened here belong to N and are the supervisor's afterwards, and what is stored in @sandbox stays. It is root
         * of the user namespace that owns N (as root: of the host's). It must neither fork without exec nor change
         * signals, credentials or the working directory, and must return. */
        int (*inside)(struct sandbox *sandbox, struct err *err);

        /* The host's side, in the supervisor. NULL: nothing. */
        int (*up)(struct sandbox *sandbox, struct err *err);

        /* Lets the addresses of allowed names in, before the answer leaves. NULL: nothing to do. */
        int (*admit)(struct sandbox *sandbox, const struct pin *pins, size_t n, struct err *err);

        /* Lets TCP and UDP to a port of one of sandbox->controls through, or no longer: for the time of the proof,
         * where it has to arrive, as the positive control and to order the checks. NULL: nothing gets through, whatever
         * it is. */
        int (*expose)(struct sandbox *sandbox, const struct ip_prefix *address, uint16_t port, bool is_open,
                      struct err *err);

        /* NULL: nothing. */
        int (*down)(struct sandbox *sandbox, struct err *err);
};

/* Every enforcer that is built in; "auto" takes the first that is enforced and able. Ended by NULL. */
extern const struct enforcer_ops *const enforcers[];

extern const struct enforcer_ops enforcer_deny_all; /* for a policy that allows nothing: loopback only */
extern const struct enforcer_ops enforcer_wall;     /* the kernel's own way, between rules at both ends of a link */
extern const struct enforcer_ops enforcer_proxy;    /* the supervisor moves the bytes, and needs no right */
extern const struct enforcer_ops enforcer_none;     /* unenforced */

/* enforcer_find - the one of that name, or NULL */
const struct enforcer_ops *enforcer_find(const char *name);

/* enforcer_choose - the one that is to be used
 * @name:  "auto", or one by name; never is a weaker one taken than was asked for
 *
 * Return: 0; -EINVAL, kind usage, where there is none of that name; -EOPNOTSUPP, kind unsupported, where it cannot
 * enforce @policy here: @err names each enforcer that was asked, the rule and the missing capability.
 */
int enforcer_choose(const char *name, const struct policy *policy, const struct enforcer_ops **ret, struct err *err);

/* sandbox_denied - record what was refused, and tell the user at once; the same target is not repeated within a second,
 * nor are there more than 100 lines a second
 * @target: what was asked for: "tcp 192.0.2.1:443", "udp [2001:db8::1]:53", "name www.example.com"; outside bytes are
 *          made visible
 * @rule:   what decided, and where it stands: "default deny, policy.yaml:3"
 * @who:    that asked; NULL: not known
 */
void sandbox_denied(struct sandbox *sandbox, const char *target, const char *rule, const struct asker *who);

/* sandbox_watched - record what was asked for where nothing is refused; as sandbox_denied() */
void sandbox_watched(struct sandbox *sandbox, const char *target, const struct asker *who);
