/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/print-campaign.h"
#include "tests/test.h"

static const char summary_text[] =
        "{\"rounds\": {\"planned\": 8, \"counted\": 8, \"campaigns\": 1}, \"cells\": ["
        "{\"cell\": \"tree/idle\", \"pooled\": {\"sent\": 240000, \"lost\": 12, \"missed\": 3, \"reordered\": 1},"
        " \"loss\": {\"ppb\": 50000, \"lower_ppb\": 28863, \"upper_ppb\": 81000}, \"background\": {},"
        " \"series\": {\"rtt\": {\"p50_ns\": {\"rounds\": 8, \"median\": 45100, \"lower\": 44800, \"upper\": 45600},"
        " \"p95_ns\": {\"rounds\": 8, \"clusters\": [{\"rounds\": 17, \"median\": 32600000}, {\"rounds\": 13, "
        "\"median\":"
        " 74900000}]}, \"p99_ns\": {\"rounds\": 8, \"median\": \"lost\", \"lower\": 99000, \"upper\": \"lost\"}},"
        " \"lateness\": {\"p50_ns\": {\"rounds\": 8, \"median\": 4100}, \"p99_ns\": {\"rounds\": 8, \"median\": "
        "73000}}}},"
        "{\"cell\": \"tree/600mbit\", \"pooled\": {\"sent\": 0}, \"series\": {\"request\": {\"p50_ns\": {\"rounds\": "
        "3}}},"
        " \"background\": {\"noise\": {\"offered_bps\": 600000000, \"sent_bps\": 599900000, \"delivered_bps\": "
        "478000000,"
        " \"dropped_packets\": 1234}}}],"
        " \"invalid\": [{\"trial\": \"0003-tree-idle-r1\", \"reason\": \"the reflector died\"}]}";

static const char verdict_text[] =
        "{\"campaign\": {\"valid\": true, \"reasons\": []}, \"unjudged\": [\"rule x\"], \"controls\": [{\"arm\": "
        "\"harm\","
        " \"kind\": \"harm\", \"outcome\": \"holds\", \"rules\": [{\"text\": \"R0\", \"unit\": \"ppm\", \"form\": "
        "\"ratio\","
        " \"value\": 450200000, \"lower\": 310100000, \"upper\": \"lost\", \"at_least\": 2000000, \"outcome\": "
        "\"holds\","
        " \"reason\": \"because\"}]}], \"hypotheses\": [{\"hypothesis\": \"h1\", \"claim\": \"The tail stays.\", "
        "\"outcome\":"
        " \"fails\", \"reason\": \"a rule fails\", \"rules\": [{\"text\": \"R1\", \"unit\": \"ppm\", \"metric_unit\": "
        "\"ns\","
        " \"form\": \"ratio\", \"value\": 1040000, \"lower\": 990000, \"upper\": 1083721, \"at_most\": 1250000, "
        "\"floor\":"
        " {\"lower\": 940000, \"upper\": 1060000}, \"bootstrap\": {\"point\": 1010000, \"low\": 1000000, \"high\": "
        "1020000,"
        " \"degenerate\": false}, \"outcome\": \"holds\", \"reason\": \"yes\"}, {\"text\": \"R2\", \"unit\": \"ppm\","
        " \"metric_unit\": \"ns\", \"form\": \"ratio\", \"advisory\": true, \"at_most\": 1500000, \"clusters\": "
        "[{\"cell\":"
        " \"tree/idle\", \"clusters\": [{\"rounds\": 17, \"median\": 32600000}, {\"rounds\": 13, \"median\": "
        "74900000}]}],"
        " \"outcome\": \"inconclusive\", \"reason\": \"clusters\"}]}]}";

static json_t *parse(const char *text)
{
        struct err err = {0};
        json_t *json = NULL;

        if (json_parse(span_of_text(text), "test", &json, &err) < 0)
                fail_msg("%s at column %u", err.text, err.position.column);
        return json;
}

static void expect(const struct text *out, const char *part)
{
        if (!strstr(out->data, part))
                fail_msg("\"%s\" is not in:\n%s", part, out->data);
}

static void test_all_of_it(void **state)
{
        _cleanup_json_ json_t *summary = parse(summary_text), *verdict = parse(verdict_text);
        _cleanup_text_ struct text out = {0};

        print_campaign_text(&out, "archives/a", NULL, summary, verdict);
        expect(&out, "45.1 us  [44.8 us, 45.6 us]");
        expect(&out, "clusters  17x 32.6 ms, 13x 74.9 ms"); /* and no median */
        expect(&out, "lost  [99.0 us, lost]");
        expect(&out, "12 of 240000  at most 0.0081%");
        expect(&out, "\n  A dash: ");
        expect(&out, "600.0 mbit  599.9 mbit  478.0 mbit     1234");
        expect(&out, "4.10 us   73.0 us       3          1");
        expect(&out, "8 of 8 rounds count\n");
        expect(&out, "0003-tree-idle-r1: the reflector died");
        expect(&out, "Not judged in this run\n  rule x");
        expect(&out,
               "control harm, which has to show harm: holds\n    R0\n        value 450.2, bounds 310.1 to lost; at "
               "least 2\n        holds: because\n");
        expect(&out, "h1: The tail stays.\n");
        expect(&out, "value 1.04, bounds 0.99 to 1.083721; at most 1.25; noise floor 0.94 to 1.06\n");
        expect(&out, "bootstrap: medians give 1.01, 95% interval 1 to 1.02\n");
        expect(&out, "R2 (advisory)\n        no value; at most 1.5; no floor\n        clusters of tree/idle: 17 rounds "
                     "near 32.6 ms,"
                     " 13 rounds near 74.9 ms\n");
        expect(&out, "  => fails: a rule fails\n");
        expect(&out, "archive: archives/a\n");
}

static void test_another_series(void **state)
{
        _cleanup_json_ json_t *summary = parse(summary_text), *verdict = parse(verdict_text);
        _cleanup_text_ struct text out = {0};

        print_campaign_text(&out, "a", "lateness", summary, verdict);
        expect(&out, "tree/idle     lateness       8  4.10 us");
}

/* Every series that a rule judges is shown, whatever else a cell has; its losses once. */
static void test_judged_series(void **state)
{
        _cleanup_json_ json_t *summary =
                parse("{\"cells\": [{\"cell\": \"a/x\", \"pooled\": {\"sent\": 9, \"lost\": 1}, \"loss\": "
                      "{\"upper_ppb\": 260328833},"
                      " \"series\": {\"rtt\": {}, \"rtt_user\": {\"p50_ns\": {\"rounds\": 8, \"median\": 45100}},"
                      " \"response\": {\"p50_ns\": {\"rounds\": 8, \"median\": 62000}}}},"
                      " {\"cell\": \"b/x\", \"series\": {\"verify\": {}, \"verify_more\": {}}}]}");
        _cleanup_json_ json_t *verdict =
                parse("{\"hypotheses\": [{\"rules\": [{\"metric\": \"rtt_user.p99\"}, {\"metric\": \"loss\"},"
                      " {\"metric\": \"verify.per-instruction.p50\"}]}],"
                      " \"controls\": [{\"rules\": [{\"metric\": \"response.p99.9\"}]}]}");
        _cleanup_text_ struct text out = {0}, one = {0};

        print_campaign_text(&out, "a", NULL, summary, verdict);
        expect(&out, "a/x   rtt_user       8  45.1 us    -    -  1 of 9  at most 26.1%\n"
                     "  a/x   response       8  62.0 us    -    -\n"
                     "  b/x   verify         0");
        assert_null(strstr(out.data, "rtt  "));
        assert_null(strstr(out.data, "verify_more"));
        print_campaign_text(&one, "a", "rtt_user", summary, verdict);
        expect(&one, "a/x   rtt_user");
        assert_null(strstr(one.data, "response"));
}

/* A table of what there is, and none of what there is not. */
static void test_loads(void **state)
{
        static const struct {
                const char *summary, *is_there, *is_not_there;
        } cases[] = {
                {"{\"cells\": [{\"series\": {\"lateness\": {}}, \"background\": {\"n\": {\"dropped_packets\": 0}}}]}",
                 "over the rounds that count; how late the probe's packets were sent\n", "Delivered is"},
                {"{\"cells\": [{\"background\": {\"n\": {\"dropped_packets\": 1}}}]}",
                 "\n  Delivered is all that arrived", "probe"},
                {"{\"cells\": [{\"series\": {\"lateness\": {}}}]}", "\nHow late the probe's packets were sent\n",
                 "Background"},
                {"{\"cells\": [{\"pooled\": {\"missed\": 2}}]}", "\nWhat the schedule missed, and ", "probe"},
                {"{\"cells\": [{\"pooled\": {\"missed\": 0}, \"series\": {\"wake\": {}}}]}", "", "late"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *summary = parse(cases[i].summary);
                _cleanup_text_ struct text out = {0};

                print_campaign_text(&out, "a", NULL, summary, NULL);
                expect(&out, cases[i].is_there);
                if (strstr(out.data, cases[i].is_not_there))
                        fail_msg("\"%s\" is in:\n%s", cases[i].is_not_there, out.data);
        }
}

static void test_invalid_campaign(void **state)
{
        _cleanup_json_ json_t *summary = parse("{\"rounds\": {\"planned\": 8, \"counted\": 6}}");
        _cleanup_json_ json_t *verdict = parse("{\"campaign\": {\"valid\": false, \"reasons\": [\"why\"]}}");
        _cleanup_text_ struct text out = {0};

        print_campaign_text(&out, "a", NULL, summary, verdict);
        expect(&out, "6 of 8 rounds count; the campaign is INVALID\n  why\n");
}

/* An archive may hold anything. */
static void test_hostile_input(void **state)
{
        static const char *const texts[] = {
                "{}",
                "[]",
                "{\"cells\": 1, \"hypotheses\": {}, \"controls\": \"x\", \"invalid\": {\"a\": 1}, \"rounds\": []}",
                "{\"cells\": [1, {}, {\"cell\": 7, \"series\": [], \"background\": {\"x\": 1}}], \"hypotheses\": [[], "
                "{\"rules\":"
                " [1, {\"unit\": 1, \"clusters\": [{\"clusters\": [1]}], \"bootstrap\": 3}]}], \"unjudged\": [1]}",
                "{\"cells\": [{\"cell\": \"\\u001b[2J\"}], \"hypotheses\": [{\"claim\": \"\\u001b[2J\\n\"}]}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_json_ json_t *json = parse(texts[i]);
                _cleanup_text_ struct text out = {0};

                print_campaign_text(&out, "a\x1b", NULL, json, json);
                assert_false(out.failed);
                assert_null(strchr(out.data, '\x1b'));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_of_it),        cmocka_unit_test(test_another_series),
                cmocka_unit_test(test_judged_series),    cmocka_unit_test(test_loads),
                cmocka_unit_test(test_invalid_campaign), cmocka_unit_test(test_hostile_input),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
