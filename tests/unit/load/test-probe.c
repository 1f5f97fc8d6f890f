/* SPDX-License-Identifier: Apache-2.0 */
#include "load/probe.h"

#include <errno.h>

#include "base/macro.h"
#include "tests/unit/load/json-fault.h"

static struct probe_config good(void)
{
        struct probe_config config = {.size_bytes = STAMP_LEN, .rate_hz = 1000, .n_slots = 10};

        assert_int_equal(address_parse("192.0.2.1:862", 0, &config.peer, NULL), 0);
        return config;
}

static void assert_refused(const struct probe_config *config)
{
        struct probe *probe = NULL;
        struct err err = {0};

        assert_int_equal(probe_new(config, &probe, &err), -EINVAL);
        assert_int_equal(err.kind, ERR_USAGE);
        assert_null(probe);
}

static void test_config(void **state)
{
        static const char *const peers[] = {"0.0.0.0:862", "224.0.0.1:862", "255.255.255.255:862", "192.0.2.1:0",
                                            "[ff02::1]:862"};
        struct probe_config config;

        config = good();
        config.size_bytes = STAMP_LEN - 1;
        assert_refused(&config);
        config.size_bytes = PROBE_SIZE_MAX + 1;
        assert_refused(&config);
        config = good();
        config.rate_hz = 0;
        assert_refused(&config);
        config.rate_hz = 1000000001;
        assert_refused(&config);
        config = good();
        config.n_slots = 0;
        assert_refused(&config);
        config.n_slots = PROBE_SLOTS_MAX + UINT64_C(1);
        assert_refused(&config);
        for (size_t i = 0; i < ARRAY_SIZE(peers); i++) {
                config = good();
                assert_int_equal(address_parse(peers[i], 0, &config.peer, NULL), 0);
                assert_refused(&config);
        }
}

static json_t *notes(const void *probe)
{
        return probe_notes_json(probe);
}

static json_t *counts(const void *probe)
{
        struct slots_counts c;

        slots_count(probe_slots(probe), 0, 10, &c);
        return slots_counts_json(&c);
}

static void test_memory(void **state)
{
        struct probe_config config = good();
        struct err err = {0};

        config.sched = (struct sched_request){.cpu = 8191, .lock_memory = true};
        for (unsigned n = 1;; n++) {
                _cleanup_probe_ struct probe *probe = NULL;
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                r = probe_new(&config, &probe, &err);
                if (!fault_disarm()) {
                        assert_int_equal(r, 0);
                        assert_whole_or_none(notes, probe);
                        assert_whole_or_none(counts, probe);
                        break;
                }
                assert_int_equal(r, -ENOMEM);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_config),
                cmocka_unit_test(test_memory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
