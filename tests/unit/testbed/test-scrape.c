/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "testbed/scrape.h"
#include "wire/openmetrics.h"

#define LABELS(...)                                                                                                    \
        (const struct openmetrics_label[])                                                                             \
        {                                                                                                              \
                __VA_ARGS__                                                                                            \
        }

static void init(struct scrape *s, const struct layout *l, size_t n_classes)
{
        assert_int_equal(scrape_init(s, l->n_links, l->topology->n_slices), 0);
        s->has_ports = true;
        s->n_classes = n_classes;
}

/* Formatted, and read back as strictly as an archive's reader does it. */
static void read_back(const struct scrape *s, const struct layout *l, struct openmetrics_set *ret)
{
        _cleanup_text_ struct text text = {0};
        struct err err = {0};

        if (scrape_format(s, l, &text, &err) < 0 ||
            openmetrics_parse(span_of(text.data, text.len), "scrape", ret, &err) < 0)
                fail_msg("%u: %s", err.position.line, err.text);
}

static int64_t value(const struct openmetrics_set *set, const char *family, const struct openmetrics_label *labels,
                     size_t n)
{
        int64_t v = -1;

        assert_int_equal(openmetrics_value(set, family, labels, n, &v), 0);
        return v;
}

static void every_counter_has_its_name(void **state)
{
        _cleanup_topology_ struct topology *t = topology_of(NULL);
        _cleanup_layout_ struct layout *l = NULL;
        _cleanup_scrape_ struct scrape s = {0};
        _cleanup_openmetrics_ struct openmetrics_set set = {0};

        assert_int_equal(layout_make(t, &l, NULL), 0);
        init(&s, l, 2);
        s.links[1] = (struct scrape_link){.up = {{11, 12}, 13}, .down = {{21, 22}, 23}, .is_running = true};
        s.classes[1] = (struct scrape_class){true, {31, 32}, 33, 34, 35};
        s.unclassified_packets = 36;
        s.ports[2 * 2 + 1][LAYOUT_UPPER] = (struct scrape_port){.in = {41, 42}, .out = {43, 44}};
        s.refused[0][LAYOUT_UPPER][SLICE_DROP_UNTAGGED] = 51;
        read_back(&s, l, &set);

        assert_int_equal(value(&set, "assay_link_packets", LABELS({"link", "rear-right"}, {"direction", "up"}), 2), 11);
        assert_int_equal(value(&set, "assay_link_bytes", LABELS({"link", "rear-right"}, {"direction", "down"}), 2), 22);
        assert_int_equal(value(&set, "assay_link_dropped_packets",
                               LABELS({"link", "rear-right"}, {"direction", "down"}), 2),
                         23);
        assert_int_equal(value(&set, "assay_link_running", LABELS({"link", "rear-right"}), 1), 1);
        assert_int_equal(value(&set, "assay_link_running", LABELS({"link", "uplink"}), 1), 0);
        assert_int_equal(value(&set, "assay_class_packets", LABELS({"slice", "infotainment"}), 1), 31);
        assert_int_equal(value(&set, "assay_class_bytes", LABELS({"slice", "infotainment"}), 1), 32);
        assert_int_equal(value(&set, "assay_class_dropped_packets", LABELS({"slice", "infotainment"}), 1), 33);
        assert_int_equal(value(&set, "assay_class_backlog_packets", LABELS({"slice", "infotainment"}), 1), 34);
        assert_int_equal(value(&set, "assay_class_overlimits", LABELS({"slice", "infotainment"}), 1), 35);
        assert_int_equal(value(&set, "assay_unclassified_packets", NULL, 0), 36);
        assert_int_equal(value(&set, "assay_slice_packets",
                               LABELS({"link", "uplink"}, {"node", "central-hpc"}, {"slice", "infotainment"},
                                      {"direction", "in"}),
                               4),
                         41);
        assert_int_equal(value(&set, "assay_slice_bytes",
                               LABELS({"link", "uplink"}, {"node", "central-hpc"}, {"slice", "infotainment"},
                                      {"direction", "out"}),
                               4),
                         44);
        assert_int_equal(value(&set, "assay_refused_packets",
                               LABELS({"link", "front-left"}, {"node", "gateway"}, {"reason", "untagged"}), 3),
                         51);
}

/* A class that is gone has no value, which is not 0. */
static void what_is_not_there_is_absent(void **state)
{
        _cleanup_topology_ struct topology *t = topology_of(EDITS("scheduler: tree", "scheduler: one-queue"));
        _cleanup_topology_ struct topology *direct = topology_of(EDITS("topology: star", "topology: direct"));
        _cleanup_layout_ struct layout *l = NULL, *l_direct = NULL;
        _cleanup_scrape_ struct scrape s = {0}, s_direct = {0};
        _cleanup_openmetrics_ struct openmetrics_set gone = {0}, shared = {0}, none = {0};
        int64_t v;

        assert_int_equal(layout_make(t, &l, NULL) | layout_make(direct, &l_direct, NULL), 0);
        init(&s, l, 1);
        s.has_ports = false;
        read_back(&s, l, &gone);
        assert_int_equal(openmetrics_value(&gone, "assay_class_packets", LABELS({"slice", "*"}), 1, &v), -ENOENT);
        assert_int_equal(openmetrics_value(&gone, "assay_refused_packets",
                                           LABELS({"link", "front-left"}, {"node", "gateway"}, {"reason", "push"}), 3,
                                           &v),
                         -ENOENT);
        s.classes[0].is_present = true;
        read_back(&s, l, &shared);
        assert_int_equal(value(&shared, "assay_class_packets", LABELS({"slice", "*"}), 1), 0);

        init(&s_direct, l_direct, 0);
        read_back(&s_direct, l_direct, &none);
        assert_int_equal(openmetrics_value(&none, "assay_unclassified_packets", NULL, 0, &v), -ENOENT);
}

/* What the largest topologies count still fits. */
static void largest_topologies_fit(void **state)
{
        static const struct {
                size_t n_slices, n_zones;
                unsigned hops;
        } cases[] = {{32, 8, 1}, {4, 64, 1}, {3, 64, 16}, {14, 4, 15}};

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *text = many(cases[i].n_slices, cases[i].n_zones, cases[i].hops);
                _cleanup_topology_ struct topology *t = NULL;
                _cleanup_layout_ struct layout *l = NULL;
                _cleanup_scrape_ struct scrape s = {0};
                _cleanup_openmetrics_ struct openmetrics_set set = {0};
                struct err err = {0};

                if (read_topology(text, &t, &err) < 0)
                        fail_msg("%s", err.text);
                assert_int_equal(layout_make(t, &l, NULL), 0);
                init(&s, l, t->n_slices);
                for (size_t c = 0; c < t->n_slices; c++)
                        s.classes[c].is_present = true;
                read_back(&s, l, &set);
                assert_true(set.n_samples > 2000);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_counter_has_its_name),
                cmocka_unit_test(what_is_not_there_is_absent),
                cmocka_unit_test(largest_topologies_fit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
