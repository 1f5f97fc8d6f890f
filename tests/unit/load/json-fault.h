/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "tests/fault.h"
#include "tests/test.h"

/* Whichever allocation fails, there is the whole object or none. */
static inline void assert_whole_or_none(json_t *(*make)(const void *), const void *object)
{
        _cleanup_json_ json_t *whole = make(object);

        assert_non_null(whole);
        for (unsigned n = 1;; n++) {
                _cleanup_json_ json_t *json = NULL;

                fault_arm(FAULT_ALLOCATION, n);
                json = make(object);
                if (!fault_disarm())
                        break;
                assert_true(json == NULL || json_equal(json, whole));
        }
}
