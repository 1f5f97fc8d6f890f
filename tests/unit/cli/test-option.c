/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/option.h"

struct sample {
        bool quiet, json, all;
        const char *output;
        struct option_strings set;
        int64_t rate_bps;
        int family;
};

static const char *const families[] = {"ipv4", "ipv6", NULL};

static const struct option options[] = {
        {"quiet", 'q', OPTION_FLAG, offsetof(struct sample, quiet), .help = "say less"},
        {"json", 'j', OPTION_FLAG, offsetof(struct sample, json), .help = "print JSON"},
        {"all", 'a', OPTION_FLAG, offsetof(struct sample, all), .help = "all of them", .excludes = "output"},
        {"output", 'o', OPTION_STRING, offsetof(struct sample, output), "DIR", "here", .help = "where to"},
        {"set", 0, OPTION_STRINGS, offsetof(struct sample, set), "PATH=VALUE", .help = "override"},
        {"rate", 'r', OPTION_QUANTITY, offsetof(struct sample, rate_bps), "RATE", "1mbit", UNIT_RATE, 1, 1000000000,
         .help = "how fast"},
        {"family", 0, OPTION_CHOICE, offsetof(struct sample, family), "NAME", "ipv4", .choices = families,
         .help = "which"},
        {0},
};

#define PARSE(out, err, ...)                                                                                           \
        ({                                                                                                             \
                char *argv_[] = {__VA_ARGS__, NULL};                                                                   \
                int argc_ = (int)ARRAY_SIZE(argv_) - 1;                                                                \
                option_parse(options, false, &argc_, argv_, out, err);                                                 \
        })

static void test_fallbacks(void **state)
{
        struct sample s = {0};
        struct err err = {0};
        char *argv[] = {NULL};
        int argc = 0;

        assert_int_equal(option_parse(options, false, &argc, argv, &s, &err), 0);
        assert_string_equal(s.output, "here");
        assert_int_equal(s.rate_bps, 1000000);
        assert_int_equal(s.family, 0);
        assert_false(s.quiet);
}

static void test_forms(void **state)
{
        const char *words[] = {"a",         "-qj",      "--output=x", "--set", "p=1",     "b", "--set=q=2",
                               "-r500mbit", "--family", "ipv6",       "--",    "--quiet", NULL};
        char **argv = (char **)words;
        int argc = (int)ARRAY_SIZE(words) - 1;
        struct sample s = {0};
        struct err err = {0};

        assert_int_equal(option_parse(options, false, &argc, argv, &s, &err), 0);
        assert_int_equal(argc, 3);
        assert_string_equal(argv[0], "a");
        assert_string_equal(argv[1], "b");
        assert_string_equal(argv[2], "--quiet");
        assert_true(s.quiet && s.json);
        assert_string_equal(s.output, "x");
        assert_int_equal(s.set.n, 2);
        assert_string_equal(s.set.items[1], "q=2");
        assert_int_equal(s.rate_bps, 500000000);
        assert_int_equal(s.family, 1);
}

static void test_command_keeps_its_options(void **state)
{
        const char *words[] = {"-q", "curl", "-o", "file", NULL};
        char **argv = (char **)words;
        struct sample s = {0};
        struct err err = {0};
        int argc = 4;

        assert_int_equal(option_parse(options, true, &argc, argv, &s, &err), 0);
        assert_int_equal(argc, 3);
        assert_string_equal(argv[1], "-o");
        assert_string_equal(s.output, "here");
}

static void test_help_is_an_outcome(void **state)
{
        struct sample s = {0};
        struct err err = {0};

        assert_int_equal(PARSE(&s, &err, (char *)"--help"), 1);
        assert_int_equal(PARSE(&s, &err, (char *)"-h"), 1);
        assert_int_equal(PARSE(&s, &err, (char *)"-aox", (char *)"-h"), 1);
}

/* What a fallback set was not given. */
static void test_exclusion_leaves_fallbacks(void **state)
{
        struct sample s = {0};
        struct err err = {0};

        assert_int_equal(PARSE(&s, &err, (char *)"-aa", (char *)"--all"), 0);
        assert_true(s.all);
        assert_string_equal(s.output, "here");
}

static void test_errors_say_what_to_do(void **state)
{
        static const struct {
                const char *words[2];
                const char *message;
        } cases[] = {
                {{"--ouptut", "x"}, "unknown option --ouptut; did you mean --output?"},
                {{"--zzzzzzzz", NULL}, "unknown option --zzzzzzzz; --help lists them"},
                {{"-z", NULL}, "unknown option -z; --help lists them"},
                {{"--output", NULL}, "--output needs a value: --output DIR"},
                {{"--quiet=1", NULL}, "--quiet takes no value"},
                {{"--rate", "2gbit"}, "--rate 2gbit is out of range, expected 1bit to 1gbit"},
                {{"--family", "ipx"}, "--family ipx is not known, expected one of: ipv4, ipv6"},
                {{"--all", "--output=x"}, "--output and --all exclude each other"},
                {{"-ox", "-a"}, "--output and --all exclude each other"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char *argv[] = {(char *)cases[i].words[0], (char *)cases[i].words[1], NULL};
                int argc = cases[i].words[1] ? 2 : 1;
                struct sample s = {0};
                struct err err = {0};

                assert_int_equal(option_parse(options, false, &argc, argv, &s, &err), -EINVAL);
                assert_int_equal(err.kind, ERR_USAGE);
                assert_string_equal(err.text, cases[i].message);
        }
}

static void test_wrong_unit_names_the_option(void **state)
{
        struct sample s = {0};
        struct err err = {0};

        assert_int_equal(PARSE(&s, &err, (char *)"--rate", (char *)"5s"), -EINVAL);
        assert_non_null(strstr(err.text, "--rate"));
        assert_non_null(strstr(err.text, "5s"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fallbacks),
                cmocka_unit_test(test_forms),
                cmocka_unit_test(test_command_keeps_its_options),
                cmocka_unit_test(test_help_is_an_outcome),
                cmocka_unit_test(test_exclusion_leaves_fallbacks),
                cmocka_unit_test(test_errors_say_what_to_do),
                cmocka_unit_test(test_wrong_unit_names_the_option),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
