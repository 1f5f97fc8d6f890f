/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>

#include "tests/unit/sandbox/policy-random.h"

static void format_range(const struct policy_range *range, struct text *out)
{
        char first[INET6_ADDRSTRLEN], last[INET6_ADDRSTRLEN];

        inet_ntop(range->family, range->first, first, sizeof(first));
        inet_ntop(range->family, range->last, last, sizeof(last));
        text_addf(out, "%s %u-%u %s-%s%s\n", transport_names[range->transport], range->ports.first, range->ports.last,
                  first, last, range->is_pending ? " pending" : "");
}

static void assert_ranges(const char *policy_text, const char *expected)
{
        _cleanup_policy_ struct policy *policy = policy_of(policy_text, "p");
        _cleanup_free_ struct policy_range *ranges = NULL;
        _cleanup_text_ struct text text = {0};
        size_t n;

        assert_int_equal(policy_ranges(policy, &ranges, &n), 0);
        for (size_t i = 0; i < n; i++)
                format_range(&ranges[i], &text);
        assert_string_equal(text.data ? text.data : "", expected);
}

static void test_known(void **state)
{
        assert_ranges("allow: {host: example.org, port: 443}\n", "");
        assert_ranges("allow: {address: 192.0.2.0/24, port: 443}\n", "tcp 443-443 192.0.2.0-192.0.2.255\n");
        /* what is denied is cut out, also ports */
        assert_ranges("allow: {address: 192.0.2.0/24, port: 1-100, transport: udp}\n"
                      "deny: [{address: 192.0.2.64/26}, {address: 192.0.2.1, port: 50}]\n",
                      "udp 1-49 192.0.2.1-192.0.2.1\n"
                      "udp 1-100 192.0.2.0-192.0.2.0\n"
                      "udp 1-100 192.0.2.2-192.0.2.63\n"
                      "udp 1-100 192.0.2.128-192.0.2.255\n"
                      "udp 51-100 192.0.2.1-192.0.2.1\n");
        /* neighbours become one */
        assert_ranges("allow: [{address: 192.0.2.0/25, port: 443}, {address: 192.0.2.128/25, port: 443}]\n",
                      "tcp 443-443 192.0.2.0-192.0.2.255\n");
        /* special addresses are cut out of a wide range, and stay in a narrow one */
        assert_ranges("allow: [{address: 10.0.0.0/7, port: 1}, {address: 10.9.0.0/16, port: 1}]\n",
                      "tcp 1-1 10.9.0.0-10.9.255.255\n"
                      "tcp 1-1 11.0.0.0-11.255.255.255\n");
        assert_ranges("allow: {address: 169.254.0.0/16, port: 80}\n", "tcp 80-80 169.254.0.0-169.254.169.253\n"
                                                                      "tcp 80-80 169.254.169.255-169.254.170.1\n"
                                                                      "tcp 80-80 169.254.170.3-169.254.170.22\n"
                                                                      "tcp 80-80 169.254.170.24-169.254.255.255\n");
        assert_ranges("allow: {address: \"64:ff9b::/96\", port: 80}\ndeny: {address: 128.0.0.0/1}\n"
                      "private-addresses: allow\n",
                      "tcp 80-80 64:ff9b::100:0-64:ff9b::6464:64c7\n"
                      "tcp 80-80 64:ff9b::6464:64c9-64:ff9b::7eff:ffff\n");
        assert_ranges("allow: {address: 192.0.2.1, port: 443, sni: example.org}\n",
                      "tcp 443-443 192.0.2.1-192.0.2.1 pending\n");
        assert_ranges("localhost: [80]\n", "");
}

static bool within(const struct policy_range *range, const struct ip_prefix *address)
{
        size_t len = address->family == AF_INET ? 4 : 16;

        return range->family == address->family && memcmp(address->bytes, range->first, len) >= 0 &&
               memcmp(address->bytes, range->last, len) <= 0;
}

/* The ranges have an address exactly where a decision without a name lets it pass, also for what several policies
 * leave. */
static void test_random(void **state)
{
        size_t open = 0;
        struct rng rng;

        rng_seed(&rng, 5);
        for (size_t round = 0; round < 300; round++) {
                _cleanup_policy_ struct policy *policy = random_policy(&rng), *other = random_policy(&rng);
                _cleanup_free_ struct policy_range *ranges = NULL;
                size_t n = 0;

                if (rng_below(&rng, 2))
                        assert_int_equal(policy_combine(policy, &other, NULL), 0);
                assert_int_equal(policy_ranges(policy, &ranges, &n), 0);
                for (size_t i = 0; i < 100; i++) {
                        struct target target = random_target(&rng);
                        enum policy_outcome found = POLICY_DENIED;
                        struct decision decision;
                        size_t times = 0;

                        target.name = target.sni = target.http_host = NULL;
                        assert_int_equal(ip_prefix_parse(RANDOM_OF(&rng, random_addresses), &target.address), 0);
                        target_address_normalise(&target.address);
                        policy_decide(policy, &target, &decision);
                        if (decision.reason == POLICY_BY_LOCALHOST)
                                continue;
                        for (size_t k = 0; k < n; k++)
                                if (ranges[k].transport == target.transport && within(&ranges[k], &target.address) &&
                                    target.port >= ranges[k].ports.first && target.port <= ranges[k].ports.last) {
                                        found = ranges[k].is_pending ? POLICY_PENDING : POLICY_ALLOWED;
                                        times++;
                                }
                        assert_int_equal(found, decision.outcome);
                        assert_true(times <= 1);
                        open += times;
                }
        }
        assert_true(open > 1000);
}

/* The openings of a destination are the ports that are let through, no more and no less. */
static void test_openings(void **state)
{
        size_t open = 0;
        struct rng rng;

        rng_seed(&rng, 6);
        for (size_t round = 0; round < 1000; round++) {
                _cleanup_policy_ struct policy *policy = random_policy(&rng);
                _cleanup_free_ struct policy_opening *openings = NULL;
                struct target target = random_target(&rng);
                size_t n = 0;

                assert_int_equal(policy_openings(policy, &target, &openings, &n), 0);
                for (size_t i = 0; i < ARRAY_SIZE(random_port_numbers); i++) {
                        enum policy_outcome found = POLICY_DENIED;
                        struct decision decision;

                        target.port = random_port_numbers[i];
                        policy_decide(policy, &target, &decision);
                        for (size_t k = 0; k < n; k++)
                                if (target.port >= openings[k].ports.first && target.port <= openings[k].ports.last)
                                        found = openings[k].is_pending ? POLICY_PENDING : POLICY_ALLOWED;
                        assert_int_equal(found, decision.outcome);
                        open += found != POLICY_DENIED;
                }
        }
        assert_true(open > 1000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_known),
                cmocka_unit_test(test_random),
                cmocka_unit_test(test_openings),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
