/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/stat.h>

#include "sandbox/bundle.h"
#include "tests/fault.h"
#include "tests/test.h"
#include "tests/unit/sandbox/policy-support.h"

static char *const argv_of_test[] = {(char *)"curl", (char *)"-H\x1b[31m", NULL};

/* A record in which every key has a value. */
static void fill(struct bundle *bundle, const struct policy *policy)
{
        const struct bundle_attempt denied = {.target = "tcp 192.0.2.1:443",
                                              .rule = "default deny, p.yaml:1",
                                              .executable = "/usr/bin/curl",
                                              .pid = 77};
        const struct bundle_attempt allowed = {.target = "tcp example.org:443",
                                               .rule = "allow[1], p.yaml:2",
                                               .is_allowed = true};
        const struct rusage usage = {.ru_utime = {1, 500000},
                                     .ru_stime = {0, 7},
                                     .ru_maxrss = 2048}; /* s and us, and KiB: getrusage(2) */
        const struct err failure = {.kind = ERR_ENVIRONMENT, .text = "the proxy died"};
        struct ip_prefix address;

        assert_int_equal(ip_prefix_parse("2001:db8::1", &address), 0);
        bundle_plan(bundle, policy, "wall", BUNDLE_ENFORCED, argv_of_test);
        bundle_proof(bundle, "raw-socket", BUNDLE_PROOF_STOPPED, "socket: EPERM", false);
        bundle_proof(bundle, "allowed-target", BUNDLE_PROOF_ARRIVED, NULL, true);
        bundle_weaker(bundle, "this kernel has no Landlock");
        bundle_started(bundle);
        bundle_attempt(bundle, &denied, 3);
        bundle_attempt(bundle, &allowed, 1);
        bundle_bytes(bundle, "tcp example.org:443", 100, 2000, 1);
        bundle_question(bundle, "example.org", "AAAA", "NOERROR", &address, 1, "allow[1], p.yaml:2");
        bundle_ended(bundle, 3 << 8, &usage);
        bundle_failed(bundle, &failure);
}

static struct bundle *open_in(const struct scratch *scratch, const char *name)
{
        _cleanup_free_ char *path = text_format("%s/%s", scratch->path, name);
        struct bundle *bundle = NULL;
        struct err err = {0};

        if (bundle_open(path, &bundle, &err) < 0)
                fail_msg("%s", err.text);
        return bundle;
}

/* Follows a dotted path; "" is the object itself. */
static const json_t *at(const json_t *json, const char *path)
{
        _cleanup_free_ char *copy = strdup(path);
        char *rest = copy;

        assert_non_null(copy);
        for (char *part = strsep(&rest, "."); part && *part && json; part = strsep(&rest, "."))
                json = json_is_array(json) ? json_array_get(json, strtoul(part, NULL, 10))
                                           : json_object_get(json, part);
        if (!json)
                fail_msg("there is no %s", path);
        return json;
}

static void assert_integer(const json_t *json, const char *path, json_int_t expected)
{
        assert_true(json_is_integer(at(json, path)));
        assert_int_equal(json_integer_value(at(json, path)), expected);
}

static void assert_text(const json_t *json, const char *path, const char *expected)
{
        assert_true(json_is_string(at(json, path)));
        assert_string_equal(json_string_value(at(json, path)), expected);
}

static void test_content(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_bundle_ struct bundle *bundle = open_in(&scratch, "run");
        _cleanup_policy_ struct policy *policy =
                policy_of("default: deny\nallow: {host: example.org, port: 443}\n", "p.yaml");
        _cleanup_json_ json_t *json = NULL;
        struct err err = {0};
        struct stat st;

        fill(bundle, policy);
        if (bundle_write(bundle, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(fstatat(scratch.fd, "run/" BUNDLE_FILE, &st, 0), 0);
        assert_int_equal(st.st_mode, S_IFREG | 0600);
        assert_int_equal(fstatat(scratch.fd, "run", &st, 0), 0);
        assert_int_equal(st.st_mode, S_IFDIR | 0700);
        /* the one reader of JSON here takes neither duplicate keys nor fractions */
        if (json_load(scratch.fd, "run/" BUNDLE_FILE, 1 << 20, &json, &err) < 0)
                fail_msg("%s", err.text);

        assert_integer(json, "assay", 1);
        assert_text(json, "command.argv.0", "curl");
        assert_text(json, "command.argv.1", "-H\\x1b[31m");
        assert_integer(json, "command.exit_status", 3);
        assert_true(json_is_null(at(json, "command.signal")));
        assert_text(json, "command.failure", "the proxy died");
        assert_integer(json, "command.resources.user_ns", 1500000000);
        assert_integer(json, "command.resources.system_ns", 7000);
        assert_integer(json, "command.resources.max_rss_bytes", 2097152);
        assert_text(json, "enforcement.enforcer", "wall");
        assert_text(json, "enforcement.planned", "enforced");
        assert_text(json, "enforcement.observed", "enforced");
        assert_true(json_is_true(at(json, "enforcement.network_non_bypassable")));
        assert_text(json, "enforcement.proofs.0.detail", "socket: EPERM");
        assert_text(json, "enforcement.proofs.1.result", "arrived");
        assert_true(json_is_true(at(json, "enforcement.proofs.1.cached")));
        assert_integer(json, "network.denied.0.count", 3);
        assert_integer(json, "network.denied.0.pid", 77);
        assert_true(json_is_null(at(json, "network.allowed.0.pid")));
        assert_integer(json, "network.destinations.0.received_bytes", 2000);
        assert_text(json, "network.dns.0.addresses.0", "2001:db8::1");
        assert_text(json, "policy.layers.0.file", "p.yaml");
}

/* A kill between two instructions leaves nothing, and a folder is for one run. */
static void test_folder(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_bundle_ struct bundle *bundle = open_in(&scratch, "run");
        _cleanup_free_ char *path = text_format("%s/run", scratch.path), *file = text_format("%s/file", scratch.path);
        _cleanup_free_ char *link = text_format("%s/link", scratch.path);
        struct bundle *other = NULL;
        struct err err = {0};

        assert_int_equal(faccessat(scratch.fd, "run/" BUNDLE_FILE, F_OK, 0), -1);
        assert_int_equal(bundle_write(bundle, &err), 0);
        assert_int_equal(bundle_open(path, &other, &err), -EEXIST);
        assert_non_null(strstr(err.text, "holds the record of another run (run-bundle.json); name another folder"));
        scratch_write(&scratch, "file", "");
        assert_int_equal(bundle_open(file, &other, &err), -ENOTDIR);
        assert_int_equal(symlinkat("run", scratch.fd, "link"), 0);
        assert_true(bundle_open(link, &other, &err) < 0);
        assert_null(other);
}

/* null where nothing was observed, 0 or [] where nothing happened. */
static void test_nothing(void **state)
{
        static const char *const lists[] = {"denied", "allowed", "dns", "destinations"};
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_bundle_ struct bundle *bundle = open_in(&scratch, "run");
        _cleanup_json_ json_t *before = bundle_to_json(bundle), *after = NULL;

        for (int table = 0; table < N_BUNDLE_TABLES; table++)
                bundle_observes(bundle, table);
        after = bundle_to_json(bundle);
        assert_non_null(before);
        assert_non_null(after);
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                _cleanup_free_ char *omitted = text_format("%s_omitted", lists[i]);

                assert_true(json_is_null(json_object_get(at(before, "network"), lists[i])));
                assert_true(json_is_null(json_object_get(at(before, "network"), omitted)));
                assert_int_equal(json_array_size(json_object_get(at(after, "network"), lists[i])), 0);
                assert_true(json_is_array(json_object_get(at(after, "network"), lists[i])));
                assert_integer(at(after, "network"), omitted, 0);
        }
        assert_true(json_is_null(at(after, "command.exit_status")));
        assert_true(json_is_null(at(after, "command.resources")));
        assert_true(json_is_null(at(after, "command.started_realtime_ns")));
        assert_true(json_is_null(at(after, "policy")));
        assert_text(after, "enforcement.observed", "planned");
}

static void test_signal(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_bundle_ struct bundle *bundle = open_in(&scratch, "run");
        _cleanup_json_ json_t *json = NULL;

        bundle_started(bundle);
        bundle_ended(bundle, SIGKILL, NULL);
        json = bundle_to_json(bundle);
        assert_integer(json, "command.signal", SIGKILL);
        assert_true(json_is_null(at(json, "command.exit_status")));
        assert_true(json_is_null(at(json, "command.resources")));
}

static void test_derived(void **state)
{
        static const struct {
                enum bundle_level planned;
                bool is_started;
                enum bundle_proof proofs[3];
                size_t n;
                int non_bypassable;
                const char *observed;
        } cases[] = {
                {BUNDLE_ENFORCED, true, {BUNDLE_PROOF_STOPPED, BUNDLE_PROOF_ARRIVED}, 2, 1, "enforced"},
                {BUNDLE_ENFORCED, false, {BUNDLE_PROOF_STOPPED, BUNDLE_PROOF_ARRIVED}, 2, 1, "planned"},
                {BUNDLE_ENFORCED, true, {BUNDLE_PROOF_STOPPED}, 1, -1, "planned"},
                {BUNDLE_ENFORCED, true, {BUNDLE_PROOF_ARRIVED}, 1, -1, "planned"},
                {BUNDLE_ENFORCED, true, {0}, 0, -1, "planned"},
                {BUNDLE_ENFORCED,
                 true,
                 {BUNDLE_PROOF_STOPPED, BUNDLE_PROOF_ARRIVED, BUNDLE_PROOF_UNTRIED},
                 3,
                 -1,
                 "planned"},
                {BUNDLE_ENFORCED,
                 true,
                 {BUNDLE_PROOF_STOPPED, BUNDLE_PROOF_ARRIVED, BUNDLE_PROOF_ESCAPED},
                 3,
                 0,
                 "unenforced"},
                {BUNDLE_ENFORCED,
                 true,
                 {BUNDLE_PROOF_STOPPED, BUNDLE_PROOF_ARRIVED, BUNDLE_PROOF_LOST},
                 3,
                 0,
                 "unenforced"},
                {BUNDLE_ENFORCED, true, {BUNDLE_PROOF_ESCAPED, BUNDLE_PROOF_UNTRIED}, 2, 0, "unenforced"},
                {BUNDLE_COOPERATIVE, true, {BUNDLE_PROOF_STOPPED, BUNDLE_PROOF_ARRIVED}, 2, 0, "cooperative"},
                {BUNDLE_UNENFORCED, true, {0}, 0, 0, "unenforced"},
                {BUNDLE_UNENFORCED, false, {0}, 0, 0, "planned"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_scratch_ struct scratch scratch = scratch_make();
                _cleanup_bundle_ struct bundle *bundle = open_in(&scratch, "run");
                _cleanup_json_ json_t *json = NULL;

                bundle_plan(bundle, NULL, "x", cases[i].planned, argv_of_test);
                for (size_t p = 0; p < cases[i].n; p++)
                        bundle_proof(bundle, "p", cases[i].proofs[p], NULL, false);
                if (cases[i].is_started)
                        bundle_started(bundle);
                assert_int_equal(bundle_is_non_bypassable(bundle), cases[i].non_bypassable);
                json = bundle_to_json(bundle);
                assert_text(json, "enforcement.observed", cases[i].observed);
        }
}

/* Tables count what happens again, and are bounded. */
static void test_tables(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_bundle_ struct bundle *bundle = open_in(&scratch, "run");
        _cleanup_json_ json_t *json = NULL;
        struct ip_prefix addresses[20];

        for (unsigned i = 0; i < 5000; i++) {
                _cleanup_free_ char *target = text_format("tcp 192.0.2.1:%u", 65535 - i);
                const struct bundle_attempt attempt = {.target = target, .pid = i + 1};

                bundle_attempt(bundle, &attempt, 2);
                bundle_attempt(bundle, &attempt, 1);
        }
        bundle_bytes(bundle, "tcp a:1", UINT64_MAX, 1, 1);
        bundle_bytes(bundle, "tcp a:1", 5, 1, 1);
        for (unsigned i = 0; i < ARRAY_SIZE(addresses); i++) {
                addresses[i] = (struct ip_prefix){AF_INET, {192, 0, 2, (uint8_t)i}, 32};
                bundle_question(bundle, "\x01name", "A", "NOERROR", addresses, i + 1, NULL);
        }
        json = bundle_to_json(bundle);
        assert_int_equal(json_array_size(at(json, "network.denied")), 4096);
        assert_integer(json, "network.denied_omitted", (5000 - 4096) * 3);
        assert_integer(json, "network.denied.0.count", 3);
        /* sorted: 65535 - 4095 is the least in the table */
        assert_text(json, "network.denied.0.target", "tcp 192.0.2.1:61440");
        assert_integer(json, "network.destinations.0.sent_bytes", INT64_MAX);
        assert_integer(json, "network.destinations.0.received_bytes", 2);
        assert_int_equal(json_array_size(at(json, "network.dns")), 1);
        assert_text(json, "network.dns.0.name", "\\x01name");
        assert_int_equal(json_array_size(at(json, "network.dns.0.addresses")), 16);
        assert_integer(json, "network.dns.0.count", 20);
}

/* ---- docs/formats/run-bundle.md is the schema: it lists each key with its types, and none that is never there ---- */

struct schema {
        json_t *types; /* path -> "string or null" */
        json_t *seen;
};

static json_t *schema_read(void)
{
        _cleanup_free_ char *path = text_format("%s/../../../docs/formats/run-bundle.md", policy_cases()), *page = NULL;
        json_t *types = json_object();
        struct err err = {0};
        char *rest;
        size_t len;

        if (file_read(AT_FDCWD, path, 1 << 20, &page, &len, &err) < 0)
                fail_msg("%s", err.text);
        rest = page;
        for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
                char *keys = line + 2, *bar = strncmp(line, "| `", 3) == 0 ? strstr(line, " | ") : NULL, *type, *end;

                if (!bar)
                        continue;
                type = bar + 3;
                end = strstr(type, " |");
                assert_non_null(end);
                *bar = *end = '\0';
                for (char *tick = strchr(keys, '`'); tick; tick = strchr(keys, '`')) {
                        char *close = strchr(tick + 1, '`');

                        assert_non_null(close);
                        *close = '\0';
                        assert_null(json_object_get(types, tick + 1));
                        json_object_set_new(types, tick + 1, json_string(type));
                        keys = close + 1;
                }
        }
        return types;
}

static const char *type_name(const json_t *value)
{
        switch (json_typeof(value)) {
        case JSON_OBJECT:
                return "object";
        case JSON_ARRAY:
                return "array";
        case JSON_STRING:
                return "string";
        case JSON_INTEGER:
                return "integer";
        case JSON_TRUE:
        case JSON_FALSE:
                return "boolean";
        case JSON_NULL:
                return "null";
        default:
                return "real";
        }
}

static void check_value(struct schema *schema, const char *path, json_t *value);

static void check_members(struct schema *schema, const char *path, json_t *value)
{
        const char *key;
        json_t *item;
        size_t i;

        json_object_foreach(value, key, item)
        {
                _cleanup_free_ char *below = text_format("%s%s%s", path, *path ? "." : "", key);

                check_value(schema, below, item);
        }
        json_array_foreach(value, i, item)
        {
                _cleanup_free_ char *below = text_format("%s[]", path);

                check_value(schema, below, item);
        }
}

static void check_value(struct schema *schema, const char *path, json_t *value)
{
        const char *types = json_string_value(json_object_get(schema->types, path));

        /* an object or array whose members are listed needs no row of its own */
        if (!types && !json_is_object(value) && !json_is_array(value))
                fail_msg("run-bundle.md does not list %s", path);
        if (types && !strstr(types, type_name(value)))
                fail_msg("run-bundle.md: %s is %s, not %s", path, types, type_name(value));
        json_object_set_new(schema->seen, path, json_true());
        if (!streq(path, "policy"))
                check_members(schema, path, value);
}

static void test_schema(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_bundle_ struct bundle *full = open_in(&scratch, "full"), *empty = open_in(&scratch, "empty");
        _cleanup_policy_ struct policy *policy = policy_of("default: deny\n", "p.yaml");
        _cleanup_json_ json_t *types = schema_read(), *seen = json_object(), *none = bundle_to_json(empty), *all = NULL;
        struct schema schema = {types, seen};
        const char *key;
        json_t *value;

        check_members(&schema, "", none);
        fill(full, policy);
        all = bundle_to_json(full);
        check_members(&schema, "", all);
        assert_true(json_object_size(types) > 50);
        json_object_foreach(types, key, value) if (!json_object_get(seen, key))
                fail_msg("run-bundle.md lists %s, which is not there", key);
}

/* A record that memory was missing for is not written. */
static void test_out_of_memory(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_policy_ struct policy *policy = policy_of("allow: {host: a.example, port: [1, 3], sni: a.example}\n"
                                                           "deny: {address: 192.0.2.1}\n",
                                                           "p.yaml");

        for (unsigned n = 1;; n++) {
                _cleanup_bundle_ struct bundle *bundle = NULL;
                _cleanup_free_ char *path = text_format("%s/run", scratch.path);
                _cleanup_json_ json_t *json = NULL, *whole = NULL;
                struct err err = {0};
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                r = bundle_open(path, &bundle, &err);
                if (r == 0) {
                        fill(bundle, policy);
                        json = bundle_to_json(bundle);
                }
                if (!fault_disarm()) {
                        assert_non_null(json);
                        break;
                }
                if (!json)
                        continue;
                /* what was made in spite of it lacks nothing */
                whole = bundle_to_json(bundle);
                assert_true(json_equal(json, whole));
                assert_int_equal(json_array_size(at(json, "network.denied")), 1);
                assert_int_equal(json_array_size(at(json, "enforcement.proofs")), 2);
                assert_text(json, "command.failure", "the proxy died");
                assert_text(json, "network.dns.0.addresses.0", "2001:db8::1");
                assert_text(json, "enforcement.enforcer", "wall");
                assert_text(json, "policy.layers.0.allow.0.sni", "a.example");
                assert_text(json, "policy.layers.0.deny.0.transports.1", "udp");
                assert_integer(json, "policy.layers.0.allow.0.ports.1.1", 3);
        }
}

/* Who wants no record records nothing. */
static void test_null(void **state)
{
        const struct bundle_attempt attempt = {.target = "tcp a:1"};
        const struct err err = {.kind = ERR_IO};

        bundle_plan(NULL, NULL, "wall", BUNDLE_ENFORCED, argv_of_test);
        bundle_proof(NULL, "p", BUNDLE_PROOF_STOPPED, NULL, false);
        bundle_weaker(NULL, "w");
        bundle_observes(NULL, BUNDLE_DNS);
        bundle_attempt(NULL, &attempt, 1);
        bundle_bytes(NULL, "tcp a:1", 1, 1, 1);
        bundle_question(NULL, "a", "A", "NOERROR", NULL, 0, NULL);
        bundle_started(NULL);
        bundle_ended(NULL, 0, NULL);
        bundle_failed(NULL, &err);
        bundle_free(NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_content), cmocka_unit_test(test_folder),        cmocka_unit_test(test_nothing),
                cmocka_unit_test(test_signal),  cmocka_unit_test(test_derived),       cmocka_unit_test(test_tables),
                cmocka_unit_test(test_schema),  cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_null),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
