/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "sandbox/policy.h"

/* A range that is said to be open has to be so at both its ends; none may be of the loopback. */
static void check_ranges(const struct policy *policy)
{
        _cleanup_free_ struct policy_range *ranges = NULL;
        size_t n = 0;

        if (policy_ranges(policy, &ranges, &n) < 0)
                abort();
        for (size_t i = 0; i < n; i++)
                for (int end = 0; end < 2; end++) {
                        struct target target = {.transport = ranges[i].transport,
                                                .port = end ? ranges[i].ports.last : ranges[i].ports.first};
                        struct decision decision;

                        target.address.family = ranges[i].family;
                        target.address.length_bits = ranges[i].family == AF_INET ? 32 : 128;
                        memcpy(target.address.bytes, end ? ranges[i].last : ranges[i].first, 16);
                        policy_decide(policy, &target, &decision);
                        if (decision.outcome == POLICY_DENIED || decision.reason == POLICY_BY_LOCALHOST)
                                abort();
                }
}

static void check_words(const struct policy *policy)
{
        static const char *const names[] = {"example.org", "www.example.org", "a.b.example.org", "localhost"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const struct target target = {.name = names[i], .port = 443};
                char text[DECISION_TEXT];
                struct decision decision;
                bool is_open;

                policy_decide(policy, &target, &decision);
                is_open = decision.outcome != POLICY_DENIED && decision.reason == POLICY_BY_RULE;
                if (!*decision_rule_format(&decision, text) || !*decision_reason_format(&decision, text))
                        abort();
                if (is_open && !policy_decide_name(policy, names[i], &decision))
                        abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_policy_ struct policy *policy = NULL;
        _cleanup_json_ json_t *json = NULL;
        _cleanup_free_ char *text = NULL;
        struct err err = {0};

        if (policy_parse(span_of(data, size), "input", &policy, &err) < 0) {
                if (err.kind != ERR_USAGE || err.text[0] == '\0')
                        abort();
                return 0;
        }
        json = policy_to_json(policy);
        text = json ? json_format(json) : NULL;
        if (!text)
                abort();
        check_words(policy);
        check_ranges(policy);
        return 0;
}
