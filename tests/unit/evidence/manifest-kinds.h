/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <string.h>

#include "base/macro.h"
#include "evidence/kind.h"

/* Kinds of boundary and workload for tests of manifests: enough of the real ones' keys for the manifests of
 * tests/cases/manifests. Nothing runs here; only what evidence reads of kinds matters. */

struct test_keys {
        int64_t quantity;
        bool flag;
        char *text[4];
        struct key_names names[2];
        struct key_tables tables[2];
        const struct node *node;
};

#define TEXT(key, i)                                                                                                   \
        {                                                                                                              \
                .name = key, .type = KEY_STRING, .offset = offsetof(struct test_keys, text[i])                         \
        }
#define FILE_KEY(key, i)                                                                                               \
        {                                                                                                              \
                .name = key, .type = KEY_FILE, .offset = offsetof(struct test_keys, text[i])                           \
        }
#define FLAG(key)                                                                                                      \
        {                                                                                                              \
                .name = key, .type = KEY_BOOL, .offset = offsetof(struct test_keys, flag)                              \
        }
#define NAMES(key, i)                                                                                                  \
        {                                                                                                              \
                .name = key, .type = KEY_NAMES, .offset = offsetof(struct test_keys, names[i])                         \
        }
#define STRINGS(key, i)                                                                                                \
        {                                                                                                              \
                .name = key, .type = KEY_STRINGS, .offset = offsetof(struct test_keys, names[i])                       \
        }
#define QUANTITY(key, u)                                                                                               \
        {                                                                                                              \
                .name = key, .type = KEY_QUANTITY, .offset = offsetof(struct test_keys, quantity), .unit = u           \
        }
#define MAP(key)                                                                                                       \
        {                                                                                                              \
                .name = key, .type = KEY_MAP, .offset = offsetof(struct test_keys, node)                               \
        }
#define TABLES(key, i, t)                                                                                              \
        {                                                                                                              \
                .name = key, .type = KEY_TABLES, .offset = offsetof(struct test_keys, tables[i]), .table = t           \
        }
#define TABLE(table_name, table_keys)                                                                                  \
        {                                                                                                              \
                .name = table_name, .size = sizeof(struct test_keys), .has_kind = true, .keys = table_keys             \
        }

static const struct key test_slice_keys[] = {QUANTITY("vlan", UNIT_COUNT),          QUANTITY("guarantee", UNIT_RATE),
                                             QUANTITY("ceiling", UNIT_RATE),        QUANTITY("priority", UNIT_COUNT),
                                             QUANTITY("queue-limit", UNIT_PACKETS), {0}};
static const struct key test_zone_keys[] = {NAMES("slices", 0), {0}};
static const struct key_table test_slice_table = {.name = "slice",
                                                  .size = sizeof(struct test_keys),
                                                  .keys = test_slice_keys};
static const struct key_table test_zone_table = {.name = "zone",
                                                 .size = sizeof(struct test_keys),
                                                 .keys = test_zone_keys};

static const struct key test_zones_keys[] = {TEXT("topology", 0),
                                             QUANTITY("hops", UNIT_COUNT),
                                             MAP("uplink"),
                                             TABLES("slices", 0, &test_slice_table),
                                             TABLES("zones", 1, &test_zone_table),
                                             {0}};
static const struct key test_none_keys[] = {{0}};
static const struct key test_sandbox_keys[] = {TEXT("enforce", 0), FILE_KEY("policy", 1), {0}};
static const struct key test_program_keys[] = {TEXT("program", 0), TEXT("network", 1), {0}};

static const struct key_table test_boundary_tables[] = {
        TABLE("zones", test_zones_keys),
        TABLE("none", test_none_keys),
        TABLE("sandbox", test_sandbox_keys),
        TABLE("wrapper", test_program_keys),
        TABLE("ordinary-proxy", test_program_keys),
};

static const struct kind test_boundaries[] = {
        {.name = "zones", .table = &test_boundary_tables[0]},
        {.name = "none", .table = &test_boundary_tables[1]},
        {.name = "sandbox", .table = &test_boundary_tables[2]},
        {.name = "wrapper", .table = &test_boundary_tables[3]},
        {.name = "ordinary-proxy", .table = &test_boundary_tables[4]},
};

static const struct key test_probe_keys[] = {TEXT("from", 0),
                                             TEXT("to", 1),
                                             TEXT("slice", 2),
                                             QUANTITY("rate", UNIT_FREQUENCY),
                                             QUANTITY("duration", UNIT_DURATION),
                                             QUANTITY("warmup", UNIT_DURATION),
                                             {0}};
static const struct key test_load_keys[] = {TEXT("from", 0),
                                            TEXT("to", 1),
                                            TEXT("slice", 2),
                                            QUANTITY("rate", UNIT_RATE),
                                            QUANTITY("packet", UNIT_BYTES),
                                            QUANTITY("burst", UNIT_PACKETS),
                                            FLAG("overload"),
                                            {0}};
static const struct key test_http_keys[] = {QUANTITY("threads", UNIT_COUNT),
                                            QUANTITY("requests", UNIT_COUNT),
                                            QUANTITY("body", UNIT_BYTES),
                                            QUANTITY("write", UNIT_BYTES),
                                            QUANTITY("events", UNIT_COUNT),
                                            QUANTITY("event", UNIT_BYTES),
                                            QUANTITY("every", UNIT_DURATION),
                                            TEXT("connection", 0),
                                            {0}};
static const struct key test_command_keys[] = {STRINGS("argv", 0), {0}};
static const struct key test_verify_keys[] = {
        TEXT("profile", 0), TEXT("program", 1), TEXT("verifier", 2), QUANTITY("batch", UNIT_COUNT), {0}};

static const struct metric test_probe_metrics[] = {
        {.name = "rtt.p50", .unit = METRIC_NS, .source = METRIC_QUANTILE, .series = "rtt", .ppm = 500000},
        {.name = "rtt.p99", .unit = METRIC_NS, .source = METRIC_QUANTILE, .series = "rtt", .ppm = 990000},
        {.name = "rtt.p99.9", .unit = METRIC_NS, .source = METRIC_QUANTILE, .series = "rtt", .ppm = 999000},
        {.name = "loss", .unit = METRIC_PPB, .source = METRIC_LOSS, .series = "rtt"},
        {.name = "reordered", .unit = METRIC_COUNT, .source = METRIC_COUNTER, .series = "reordered"},
        {0},
};
static const struct metric test_http_metrics[] = {
        {.name = "request.p50", .unit = METRIC_NS, .source = METRIC_QUANTILE, .series = "request", .ppm = 500000},
        {.name = "throughput", .unit = METRIC_BPS, .source = METRIC_NUMBER, .series = "throughput_bps"},
        {0},
};
static const struct metric test_escape_metrics[] = {
        {.name = "escapes", .unit = METRIC_COUNT, .source = METRIC_COUNTER, .series = "escapes"},
        {.name = "blocked-allowed", .unit = METRIC_COUNT, .source = METRIC_COUNTER, .series = "blocked_allowed"},
        {.name = "unproven", .unit = METRIC_COUNT, .source = METRIC_COUNTER, .series = "unproven"},
        {0},
};
static const struct metric test_verify_metrics[] = {
        {.name = "verify.p50", .unit = METRIC_NS, .source = METRIC_QUANTILE, .series = "verify", .ppm = 500000},
        {.name = "verify.per-instruction.p50",
         .unit = METRIC_PS,
         .source = METRIC_QUANTILE,
         .series = "verify",
         .ppm = 500000,
         .per = "instructions"},
        {0},
};

static const struct key_table test_workload_tables[] = {
        TABLE("stamp-probe", test_probe_keys), TABLE("udp-load", test_load_keys),
        TABLE("http", test_http_keys),         TABLE("escape", test_none_keys),
        TABLE("command", test_command_keys),   TABLE("bpf-verify", test_verify_keys),
};

static const struct kind test_workloads[] = {
        {.name = "stamp-probe", .table = &test_workload_tables[0], .metrics = test_probe_metrics},
        {.name = "udp-load", .table = &test_workload_tables[1]},
        {.name = "http", .table = &test_workload_tables[2], .metrics = test_http_metrics},
        {.name = "escape", .table = &test_workload_tables[3], .metrics = test_escape_metrics},
        {.name = "command", .table = &test_workload_tables[4]},
        {.name = "bpf-verify", .table = &test_workload_tables[5], .metrics = test_verify_metrics},
};

/* Stands for what a kind checks across its keys: here that the probe's slice is one of the boundary's. */
static inline int test_check_cell(const struct node *config, struct err *err)
{
        const struct node *slices = node_at(config, "boundary.slices"), *slice = node_at(config, "workload.slice");

        if (slices && slice && slice->scalar && !node_get(slices, slice->scalar))
                return err_set_at(err, ERR_USAGE, &slice->position, "workload.slice: \"%s\" is not a slice",
                                  slice->scalar);
        return 0;
}

/* 1000 values a second; what has no duration has any number of them. */
static inline int test_estimate(const struct node *config, struct trial_estimate *ret, struct err *err)
{
        const char *duration = node_scalar_at(config, "workload.duration");
        int r;

        *ret = (struct trial_estimate){.disk_bytes = 1000, .values = INT64_MAX};
        if (!duration)
                return 0;
        r = unit_parse(UNIT_DURATION, duration, &ret->duration_ns, err);
        ret->values = ret->duration_ns / 1000000;
        return r;
}

static const struct kinds test_kinds = {
        .n_boundaries = ARRAY_SIZE(test_boundaries),
        .n_workloads = ARRAY_SIZE(test_workloads),
        .boundaries = test_boundaries,
        .workloads = test_workloads,
        .check_cell = test_check_cell,
        .estimate = test_estimate,
};

#undef TEXT
#undef FILE_KEY
#undef FLAG
#undef NAMES
#undef STRINGS
#undef QUANTITY
#undef MAP
#undef TABLES
#undef TABLE
