/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/span.h"
#include "base/text.h"
#include "sandbox/special.h"
#include "sandbox/target.h"
#include "seal/digest.h"

/* What a command may reach on the network (docs/formats/policy.md). A policy is made once, never changed while a
 * command runs, and needs no lock to be read. Nothing here opens a socket or looks up a name. */

struct port_range {
        uint16_t first, last;
};

/* Ranges in ascending order that neither overlap nor touch. */
struct port_set {
        size_t n;
        struct port_range *ranges;
};

/* A place in a policy's file, from 1; line 0: nothing is written there. */
struct policy_place {
        unsigned line, column;
};

enum policy_match {
        POLICY_MATCH_NAME,    /* one name */
        POLICY_MATCH_SUFFIX,  /* "*.example.org": all names below it, itself not; "*": every name */
        POLICY_MATCH_ADDRESS, /* an address or a range */
};

struct policy_rule {
        bool is_deny;
        enum policy_match match;
        char *name;              /* of a name; what follows "*." of a suffix, "" for "*" */
        struct ip_prefix prefix; /* of an address, the bits behind its length are 0 */
        unsigned transports;     /* bit 1 << TRANSPORT_x for each */
        struct port_set ports;
        char *sni, *http_host; /* what the flow has to say: a name or "*.suffix"; NULL: does not matter */
        unsigned number;       /* in its list, from 1 */
        struct policy_place at;
        uint32_t next; /* the next rule of the same name, suffix or range, + 1; 0: none */
};

/* 0: no limit. */
struct policy_limits {
        uint64_t rate_bps;           /* bits a second, both directions together */
        uint64_t bytes;              /* in the whole run, both directions together */
        uint64_t connections;        /* open at once; flows of UDP count too */
        uint64_t new_connections_hz; /* opened a second */
};

/* One file. */
struct policy_layer {
        char *path;
        struct digest digest; /* of its bytes */
        struct policy_place default_at, deny_all_at, private_at, localhost_at;
        bool is_deny_all;
        bool allows_private; /* names may resolve to private addresses, and wide ranges hold them */
        struct port_set localhost;
        struct policy_limits total, per_target;
        size_t n_rules;
        struct policy_rule *rules; /* first those that deny, each list in the order of the file */
        struct policy_index *index;
};

/* What is allowed is what each of the layers allows. */
struct policy {
        size_t n_layers;
        struct policy_layer **layers;
        struct policy_limits total, per_target; /* the smallest of all layers */
};

#define POLICY_BYTES_MAX ((size_t)1 << 20)
#define POLICY_RULES_MAX 10000

/* policy_parse - the policy that @text says
 * @name: what to call the input in positions
 *
 * Return: 0, or a negative errno with the reason (kind usage, with line and column) in @err.
 */
int policy_parse(struct span text, const char *name, struct policy **ret, struct err *err);

/* policy_load - as policy_parse(), of a file that only who may command this process can change
 *
 * Refused are links, what is no regular file, more than POLICY_BYTES_MAX, a file that its group or others can write,
 * and one that belongs to somebody else than the effective user, root or, as root, the user who called sudo.
 */
int policy_load(int dirfd, const char *path, struct policy **ret, struct err *err);

/* policy_new_deny_all - what no file has to be written for. Return: NULL if memory ran out. */
struct policy *policy_new_deny_all(void);

/* policy_combine - narrow @into by @other, which is consumed: what is allowed afterwards is what both allow, and each
 * limit is the smaller one. Return: 0 or -ENOMEM, with both as before. */
int policy_combine(struct policy *into, struct policy **other, struct err *err);

void policy_free(struct policy *policy);

DEFINE_CLEANUP(struct policy *, policy_free)
#define _cleanup_policy_ _cleanup_(policy_free_cleanup)

enum policy_outcome {
        POLICY_DENIED,
        POLICY_ALLOWED,
        POLICY_PENDING, /* it depends on what the flow says of itself (SNI or Host), which the target does not tell yet
                         */
};

enum policy_reason {
        POLICY_BY_RULE,      /* @rule says so */
        POLICY_BY_DEFAULT,   /* no rule allows it */
        POLICY_BY_DENY_ALL,  /* the layer is `deny-all` */
        POLICY_BY_LOCALHOST, /* the port is, or is not, in `localhost` */
        POLICY_BY_SPECIAL,   /* the address is special, and no range is narrow enough to allow it */
};

struct decision {
        enum policy_outcome outcome;
        enum policy_reason reason;
        const struct policy_layer *layer; /* that decided: the first that denies, else the first that is pending, else
                                           * the first */
        const struct policy_rule *rule;   /* of POLICY_BY_RULE; else the one that came nearest, or NULL */
        struct special special;           /* of POLICY_BY_SPECIAL */
};

/* policy_decide - whether @target may be reached
 * @target: as much as is known. Without an address only rules for names can allow; they are to be asked again when it
 *          is known, because an address can be denied too. An address of IPv4 mapped into IPv6 is decided as IPv4.
 *
 * In each layer: a rule that denies comes first, then `localhost`, then special addresses, then rules that allow, then
 * the default, which denies. Does not allocate; its cost does not grow with the number of rules.
 */
void policy_decide(const struct policy *policy, const struct target *target, struct decision *ret);

/* policy_decide_name - whether @name (in normal form) may be looked up at all: some rule of each layer allows some of
 * its ports, and none denies all of them. Return: whether; @ret is as of policy_decide(), without a port. */
bool policy_decide_name(const struct policy *policy, const char *name, struct decision *ret);

#define DECISION_TEXT 512

/* decision_rule_format - which rule, for a line of a log: "allow[2], policy.yaml:7", "default deny, policy.yaml:1".
 * Return: @buf. */
char *decision_rule_format(const struct decision *decision, char buf[static DECISION_TEXT]);

/* decision_reason_format - why, in words: "no rule allows it; the nearest, allow[2] in line 7, is for ...". Return:
 * @buf. */
char *decision_reason_format(const struct decision *decision, char buf[static DECISION_TEXT]);

/* policy_rule_format - what a rule says: "allow *.example.org, tcp, port 443, server name example.org" */
void policy_rule_format(const struct policy_rule *rule, struct text *out);

/* A range of ports that is open. */
struct policy_opening {
        struct port_range ports;
        bool is_pending; /* only for flows that say who they are for, see POLICY_PENDING */
};

/* policy_openings - the ports on which a destination is open, in ascending order
 * @target: its port does not matter
 * @ret:    the caller frees them; NULL where there are none
 *
 * They are found by asking policy_decide() about each port at which something changes. Return: 0 or -ENOMEM.
 */
int policy_openings(const struct policy *policy, const struct target *target, struct policy_opening **ret,
                    size_t *ret_n);

/* A range of addresses that is open whatever name it was reached by, on a range of ports. */
struct policy_range {
        int family;
        uint8_t first[16], last[16]; /* of IPv4: the first 4 */
        enum transport transport;
        struct port_range ports;
        bool is_pending;
};

/* policy_ranges - all addresses that are open without a name: by family, transport, ports and address, ascending, no
 * address twice for a transport and port. `localhost` is not among them.
 * @ret: the caller frees them; NULL where there are none
 *
 * Return: 0 or -ENOMEM.
 */
int policy_ranges(const struct policy *policy, struct policy_range **ret, size_t *ret_n);

/* policy_localhost - the ports of the host's loopback that all layers allow (TCP). Return: 0 or -ENOMEM; the caller
 * frees @ret->ranges. */
int policy_localhost(const struct policy *policy, struct port_set *ret);

bool policy_is_deny_all(const struct policy *policy);

/* policy_conditional_rule - the first rule that asks what a flow says of itself, which not every enforcer can see; NULL
 * if there is none. @ret_layer may be NULL. */
const struct policy_rule *policy_conditional_rule(const struct policy *policy, const struct policy_layer **ret_layer);

/* policy_to_json - the policy as it is understood, with the digest of each file; a new reference, NULL if memory ran
 * out (docs/formats/policy.md) */
json_t *policy_to_json(const struct policy *policy);

/* policy_document - add the reference of its keys to @out, as Markdown. Return: 0 or -ENOMEM. */
int policy_document(struct text *out);

/* port_set_has - whether @port is in one of the ranges */
bool port_set_has(const struct port_set *set, uint16_t port);

/* port_set_format - "443", "80, 443, 8000-8999", "any" */
void port_set_format(const struct port_set *set, struct text *out);
