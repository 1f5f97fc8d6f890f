/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/bundle.h"
#include "sandbox/learn.h"
#include "tests/test.h"
#include "tests/unit/sandbox/policy-support.h"

static char *const argv_of_test[] = {(char *)"true", NULL};

static struct bundle *watched(void)
{
        struct bundle *bundle = NULL;

        assert_int_equal(bundle_open(NULL, &bundle, NULL), 0);
        bundle_plan(bundle, NULL, "proxy", BUNDLE_ENFORCED, argv_of_test);
        bundle_observes(bundle, BUNDLE_ALLOWED);
        bundle_observes(bundle, BUNDLE_DENIED);
        bundle_observes(bundle, BUNDLE_DNS);
        return bundle;
}

static void attempt(struct bundle *bundle, const char *target, bool is_allowed)
{
        bundle_attempt(bundle, &(const struct bundle_attempt){.target = target, .is_allowed = is_allowed}, 1);
}

static void question(struct bundle *bundle, const char *name, const char *address)
{
        struct ip_prefix prefix;

        assert_int_equal(ip_prefix_parse(address, &prefix), 0);
        bundle_question(bundle, name, prefix.family == AF_INET ? "A" : "AAAA", "NOERROR", &prefix, 1, NULL);
}

static void assert_learned(const struct bundle *bundle, const char *expected, size_t n_rules)
{
        _cleanup_json_ json_t *record = bundle_to_json(bundle);
        _cleanup_text_ struct text text = {0};
        _cleanup_policy_ struct policy *policy = NULL;
        struct learned learned;
        struct err err = {0};

        if (learn_policy_write(record, &text, &learned, &err) < 0)
                fail_msg("%s", err.text);
        assert_string_equal(text.data, expected);
        assert_int_equal(learned.n_rules, n_rules);
        policy = policy_of(text.data, "learned");
        assert_int_equal(policy->layers[0]->n_rules, n_rules);
}

static void test_addresses(void **state)
{
        _cleanup_bundle_ struct bundle *bundle = watched();

        assert_learned(bundle, "assay: 1\ndefault: deny\n", 0);
        attempt(bundle, "tcp 192.0.2.1:443", true);
        attempt(bundle, "tcp 192.0.2.1:80", true);
        attempt(bundle, "udp 192.0.2.1:80", true);
        attempt(bundle, "udp [2001:db8::1]:53", true);
        attempt(bundle, "tcp 10.0.0.1:22", true);
        attempt(bundle, "tcp 169.254.169.254:80", false);
        assert_learned(bundle,
                       "assay: 1\ndefault: deny\nallow:\n"
                       "  - {address: 10.0.0.1, port: 22}\n"
                       "  - {address: 192.0.2.1, port: [80, 443]}\n"
                       "  - {address: 192.0.2.1, port: 80, transport: udp}\n"
                       "  - {address: \"2001:db8::1\", port: 53, transport: udp}\n"
                       "# denied even while it was only watched: tcp 169.254.169.254:80\n",
                       4);
}

/* A name is allowed by itself; its addresses besides only where they are special. Names of one address go together. */
static void test_names(void **state)
{
        _cleanup_bundle_ struct bundle *bundle = watched();

        question(bundle, "a.example", "192.0.2.1");
        question(bundle, "a.example", "2001:db8::1");
        question(bundle, "b.example", "2001:db8::1");
        question(bundle, "inside.example", "10.0.0.5");
        question(bundle, "unused.example", "192.0.2.9");
        bundle_question(bundle, "none.example", "A", "NXDOMAIN", NULL, 0, NULL);
        attempt(bundle, "tcp a.example:443", true);
        attempt(bundle, "tcp inside.example:80", true);
        attempt(bundle, "tcp unknown.example:1", true);
        assert_learned(bundle,
                       "assay: 1\ndefault: deny\nallow:\n"
                       "  - {host: a.example, port: 443}\n"
                       "  - {host: b.example, port: 443}\n"
                       "  - {host: inside.example, port: 80}\n"
                       "  - {host: unknown.example, port: 1}\n"
                       "  - {address: 10.0.0.5, port: 80}\n"
                       "# looked up, but not connected to: unused.example\n",
                       5);
}

static void test_many_ports(void **state)
{
        _cleanup_bundle_ struct bundle *bundle = watched();
        _cleanup_json_ json_t *record = NULL;
        _cleanup_text_ struct text text = {0};
        _cleanup_policy_ struct policy *policy = NULL;
        struct target target = {.transport = TRANSPORT_TCP};
        struct learned learned;
        struct decision decision;

        for (unsigned i = 0; i < 500; i++) {
                _cleanup_free_ char *name = text_format("tcp 192.0.2.1:%u", 1000 + 2 * i);

                attempt(bundle, name, true);
        }
        record = bundle_to_json(bundle);
        assert_int_equal(learn_policy_write(record, &text, &learned, NULL), 0);
        assert_int_equal(learned.n_rules, 3);
        policy = policy_of(text.data, "learned");
        assert_int_equal(ip_prefix_parse("192.0.2.1", &target.address), 0);
        for (unsigned i = 0; i < 1000; i++) {
                target.port = (uint16_t)(1000 + i);
                policy_decide(policy, &target, &decision);
                assert_int_equal(decision.outcome == POLICY_ALLOWED, i % 2 == 0);
        }
}

/* While a command is watched, what leaves the host is let through; not so its secrets' keeper. */
static void test_watching(void **state)
{
        static const struct {
                const char *target;
                enum policy_outcome outcome;
        } cases[] = {
                {"example.org:443", POLICY_ALLOWED},   {"udp://192.0.2.1:53", POLICY_ALLOWED},
                {"[2001:db8::1]:1", POLICY_ALLOWED},   {"10.0.0.1:22", POLICY_ALLOWED},
                {"169.254.169.254:80", POLICY_DENIED}, {"127.0.0.1:80", POLICY_DENIED},
        };
        _cleanup_policy_ struct policy *policy = learn_policy_new();

        assert_non_null(policy);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct decision decision;
                struct host_name host;
                struct target target;

                assert_int_equal(target_parse(cases[i].target, &host, &target, NULL), 0);
                policy_decide(policy, &target, &decision);
                assert_int_equal(decision.outcome, cases[i].outcome);
        }
}

static void test_not_observed(void **state)
{
        _cleanup_bundle_ struct bundle *bundle = NULL;
        _cleanup_json_ json_t *record = NULL;
        _cleanup_text_ struct text text = {0};
        struct learned learned;
        struct err err = {0};

        assert_int_equal(bundle_open(NULL, &bundle, NULL), 0);
        record = bundle_to_json(bundle);
        assert_int_equal(learn_policy_write(record, &text, &learned, &err), -EINVAL);
        assert_int_equal(err.kind, ERR_BUG);
        assert_int_equal(bundle_write(bundle, &err), 0); /* kept in memory only */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_addresses),    cmocka_unit_test(test_names),
                cmocka_unit_test(test_many_ports),   cmocka_unit_test(test_watching),
                cmocka_unit_test(test_not_observed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
