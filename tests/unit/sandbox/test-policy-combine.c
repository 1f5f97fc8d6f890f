/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/sandbox/policy-random.h"

#define ROUNDS  2000
#define TARGETS 40

static enum policy_outcome outcome_of(const struct policy *policy, const struct target *target)
{
        struct decision decision;

        policy_decide(policy, target, &decision);
        return decision.outcome;
}

static uint64_t expected_limit(uint64_t a, uint64_t b)
{
        if (a == 0 || b == 0)
                return a + b;
        return a < b ? a : b;
}

/* What the combination allows is what each allows; it waits where one waits and none denies. */
static void test_intersection(void **state)
{
        size_t seen[3] = {0};
        struct rng rng;

        rng_seed(&rng, 3);
        for (size_t round = 0; round < ROUNDS; round++) {
                _cleanup_policy_ struct policy *both = random_policy(&rng), *other = random_policy(&rng);
                struct target targets[TARGETS];
                enum policy_outcome expected[TARGETS];
                struct policy_limits total = both->total, per_target = both->per_target;
                uint64_t other_connections = other->total.connections, other_bytes = other->per_target.bytes;

                for (size_t i = 0; i < TARGETS; i++) {
                        enum policy_outcome a, b;

                        targets[i] = random_target(&rng);
                        a = outcome_of(both, &targets[i]);
                        b = outcome_of(other, &targets[i]);
                        if (a == POLICY_DENIED || b == POLICY_DENIED)
                                expected[i] = POLICY_DENIED;
                        else
                                expected[i] =
                                        a == POLICY_ALLOWED && b == POLICY_ALLOWED ? POLICY_ALLOWED : POLICY_PENDING;
                        seen[expected[i]]++;
                }
                assert_int_equal(policy_combine(both, &other, NULL), 0);
                assert_null(other);
                for (size_t i = 0; i < TARGETS; i++)
                        assert_int_equal(outcome_of(both, &targets[i]), expected[i]);
                assert_int_equal(both->total.connections, expected_limit(total.connections, other_connections));
                assert_int_equal(both->per_target.bytes, expected_limit(per_target.bytes, other_bytes));
        }
        /* the random policies are no good if they decide everything alike */
        assert_true(seen[POLICY_DENIED] > ROUNDS);
        assert_true(seen[POLICY_ALLOWED] > ROUNDS);
        assert_true(seen[POLICY_PENDING] > ROUNDS / 10);
}

static void test_names_the_layer(void **state)
{
        _cleanup_policy_ struct policy *wide = policy_of("allow: {host: \"*\", port: any}\n", "wide.yaml");
        struct policy *narrow = policy_of("default: deny\nallow: {host: example.org, port: 443}\n", "narrow.yaml");
        const struct target other = {.name = "example.net", .port = 443}, same = {.name = "example.org", .port = 443};
        struct decision decision;
        char text[DECISION_TEXT];

        assert_int_equal(policy_combine(wide, &narrow, NULL), 0);
        policy_decide(wide, &other, &decision);
        assert_string_equal(decision_rule_format(&decision, text), "default deny, narrow.yaml:1");
        policy_decide(wide, &same, &decision);
        assert_string_equal(decision_rule_format(&decision, text), "allow[1], wide.yaml:1");
}

static void test_localhost(void **state)
{
        _cleanup_policy_ struct policy *a = policy_of("localhost: [80, 100-200, 300]\n", "a");
        struct policy *b = policy_of("localhost: [1-99, 150-300]\n", "b"), *c = policy_new_deny_all();
        _cleanup_text_ struct text text = {0};
        struct port_set ports;

        assert_int_equal(policy_combine(a, &b, NULL), 0);
        assert_int_equal(policy_localhost(a, &ports), 0);
        port_set_format(&ports, &text);
        assert_string_equal(text.data, "80, 150-200, 300");
        free(ports.ranges);
        assert_false(policy_is_deny_all(a));
        assert_int_equal(policy_combine(a, &c, NULL), 0);
        assert_true(policy_is_deny_all(a));
        assert_int_equal(policy_localhost(a, &ports), 0);
        assert_int_equal(ports.n, 0);
        free(ports.ranges);
}

/* Every rule looked at one after the other, in place of the index: which of them deny, and which allow. */
static bool pattern_fits(const struct policy_rule *rule, const struct target *target)
{
        size_t len, suffix = rule->name ? strlen(rule->name) : 0;

        if (rule->match == POLICY_MATCH_ADDRESS)
                return target->address.family != 0 && ip_prefix_contains(&rule->prefix, &target->address);
        if (!target->name)
                return false;
        if (rule->match == POLICY_MATCH_NAME)
                return streq(rule->name, target->name);
        len = strlen(target->name);
        return suffix == 0 || (len > suffix + 1 && streq(target->name + len - suffix, rule->name) &&
                               target->name[len - suffix - 1] == '.');
}

static bool allowed_slowly(const struct policy_layer *layer, const struct target *target)
{
        bool is_allowed = false;

        for (size_t i = 0; i < layer->n_rules; i++) {
                const struct policy_rule *rule = &layer->rules[i];

                if (!(rule->transports & 1u << target->transport) || !port_set_has(&rule->ports, target->port) ||
                    !pattern_fits(rule, target))
                        continue;
                if (rule->is_deny)
                        return false;
                is_allowed |= !rule->sni && !rule->http_host;
        }
        return is_allowed;
}

/* Of ordinary addresses, where neither `localhost` nor special ranges have a say. */
static void test_against_a_walk(void **state)
{
        static const char *const addresses[] = {"192.0.2.0", "192.0.2.1", "198.51.100.7", "9.9.9.9", "2001:db8::1"};
        static const char empty[] = "";
        size_t allowed = 0;
        struct rng rng;

        rng_seed(&rng, 4);
        for (size_t round = 0; round < ROUNDS; round++) {
                _cleanup_policy_ struct policy *policy = random_policy(&rng);

                if (policy_is_deny_all(policy))
                        continue;
                for (size_t i = 0; i < TARGETS; i++) {
                        struct target target = random_target(&rng);
                        bool expected;

                        assert_int_equal(ip_prefix_parse(RANDOM_OF(&rng, addresses), &target.address), 0);
                        target.sni = target.http_host = empty;
                        if (target.name && streq(target.name, "localhost"))
                                target.name = NULL;
                        expected = allowed_slowly(policy->layers[0], &target);
                        assert_int_equal(outcome_of(policy, &target) == POLICY_ALLOWED, expected);
                        allowed += expected;
                }
        }
        assert_true(allowed > ROUNDS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_intersection),
                cmocka_unit_test(test_names_the_layer),
                cmocka_unit_test(test_localhost),
                cmocka_unit_test(test_against_a_walk),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
