/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>

#include "sandbox/policy.h"
#include "tests/fault.h"
#include "tests/skip.h"
#include "tests/test.h"
#include "tests/unit/sandbox/policy-support.h"

/* Each tests/cases/policies/NAME.yaml with a NAME.error has to be refused with just that error; the others are read. */
static void test_cases(void **state)
{
        _cleanup_closedir_ DIR *dir = opendir(policy_cases());
        struct dirent *entry;
        size_t good = 0, bad = 0;

        assert_non_null(dir);
        while ((entry = readdir(dir))) {
                size_t len = strlen(entry->d_name);
                _cleanup_policy_ struct policy *policy = NULL;
                _cleanup_free_ char *yaml = NULL, *expected = NULL;
                struct err err = {0};
                char text[2048];
                int r;

                if (len < 5 || !streq(entry->d_name + len - 5, ".yaml"))
                        continue;
                yaml = policy_case_read(dirfd(dir), entry->d_name, "");
                expected = policy_case_read(dirfd(dir), entry->d_name, ".error");
                r = policy_parse(span_of_text(yaml), entry->d_name, &policy, &err);
                err_format(&err, text, sizeof(text));
                if (!expected && r < 0)
                        fail_msg("%s", text);
                if (expected && r == 0)
                        fail_msg("%s was read; expected: %s", entry->d_name, expected);
                if (expected) {
                        text[strlen(text) + 1] = '\0';
                        text[strlen(text)] = '\n';
                        assert_string_equal(text, expected);
                        assert_int_equal(err.kind, ERR_USAGE);
                        assert_null(policy);
                }
                *(expected ? &bad : &good) += 1;
        }
        assert_true(good >= 11);
        assert_true(bad >= 35);
}

static void test_content(void **state)
{
        static const char text[] =
                "default: deny\nallow:\n  - {host: \"*.Example.org.\", port: [443, 80, 81-90, 85-100]}\n"
                "deny:\n  - {address: \"2001:db8::/32\", transport: udp}\n"
                "localhost: [5432]\n"
                "limits: {total: {rate: 8kbit, bytes: 1KiB}, per-target: {connections: 2}}\n";
        _cleanup_policy_ struct policy *policy = NULL;
        _cleanup_text_ struct text formatted = {0};
        const struct policy_layer *layer;
        char digest[DIGEST_HEX_SIZE];

        assert_int_equal(policy_parse(span_of_text(text), "p.yaml", &policy, NULL), 0);
        assert_int_equal(policy->n_layers, 1);
        layer = policy->layers[0];
        assert_string_equal(layer->path, "p.yaml");
        assert_int_equal(layer->default_at.line, 1);
        assert_int_equal(layer->localhost_at.line, 6);
        assert_int_equal(layer->n_rules, 2);
        assert_true(layer->rules[0].is_deny);
        assert_int_equal(layer->rules[0].at.line, 5);
        policy_rule_format(&layer->rules[0], &formatted);
        text_add(&formatted, "; ");
        policy_rule_format(&layer->rules[1], &formatted);
        assert_string_equal(formatted.data,
                            "deny 2001:db8::/32, udp, any port; allow *.example.org, tcp, ports 80-100, 443");
        assert_int_equal(policy->total.rate_bps, 8000);
        assert_int_equal(policy->total.bytes, 1024);
        assert_int_equal(policy->total.connections, 0);
        assert_int_equal(policy->per_target.connections, 2);
        /* printf '' | sha256sum, for one that is known */
        policy_free(TAKE_PTR(policy));
        assert_int_equal(policy_parse(span_of_text(""), "empty.yaml", &policy, NULL), 0);
        assert_string_equal(digest_format(&policy->layers[0]->digest, digest),
                            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void assert_load_refused(const struct scratch *scratch, const char *name, const char *why)
{
        struct policy *policy = NULL;
        struct err err = {0};

        if (policy_load(scratch->fd, name, &policy, &err) == 0)
                fail_msg("%s was read; expected: %s", name, why);
        assert_null(policy);
        if (!strstr(err.text, why))
                fail_msg("%s; expected: %s", err.text, why);
        assert_int_equal(err_exit_code(err.kind), 2);
}

/* Only who commands the process may be able to change a policy. */
static void test_files(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_policy_ struct policy *policy = NULL;
        _cleanup_free_ char *large = malloc(POLICY_BYTES_MAX + 2);

        assert_non_null(large);
        scratch_write(&scratch, "good.yaml", "default: deny\n");
        assert_int_equal(policy_load(scratch.fd, "good.yaml", &policy, NULL), 0);

        assert_int_equal(fchmodat(scratch.fd, "good.yaml", 0664, 0), 0);
        assert_load_refused(&scratch, "good.yaml", "good.yaml can be written by its group");
        assert_int_equal(fchmodat(scratch.fd, "good.yaml", 0646, 0), 0);
        assert_load_refused(&scratch, "good.yaml", "good.yaml can be written by everybody");
        assert_int_equal(fchmodat(scratch.fd, "good.yaml", 0600, 0), 0);

        assert_int_equal(symlinkat("good.yaml", scratch.fd, "link.yaml"), 0);
        assert_load_refused(&scratch, "link.yaml", "is a symbolic link");
        assert_int_equal(mkfifoat(scratch.fd, "fifo.yaml", 0600), 0);
        assert_load_refused(&scratch, "fifo.yaml", "has to be a regular file");
        assert_int_equal(mkdirat(scratch.fd, "folder.yaml", 0700), 0);
        assert_load_refused(&scratch, "folder.yaml", "has to be a regular file");
        assert_load_refused(&scratch, "none.yaml", "No such file");

        memset(large, '#', POLICY_BYTES_MAX + 1);
        large[POLICY_BYTES_MAX + 1] = '\0';
        scratch_write(&scratch, "large.yaml", large);
        assert_load_refused(&scratch, "large.yaml", "more than the 1048576 bytes");
        large[POLICY_BYTES_MAX] = '\0';
        scratch_write(&scratch, "large.yaml", large);
        policy_free(TAKE_PTR(policy));
        assert_int_equal(policy_load(scratch.fd, "large.yaml", &policy, NULL), 0);
}

/* A file of another user is refused, but for root's and for that of who called sudo. */
static void test_owners(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        struct policy *policy = NULL;

        if (geteuid() != 0) {
                assert_false(test_must_run("root"));
                skip();
        }
        scratch_write(&scratch, "p.yaml", "default: deny\n");
        assert_int_equal(fchownat(scratch.fd, "p.yaml", 1234, 1234, 0), 0);
        assert_load_refused(&scratch, "p.yaml", "belongs to user 1234, who could change it");
        assert_int_equal(setenv("SUDO_UID", "1235", 1), 0);
        assert_load_refused(&scratch, "p.yaml", "belongs to user 1234, who could change it");
        assert_int_equal(setenv("SUDO_UID", "1234", 1), 0);
        assert_int_equal(policy_load(scratch.fd, "p.yaml", &policy, NULL), 0);
        policy_free(policy);
        assert_int_equal(unsetenv("SUDO_UID"), 0);
}

static void test_too_many(void **state)
{
        _cleanup_text_ struct text text = {0};
        struct policy *policy = NULL;
        struct err err = {0};

        text_add(&text, "deny:\n");
        for (int i = 0; i <= POLICY_RULES_MAX; i++)
                text_addf(&text, "- {host: a%d.x}\n", i);
        assert_int_equal(policy_parse(span_of_text(text.data), "p", &policy, &err), -EINVAL);
        assert_string_equal(err.text, "10001 rules; at most 10000 are allowed");

        text_done(&text);
        text_add(&text, "allow: {host: a, port: [1");
        for (int i = 1; i <= 256; i++)
                text_addf(&text, ", %d", 2 * i + 1);
        text_add(&text, "]}\n");
        assert_int_equal(policy_parse(span_of_text(text.data), "p", &policy, &err), -EINVAL);
        assert_string_equal(err.text, "allow[1].port: 257 ports and ranges; at most 256 are allowed");
}

static void test_out_of_memory(void **state)
{
        static const char text[] = "allow:\n- {host: \"*.a.example\", port: [1, 3], sni: a.example}\n"
                                   "deny: {address: 192.0.2.0/24}\nlocalhost: [1]\n";

        for (unsigned n = 1;; n++) {
                _cleanup_policy_ struct policy *policy = NULL, *other = NULL;
                struct err err = {0};
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                r = policy_parse(span_of_text(text), "p", &policy, &err);
                if (r == 0) {
                        other = policy_new_deny_all();
                        r = other ? policy_combine(policy, &other, &err) : -ENOMEM;
                }
                if (!fault_disarm()) {
                        assert_int_equal(r, 0);
                        break;
                }
                if (r == 0)
                        continue; /* a library went on without */
                assert_true(r < 0);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cases),  cmocka_unit_test(test_content),  cmocka_unit_test(test_files),
                cmocka_unit_test(test_owners), cmocka_unit_test(test_too_many), cmocka_unit_test(test_out_of_memory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
