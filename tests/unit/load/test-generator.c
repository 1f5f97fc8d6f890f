/* SPDX-License-Identifier: Apache-2.0 */
#include "load/generator.h"

#include <errno.h>

#include "base/macro.h"
#include "tests/unit/load/json-fault.h"

static struct generator_config good(const char *peer)
{
        struct generator_config config = {.packet_bytes = 1400, .layer2_bytes = 14, .rate_bps = 1000000, .burst = 1};

        assert_int_equal(address_parse(peer, 9, &config.peer, NULL), 0);
        return config;
}

static void assert_result(const struct generator_config *config, int expected)
{
        _cleanup_generator_ struct generator *generator = NULL;
        struct err err = {0};

        assert_int_equal(generator_new(config, &generator, &err), expected);
        assert_int_equal(err.kind, expected == 0 ? ERR_NONE : ERR_USAGE);
}

static void test_config(void **state)
{
        struct generator_config config = good("192.0.2.1");

        assert_result(&config, 0);
        config.packet_bytes = 20 + 8 + 16; /* headers and the mark */
        assert_result(&config, 0);
        config.packet_bytes--;
        assert_result(&config, -EINVAL);
        config = good("2001:db8::1");
        config.packet_bytes = 40 + 8 + 16;
        assert_result(&config, 0);
        config.packet_bytes--;
        assert_result(&config, -EINVAL);
        config.packet_bytes = 65536;
        assert_result(&config, -EINVAL);

        config = good("192.0.2.1");
        config.burst = 0;
        assert_result(&config, -EINVAL);
        config.burst = GENERATOR_BURST_MAX + 1;
        assert_result(&config, -EINVAL);
        config = good("255.255.255.255");
        assert_result(&config, -EINVAL);
        config = good("192.0.2.1:0");
        assert_result(&config, -EINVAL);
}

static json_t *counts(const void *unused)
{
        const struct generator_counts c = {.offered_packets = 10,
                                           .sent_packets = 7,
                                           .refusals = {{.errnum = ENOBUFS, .n = 2}, {.errnum = EPERM, .n = 1}}};

        return generator_counts_json(&c);
}

static json_t *notes(const void *generator)
{
        return generator_notes_json(generator);
}

static void test_memory(void **state)
{
        const struct generator_config config = good("192.0.2.1");

        for (unsigned n = 1;; n++) {
                _cleanup_generator_ struct generator *generator = NULL;
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                r = generator_new(&config, &generator, NULL);
                if (!fault_disarm()) {
                        assert_int_equal(r, 0);
                        assert_whole_or_none(notes, generator);
                        assert_whole_or_none(counts, NULL);
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
