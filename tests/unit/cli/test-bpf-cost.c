/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "base/text.h"
#include "bpfvm/calibrate.h"
#include "cli/bpf-cost.h"

static int load_text(const struct scratch *scratch, const char *text, struct cost_table *ret, struct err *err)
{
        _cleanup_free_ char *path = text_format("%s/costs", scratch->path);

        assert_int_equal(file_write_atomic(scratch->fd, "costs", 0644, span_of_text(text), err), 0);
        return bpf_cost_load(path, ret, err);
}

static void test_written_and_read(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_json_ json_t *json = bpf_cost_to_json(cost_default());
        _cleanup_free_ char *text = json_format(json);
        struct cost_table table;
        struct err err = {0};

        assert_int_equal(load_text(&scratch, text, &table, &err), 0);
        assert_string_equal(table.name, cost_default()->name);
        assert_memory_equal(table.class_ps, cost_default()->class_ps, sizeof(table.class_ps));
        assert_memory_equal(table.helper_ps, cost_default()->helper_ps, sizeof(table.helper_ps));
}

static void test_refused(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        static const struct {
                const char *key, *sub;
                json_int_t value; /* -1: the key is taken out */
                const char *message;
        } cases[] = {
                {"class_ps", "alu", 0, "class_ps.alu is 0"},
                {"class_ps", "divide", -1, "divide"},
                {"class_ps", "entry", (json_int_t)1 << 32, "class_ps.entry is 4294967296"},
                {"helper_ps", "ktime_get_ns", -7, "helper_ps.ktime_get_ns is -7"},
                {"helper_ps", "pwm_write", -1, "pwm_write"},
                {"assay", NULL, 2, "version 2"},
                {"name", NULL, -1, "name"},
                {"class_ps", NULL, -1, "class_ps"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *json = bpf_cost_to_json(cost_default());
                _cleanup_free_ char *text = NULL;
                json_t *where = cases[i].sub ? json_object_get(json, cases[i].key) : json;
                const char *key = cases[i].sub ? cases[i].sub : cases[i].key;
                struct cost_table table;
                struct err err = {0};

                if (cases[i].value == -1)
                        json_object_del(where, key);
                else
                        json_object_set_new(where, key, json_integer(cases[i].value));
                text = json_format(json);
                assert_true(load_text(&scratch, text, &table, &err) < 0);
                assert_int_equal(err.kind, ERR_DATA);
                if (!strstr(err.text, cases[i].message) || !strstr(err.text, "costs"))
                        fail_msg("%s", err.text);
        }
}

/* What is measured differs from run to run; what has to hold of it does not. */
static void test_calibration(void **state)
{
        struct calibration c = {0};
        struct err err = {0};
        size_t n;
        const struct helper *helpers = helper_table(&n);

        assert_int_equal(calibrate_run(999999, &c, &err), -EINVAL);
        assert_int_equal(calibrate_run(1000000, &c, &err), 0);
        assert_string_equal(c.table.name, "measured");
        for (enum cost_class k = 0; k < COST_CLASSES; k++)
                assert_true(c.table.class_ps[k] > 0);
        for (size_t i = 0; i < n; i++) {
                assert_true(c.table.helper_ps[i] > 0);
                if (helpers[i].is_actuation)
                        assert_int_equal(c.table.helper_ps[i], cost_default()->helper_ps[i]);
        }
        assert_true(c.predicted_ps > 0 && c.measured_ps > 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_written_and_read),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_calibration),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
