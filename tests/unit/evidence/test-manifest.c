/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/macro.h"
#include "evidence/manifest.h"
#include "tests/test.h"
#include "tests/unit/evidence/manifest-kinds.h"

/* Each tests/cases/manifests/NAME.yaml loads, in its short form too, unless NAME.error beside it has the error that it
 * has to give. NAME.options has the options to load it with, one a line: "--short", "--set path=value". */

#define OPTIONS_MAX 16

struct options {
        struct manifest_options options;
        const char *overrides[OPTIONS_MAX];
        char *text;
};

static const char *folder(const char *name)
{
        static char path[1024];
        const char *cases = getenv("ASSAY_TEST_CASES");

        assert_non_null(cases);
        snprintf(path, sizeof(path), "%s/%s", cases, name);
        return path;
}

static int open_folder(const char *name)
{
        int fd = open(folder(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_true(fd >= 0);
        return fd;
}

/* The content of a file beside a case, without its last line feed; NULL if there is none. */
static char *read_beside(int dirfd, const char *yaml, const char *suffix)
{
        char name[256], *text = NULL;
        size_t len;

        snprintf(name, sizeof(name), "%.*s%s", (int)(strlen(yaml) - strlen(".yaml")), yaml, suffix);
        if (file_read(dirfd, name, 65536, &text, &len, NULL) < 0)
                return NULL;
        assert_true(len > 0 && text[len - 1] == '\n');
        text[len - 1] = '\0';
        return text;
}

static void read_options(int dirfd, const char *yaml, struct options *o)
{
        char *rest;

        *o = (struct options){.text = read_beside(dirfd, yaml, ".options")};
        rest = o->text;
        for (char *line = rest ? strsep(&rest, "\n") : NULL; line; line = strsep(&rest, "\n")) {
                if (streq(line, "--short"))
                        o->options.is_short = true;
                else if (strncmp(line, "--set ", 6) == 0 && o->options.n_overrides < OPTIONS_MAX)
                        o->overrides[o->options.n_overrides++] = line + 6;
                else
                        fail_msg("%s: option %s", yaml, line);
        }
        o->options.overrides = o->overrides;
}

static void run_bad(int dirfd, const char *yaml, const char *expected)
{
        struct manifest *m = NULL;
        struct options o;
        struct err err = {0};
        char text[2048];
        int r;

        read_options(dirfd, yaml, &o);
        r = manifest_load(dirfd, yaml, &test_kinds, &o.options, &m, &err);
        err_format(&err, text, sizeof(text));
        if (r >= 0)
                fail_msg("%s was accepted, expected: %s", yaml, expected);
        assert_null(m);
        assert_string_equal(text, expected);
        assert_int_equal(err_exit_code(err.kind), 2);
        free(o.text);
}

static void run_good(int dirfd, const char *yaml)
{
        struct options o;

        read_options(dirfd, yaml, &o);
        for (int i = 0; i < 2; i++) {
                _cleanup_manifest_ struct manifest *m = NULL;
                struct err err = {0};
                char text[2048];
                int r = manifest_load(dirfd, yaml, &test_kinds, &o.options, &m, &err);

                err_format(&err, text, sizeof(text));
                if (r < 0)
                        fail_msg("%s", text);
                o.options.is_short = true;
        }
        free(o.text);
}

static void test_cases(void **state)
{
        _cleanup_close_ int dirfd = open_folder("manifests");
        _cleanup_closedir_ DIR *dir = opendir(folder("manifests"));
        struct dirent *entry;
        size_t good = 0, bad = 0;

        while ((entry = readdir(dir))) {
                const char *dot = strrchr(entry->d_name, '.');
                _cleanup_free_ char *expected = NULL;

                if (!dot || !streq(dot, ".yaml"))
                        continue;
                print_message("%s\n", entry->d_name);
                expected = read_beside(dirfd, entry->d_name, ".error");
                if (expected)
                        run_bad(dirfd, entry->d_name, expected);
                else
                        run_good(dirfd, entry->d_name);
                *(expected ? &bad : &good) += 1;
        }
        assert_true(good >= 3);
        assert_true(bad >= 60);
}

static struct manifest *load(const char *path, bool is_short, size_t n, const char *const *overrides)
{
        _cleanup_close_ int dirfd = open_folder("..");
        const struct manifest_options options = {.is_short = is_short, .n_overrides = n, .overrides = overrides};
        struct manifest *m = NULL;
        struct err err = {0};
        char text[2048];
        int r = manifest_load(dirfd, path, &test_kinds, &options, &m, &err);

        err_format(&err, text, sizeof(text));
        if (r < 0)
                fail_msg("%s", text);
        return m;
}

static size_t cell_of(const struct manifest *m, const char *name)
{
        for (size_t i = 0; i < m->n_cells; i++)
                if (streq(m->cells[i].name, name))
                        return i;
        fail_msg("no cell %s", name);
        return 0;
}

static void assert_value(const struct manifest *m, const char *cell, const char *path, const char *expected)
{
        const char *value = node_scalar_at(m->cells[cell_of(m, cell)].config, path);

        assert_non_null(value);
        assert_string_equal(value, expected);
}

#define EXP_001 "../experiments/exp-001.yaml"
#define EXP_000 "../experiments/exp-000.yaml"
#define EXP_014 "../experiments/exp-014.yaml"

static void test_isolation(void **state)
{
        _cleanup_manifest_ struct manifest *m = load(EXP_001, false, 0, NULL);
        const struct manifest_rule *rule;

        assert_string_equal(m->id, "exp-001");
        assert_int_equal(m->n_arms, 4);
        assert_int_equal(m->n_points, 5);
        assert_int_equal(m->n_cells, 13);
        assert_int_equal(m->rounds, 24);
        assert_int_equal(m->warmup_rounds, 0);
        assert_int_equal(m->campaigns, 1);
        assert_int_equal(m->seed, 20261130);
        assert_int_equal(m->n_caveats, 2);
        assert_int_equal(m->n_inputs, 0);
        assert_int_equal(m->n_unjudged, 0);
        assert_int_equal(m->n_hypotheses, 2);
        assert_string_equal(m->hypotheses[0].name, "h1");

        rule = &m->hypotheses[0].rules[0];
        assert_int_equal(rule->of.cell, cell_of(m, "per-queue/600mbit"));
        assert_int_equal(rule->versus.cell, cell_of(m, "per-queue/idle"));
        assert_string_equal(rule->metric->name, "rtt.p99");
        assert_int_equal(rule->form, RULE_RATIO);
        assert_false(rule->has_low);
        assert_true(rule->has_high);
        assert_int_equal(rule->high, 1250000);
        assert_int_equal(rule->campaigns_that_fail_at_most_ppb, -1);
        assert_string_equal(rule->text, "rtt.p99 of per-queue/600mbit over per-queue/idle at most 1.25");

        rule = &m->hypotheses[0].rules[1];
        assert_int_equal(rule->form, RULE_VALUE);
        assert_int_equal(rule->high, 500000);
        assert_string_equal(rule->text, "loss of per-queue/600mbit at most 0.0005");

        assert_int_equal(m->n_controls, 2);
        assert_string_equal(m->arms[m->controls[0].arm].name, "one-queue");
        assert_string_equal(m->controls[0].rules[0].text,
                            "rtt.p99 of one-queue/600mbit over one-queue/idle at least 2");
        assert_int_equal(m->controls[1].rules[0].low, 800000);
        assert_int_equal(m->controls[1].rules[0].high, 1250000);
}

static void test_merging(void **state)
{
        static const char *const overrides[] = {"workload.duration=7s", "rounds=12", "seed=7", "workload.rate=100/s",
                                                "workload.rate=200/s"};
        _cleanup_manifest_ struct manifest *full = load(EXP_001, false, 0, NULL);
        _cleanup_manifest_ struct manifest *shortened = load(EXP_001, true, ARRAY_SIZE(overrides), overrides);

        /* base < arm < point */
        assert_value(full, "per-queue/600mbit", "boundary.uplink.scheduler", "tree-per-queue");
        assert_value(full, "per-queue/600mbit", "boundary.uplink.rate", "500mbit");
        assert_value(full, "per-queue/600mbit", "boundary.slices.adas.ceiling", "100mbit");
        assert_value(full, "per-queue/600mbit", "boundary.slices.adas.guarantee", "100mbit");
        assert_value(full, "per-queue/600mbit", "background.infotainment.rate", "600mbit");
        assert_value(full, "tree/idle", "background.infotainment.rate", "0");
        assert_value(full, "tree/idle", "workload.duration", "5s");
        assert_null(node_get(full->cells[0].config, "control"));

        /* < short < command line, the last of which wins */
        assert_int_equal(shortened->n_cells, 7);
        assert_value(shortened, "tree/idle", "workload.warmup", "500ms");
        assert_value(shortened, "tree/idle", "workload.duration", "7s");
        assert_value(shortened, "tree/idle", "workload.rate", "200/s");
        assert_int_equal(shortened->rounds, 12);
        assert_int_equal(shortened->seed, 7);
        assert_string_equal(shortened->sha256, full->sha256);
}

static void test_campaigns_and_include(void **state)
{
        _cleanup_manifest_ struct manifest *m = load(EXP_000, false, 0, NULL);
        const struct manifest_rule *rule = &m->hypotheses[0].rules[0];
        _cleanup_free_ char *bytes = NULL;
        size_t len;

        assert_int_equal(m->campaigns, 60);
        assert_int_equal(m->rounds, 480);
        assert_int_equal(m->n_cells, 2);
        assert_int_equal(rule->campaigns_that_fail_at_most_ppb, 150000000);
        assert_value(m, "b/idle", "boundary.uplink.scheduler", "tree");
        assert_value(m, "b/idle", "workload.duration", "500ms");

        assert_int_equal(m->n_inputs, 1);
        assert_string_equal(m->inputs[0].path, "exp-001.yaml");
        assert_int_equal(file_read(AT_FDCWD, folder("../../experiments/exp-001.yaml"), 1 << 20, &bytes, &len, NULL), 0);
        assert_int_equal(m->inputs[0].len, len);
        assert_memory_equal(m->inputs[0].data, bytes, len);
        assert_ptr_equal(manifest_find_input(m, "exp-001.yaml"), &m->inputs[0]);
        assert_null(manifest_find_input(m, "exp-002.yaml"));
}

static void test_differences(void **state)
{
        _cleanup_manifest_ struct manifest *m = load(EXP_014, false, 0, NULL);

        assert_string_equal(m->hypotheses[0].rules[0].text, "rtt.p50 of chain-2/idle less star/idle at least 1us");
        assert_int_equal(m->hypotheses[0].rules[0].low, 1000);
        assert_int_equal(manifest_rule_unit(&m->hypotheses[0].rules[0]), UNIT_DURATION);
        assert_string_equal(m->controls[1].rules[0].text, "rtt.p50 of same-same/idle less star/idle from -2us to 2us");
        assert_int_equal(m->controls[1].rules[0].low, -2000);
}

static void test_files_of_a_policy(void **state)
{
        _cleanup_manifest_ struct manifest *m = load("cases/manifests/exp-020.yaml", false, 0, NULL);

        assert_int_equal(m->n_inputs, 1);
        assert_string_equal(m->inputs[0].path, "policies/one-origin.yaml");
        assert_true(m->hypotheses[1].rules[2].is_advisory);
        assert_int_equal(m->controls[0].n_rules, 2);
        assert_null(node_at(m->cells[cell_of(m, "native/small")].config, "boundary.enforce"));
        assert_null(node_at(m->cells[cell_of(m, "wall/deny")].config, "workload.threads"));
}

static void test_unjudged(void **state)
{
        _cleanup_manifest_ struct manifest *m = load("cases/manifests/good-forms.yaml", true, 0, NULL);

        assert_int_equal(m->n_unjudged, 3);
        assert_string_equal(m->unjudged[0], "h: rtt.p50 of a/y at least 1us");
        assert_string_equal(m->unjudged[1], "left-out: rtt.p50 of a/y from 1us to 2us");
        assert_string_equal(m->unjudged[2], "left-out: the whole hypothesis");
        assert_int_equal(m->n_hypotheses, 1);
        /* cells are numbered anew */
        assert_int_equal(m->n_cells, 4);
        assert_string_equal(m->cells[m->controls[0].rules[0].of.cell].name, "same/z");
        assert_string_equal(m->cells[m->hypotheses[0].rules[0].versus.base].name, "a/x");
}

static void test_growth(void **state)
{
        _cleanup_manifest_ struct manifest *m = load("cases/manifests/good-forms.yaml", false, 0, NULL);
        const struct manifest_rule *rule = &m->hypotheses[0].rules[0];

        assert_true(rule->of.is_growth);
        assert_string_equal(m->cells[rule->of.cell].name, "same/z");
        assert_string_equal(m->cells[rule->of.base].name, "same/x");
        assert_string_equal(m->cells[rule->versus.cell].name, "a/z");
        assert_string_equal(rule->text, "rtt.p99 of (same/z over same/x) over (a/z over a/x) at most 1.1");
        /* a difference of growths is a difference of ratios */
        rule = &m->hypotheses[0].rules[1];
        assert_int_equal(rule->form, RULE_DIFFERENCE);
        assert_int_equal(manifest_rule_unit(rule), UNIT_RATIO);
        assert_int_equal(rule->low, -100000);
}

/* An archive keeps the manifest as data/manifest.yaml and what it includes in data/inputs. */
static void test_from_bytes(void **state)
{
        _cleanup_manifest_ struct manifest *m = load(EXP_000, false, 0, NULL), *again = NULL;
        _cleanup_close_ int inputs = open(folder("../../experiments"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct err err = {0};

        assert_int_equal(manifest_parse(span_of(m->data, m->len), "data/manifest.yaml", inputs, &test_kinds, NULL,
                                        &again, &err),
                         0);
        assert_string_equal(m->sha256, again->sha256);
        assert_true(node_equal(m->cells[1].config, again->cells[1].config));

        manifest_free(TAKE_PTR(again));
        assert_int_equal(manifest_parse(span_of(m->data, m->len), "data/manifest.yaml", -1, &test_kinds, NULL, &again,
                                        &err),
                         -EINVAL);
        assert_string_equal(err.text, "cannot open exp-001.yaml below the manifest's folder: Bad file descriptor");
}

static void test_inputs_folder(void **state)
{
        const struct manifest_options options = {.inputs = "../tests/cases/manifests"};
        _cleanup_close_ int dirfd = open_folder("../../experiments");
        struct manifest *m = NULL;
        struct err err = {0};

        assert_int_equal(manifest_load(dirfd, "exp-000.yaml", &test_kinds, &options, &m, &err), -EINVAL);
        assert_string_equal(err.text,
                            "cannot open exp-001.yaml below the manifest's folder: No such file or directory");
        manifest_free(m);
}

static void assert_override_refused(const char *override, const char *expected)
{
        _cleanup_close_ int dirfd = open_folder("../../experiments");
        const struct manifest_options options = {.n_overrides = 1, .overrides = &override};
        struct manifest *m = NULL;
        struct err err = {0};
        char text[2048];

        assert_int_equal(manifest_load(dirfd, "exp-001.yaml", &test_kinds, &options, &m, &err), -EINVAL);
        err_format(&err, text, sizeof(text));
        assert_string_equal(text, expected);
}

static void test_overrides_refused(void **state)
{
        assert_override_refused("rounds", "--set rounds: expected path=value, such as workload.duration=5s");
        assert_override_refused("rounds=5", "--set rounds=5: rounds: 5 is out of range, expected 6 to 100000");
        assert_override_refused(
                "title=x", "--set title=x: cannot set \"title\"; expected rounds, warmup-rounds, campaigns, seed, or "
                           "a path that begins with boundary, workload or background");
        assert_override_refused("arms.tree.control=none",
                                "--set arms.tree.control=none: cannot set \"arms.tree.control\"; expected rounds, "
                                "warmup-rounds, campaigns, seed, or a path that begins with boundary, workload or "
                                "background");
        assert_override_refused("workload.duration=5",
                                "--set workload.duration=5: cell tree/idle: workload.duration: \"5\" is not a duration "
                                "such as 30s (ns, us, ms, s, min, h)");
        assert_override_refused("workload.x=5",
                                "--set workload.x=5: cell tree/idle: workload: unknown key \"x\"; expected "
                                "one of from, to, slice, rate, duration, warmup");
        assert_override_refused("workload.kind.x=5", "--set workload.kind.x=5: cell tree/idle: cannot set "
                                                     "\"workload.kind.x\": \"workload.kind\" is not a mapping");
        assert_override_refused("boundary=5",
                                "--set boundary=5: cell tree/idle: boundary: expected a mapping with the key \"kind\"");
        assert_override_refused("workload.from=a\nb", "--set: an override with a control character");
        assert_override_refused("workload.from=\xff", "--set: an override that is not UTF-8");
}

/* Few bytes that make many cells: refused before their configurations are made. */
static void test_too_many_cells(void **state)
{
        _cleanup_text_ struct text text = {0};
        struct manifest *m = NULL;
        struct err err = {0};

        text_add(&text, "assay: 1\nid: t\ntitle: T\nbase: {boundary: {kind: none}, workload: {kind: escape}}\n"
                        "hypotheses: {h: {claim: C, rules: {of: [a0, p0], metric: escapes, at_most: 0}}}\narms:\n");
        for (int i = 0; i < 999; i++)
                text_addf(&text, "  a%d: {}\n", i);
        text_add(&text, "points:\n");
        for (int i = 0; i < 999; i++)
                text_addf(&text, "  p%d: {}\n", i);
        assert_int_equal(manifest_parse(span_of(text.data, text.len), "f", -1, &test_kinds, NULL, &m, &err), -EINVAL);
        assert_string_equal(err.text, "998001 cells; at most 1024 are allowed");
}

static void test_too_many_values(void **state)
{
        _cleanup_text_ struct text text = {0};
        struct manifest *m = NULL;
        struct err err = {0};

        text_add(&text, "assay: 1\nid: t\ntitle: T\n"
                        "hypotheses: {h: {claim: C, rules: {of: [a0, p0], metric: rtt.p50, at_most: 0}}}\n"
                        "base:\n  boundary:\n    kind: zones\n    zones:\n");
        for (int i = 0; i < 900; i++)
                text_addf(&text, "      z%d: {}\n", i);
        text_add(&text, "  workload: {kind: stamp-probe}\npoints: {p0: {}}\narms:\n");
        for (int i = 0; i < 900; i++)
                text_addf(&text, "  a%d: {}\n", i);
        assert_int_equal(manifest_parse(span_of(text.data, text.len), "f", -1, &test_kinds, NULL, &m, &err), -EINVAL);
        assert_non_null(strstr(err.text, "the configurations of all cells have more than 200000 values together"));
}

/* Of 10 MB no more than the limit is read. */
static void test_large_file(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_close_ int fd = openat(scratch.fd, "large.yaml", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        struct manifest *m = NULL;
        struct err err = {0};

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, 10 << 20), 0);
        assert_int_equal(manifest_load(scratch.fd, "large.yaml", &test_kinds, NULL, &m, &err), -EFBIG);
        assert_string_equal(err.text, "large.yaml has more than the 1048576 bytes that are read at most");
        assert_int_equal(err_exit_code(err.kind), 2);
}

static void test_document(void **state)
{
        static const char *const wanted[] = {
                "### manifest\n",
                "| `rounds` | a whole number, from 6 to 100000 | `8` |",
                "### rule\n",
                "| `ratio_at_most` | a number |",
                "### base\n",
                "### arm\n",
                "| `control` | one of none, harm, same-same |",
                "### short\n",
                "## Boundaries\n",
                "### zones\n",
                "### slice\n",
                "## Workloads\n",
                "### stamp-probe\n",
                "| `loss` | a number from 0 to 1 | pooled over the cell, judged by its exact one-sided 95% bound |",
                "| `duration` | a duration such as 30s"};
        _cleanup_text_ struct text text = {0};

        assert_int_equal(manifest_document(&test_kinds, &text), 0);
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
                if (!strstr(text.data, wanted[i]))
                        fail_msg("the reference lacks: %s", wanted[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cases),
                cmocka_unit_test(test_isolation),
                cmocka_unit_test(test_merging),
                cmocka_unit_test(test_campaigns_and_include),
                cmocka_unit_test(test_differences),
                cmocka_unit_test(test_files_of_a_policy),
                cmocka_unit_test(test_unjudged),
                cmocka_unit_test(test_growth),
                cmocka_unit_test(test_from_bytes),
                cmocka_unit_test(test_inputs_folder),
                cmocka_unit_test(test_overrides_refused),
                cmocka_unit_test(test_too_many_cells),
                cmocka_unit_test(test_too_many_values),
                cmocka_unit_test(test_large_file),
                cmocka_unit_test(test_document),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
