/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What Meson and automake take for "skipped". */
#define TEST_SKIPPED 77

/* test_must_run - whether ASSAY_MUST_RUN, a comma list such as "root,netns,bpf", has @capability in it */
static inline int test_must_run(const char *capability)
{
        const char *list = getenv("ASSAY_MUST_RUN");
        size_t len = strlen(capability);

        while (list && *list) {
                size_t item = strcspn(list, ",");

                if (item == len && strncmp(list, capability, len) == 0)
                        return 1;
                list += item + (list[item] == ',');
        }
        return 0;
}

/* test_skip - end a test program for which this machine lacks @capability; a failure where ASSAY_MUST_RUN has it
 * @why: what was tried
 *
 * Return: the exit status, for `return test_skip(...)`.
 */
static inline int test_skip(const char *capability, const char *why)
{
        int must = test_must_run(capability);

        fprintf(stderr, "%s: %s: %s\n", must ? "FAIL" : "SKIP", capability, why);
        return must ? EXIT_FAILURE : TEST_SKIPPED;
}
