/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/askers.h"

#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/macro.h"
#include "sandbox/bundle.h"
#include "sandbox/holder.h"
#include "sandbox/policy.h"
#include "sandbox/rules.h"
#include "sys/loop.h"
#include "sys/sockdiag.h"
#include "sys/witness.h"

#define PLACES           1024 /* one target pushes out another of the same place, of whom then is not known who asks */
#define LOOKUPS_A_SECOND 200
#define LOOKUP_NS        (NSEC_PER_SEC / 2) /* in a second, after which there is none before the next one */
#define PROGRAMS         256
#define BUCKETS          1024
#define KNOWN_MAX        4096 /* questions, after which they are counted and forgotten */

/* Who asked for a target last. */
struct place {
        struct witness_target to;
        pid_t pid;
        char *executable; /* NULL: not known */
};

/* What a process was when it asked last. */
struct program {
        uint32_t pid;
        char comm[16];
        char *executable;
};

/* A question that is only counted from now on. */
struct known {
        struct known *next;
        struct witness_question question;
        pid_t pid;
        char *executable, *target, *rule; /* @target NULL: not for the record */
};

struct askers {
        struct sandbox *sandbox;
        const struct names *names;
        bool counts, is_begun, counts_flows;
        struct witness *witness; /* NULL: nobody looks on */
        struct loop_io io;
        struct place places[PLACES];
        struct program programs[PROGRAMS];
        struct known *buckets[BUCKETS];
        size_t n_known;
        struct asker found;

        int sockdiag_fd; /* in N; -1: none */

        /* Where nobody looks on. */
        int64_t second_ns;
        unsigned n_lookups; /* in that second */
        int64_t spent_ns;   /* for them */
};

void asker_read(pid_t pid, struct asker *ret)
{
        char link[32];
        ssize_t len = -1;

        ret->pid = pid;
        snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
        if (pid > 0)
                len = readlink(link, ret->executable, sizeof(ret->executable) - 1);
        ret->executable[MAX(len, (ssize_t)0)] = '\0';
}

static struct target target_of(const struct witness_target *to)
{
        struct target target = {.transport = to->protocol == IPPROTO_UDP ? TRANSPORT_UDP : TRANSPORT_TCP,
                                .port = ntohs(to->port),
                                .address = {.family = to->version == 4 ? AF_INET : AF_INET6,
                                            .length_bits = to->version == 4 ? 32 : 128}};

        memcpy(target.address.bytes, to->address, target.address.length_bits / 8);
        return target;
}

static struct witness_target key_of(const struct target *target)
{
        struct witness_target to = {.port = htons(target->port),
                                    .protocol = target->transport == TRANSPORT_UDP ? IPPROTO_UDP : IPPROTO_TCP,
                                    .version = target->address.family == AF_INET ? 4 : 6};

        memcpy(to.address, target->address.bytes, to.version == 4 ? 4 : 16);
        return to;
}

static struct place *place_of(struct askers *askers, const struct witness_target *to)
{
        return &askers->places[hash_bytes(HASH_START, to, sizeof(*to)) % PLACES];
}

static char *copy_of(const char *text)
{
        return text && text[0] ? strdup(text) : NULL;
}

static void remember(struct askers *askers, const struct witness_target *to)
{
        struct place *place = place_of(askers, to);

        free(place->executable);
        *place = (struct place){.to = *to, .pid = askers->found.pid, .executable = copy_of(askers->found.executable)};
}

/* ---- what is known ---- */

static void known_free(struct known *known)
{
        free(known->executable);
        free(known->target);
        free(known->rule);
        free(known);
}

static struct known **bucket_of(struct askers *askers, const struct witness_question *question)
{
        return &askers->buckets[hash_bytes(HASH_START, question, sizeof(*question)) % BUCKETS];
}

static void record(const struct askers *askers, const struct known *known, uint64_t times)
{
        const struct bundle_attempt attempt = {.target = known->target,
                                               .rule = known->rule,
                                               .executable = known->executable,
                                               .pid = known->pid,
                                               .is_allowed = true};

        if (known->target && times > 0)
                bundle_attempt(askers->sandbox->bundle, &attempt, times);
}

static void count(const struct witness_question *question, uint64_t times, void *userdata)
{
        struct askers *askers = userdata;
        const struct known *known = *bucket_of(askers, question);

        while (known && memcmp(&known->question, question, sizeof(*question)) != 0)
                known = known->next;
        if (known)
                record(askers, known, times);
}

static void forget(struct askers *askers)
{
        witness_forget(askers->witness, count, askers);
        for (size_t i = 0; i < BUCKETS; i++)
                while (askers->buckets[i]) {
                        struct known *known = askers->buckets[i];

                        askers->buckets[i] = known->next;
                        known_free(known);
                }
        askers->n_known = 0;
}

/* Where memory runs out the question goes on being reported. */
static void know(struct askers *askers, const struct witness_question *question, const struct asker *who,
                 const char *target, const char *rule)
{
        struct known *known = calloc(1, sizeof(*known)), **bucket = bucket_of(askers, question);

        if (!known)
                return;
        *known = (struct known){.question = *question,
                                .pid = who->pid,
                                .executable = copy_of(who->executable),
                                .target = copy_of(target),
                                .rule = copy_of(rule)};
        record(askers, known, 1);
        if (askers->n_known >= KNOWN_MAX)
                forget(askers);
        if (witness_know(askers->witness, question) < 0) {
                known_free(known);
                return;
        }
        known->next = *bucket; /* now, since to forget empties it */
        *bucket = known;
        askers->n_known++;
}

/* ---- questions ---- */

/* Loopback is N's own. What is asked at the port of names is turned to the resolver, which records it. */
static bool is_for_record(const struct askers *askers, const struct target *target)
{
        if (!askers->counts || (target->port == RULES_DNS_PORT && rules_has_names(askers->sandbox->policy)))
                return false;
        return !target_address_is_own(&target->address);
}

/* A process that is gone by now, and has asked before under the same name, is the program that it was then. */
static void read_asker(struct askers *askers, const struct witness_report *report, pid_t pid)
{
        struct program *program = &askers->programs[report->question.pid % PROGRAMS];

        asker_read(pid, &askers->found);
        if (askers->found.executable[0]) {
                free(program->executable);
                program->pid = report->question.pid;
                memcpy(program->comm, report->comm, sizeof(program->comm));
                program->executable = strdup(askers->found.executable);
        } else if (program->executable && program->pid == report->question.pid &&
                   memcmp(program->comm, report->comm, sizeof(program->comm)) == 0) {
                snprintf(askers->found.executable, sizeof(askers->found.executable), "%s", program->executable);
        }
}

static void on_question(const struct witness_report *report, pid_t pid, void *userdata)
{
        const struct witness_question *question = &report->question;
        struct askers *askers = userdata;
        struct target target = target_of(&question->to);
        char text[TARGET_TEXT], rule[DECISION_TEXT];
        struct decision decision;

        if (!askers->is_begun)
                return;
        read_asker(askers, report, pid);
        remember(askers, &question->to);
        if (!is_for_record(askers, &target)) {
                know(askers, question, &askers->found, NULL, NULL);
        } else if (names_decide(askers->names, askers->sandbox->policy, &target, &decision) == POLICY_ALLOWED) {
                target_format(&target, text);
                decision_rule_format(&decision, rule);
                know(askers, question, &askers->found, text, rule);
        }
}

static int on_reports(struct loop_io *io, uint32_t events)
{
        struct askers *askers = CONTAINER_OF(io, struct askers, io);

        witness_read(askers->witness, on_question, askers);
        return 0;
}

static const struct asker *recall(struct askers *askers, const struct witness_target *to)
{
        const struct place *place = place_of(askers, to);

        if (memcmp(&place->to, to, sizeof(*to)) != 0)
                return NULL;
        askers->found.pid = place->pid;
        snprintf(askers->found.executable, sizeof(askers->found.executable), "%s",
                 place->executable ? place->executable : "");
        return &askers->found;
}

bool askers_looks_up(const struct askers *askers)
{
        return askers && !askers->witness && askers->sockdiag_fd >= 0;
}

/* What that costs the supervisor is bounded, however much is asked. */
static bool may_look_up(struct askers *askers)
{
        int64_t now_ns = loop_now_ns(askers->sandbox->loop);

        if (now_ns - askers->second_ns >= NSEC_PER_SEC) {
                askers->second_ns = now_ns;
                askers->n_lookups = 0;
                askers->spent_ns = 0;
        }
        return askers->n_lookups++ < LOOKUPS_A_SECOND && askers->spent_ns < LOOKUP_NS;
}

static const struct asker *look_up(struct askers *askers, const struct target *target, const struct flow_end *from)
{
        int protocol = target->transport == TRANSPORT_UDP ? IPPROTO_UDP : IPPROTO_TCP;
        int64_t begin_ns;
        uint32_t inode;
        pid_t pid;

        if (!from || !may_look_up(askers) ||
            sockdiag_inode(askers->sockdiag_fd, protocol, &from->address, from->port, &target->address, target->port,
                           &inode) < 0)
                return NULL;
        begin_ns = clock_now_ns(CLOCK_MONOTONIC);
        pid = holder_find(askers->sandbox->init, inode);
        askers->spent_ns += clock_now_ns(CLOCK_MONOTONIC) - begin_ns;
        if (pid == 0)
                return NULL;
        asker_read(pid, &askers->found);
        return &askers->found;
}

const struct asker *askers_find(struct askers *askers, const struct target *target, const struct flow_end *from,
                                bool anew)
{
        const struct asker *found = NULL;
        struct witness_target to;

        if (!askers || askers->sandbox->is_proving)
                return NULL;
        to = key_of(target);
        if (askers->witness) {
                /* Who asked was reported before anything came of it. */
                witness_read(askers->witness, on_question, askers);
                return recall(askers, &to);
        }
        if (!askers_looks_up(askers))
                return NULL;
        if (!anew)
                found = recall(askers, &to);
        if (!found) {
                found = look_up(askers, target, from);
                if (found)
                        remember(askers, &to);
        }
        return found;
}

/* ---- life ---- */

/* What the record has to say about what is not in it. */
static void tell_weaker(const struct askers *askers, const char *why)
{
        char sentence[1024];

        snprintf(sentence, sizeof(sentence),
                 "%swho asks is looked up in open sockets, and not known where it is gone: %s",
                 askers->counts ? "what is allowed, and bytes, are not seen; " : "", why);
        log_debug("%s", sentence);
        bundle_weaker(askers->sandbox->bundle, sentence);
}

int askers_open(struct sandbox *sandbox, const struct names *names, bool counts, struct err *err)
{
        struct askers *askers;
        struct err why = {0};

        if (!sandbox->bundle)
                return 0;
        askers = calloc(1, sizeof(*askers));
        if (!askers)
                return err_set_nomem(err);
        *askers = (struct askers){.sandbox = sandbox, .names = names, .counts = counts, .sockdiag_fd = -1};
        if (witness_open(&askers->witness, &why) < 0)
                tell_weaker(askers, why.text);
        askers->sockdiag_fd = sockdiag_open(NULL);
        sandbox->askers = askers;
        return 0;
}

int askers_watch(struct askers *askers, struct err *err)
{
        struct sandbox *sandbox;
        int r;

        if (!askers || !askers->witness)
                return 0;
        sandbox = askers->sandbox;
        r = witness_place(askers->witness, sandbox->init, err);
        if (r < 0)
                return r;
        r = loop_io_add(sandbox->loop, &askers->io, witness_fd(askers->witness), EPOLLIN, on_reports);
        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot wait for reports of the kernel") : 0;
}

void askers_begin(struct askers *askers)
{
        struct err why = {0};

        if (!askers || !askers->witness)
                return;
        witness_read(askers->witness, on_question, askers); /* what the prober asked */
        askers->is_begun = true;
        if (!askers->counts)
                return;
        bundle_observes(askers->sandbox->bundle, BUNDLE_ALLOWED);
        askers->counts_flows = witness_count_flows(askers->witness, &why) == 0;
        if (askers->counts_flows)
                bundle_observes(askers->sandbox->bundle, BUNDLE_BYTES);
        else
                bundle_weaker(askers->sandbox->bundle, why.text);
}

static void record_flow(struct askers *askers, struct target target, uint64_t sent, uint64_t received, uint64_t n)
{
        struct decision decision;
        char text[TARGET_TEXT];

        if (!is_for_record(askers, &target))
                return;
        names_decide(askers->names, askers->sandbox->policy, &target, &decision);
        bundle_bytes(askers->sandbox->bundle, target_format(&target, text), sent, received, n);
}

static void record_closed(const struct witness_target *to, const struct witness_flows *flows, void *userdata)
{
        record_flow(userdata, target_of(to), flows->sent_bytes, flows->received_bytes, flows->n);
}

static void record_open(const struct sockdiag_flow *flow, void *userdata)
{
        const struct target target = {.transport = TRANSPORT_TCP, .address = flow->remote, .port = flow->port};

        record_flow(userdata, target, flow->sent_bytes, flow->received_bytes, 1);
}

/* The processes are gone, but far ends that are far have not yet acknowledged the end of their connections. */
static void record_flows(struct askers *askers)
{
        struct err why = {0};

        if (!askers->counts_flows)
                return;
        witness_stop_flows(askers->witness);
        if (sockdiag_flows(askers->sockdiag_fd, record_open, askers, &why) < 0)
                bundle_weaker(askers->sandbox->bundle, why.text);
        witness_flows(askers->witness, record_closed, askers);
}

void askers_end(struct askers *askers)
{
        uint64_t questions, flows;

        if (!askers || !askers->witness || !askers->is_begun)
                return;
        witness_read(askers->witness, on_question, askers);
        forget(askers);
        if (!askers->counts)
                return;
        record_flows(askers);
        witness_lost(askers->witness, &questions, &flows);
        bundle_omits(askers->sandbox->bundle, BUNDLE_ALLOWED, questions);
        bundle_omits(askers->sandbox->bundle, BUNDLE_BYTES, flows);
}

void askers_free(struct askers *askers)
{
        if (!askers)
                return;
        loop_io_remove(&askers->io);
        if (askers->witness)
                forget(askers);
        witness_free(askers->witness);
        close_cleanup(&askers->sockdiag_fd);
        for (size_t i = 0; i < PLACES; i++)
                free(askers->places[i].executable);
        for (size_t i = 0; i < PROGRAMS; i++)
                free(askers->programs[i].executable);
        free(askers);
}
