/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

#include "base/json.h"

/* Where what an archive has frozen is not what comes out when it is made again. */

#define DIFFERENCES_MAX 100 /* as many are kept; all are counted */

struct difference {
        char *file; /* "data/summary.json" */
        char *path; /* "cells[3].series.rtt.p99_ns.median"; empty for the file as a whole */
        char *frozen, *again;
};

struct differences {
        size_t n, n_all;
        struct difference items[DIFFERENCES_MAX];
};

void differences_done(struct differences *differences);

#define _cleanup_differences_ _cleanup_(differences_done)

/* differences_add - add one; the texts are copied. Return: 0 or -ENOMEM. */
int differences_add(struct differences *differences, const char *file, const char *path, const char *frozen,
                    const char *again);

/* differences_of_json - add each value in which @frozen and @again differ, keys in their order. Return: 0 or -ENOMEM.
 */
int differences_of_json(struct differences *differences, const char *file, const json_t *frozen, const json_t *again);
