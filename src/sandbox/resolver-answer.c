/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/clock.h"
#include "base/macro.h"
#include "sandbox/resolver-internal.h"
#include "sandbox/target.h"

#define CHAIN_MAX      16   /* aliases that are followed */
#define UDP_ANSWER_MAX 1232 /* no fragments on any path */
#define REVERSE_MAX    16   /* names that are told of one address */

/* An answer that is being made, with what will be noted of it. */
struct answer {
        struct resolver *resolver;
        const struct dns_message *query;
        const struct resolver_return *to;
        struct dns_writer writer;
        struct resolver_question question;
        struct dns_end end;
        char target[TARGET_TEXT];
        char reason[DECISION_TEXT];
        struct pin pins[RESOLVER_ADDRESSES_MAX];
        size_t n_pins;
};

static void answer_begin(struct answer *a, struct resolver *resolver, const struct dns_message *query,
                         const struct resolver_return *to)
{
        size_t size = sizeof(resolver->answer);

        a->resolver = resolver;
        a->query = query;
        a->to = to;
        a->question = (struct resolver_question){.name = query->name, .type = query->type};
        a->end = (struct dns_end){.rcode = DNS_RCODE_NOERROR};
        a->n_pins = 0;
        if (to->service) {
                size = query->edns.is_present ? query->edns.udp_size : DNS_UDP_MAX;
                size = MIN(size, (size_t)UDP_ANSWER_MAX);
        }
        dns_writer_begin(&a->writer, resolver->answer, size, query);
}

static void answer_send(struct answer *a, enum resolver_outcome outcome)
{
        struct resolver *resolver = a->resolver;
        size_t len = dns_writer_finish(&a->writer, a->query, &a->end);

        a->question.outcome = outcome;
        a->question.rcode = a->end.rcode;
        a->question.pins = a->pins;
        a->question.n_pins = a->n_pins;
        resolver->counts[outcome]++;
        if (resolver->options.note)
                resolver->options.note(resolver->options.userdata, &a->question);
        resolver_client_reply(a->to, span_of(resolver->answer, len));
}

static void answer_with(struct answer *a, enum dns_rcode rcode, enum resolver_outcome outcome)
{
        a->end.rcode = rcode;
        answer_send(a, outcome);
}

/* Says why not, both to the command and to who notes it, and nothing else. */
static void answer_because(struct answer *a, enum dns_rcode rcode, enum dns_extended_error error,
                           enum resolver_outcome outcome, const char *reason)
{
        dns_writer_begin(&a->writer, a->writer.buf, a->writer.size, a->query);
        a->n_pins = 0;
        a->end.has_error = true;
        a->end.error = error;
        a->end.error_text = reason;
        a->question.reason = reason;
        answer_with(a, rcode, outcome);
}

static void answer_failed(struct answer *a, enum dns_extended_error error, const char *reason)
{
        answer_because(a, DNS_RCODE_SERVFAIL, error, RESOLVER_FAILED, reason);
}

/* Keeps which rule denies what is in @a->target. */
static void note_denial(struct answer *a, const struct decision *decision)
{
        a->question.target = a->target;
        a->question.reason = decision_rule_format(decision, a->reason);
}

/* Once it is noted. */
static void answer_denied(struct answer *a, enum dns_rcode rcode, enum resolver_outcome outcome)
{
        answer_because(a, rcode, DNS_EDE_BLOCKED, outcome, a->reason);
}

/* ---- from upstream ---- */

/* The alias of a name among the answers; false where it has none. */
static bool find_alias(const struct dns_message *response, const char *name, struct dns_answer *ret)
{
        struct dns_cursor cursor = {0};

        while (dns_answer_next(response, &cursor, ret) == 1)
                if (ret->type == DNS_TYPE_CNAME && dns_name_equal(ret->name, name))
                        return true;
        return false;
}

/* Follows the aliases from the name that was asked, into the answer.
 * @ret: the name at the end, as upstream writes it
 *
 * Return: how many there were; -ELOOP where they do not end.
 */
static int follow_aliases(struct answer *a, const struct dns_message *response, char ret[static DNS_NAME_TEXT])
{
        struct dns_answer alias;
        int n = 0;

        memcpy(ret, response->name, DNS_NAME_TEXT);
        while (find_alias(response, ret, &alias)) {
                if (n++ == CHAIN_MAX)
                        return -ELOOP;
                memcpy(ret, alias.target, DNS_NAME_TEXT);
                dns_writer_cname(&a->writer, alias.target, MIN(alias.ttl_s, (uint32_t)RESOLVER_TTL_S));
        }
        return n;
}

/* Whether an address may be reached on any port under a name; a reason of why not goes into @ret_decision. */
static int decide_address(const struct policy *policy, const char *name, const struct ip_prefix *address,
                          struct decision *ret_decision)
{
        struct target target = {.name = name, .address = *address};
        struct decision by_name;

        for (target.transport = 0; target.transport < N_TRANSPORTS; target.transport++) {
                _cleanup_free_ struct policy_opening *openings = NULL;
                size_t n = 0;
                int r = policy_openings(policy, &target, &openings, &n);

                if (r < 0 || n > 0)
                        return r < 0 ? r : 1;
        }
        /* The rule by which the name may be looked up says of which port to ask why. */
        policy_decide_name(policy, name, &by_name);
        target.transport = TRANSPORT_TCP;
        if (by_name.rule && by_name.rule->ports.n > 0) {
                target.port = by_name.rule->ports.ranges[0].first;
                if (!(by_name.rule->transports & 1u << TRANSPORT_TCP))
                        target.transport = TRANSPORT_UDP;
        }
        policy_decide(policy, &target, ret_decision);
        return 0;
}

static struct ip_prefix address_of(const struct dns_answer *answer)
{
        bool is_v4 = answer->type == DNS_TYPE_A;
        struct ip_prefix address = {.family = is_v4 ? AF_INET : AF_INET6, .length_bits = is_v4 ? 32 : 128};

        memcpy(address.bytes, answer->address, address.length_bits / 8);
        target_address_normalise(&address);
        return address;
}

static int64_t expiry(const struct resolver *resolver, uint32_t ttl_s)
{
        int64_t seconds = MAX((int64_t)ttl_s, (int64_t)RESOLVER_PIN_S) + RESOLVER_KEEP_S;

        return loop_now_ns(resolver->options.loop) + seconds * NSEC_PER_SEC;
}

/* Takes the addresses of @name that may be reached into the answer.
 * @name: as upstream writes it; @normal: in normal form
 *
 * Of those that may not be, the last is noted. Return: 0 or -ENOMEM.
 */
static int take_addresses(struct answer *a, const struct dns_message *response, const char *name, const char *normal)
{
        struct dns_cursor cursor = {0};
        struct decision decision;
        struct dns_answer answer;

        while (dns_answer_next(response, &cursor, &answer) == 1 && a->n_pins < RESOLVER_ADDRESSES_MAX) {
                uint32_t ttl_s = MIN(answer.ttl_s, (uint32_t)RESOLVER_TTL_S);
                struct ip_prefix address;
                char text[IP_TEXT_MAX];
                int r;

                if (answer.type != a->query->type || !dns_name_equal(answer.name, name))
                        continue;
                address = address_of(&answer);
                r = decide_address(a->resolver->options.policy, normal, &address, &decision);
                if (r < 0)
                        return r;
                if (r == 0) {
                        ip_prefix_format(&address, text);
                        text[strcspn(text, "/")] = '\0';
                        snprintf(a->target, sizeof(a->target), "name %s at %s", normal, text);
                        note_denial(a, &decision);
                        continue;
                }
                a->pins[a->n_pins++] = (struct pin){
                        .address = address,
                        .name = normal,
                        .expires_ns = expiry(a->resolver, ttl_s),
                };
                dns_writer_address(&a->writer, answer.type == DNS_TYPE_A ? AF_INET : AF_INET6, answer.address, ttl_s);
        }
        return 0;
}

/* Pins the addresses of an answer, under the name that was asked too, and has them admitted. Return: 0, or a negative
 * errno with @a->reason set. */
static int pin(struct answer *a, const char *asked)
{
        const struct resolver_options *options = &a->resolver->options;
        int64_t now_ns = loop_now_ns(options->loop);
        struct err err = {0};
        int r = 0;

        for (size_t i = 0; r == 0 && i < a->n_pins; i++) {
                r = pins_add(options->pins, &a->pins[i], now_ns);
                a->pins[i].name = asked;
                if (r == 0)
                        r = pins_add(options->pins, &a->pins[i], now_ns);
        }
        if (r < 0)
                err_set(&err, ERR_ENVIRONMENT, -r,
                        r == -ENOSPC ? "too many addresses are in use at once" : "out of memory");
        else if (options->admit)
                r = options->admit(options->userdata, a->pins, a->n_pins, &err);
        if (r < 0)
                snprintf(a->reason, sizeof(a->reason), "%s", err.text);
        return MIN(r, 0);
}

/* Whether the name at the end of @n aliases may be reached; else it is answered.
 * @ret: in normal form
 */
static bool check_end(struct answer *a, const char *asked, int n, const char *name, struct host_name *ret)
{
        struct decision decision;

        if (n < 0) {
                answer_failed(a, DNS_EDE_NETWORK_ERROR, "the aliases of the name do not end");
                return false;
        }
        if (host_name_parse(span_of_text(name), ret) < 0 || ret->kind != HOST_NAME_IS_NAME) {
                answer_failed(a, DNS_EDE_NETWORK_ERROR, "the name is an alias of what is no name of a host");
                return false;
        }
        /* Without aliases it is the name that was asked, and was looked at. */
        if (n == 0 || policy_decide_name(a->resolver->options.policy, ret->text, &decision))
                return true;
        snprintf(a->target, sizeof(a->target), "name %s, of which %s is an alias", ret->text, asked);
        note_denial(a, &decision);
        answer_denied(a, DNS_RCODE_NXDOMAIN, RESOLVER_ALIAS_DENIED);
        return false;
}

/* What upstream said of a name that may be looked up. */
static void answer_from(struct answer *a, const struct resolver_query *query, const struct dns_message *response)
{
        const char *asked = query->name.text;
        char name[DNS_NAME_TEXT];
        struct host_name end;
        int n;

        n = follow_aliases(a, response, name);
        if (!check_end(a, asked, n, name, &end))
                return;
        if (take_addresses(a, response, name, end.text) < 0)
                answer_failed(a, DNS_EDE_OTHER, "out of memory");
        else if (a->n_pins == 0 && a->question.target)
                /* There is such a name, and it may have an address of the other family. */
                answer_denied(a, DNS_RCODE_NOERROR, RESOLVER_ADDRESS_DENIED);
        else if (a->n_pins == 0)
                answer_with(a, (enum dns_rcode)response->rcode, RESOLVER_EMPTY);
        else if (pin(a, asked) < 0)
                answer_failed(a, DNS_EDE_OTHER, a->reason);
        else
                answer_send(a, RESOLVER_ANSWERED);
}

static void query_free(struct resolver_query *query)
{
        struct resolver *resolver = query->resolver;

        *query->place = query->next;
        if (query->next)
                query->next->place = query->place;
        resolver->n_waiting--;
        if (query->to.client)
                resolver_client_release(query->to.client);
        free(query);
}

void resolver_finish(struct resolver_query *query, struct span bytes, int status)
{
        struct dns_message response;
        enum dns_fault fault = dns_response_parse(bytes, &response);
        struct answer a;

        if (status == ARES_EDESTRUCTION) {
                query_free(query);
                return;
        }
        answer_begin(&a, query->resolver, &query->message, &query->to);
        if (bytes.len == 0) {
                snprintf(a.reason, sizeof(a.reason), "the name servers of the host did not answer: %s",
                         ares_strerror(status));
                answer_failed(&a, DNS_EDE_NETWORK_ERROR, a.reason);
        } else if (fault != DNS_FAULT_NONE) {
                snprintf(a.reason, sizeof(a.reason), "a name server of the host sent a malformed answer (%s)",
                         dns_fault_name(fault));
                answer_failed(&a, DNS_EDE_NETWORK_ERROR, a.reason);
        } else if (!dns_name_equal(response.name, query->name.text) || response.type != query->message.type ||
                   response.is_truncated) {
                answer_failed(&a, DNS_EDE_NETWORK_ERROR,
                              "a name server of the host answered something else than it was asked");
        } else if (response.rcode != DNS_RCODE_NOERROR && response.rcode != DNS_RCODE_NXDOMAIN) {
                snprintf(a.reason, sizeof(a.reason), "the name servers of the host refuse to answer (code %u)",
                         response.rcode);
                answer_failed(&a, DNS_EDE_NETWORK_ERROR, a.reason);
        } else {
                answer_from(&a, query, &response);
        }
        query_free(query);
}

/* ---- from the command ---- */

/* The names of an address that was given out. */
static void answer_reverse(struct answer *a)
{
        struct resolver *resolver = a->resolver;
        int64_t now_ns = loop_now_ns(resolver->options.loop);
        struct ip_prefix address = {0};
        const char *name = NULL;
        size_t n = 0;

        address.family = dns_name_to_address(a->query->name, address.bytes);
        if (address.family != 0) {
                address.length_bits = address.family == AF_INET ? 32 : 128;
                target_address_normalise(&address);
                while (n < REVERSE_MAX && (name = pins_next(resolver->options.pins, &address, now_ns, name))) {
                        dns_writer_ptr(&a->writer, name, 0);
                        n++;
                }
        }
        answer_with(a, n > 0 ? DNS_RCODE_NOERROR : DNS_RCODE_NXDOMAIN, n > 0 ? RESOLVER_ANSWERED : RESOLVER_EMPTY);
}

/* "localhost" and what is below it are the command's own loopback, whatever the policy and whoever upstream say
 * (RFC 6761, 6.3). It needs no pin: nothing of it leaves the sandbox. */
static bool is_localhost(const struct host_name *name)
{
        static const char localhost[] = "localhost";
        size_t len = strlen(name->text), suffix = sizeof(localhost) - 1;

        return len >= suffix && streq(name->text + len - suffix, localhost) &&
               (len == suffix || name->text[len - suffix - 1] == '.');
}

static void answer_localhost(struct answer *a)
{
        static const uint8_t v4[4] = {127, 0, 0, 1}, v6[16] = {[15] = 1};
        bool is_v4 = a->query->type == DNS_TYPE_A;

        if (is_v4 || a->query->type == DNS_TYPE_AAAA)
                dns_writer_address(&a->writer, is_v4 ? AF_INET : AF_INET6, is_v4 ? v4 : v6, 0);
        answer_send(a, is_v4 || a->query->type == DNS_TYPE_AAAA ? RESOLVER_ANSWERED : RESOLVER_EMPTY);
}

/* Whether the name may be looked up; else it is answered. */
static bool check_name(struct answer *a, struct host_name *ret)
{
        struct decision decision;

        if (host_name_parse(span_of_text(a->query->name), ret) < 0 || ret->kind != HOST_NAME_IS_NAME) {
                snprintf(a->target, sizeof(a->target), "name %s", a->query->name);
                a->question.target = a->target;
                answer_because(a, DNS_RCODE_NXDOMAIN, DNS_EDE_BLOCKED, RESOLVER_NAME_DENIED, "no name of a host");
                return false;
        }
        if (is_localhost(ret)) {
                answer_localhost(a);
                return false;
        }
        if (policy_decide_name(a->resolver->options.policy, ret->text, &decision))
                return true;
        snprintf(a->target, sizeof(a->target), "name %s", ret->text);
        note_denial(a, &decision);
        answer_denied(a, DNS_RCODE_NXDOMAIN, RESOLVER_NAME_DENIED);
        return false;
}

/* Sends a query upstream. Return: 0; -EBUSY, -ENOMEM where it was not. */
static int ask(struct resolver *resolver, struct span bytes, const struct host_name *name,
               const struct resolver_return *to)
{
        struct resolver_query *query;

        if (resolver->n_waiting >= RESOLVER_QUERIES_MAX)
                return -EBUSY;
        query = malloc(sizeof(*query) + bytes.len);
        if (!query)
                return -ENOMEM;
        *query = (struct resolver_query){.resolver = resolver, .to = *to, .name = *name};
        memcpy(query->bytes, bytes.data, bytes.len);
        /* It was read before, from the client's buffer. */
        if (dns_query_parse(span_of(query->bytes, bytes.len), &query->message) != DNS_FAULT_NONE) {
                free(query);
                return -EBADMSG;
        }
        query->next = resolver->waiting;
        query->place = &resolver->waiting;
        if (query->next)
                query->next->place = &query->next;
        resolver->waiting = query;
        resolver->n_waiting++;
        resolver_upstream_ask(query);
        return 0;
}

/* Answers at once what needs nobody else. Return: whether that was so; else the query is for @ret_name. */
static bool answer_at_once(struct answer *a, struct host_name *ret_name)
{
        const struct dns_message *query = a->query;

        if (query->opcode != 0) {
                answer_with(a, DNS_RCODE_NOTIMP, RESOLVER_UNSUPPORTED);
        } else if (query->edns.version > 0) {
                answer_with(a, DNS_RCODE_BADVERS, RESOLVER_UNSUPPORTED);
        } else if (query->class != DNS_CLASS_IN) {
                answer_because(a, DNS_RCODE_REFUSED, DNS_EDE_NOT_SUPPORTED, RESOLVER_UNSUPPORTED,
                               "only the class IN is answered here");
        } else if (query->type == DNS_TYPE_PTR) {
                answer_reverse(a);
        } else if (!check_name(a, ret_name)) {
                return true;
        } else if (query->type != DNS_TYPE_A && query->type != DNS_TYPE_AAAA) {
                answer_because(a, DNS_RCODE_NOERROR, DNS_EDE_NOT_SUPPORTED, RESOLVER_UNSUPPORTED,
                               "only addresses are answered here (A, AAAA)");
        } else {
                return false;
        }
        return true;
}

void resolver_take(struct resolver *resolver, struct span bytes, const struct resolver_return *to)
{
        struct dns_message query;
        enum dns_fault fault = dns_query_parse(bytes, &query);
        struct host_name name;
        struct answer a;

        if (fault == DNS_FAULT_SHORT || fault == DNS_FAULT_DIRECTION) {
                /* Nobody to answer: whoever answered a response would never stop. */
                resolver->counts[RESOLVER_MALFORMED]++;
                if (to->client)
                        resolver_client_release(to->client);
                return;
        }
        answer_begin(&a, resolver, &query, to);
        if (fault != DNS_FAULT_NONE) {
                a.question.reason = dns_fault_name(fault);
                answer_with(&a, DNS_RCODE_FORMERR, RESOLVER_MALFORMED);
        } else if (!answer_at_once(&a, &name)) {
                if (ask(resolver, bytes, &name, to) == 0)
                        return;
                answer_failed(&a, DNS_EDE_OTHER, "too many questions at once");
        }
        if (to->client)
                resolver_client_release(to->client);
}
