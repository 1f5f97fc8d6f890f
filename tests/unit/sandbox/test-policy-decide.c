/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/policy.h"
#include "tests/test.h"
#include "tests/unit/sandbox/policy-support.h"

/* Each tests/cases/policies/NAME.decisions says of NAME.yaml what becomes of targets: a line has the target, the
 * address that its name resolved to (or "-"), the outcome, and what decided. */

static const char *decided_by(const struct decision *d, char buf[static 32])
{
        static const char *const reasons[] = {
                [POLICY_BY_DEFAULT] = "default",
                [POLICY_BY_DENY_ALL] = "deny-all",
                [POLICY_BY_LOCALHOST] = "localhost",
                [POLICY_BY_SPECIAL] = "special",
        };

        if (d->reason != POLICY_BY_RULE)
                return reasons[d->reason];
        snprintf(buf, 32, "%s[%u]", d->rule->is_deny ? "deny" : "allow", d->rule->number);
        return buf;
}

static void run_line(const struct policy *policy, const char *name, const char *line)
{
        char text[256], address[64], outcome[16], rule[32], buf[32], reason[DECISION_TEXT];
        struct host_name host;
        struct decision decision;
        struct target target;
        struct err err = {0};

        if (sscanf(line, "%255s %63s %15s %31s", text, address, outcome, rule) != 4)
                fail_msg("%s: cannot read the line: %s", name, line);
        if (target_parse(text, &host, &target, &err) < 0)
                fail_msg("%s: %s", name, err.text);
        if (!streq(address, "-"))
                assert_int_equal(ip_prefix_parse(address, &target.address), 0);
        policy_decide(policy, &target, &decision);
        decision_reason_format(&decision, reason);
        if (!streq(outcome_name(decision.outcome), outcome) || !streq(decided_by(&decision, buf), rule))
                fail_msg("%s: %s\ngot %s by %s: %s", name, line, outcome_name(decision.outcome),
                         decided_by(&decision, buf), reason);
        assert_true(strlen(reason) > 10);
        assert_ptr_equal(decision.layer, policy->layers[0]);
}

static void test_cases(void **state)
{
        _cleanup_closedir_ DIR *dir = opendir(policy_cases());
        struct dirent *entry;
        size_t lines = 0;

        assert_non_null(dir);
        while ((entry = readdir(dir))) {
                size_t len = strlen(entry->d_name);
                _cleanup_free_ char *decisions = NULL, *yaml = NULL;
                _cleanup_policy_ struct policy *policy = NULL;
                char *rest;

                if (len < 5 || !streq(entry->d_name + len - 5, ".yaml"))
                        continue;
                decisions = policy_case_read(dirfd(dir), entry->d_name, ".decisions");
                if (!decisions)
                        continue;
                yaml = policy_case_read(dirfd(dir), entry->d_name, "");
                policy = policy_of(yaml, entry->d_name);
                rest = decisions;
                for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n"))
                        if (*line && *line != '#') {
                                run_line(policy, entry->d_name, line);
                                lines++;
                        }
        }
        assert_true(lines >= 120);
}

static const char *rule_text(const struct policy *policy, const char *text, char buf[static DECISION_TEXT])
{
        struct host_name host;
        struct decision decision;
        struct target target;

        assert_int_equal(target_parse(text, &host, &target, NULL), 0);
        policy_decide(policy, &target, &decision);
        return decision_rule_format(&decision, buf);
}

static const char *reason_text(const struct policy *policy, const char *text, char buf[static DECISION_TEXT])
{
        struct host_name host;
        struct decision decision;
        struct target target;

        assert_int_equal(target_parse(text, &host, &target, NULL), 0);
        policy_decide(policy, &target, &decision);
        return decision_reason_format(&decision, buf);
}

/* What a person reads. */
static void test_words(void **state)
{
        _cleanup_policy_ struct policy *policy =
                policy_of("default: deny\n"
                          "allow:\n"
                          "  - {host: \"*.example.org\", port: 443}\n"
                          "  - {address: 0.0.0.0/0, port: 80}\n"
                          "  - {host: api.example.org, port: 8443, sni: api.example.org}\n"
                          "deny:\n"
                          "  - {host: ads.example.org}\n"
                          "localhost: [5432]\n",
                          "policy.yaml");
        _cleanup_policy_ struct policy *closed = policy_new_deny_all();
        char buf[DECISION_TEXT];

        assert_string_equal(rule_text(policy, "www.example.org:443", buf), "allow[1], policy.yaml:3");
        assert_string_equal(reason_text(policy, "www.example.org:443", buf), "it allows *.example.org, tcp, port 443");
        assert_string_equal(rule_text(policy, "www.example.org:22", buf), "default deny, policy.yaml:1");
        assert_string_equal(reason_text(policy, "www.example.org:22", buf),
                            "no rule allows it; the nearest, allow[1] in line 3, is for *.example.org, tcp, port 443");
        assert_string_equal(reason_text(policy, "other.example:22", buf), "no rule allows it");
        assert_string_equal(rule_text(policy, "ads.example.org:443", buf), "deny[1], policy.yaml:7");
        assert_string_equal(reason_text(policy, "ads.example.org:443", buf),
                            "it denies ads.example.org, any transport, any port");
        assert_string_equal(rule_text(policy, "10.0.0.1:80", buf), "private-addresses deny, policy.yaml");
        assert_string_equal(reason_text(policy, "10.0.0.1:80", buf),
                            "it is a private address (10.0.0.0/8 (RFC 1918)), which allow[2] in line 4 does not allow: "
                            "only a rule for an address in 10.0.0.0/8 could");
        assert_string_equal(rule_text(policy, "127.0.0.1:5432", buf), "localhost, policy.yaml:8");
        assert_string_equal(reason_text(policy, "127.0.0.1:5432", buf), "its port of the host's loopback is listed");
        assert_string_equal(
                reason_text(policy, "api.example.org:8443", buf),
                "it allows api.example.org, tcp, port 8443, server name api.example.org, which shows in the "
                "first bytes of the flow");
        assert_string_equal(rule_text(closed, "www.example.org:443", buf), "deny-all");
        assert_string_equal(reason_text(closed, "www.example.org:443", buf), "nothing may be reached");
}

static void assert_lookup(const struct policy *policy, const char *name, bool expected)
{
        struct decision decision;

        if (policy_decide_name(policy, name, &decision) != expected)
                fail_msg("%s is %slooked up", name, expected ? "not " : "");
        assert_int_equal(decision.outcome != POLICY_DENIED, expected);
}

static void test_lookups(void **state)
{
        _cleanup_policy_ struct policy *policy =
                policy_of("allow:\n"
                          "  - {host: \"*.example.org\", port: 443}\n"
                          "  - {host: time.example.net, port: 123, transport: udp}\n"
                          "  - {host: half.example.net, port: 1-100}\n"
                          "  - {host: none.example.net, port: [80, 443]}\n"
                          "  - {host: sni.example.net, port: 443, sni: sni.example.net}\n"
                          "  - {address: 0.0.0.0/0, port: any}\n"
                          "deny:\n"
                          "  - {host: ads.example.org}\n"
                          "  - {host: \"*.ads.example.org\", port: 80}\n"
                          "  - {host: half.example.net, port: 1-50}\n"
                          "  - {host: none.example.net, port: 80-443, transport: tcp}\n",
                          "p");
        _cleanup_policy_ struct policy *closed = policy_new_deny_all();
        _cleanup_policy_ struct policy *other = policy_of("allow: {host: \"*\", port: 444-500, transport: any}\n", "q");

        assert_lookup(policy, "www.example.org", true);
        assert_lookup(policy, "example.org", false);
        assert_lookup(policy, "ads.example.org", false);
        assert_lookup(policy, "x.ads.example.org", true);
        assert_lookup(policy, "time.example.net", true);
        assert_lookup(policy, "half.example.net", true);
        assert_lookup(policy, "none.example.net", false);
        assert_lookup(policy, "sni.example.net", true);
        assert_lookup(policy, "localhost", false);
        assert_lookup(closed, "www.example.org", false);
        /* two policies that allow a name on different ports leave none of it */
        assert_lookup(other, "www.example.org", true);
        assert_int_equal(policy_combine(policy, &other, NULL), 0);
        assert_lookup(policy, "www.example.org", false);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cases),
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_lookups),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
