/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "sandbox/policy-internal.h"

/* What is asked, brought into one form once for all layers. */
struct question {
        struct target target; /* its address in normal form */
        const struct ip_prefix *address;
        bool has_embedded, is_special, is_local;
        struct ip_prefix embedded; /* the address of IPv4 that a translator would deliver to */
        struct special special;
};

/* What the rules of one layer say, the first of each kind. */
struct search {
        const struct question *question;
        bool is_special; /* and the layer does not lift that */
        bool is_embedded;
        const struct policy_rule *denies, *allows;
        const struct policy_rule *pending; /* would allow, if the flow said so */
        const struct policy_rule *barred;  /* would allow, were the address not special */
        const struct policy_rule *nearest; /* speaks of the host, but fits otherwise */
};

enum says { SAYS_NO, SAYS_YES, SAYS_NOTHING_YET };

bool policy_name_is_local(const char *name)
{
        const char *last = strrchr(name, '.');

        return streq(last ? last + 1 : name, "localhost");
}

static void ask(struct question *question, const struct target *target)
{
        struct target *t = &question->target;

        *question = (struct question){.target = *target};
        target_address_normalise(&t->address);
        if (t->address.family != 0) {
                question->address = &t->address;
                question->has_embedded = special_embedded(&t->address, &question->embedded);
                question->is_special = special_find(&t->address, &question->special);
        }
        question->is_local = t->name ? policy_name_is_local(t->name)
                                     : question->is_special && question->special.kind == SPECIAL_LOOPBACK;
}

/* Whether what the flow says of itself is what the rule asks for. */
static enum says requirement_holds(const char *required, const char *said)
{
        size_t len, suffix;

        if (!required)
                return SAYS_YES;
        if (!said)
                return SAYS_NOTHING_YET;
        if (streq(required, "*"))
                return *said ? SAYS_YES : SAYS_NO;
        if (required[0] != '*')
                return streq(required, said) ? SAYS_YES : SAYS_NO;
        len = strlen(said);
        suffix = strlen(required) - 1; /* with its dot */
        return len > suffix && streq(said + len - suffix, required + 1) ? SAYS_YES : SAYS_NO;
}

static enum says rule_holds(const struct policy_rule *rule, const struct target *target)
{
        enum says sni = requirement_holds(rule->sni, target->sni);
        enum says host = requirement_holds(rule->http_host, target->http_host);

        if (sni == SAYS_NO || host == SAYS_NO)
                return SAYS_NO;
        return sni == SAYS_YES && host == SAYS_YES ? SAYS_YES : SAYS_NOTHING_YET;
}

/* Rules of a layer lie in one array, in the order in which they are to be named. */
static void keep_first(const struct policy_rule **first, const struct policy_rule *rule)
{
        if (!*first || rule < *first)
                *first = rule;
}

static void consider(const struct policy_rule *rule, void *userdata)
{
        struct search *s = userdata;
        const struct target *target = &s->question->target;
        bool fits = rule->transports & 1u << target->transport && port_set_has(&rule->ports, target->port);
        enum says says;

        if (rule->is_deny) {
                if (fits)
                        keep_first(&s->denies, rule);
                return;
        }
        if (s->is_embedded)
                return;
        if (!fits) {
                keep_first(&s->nearest, rule);
                return;
        }
        if (s->is_special && (rule->match != POLICY_MATCH_ADDRESS ||
                              rule->prefix.length_bits < s->question->special.prefix.length_bits)) {
                keep_first(&s->barred, rule);
                return;
        }
        says = rule_holds(rule, target);
        keep_first(says == SAYS_YES ? &s->allows : says == SAYS_NO ? &s->nearest : &s->pending, rule);
}

static void look(const struct policy_layer *layer, const struct question *question, struct search *ret)
{
        bool is_lifted = layer->allows_private && question->is_special && question->special.kind == SPECIAL_PRIVATE;

        *ret = (struct search){.question = question, .is_special = question->is_special && !is_lifted};
        policy_index_visit(layer, question->target.name, question->address, consider, ret);
        ret->is_embedded = true;
        if (question->has_embedded)
                policy_index_visit(layer, NULL, &question->embedded, consider, ret);
}

static bool is_own_loopback(const struct question *question)
{
        static const uint8_t v4[4] = {127, 0, 0, 1}, v6[16] = {[15] = 1};
        const struct ip_prefix *address = question->address;

        return !address || memcmp(address->bytes, address->family == AF_INET ? v4 : v6,
                                  address->family == AF_INET ? sizeof(v4) : sizeof(v6)) == 0;
}

static void decide_layer(const struct policy_layer *layer, const struct question *question, struct decision *ret)
{
        const struct target *target = &question->target;
        struct search s;

        *ret = (struct decision){.outcome = POLICY_DENIED, .reason = POLICY_BY_DENY_ALL, .layer = layer};
        if (layer->is_deny_all)
                return;
        look(layer, question, &s);
        ret->reason = POLICY_BY_RULE;
        ret->rule = s.denies;
        if (s.denies)
                return;
        if (question->is_local) {
                ret->reason = POLICY_BY_LOCALHOST;
                if (target->transport == TRANSPORT_TCP && is_own_loopback(question) &&
                    port_set_has(&layer->localhost, target->port))
                        ret->outcome = POLICY_ALLOWED;
                return;
        }
        ret->rule = s.allows ? s.allows : s.pending ? s.pending : s.barred ? s.barred : s.nearest;
        if (s.allows || s.pending) {
                ret->outcome = s.allows ? POLICY_ALLOWED : POLICY_PENDING;
        } else if (s.barred) {
                ret->reason = POLICY_BY_SPECIAL;
                ret->special = question->special;
        } else {
                ret->reason = POLICY_BY_DEFAULT;
        }
}

static void decide(const struct policy *policy, const struct question *question, struct decision *ret)
{
        struct decision decision;

        *ret = (struct decision){.outcome = POLICY_DENIED, .reason = POLICY_BY_DEFAULT};
        for (size_t i = 0; i < policy->n_layers; i++) {
                decide_layer(policy->layers[i], question, &decision);
                if (i == 0 || decision.outcome == POLICY_DENIED ||
                    (decision.outcome == POLICY_PENDING && ret->outcome == POLICY_ALLOWED))
                        *ret = decision;
                if (decision.outcome == POLICY_DENIED)
                        return;
        }
}

void policy_decide(const struct policy *policy, const struct target *target, struct decision *ret)
{
        struct question question;

        ask(&question, target);
        decide(policy, &question, ret);
}

/* ---- whole destinations ---- */

/* The ports at which what is open may change: where a rule that speaks of the host begins, and behind its end. */
struct edges {
        size_t n, allocated;
        uint32_t *ports;
        bool failed;
};

static void edges_add(struct edges *edges, uint32_t port)
{
        if (edges->n == edges->allocated) {
                size_t more = 2 * edges->allocated + 16;
                uint32_t *ports = reallocarray(edges->ports, more, sizeof(*ports));

                edges->failed |= !ports;
                if (!ports)
                        return;
                edges->ports = ports;
                edges->allocated = more;
        }
        edges->ports[edges->n++] = port;
}

static void edges_add_set(const struct port_set *set, struct edges *edges)
{
        for (size_t i = 0; i < set->n; i++) {
                edges_add(edges, set->ranges[i].first);
                edges_add(edges, (uint32_t)set->ranges[i].last + 1);
        }
}

static void edges_of_rule(const struct policy_rule *rule, void *userdata)
{
        edges_add_set(&rule->ports, userdata);
}

static int compare_ports(const void *a, const void *b)
{
        const uint32_t *left = a, *right = b;

        return (*left > *right) - (*left < *right);
}

static int find_edges(const struct policy *policy, const struct question *question, struct edges *edges)
{
        for (size_t i = 0; i < policy->n_layers; i++) {
                policy_index_visit(policy->layers[i], question->target.name, question->address, edges_of_rule, edges);
                if (question->has_embedded)
                        policy_index_visit(policy->layers[i], NULL, &question->embedded, edges_of_rule, edges);
                if (question->is_local)
                        edges_add_set(&policy->layers[i]->localhost, edges);
        }
        edges_add(edges, UINT16_MAX + 1);
        if (edges->failed)
                return -ENOMEM;
        qsort(edges->ports, edges->n, sizeof(*edges->ports), compare_ports);
        return 0;
}

static void add_opening(struct policy_opening *openings, size_t *n, uint32_t first, uint32_t end, bool is_pending)
{
        struct policy_opening *last = *n > 0 ? &openings[*n - 1] : NULL;

        if (last && (uint32_t)last->ports.last + 1 == first && last->is_pending == is_pending)
                last->ports.last = (uint16_t)(end - 1);
        else
                openings[(*n)++] = (struct policy_opening){{(uint16_t)first, (uint16_t)(end - 1)}, is_pending};
}

int policy_openings(const struct policy *policy, const struct target *target, struct policy_opening **ret,
                    size_t *ret_n)
{
        _cleanup_free_ struct policy_opening *openings = NULL;
        struct edges edges = {0};
        struct question question;
        size_t n = 0;

        ask(&question, target);
        if (find_edges(policy, &question, &edges) == 0)
                openings = calloc(edges.n, sizeof(*openings));
        for (size_t i = 0; openings && i + 1 < edges.n; i++) {
                uint32_t first = edges.ports[i], end = edges.ports[i + 1];
                struct decision decision;

                if (first == end)
                        continue;
                question.target.port = (uint16_t)first;
                decide(policy, &question, &decision);
                if (decision.outcome != POLICY_DENIED)
                        add_opening(openings, &n, first, end, decision.outcome == POLICY_PENDING);
        }
        free(edges.ports);
        if (!openings)
                return -ENOMEM;
        *ret = n > 0 ? TAKE_PTR(openings) : NULL;
        *ret_n = n;
        return 0;
}

/* Asks about each port at which a name may come open, until it is. */
struct name_search {
        const struct policy *policy;
        struct question question;
        struct decision decision;
        bool is_asked, is_open;
};

static void try_port(struct name_search *s, uint32_t port)
{
        struct decision decision;

        if (s->is_open || port > UINT16_MAX)
                return;
        s->question.target.port = (uint16_t)port;
        for (s->question.target.transport = 0; s->question.target.transport < N_TRANSPORTS && !s->is_open;
             s->question.target.transport++) {
                decide(s->policy, &s->question, &decision);
                s->is_open = decision.outcome != POLICY_DENIED;
                if (!s->is_asked || s->is_open || decision.reason == POLICY_BY_RULE)
                        s->decision = decision;
                s->is_asked = true;
        }
}

static void try_rule(const struct policy_rule *rule, void *userdata)
{
        for (size_t i = 0; i < rule->ports.n; i++)
                try_port(userdata,
                         rule->is_deny ? (uint32_t)rule->ports.ranges[i].last + 1 : rule->ports.ranges[i].first);
}

bool policy_decide_name(const struct policy *policy, const char *name, struct decision *ret)
{
        const struct target target = {.name = name};
        struct name_search s = {.policy = policy};

        ask(&s.question, &target);
        for (size_t i = 0; i < policy->n_layers && !s.question.is_local; i++)
                policy_index_visit(policy->layers[i], name, NULL, try_rule, &s);
        if (!s.is_asked)
                decide(policy, &s.question, &s.decision);
        *ret = s.decision;
        return s.is_open;
}
