/* SPDX-License-Identifier: Apache-2.0 */
#include "load/reflector.h"

#include <errno.h>

#include "base/macro.h"
#include "tests/unit/load/json-fault.h"

static void test_config(void **state)
{
        static const struct {
                const char *local;
                int expected;
        } cases[] = {
                {"0.0.0.0", 0}, {"::", 0}, {"127.0.0.1", 0}, {"224.0.0.1", -EINVAL}, {"ff02::1", -EINVAL},
        };
        struct reflector_config config = {0};
        struct reflector *none = NULL;

        assert_int_equal(reflector_new(&config, &none, NULL), -EINVAL);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_reflector_ struct reflector *reflector = NULL;

                assert_int_equal(address_parse(cases[i].local, 862, &config.local, NULL), 0);
                assert_int_equal(reflector_new(&config, &reflector, NULL), cases[i].expected);
        }
}

static json_t *notes(const void *reflector)
{
        return reflector_notes_json(reflector);
}

static void test_memory(void **state)
{
        struct reflector_config config = {0};

        assert_int_equal(address_parse("127.0.0.1", 862, &config.local, NULL), 0);
        for (unsigned n = 1;; n++) {
                _cleanup_reflector_ struct reflector *reflector = NULL;
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                r = reflector_new(&config, &reflector, NULL);
                if (!fault_disarm()) {
                        assert_int_equal(r, 0);
                        assert_whole_or_none(notes, reflector);
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
