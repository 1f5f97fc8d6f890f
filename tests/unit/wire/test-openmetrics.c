/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>

#include "base/macro.h"
#include "tests/fault.h"
#include "tests/skip.h"
#include "tests/test.h"
#include "wire/openmetrics.h"

static const struct openmetrics_label adas[] = {{"zone", "front-left"}, {"slice", "adas"}};
static const struct openmetrics_label odd[] = {{"slice", "a\"b\\c\nd, e}"}, {"zone", "\xc3\xa4"}};

static void write_scrape(struct text *out)
{
        struct openmetrics_writer w = {.out = out};
        struct err err = {0};

        openmetrics_family(&w, OPENMETRICS_COUNTER, "assay_sent_bytes", "bytes", "Layer-2 bytes, \"tag\" included.");
        openmetrics_sample(&w, adas, 2, 123456789012345);
        openmetrics_sample(&w, odd, 2, 0);
        openmetrics_family(&w, OPENMETRICS_GAUGE, "assay_queue_packets", "packets", "Packets\nin the queue \\ now.");
        openmetrics_sample(&w, NULL, 0, -7);
        openmetrics_family(&w, OPENMETRICS_GAUGE, "assay_up", NULL, "");
        openmetrics_sample(&w, adas, 1, 1);
        if (openmetrics_end(&w, &err) < 0)
                fail_msg("%s", err.text);
}

/* The bytes, by the grammar of OpenMetrics 1.0. */
static void test_bytes(void **state)
{
        _cleanup_text_ struct text out = {0};

        write_scrape(&out);
        assert_string_equal(out.data, "# TYPE assay_sent_bytes counter\n"
                                      "# UNIT assay_sent_bytes bytes\n"
                                      "# HELP assay_sent_bytes Layer-2 bytes, \\\"tag\\\" included.\n"
                                      "assay_sent_bytes_total{zone=\"front-left\",slice=\"adas\"} 123456789012345\n"
                                      "assay_sent_bytes_total{slice=\"a\\\"b\\\\c\\nd, e}\",zone=\"\xc3\xa4\"} 0\n"
                                      "# TYPE assay_queue_packets gauge\n"
                                      "# UNIT assay_queue_packets packets\n"
                                      "# HELP assay_queue_packets Packets\\nin the queue \\\\ now.\n"
                                      "assay_queue_packets -7\n"
                                      "# TYPE assay_up gauge\n"
                                      "# HELP assay_up \n"
                                      "assay_up{zone=\"front-left\"} 1\n"
                                      "# EOF\n");
}

static void test_round_trip(void **state)
{
        static const struct openmetrics_label reversed[] = {{"slice", "adas"}, {"zone", "front-left"}};
        _cleanup_openmetrics_ struct openmetrics_set set = {0};
        _cleanup_text_ struct text out = {0};
        struct err err = {0};
        int64_t value;

        write_scrape(&out);
        if (openmetrics_parse(span_of(out.data, out.len), "scrape", &set, &err) < 0)
                fail_msg("%u:%u %s", err.position.line, err.position.column, err.text);
        assert_int_equal(set.n_families, 3);
        assert_int_equal(set.n_samples, 4);
        assert_string_equal(set.families[0].help, "Layer-2 bytes, \"tag\" included.");
        assert_string_equal(set.families[0].unit, "bytes");
        assert_int_equal(set.families[0].type, OPENMETRICS_COUNTER);
        assert_string_equal(set.families[1].help, "Packets\nin the queue \\ now.");
        assert_string_equal(set.families[2].unit, "");

        assert_int_equal(openmetrics_value(&set, "assay_sent_bytes", adas, 2, &value), 0);
        assert_int_equal(value, 123456789012345);
        assert_int_equal(openmetrics_value(&set, "assay_sent_bytes", reversed, 2, &value), 0);
        assert_int_equal(openmetrics_value(&set, "assay_sent_bytes", odd, 2, &value), 0);
        assert_int_equal(value, 0);
        assert_int_equal(openmetrics_value(&set, "assay_queue_packets", NULL, 0, &value), 0);
        assert_int_equal(value, -7);
        assert_int_equal(openmetrics_value(&set, "assay_sent_bytes", adas, 1, &value), -ENOENT);
        assert_int_equal(openmetrics_value(&set, "assay_sent", adas, 2, &value), -ENOENT);
}

static void test_what_cannot_be_written(void **state)
{
        static const struct openmetrics_label many[OPENMETRICS_LABELS_MAX + 1] = {{0}};
        static const struct {
                const char *family, *unit, *help;
                struct openmetrics_label label;
                int64_t value;
        } cases[] = {
                {"", NULL, "", {"a", ""}, 0},          {"1a", NULL, "", {"a", ""}, 0},
                {"a-b", NULL, "", {"a", ""}, 0},       {"a:b", NULL, "", {"a", ""}, 0},
                {"a_total", NULL, "", {"a", ""}, 0},   {"a_seconds", "bytes", "", {"a", ""}, 0},
                {"bytes", "bytes", "", {"a", ""}, 0},  {"a", NULL, "\xff", {"a", ""}, 0},
                {"a", NULL, "", {"_a", ""}, 0},        {"a", NULL, "", {"1", ""}, 0},
                {"a", NULL, "", {"a", "\xc0\x80"}, 0}, {"a", NULL, "", {"a", ""}, -1},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_text_ struct text out = {0};
                struct openmetrics_writer w = {.out = &out};
                struct err err = {0};

                openmetrics_family(&w, OPENMETRICS_COUNTER, cases[i].family, cases[i].unit, cases[i].help);
                openmetrics_sample(&w, &cases[i].label, 1, cases[i].value);
                assert_int_equal(openmetrics_end(&w, &err), -EINVAL);
                assert_int_equal(err.kind, ERR_BUG);
        }
        for (size_t i = 0; i < 2; i++) {
                _cleanup_text_ struct text out = {0};
                struct openmetrics_writer w = {.out = &out};

                if (i == 1)
                        openmetrics_family(&w, OPENMETRICS_GAUGE, "a", NULL, "");
                openmetrics_sample(&w, many, i == 1 ? ARRAY_SIZE(many) : 0, 0);
                assert_int_equal(openmetrics_end(&w, NULL), -EINVAL);
        }
}

#define A_COUNTER "# TYPE a counter\n"
#define A_GAUGE   "# TYPE a gauge\n"

static void test_accepted(void **state)
{
        static const char *const cases[] = {
                "# EOF",
                "# EOF\n",
                A_COUNTER "# EOF\n",
                "# HELP a x\n# UNIT a \n" A_COUNTER "a_total 9223372036854775807\n# EOF\n",
                A_GAUGE "a{b=\"\"} 1\na{b=\"1\"} 1\na{c=\"\"} 1\n# EOF\n",
                A_GAUGE "a 1\n# TYPE b gauge\nb 1\n# EOF\n",
                "# TYPE a_total gauge\na_total 1\n# EOF\n",
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_openmetrics_ struct openmetrics_set set = {0};
                struct err err = {0};

                if (openmetrics_parse(span_of_text(cases[i]), "scrape", &set, &err) < 0)
                        fail_msg("case %zu: %u:%u %s", i, err.position.line, err.position.column, err.text);
        }
}

static void test_refused(void **state)
{
        static const struct {
                const char *text;
                unsigned line;
        } cases[] = {
                {"", 1},
                {A_COUNTER "a_total 1\n", 3}, /* no end */
                {A_COUNTER "a_total 1\n# EO", 3},
                {A_COUNTER "a_total 1\n# EOF\n\n", 3}, /* something behind the end */
                {A_COUNTER "a_total 1\n# EOF\na_total 2\n", 3},
                {A_COUNTER "\n# EOF\n", 2}, /* an empty line */
                {"a 1\n# EOF\n", 1},        /* no type */
                {"# HELP a x\na 1\n# EOF\n", 2},
                {A_COUNTER "a 1\n# EOF\n", 2}, /* a counter without _total */
                {A_GAUGE "a_total 1\n# EOF\n", 2},
                {A_GAUGE "b 1\n# EOF\n", 2},
                {A_COUNTER "a_total -1\n# EOF\n", 2},
                {A_GAUGE A_GAUGE "# EOF\n", 2}, /* twice */
                {A_GAUGE "a 1\n" A_GAUGE "# EOF\n", 3},
                {A_GAUGE "a 1\n# HELP a late\n# EOF\n", 3},
                {A_GAUGE "# TYPE b gauge\n# HELP a back\n# EOF\n", 3}, /* interleaved */
                {A_GAUGE "# TYPE b gauge\nb 1\na 1\n# EOF\n", 4},
                {A_GAUGE "a 1\na 2\n# EOF\n", 3}, /* the same labels again */
                {A_GAUGE "a{b=\"1\",c=\"2\"} 1\na{c=\"2\",b=\"1\"} 1\n# EOF\n", 3},
                {A_GAUGE "a{b=\"1\",b=\"2\"} 1\n# EOF\n", 2},
                {A_GAUGE "a{} 1\n# EOF\n", 2},
                {A_GAUGE "a{b=\"1\",} 1\n# EOF\n", 2},
                {A_GAUGE "a{b=1} 1\n# EOF\n", 2},
                {A_GAUGE "a{b=\"1} 1\n# EOF\n", 2},
                {A_GAUGE "a{b=\"\\t\"} 1\n# EOF\n", 2},
                {A_GAUGE "a{__b=\"1\"} 1\n# EOF\n", 2},
                {A_GAUGE "a{b=\"1\" } 1\n# EOF\n", 2},
                {A_GAUGE "a {b=\"1\"} 1\n# EOF\n", 2},
                {A_GAUGE "a  1\n# EOF\n", 2},
                {A_GAUGE "a 1 \n# EOF\n", 2},
                {A_GAUGE "a 1 1700000000\n# EOF\n", 2}, /* a timestamp */
                {A_GAUGE "a 1.5\n# EOF\n", 2},
                {A_GAUGE "a NaN\n# EOF\n", 2},
                {A_GAUGE "a +1\n# EOF\n", 2},
                {A_GAUGE "a 9223372036854775808\n# EOF\n", 2},
                {A_GAUGE "a 1\r\n# EOF\n", 2},
                {"# TYPE a histogram\n# EOF\n", 1},
                {"# TYPE a\n# EOF\n", 1},
                {"#TYPE a gauge\n# EOF\n", 1},
                {"# comment\n# EOF\n", 1},
                {"# UNIT a bytes\n# EOF\n", 1},
                {"# HELP a un\"escaped\n# EOF\n", 1},
                {"# TYPE 1a gauge\n# EOF\n", 1},
                {"# TYPE a gauge \n# EOF\n", 1},
                {A_GAUGE "a{b=\"\xff\"} 1\n# EOF\n", 1},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct openmetrics_set set = {0};
                struct err err = {0};

                assert_int_equal(openmetrics_parse(span_of_text(cases[i].text), "scrape", &set, &err), -EINVAL);
                assert_int_equal(err.kind, ERR_DATA);
                if (err.position.line != cases[i].line)
                        fail_msg("case %zu: line %u: %s, expected line %u", i, err.position.line, err.text,
                                 cases[i].line);
        }
}

static void test_too_many_samples(void **state)
{
        _cleanup_text_ struct text text = {0};
        struct openmetrics_set set = {0};
        struct err err = {0};

        text_add(&text, A_GAUGE);
        for (int i = 0; i <= OPENMETRICS_SAMPLES_MAX; i++)
                text_addf(&text, "a{b=\"%d\"} 1\n", i);
        text_add(&text, "# EOF\n");
        assert_int_equal(openmetrics_parse(span_of(text.data, text.len), "scrape", &set, &err), -EINVAL);
        assert_int_equal(err.position.line, OPENMETRICS_SAMPLES_MAX + 2);
}

/* The parser of the Prometheus client library for Python reads the same. */
static void test_another_reader_agrees(void **state)
{
        static const char script[] =
                "import sys\n"
                "try:\n"
                "    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n"
                "except ImportError:\n"
                "    sys.exit(77)\n"
                "for f in parse(open(sys.argv[1], encoding='utf-8', newline='').read()):\n"
                "    print(f.name, f.type, f.unit, repr(f.documentation))\n"
                "    for s in f.samples:\n"
                "        print(s.name, sorted(s.labels.items()), int(s.value))\n";
        static const char expected[] =
                "assay_sent_bytes counter bytes 'Layer-2 bytes, \"tag\" included.'\n"
                "assay_sent_bytes_total [('slice', 'adas'), ('zone', 'front-left')] "
                "123456789012345\n"
                "assay_sent_bytes_total [('slice', 'a\"b\\\\c\\nd, e}'), ('zone', '\xc3\xa4')] 0\n"
                "assay_queue_packets gauge packets 'Packets\\nin the queue \\\\ now.'\n"
                "assay_queue_packets [] -7\n"
                "assay_up gauge  ''\n"
                "assay_up [('zone', 'front-left')] 1\n";
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_free_ char *command = NULL, *seen = NULL;
        _cleanup_text_ struct text out = {0};
        size_t len;
        int status;

        write_scrape(&out);
        scratch_write(&scratch, "scrape.prom", out.data);
        scratch_write(&scratch, "read.py", script);
        command =
                text_format("cd %s && PYTHONIOENCODING=utf-8 /usr/bin/python3 read.py scrape.prom >seen", scratch.path);
        status = system(command);
        if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127)) {
                if (test_must_run("prometheus-client"))
                        fail_msg("prometheus-client: the Python module is missing");
                print_message("SKIP: prometheus-client: the Python module is missing\n");
                skip();
        }
        assert_int_equal(status, 0);
        assert_int_equal(file_read(scratch.fd, "seen", 1 << 16, &seen, &len, NULL), 0);
        assert_string_equal(seen, expected);
}

static void test_under_faults(void **state)
{
        _cleanup_text_ struct text out = {0};

        write_scrape(&out);
        for (unsigned n = 1;; n++) {
                _cleanup_openmetrics_ struct openmetrics_set set = {0};
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                r = openmetrics_parse(span_of(out.data, out.len), "scrape", &set, NULL);
                if (!fault_disarm()) {
                        assert_int_equal(r, 0);
                        assert_true(n > 3);
                        break;
                }
                assert_int_equal(r, -ENOMEM);
        }
        for (unsigned n = 1;; n++) {
                _cleanup_text_ struct text again = {0};
                struct openmetrics_writer w = {.out = &again};
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                openmetrics_family(&w, OPENMETRICS_GAUGE, "a", NULL, "help");
                r = openmetrics_end(&w, NULL);
                if (!fault_disarm()) {
                        assert_int_equal(r, 0);
                        break;
                }
                assert_int_equal(r, -ENOMEM);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bytes),
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_what_cannot_be_written),
                cmocka_unit_test(test_accepted),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_too_many_samples),
                cmocka_unit_test(test_another_reader_agrees),
                cmocka_unit_test(test_under_faults),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
