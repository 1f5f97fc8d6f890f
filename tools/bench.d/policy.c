/* SPDX-License-Identifier: Apache-2.0 */

/* What a decision costs, by the number of a policy's rules: each third of them names, suffixes and ranges. Policies are
 * asked in turn, so that what else happens on the machine meets all alike. */

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/macro.h"
#include "sandbox/policy.h"
#include "stats/sort.h"

#define ROUNDS 400
#define BATCH  500 /* decisions between two readings of the clock */

static const unsigned sizes[] = {10, 1000, 10000};

static struct policy *policy_of_size(unsigned n)
{
        _cleanup_text_ struct text text = {0};
        struct policy *policy = NULL;

        text_add(&text, "allow:\n");
        for (unsigned i = 0; i < n; i++) {
                if (i % 3 == 0)
                        text_addf(&text, "- {host: h%u.example.org, port: 443}\n", i);
                else if (i % 3 == 1)
                        text_addf(&text, "- {host: \"*.s%u.example.org\", port: 443}\n", i);
                else
                        text_addf(&text, "- {address: 203.%u.%u.0/%u, port: 443}\n", i / 250 % 250, i % 250,
                                  24 + i % 2);
        }
        if (text.failed || policy_parse(span_of_text(text.data), "bench", &policy, NULL) < 0)
                exit(1);
        return policy;
}

static int64_t batch_ns(const struct policy *policy, const struct target *target)
{
        int64_t start = clock_now_ns(CLOCK_MONOTONIC);
        struct decision decision;

        for (unsigned i = 0; i < BATCH; i++) {
                policy_decide(policy, target, &decision);
                __asm__ volatile("" : : "r"(&decision) : "memory");
        }
        return clock_now_ns(CLOCK_MONOTONIC) - start;
}

static void measure(const char *what, struct policy *const *policies, const struct target *target)
{
        static int64_t took_ns[ARRAY_SIZE(sizes)][ROUNDS];
        double median[ARRAY_SIZE(sizes)];

        for (unsigned round = 0; round < ROUNDS; round++)
                for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
                        took_ns[i][round] = batch_ns(policies[i], target);
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                sort_i64(took_ns[i], ROUNDS);
                median[i] = (double)took_ns[i][ROUNDS / 2] / BATCH;
                printf("policy decision, %-24s %6u rules  p50 %6.1f ns  %.2f times that of %u\n", what, sizes[i],
                       median[i], median[i] / median[0], sizes[0]);
        }
}

int main(void)
{
        struct policy *policies[ARRAY_SIZE(sizes)];
        struct target name = {.name = "www.s1.example.org", .port = 443}, address = {.port = 443}, other = name;

        if (ip_prefix_parse("203.0.2.9", &address.address) < 0)
                return 1;
        name.address = address.address;
        other.name = "a.b.c.d.unknown.test";
        other.address = (struct ip_prefix){0};
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
                policies[i] = policy_of_size(sizes[i]);
        measure("name below a suffix", policies, &name);
        measure("address in a range", policies, &address);
        measure("name that is not there", policies, &other);
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
                policy_free(policies[i]);
        return 0;
}
