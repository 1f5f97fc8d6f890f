/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/bundle.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/version.h"

#define ENTRIES_MAX   4096 /* of a table */
#define ADDRESSES_MAX 16   /* of an answer */
#define TEXT_MAX      1024 /* bytes of an outside text, before it is made visible */

/* What happened often is one entry with a count. The key tells entries apart and orders them; it is not written. */
struct table {
        bool is_observed;
        json_t *entries;  /* an object */
        uint64_t omitted; /* what was not counted because the table is full */
};

struct bundle {
        int dirfd;
        bool failed; /* memory ran out */
        const struct policy *policy;
        char *enforcer;
        enum bundle_level planned;
        json_t *argv, *proofs, *weaker;
        size_t proof_results[BUNDLE_PROOF_UNTRIED + 1];
        struct table tables[N_BUNDLE_TABLES];
        bool is_started, is_ended;
        int status;
        json_t *resources, *failure;
        int64_t opened_ns, started_ns, ended_ns;
};

static const char *const level_names[] = {
        [BUNDLE_PLANNED] = "planned",
        [BUNDLE_UNENFORCED] = "unenforced",
        [BUNDLE_COOPERATIVE] = "cooperative",
        [BUNDLE_ENFORCED] = "enforced",
};

static const char *const proof_names[] = {
        [BUNDLE_PROOF_STOPPED] = "stopped", [BUNDLE_PROOF_ESCAPED] = "escaped", [BUNDLE_PROOF_ARRIVED] = "arrived",
        [BUNDLE_PROOF_LOST] = "lost",       [BUNDLE_PROOF_UNTRIED] = "untried",
};

/* Names in the record, and of the count of what is omitted. */
static const char *const table_names[N_BUNDLE_TABLES][2] = {
        [BUNDLE_DENIED] = {"denied", "denied_omitted"},
        [BUNDLE_ALLOWED] = {"allowed", "allowed_omitted"},
        [BUNDLE_DNS] = {"dns", "dns_omitted"},
        [BUNDLE_BYTES] = {"destinations", "destinations_omitted"},
};

/* ---- small parts of JSON ---- */

/* A new reference to an outside text as a terminal may show it; null where there is none. */
static json_t *visible(const char *outside)
{
        _cleanup_text_ struct text text = {0};

        if (!outside)
                return json_null();
        text_add_visible(&text, outside, strnlen(outside, TEXT_MAX));
        return text.failed ? NULL : json_string(text.data ? text.data : "");
}

static json_t *count_json(uint64_t count)
{
        return json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count);
}

static json_t *time_json(int64_t ns)
{
        return ns ? json_integer(ns) : json_null();
}

/* Sets a member to a new reference, or remembers that memory ran out; then it is released, as where @object is NULL. */
static void put(struct bundle *bundle, json_t *object, const char *key, json_t *value)
{
        if (json_object_set_new(object, key, value) < 0)
                bundle->failed = true;
}

static void append(struct bundle *bundle, json_t *array, json_t *value)
{
        if (json_array_append_new(array, value) < 0)
                bundle->failed = true;
}

/* Adds to a member that counts; a count that would overflow stays at its largest. */
static void count_up(struct bundle *bundle, json_t *entry, const char *key, uint64_t more)
{
        uint64_t before = (uint64_t)json_integer_value(json_object_get(entry, key)), sum;

        if (__builtin_add_overflow(before, more, &sum))
                sum = UINT64_MAX;
        put(bundle, entry, key, count_json(sum));
}

/* ---- life ---- */

static int check_is_new(int dirfd, const char *path, struct err *err)
{
        struct stat st;

        if (fstatat(dirfd, BUNDLE_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return err_set(err, ERR_USAGE, EEXIST,
                               "%s holds the record of another run (" BUNDLE_FILE "); name another folder", path);
        if (errno != ENOENT)
                return err_set_errno(err, ERR_IO, errno, "cannot look for " BUNDLE_FILE " in %s", path);
        return 0;
}

int bundle_open(const char *path, struct bundle **ret, struct err *err)
{
        _cleanup_bundle_ struct bundle *bundle = calloc(1, sizeof(*bundle));
        int r;

        if (!bundle)
                return err_set_nomem(err);
        bundle->dirfd = path ? file_make_dir(AT_FDCWD, path, 0700) : -1;
        if (path && bundle->dirfd < 0)
                return err_set_errno(err, ERR_IO, -bundle->dirfd, "cannot make or open the folder %s", path);
        r = path ? check_is_new(bundle->dirfd, path, err) : 0;
        if (r < 0)
                return r;
        bundle->argv = json_array();
        bundle->proofs = json_array();
        bundle->weaker = json_array();
        for (size_t i = 0; i < N_BUNDLE_TABLES; i++)
                bundle->tables[i].entries = json_object();
        bundle->opened_ns = clock_now_ns(CLOCK_REALTIME);
        *ret = TAKE_PTR(bundle);
        return 0;
}

void bundle_free(struct bundle *bundle)
{
        if (!bundle)
                return;
        if (bundle->dirfd >= 0)
                close(bundle->dirfd);
        for (size_t i = 0; i < N_BUNDLE_TABLES; i++)
                json_decref(bundle->tables[i].entries);
        json_decref(bundle->argv);
        json_decref(bundle->proofs);
        json_decref(bundle->weaker);
        json_decref(bundle->resources);
        json_decref(bundle->failure);
        free(bundle->enforcer);
        free(bundle);
}

/* ---- what is planned, and how it went ---- */

void bundle_plan(struct bundle *bundle, const struct policy *policy, const char *enforcer, enum bundle_level level,
                 char *const *argv)
{
        if (!bundle)
                return;
        bundle->policy = policy;
        bundle->planned = level;
        free(bundle->enforcer);
        bundle->enforcer = enforcer ? strdup(enforcer) : NULL;
        bundle->failed |= enforcer && !bundle->enforcer;
        json_array_clear(bundle->argv);
        for (; *argv; argv++)
                append(bundle, bundle->argv, visible(*argv));
}

void bundle_proof(struct bundle *bundle, const char *attempt, enum bundle_proof result, const char *detail,
                  bool is_cached)
{
        if (!bundle)
                return;
        bundle->proof_results[result]++;
        append(bundle, bundle->proofs,
               json_pack("{s:o, s:s, s:o, s:b}", "attempt", visible(attempt), "result", proof_names[result], "detail",
                         visible(detail), "cached", is_cached));
}

void bundle_weaker(struct bundle *bundle, const char *sentence)
{
        if (bundle)
                append(bundle, bundle->weaker, visible(sentence));
}

void bundle_started(struct bundle *bundle)
{
        if (!bundle)
                return;
        bundle->is_started = true;
        bundle->started_ns = clock_now_ns(CLOCK_REALTIME);
}

static int64_t nsec_of_timeval(struct timeval tv)
{
        return (int64_t)tv.tv_sec * NSEC_PER_SEC + (int64_t)tv.tv_usec * NSEC_PER_USEC;
}

void bundle_ended(struct bundle *bundle, int status, const struct rusage *usage)
{
        if (!bundle)
                return;
        bundle->is_ended = true;
        bundle->status = status;
        bundle->ended_ns = clock_now_ns(CLOCK_REALTIME);
        if (!usage)
                return;
        json_decref(bundle->resources);
        bundle->resources = json_pack("{s:I, s:I, s:I}", "user_ns", (json_int_t)nsec_of_timeval(usage->ru_utime),
                                      "system_ns", (json_int_t)nsec_of_timeval(usage->ru_stime), "max_rss_bytes",
                                      (json_int_t)usage->ru_maxrss * 1024);
        bundle->failed |= !bundle->resources;
}

void bundle_failed(struct bundle *bundle, const struct err *err)
{
        char text[1400];

        if (!bundle)
                return;
        err_format(err, text, sizeof(text));
        json_decref(bundle->failure);
        bundle->failure = visible(text);
        bundle->failed |= !bundle->failure;
}

/* ---- tables ---- */

void bundle_observes(struct bundle *bundle, enum bundle_table table)
{
        if (bundle)
                bundle->tables[table].is_observed = true;
}

void bundle_omits(struct bundle *bundle, enum bundle_table table, uint64_t n)
{
        uint64_t *omitted = bundle ? &bundle->tables[table].omitted : NULL;

        if (bundle)
                *omitted = *omitted + n < n ? UINT64_MAX : *omitted + n;
}

/* The entry of @key, which is made of @entry where there is none yet; @entry is taken. NULL where the table is full
 * (then
 * @times are counted as omitted) or memory ran out. */
static json_t *entry_of(struct bundle *bundle, enum bundle_table table, const struct text *key, json_t *entry,
                        uint64_t times)
{
        struct table *t = &bundle->tables[table];
        json_t *there = key->failed ? NULL : json_object_get(t->entries, key->data);

        t->is_observed = true;
        bundle->failed |= key->failed || (!there && !entry);
        if (there || bundle->failed) {
                json_decref(entry);
                return bundle->failed ? NULL : there;
        }
        if (json_object_size(t->entries) >= ENTRIES_MAX) {
                bundle_omits(bundle, table, times);
                json_decref(entry);
                return NULL;
        }
        put(bundle, t->entries, key->data, entry);
        return bundle->failed ? NULL : entry;
}

static void key_add(struct text *key, const char *part)
{
        if (part)
                text_add_visible(key, part, strnlen(part, TEXT_MAX));
        text_add(key, "\n"); /* in no text that was made visible */
}

void bundle_attempt(struct bundle *bundle, const struct bundle_attempt *attempt, uint64_t times)
{
        _cleanup_text_ struct text key = {0};
        json_t *entry;

        if (!bundle)
                return;
        key_add(&key, attempt->target);
        key_add(&key, attempt->executable);
        key_add(&key, attempt->rule);
        entry = json_pack("{s:o, s:o, s:o, s:o}", "target", visible(attempt->target), "executable",
                          visible(attempt->executable), "rule", visible(attempt->rule), "pid",
                          attempt->pid ? json_integer(attempt->pid) : json_null());
        entry = entry_of(bundle, attempt->is_allowed ? BUNDLE_ALLOWED : BUNDLE_DENIED, &key, entry, times);
        if (entry)
                count_up(bundle, entry, "count", times);
}

void bundle_bytes(struct bundle *bundle, const char *target, uint64_t sent, uint64_t received, uint64_t flows)
{
        _cleanup_text_ struct text key = {0};
        json_t *entry;

        if (!bundle)
                return;
        key_add(&key, target);
        entry = entry_of(bundle, BUNDLE_BYTES, &key, json_pack("{s:o}", "target", visible(target)), flows);
        if (!entry)
                return;
        count_up(bundle, entry, "sent_bytes", sent);
        count_up(bundle, entry, "received_bytes", received);
        count_up(bundle, entry, "flows", flows);
}

static void add_address(struct bundle *bundle, json_t *addresses, const struct ip_prefix *address)
{
        char text[INET6_ADDRSTRLEN] = "?";
        json_t *there;
        size_t i;

        inet_ntop(address->family, address->bytes, text, sizeof(text));
        json_array_foreach(addresses, i, there) if (streq(json_string_value(there), text)) return;
        if (json_array_size(addresses) < ADDRESSES_MAX)
                append(bundle, addresses, json_string(text));
}

void bundle_question(struct bundle *bundle, const char *name, const char *type, const char *answer,
                     const struct ip_prefix *addresses, size_t n, const char *rule)
{
        _cleanup_text_ struct text key = {0};
        json_t *entry;

        if (!bundle)
                return;
        key_add(&key, name);
        key_add(&key, type);
        key_add(&key, answer);
        key_add(&key, rule);
        entry = json_pack("{s:o, s:o, s:o, s:o, s:[]}", "name", visible(name), "type", visible(type), "answer",
                          visible(answer), "rule", visible(rule), "addresses");
        entry = entry_of(bundle, BUNDLE_DNS, &key, entry, 1);
        if (!entry)
                return;
        count_up(bundle, entry, "count", 1);
        for (size_t i = 0; i < n; i++)
                add_address(bundle, json_object_get(entry, "addresses"), &addresses[i]);
}

/* ---- writing ---- */

int bundle_is_non_bypassable(const struct bundle *bundle)
{
        const size_t *n = bundle->proof_results;

        if (bundle->planned < BUNDLE_ENFORCED || n[BUNDLE_PROOF_ESCAPED] > 0 || n[BUNDLE_PROOF_LOST] > 0)
                return 0;
        if (n[BUNDLE_PROOF_STOPPED] == 0 || n[BUNDLE_PROOF_ARRIVED] == 0 || n[BUNDLE_PROOF_UNTRIED] > 0)
                return -1;
        return 1;
}

static enum bundle_level observed_level(const struct bundle *bundle)
{
        if (!bundle->is_started)
                return BUNDLE_PLANNED;
        if (bundle->planned < BUNDLE_ENFORCED)
                return bundle->planned;
        switch (bundle_is_non_bypassable(bundle)) {
        case 1:
                return BUNDLE_ENFORCED;
        case 0:
                return BUNDLE_UNENFORCED;
        default:
                return BUNDLE_PLANNED;
        }
}

static json_t *enforcement_json(const struct bundle *bundle)
{
        int is_non_bypassable = bundle_is_non_bypassable(bundle);

        return json_pack("{s:s?, s:s, s:s, s:o, s:O, s:O}", "enforcer", bundle->enforcer, "planned",
                         level_names[bundle->planned], "observed", level_names[observed_level(bundle)],
                         "network_non_bypassable",
                         is_non_bypassable < 0 ? json_null() : json_boolean(is_non_bypassable), "proofs",
                         bundle->proofs, "weaker", bundle->weaker);
}

static int compare_keys(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The entries in the order of their keys. */
static json_t *table_json(const struct table *table)
{
        size_t n = json_object_size(table->entries), i = 0;
        _cleanup_free_ const char **keys = calloc(MAX(n, (size_t)1), sizeof(*keys));
        json_t *array = json_array(), *entry;
        const char *key;

        if (!keys) {
                json_decref(array);
                return NULL;
        }
        json_object_foreach(table->entries, key, entry) keys[i++] = key;
        qsort(keys, n, sizeof(*keys), compare_keys);
        for (i = 0; array && i < n; i++)
                if (json_array_append(array, json_object_get(table->entries, keys[i])) < 0) {
                        json_decref(array);
                        return NULL;
                }
        return array;
}

static json_t *network_json(const struct bundle *bundle)
{
        json_t *network = json_object();

        for (size_t i = 0; network && i < N_BUNDLE_TABLES; i++) {
                const struct table *table = &bundle->tables[i];

                if (json_object_set_new(network, table_names[i][0],
                                        table->is_observed ? table_json(table) : json_null()) < 0 ||
                    json_object_set_new(network, table_names[i][1],
                                        table->is_observed ? count_json(table->omitted) : json_null()) < 0) {
                        json_decref(network);
                        return NULL;
                }
        }
        return network;
}

static json_t *command_json(const struct bundle *bundle)
{
        bool exited = bundle->is_ended && WIFEXITED(bundle->status);
        bool killed = bundle->is_ended && WIFSIGNALED(bundle->status);

        return json_pack("{s:O, s:b, s:o, s:o, s:O?, s:O?, s:o, s:o}", "argv", bundle->argv, "started",
                         bundle->is_started, "exit_status",
                         exited ? json_integer(WEXITSTATUS(bundle->status)) : json_null(), "signal",
                         killed ? json_integer(WTERMSIG(bundle->status)) : json_null(), "resources", bundle->resources,
                         "failure", bundle->failure, "started_realtime_ns", time_json(bundle->started_ns),
                         "ended_realtime_ns", time_json(bundle->ended_ns));
}

json_t *bundle_to_json(const struct bundle *bundle)
{
        if (bundle->failed)
                return NULL;
        return json_pack("{s:i, s:I, s:o, s:o, s:o, s:o, s:{s:s, s:s, s:b}}", "assay", 1, "opened_realtime_ns",
                         (json_int_t)bundle->opened_ns, "command", command_json(bundle), "enforcement",
                         enforcement_json(bundle), "network", network_json(bundle), "policy",
                         bundle->policy ? policy_to_json(bundle->policy) : json_null(), "tool", "version",
                         version_number(), "commit", version_commit(), "is_modified", version_is_modified());
}

int bundle_write(const struct bundle *bundle, struct err *err)
{
        _cleanup_json_ json_t *json = bundle_to_json(bundle);
        _cleanup_free_ char *text = json ? json_format(json) : NULL;

        if (!text)
                return err_set_nomem(err);
        if (bundle->dirfd < 0)
                return 0;
        return file_write_atomic(bundle->dirfd, BUNDLE_FILE, 0600, span_of_text(text), err);
}
