/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The policies of tests/cases/policies, and what the tests of them share. */

#include <dirent.h>

#include "base/file.h"
#include "base/text.h"
#include "sandbox/policy.h"
#include "tests/test.h"

static inline const char *policy_cases(void)
{
        static char path[1024];
        const char *cases = getenv("ASSAY_TEST_CASES");

        assert_non_null(cases);
        snprintf(path, sizeof(path), "%s/policies", cases);
        return path;
}

/* The content of NAME.yaml (@suffix "") or of the file beside it with another suffix; NULL if there is none. */
static inline char *policy_case_read(int dirfd, const char *yaml, const char *suffix)
{
        _cleanup_free_ char *name = NULL;
        char *text = NULL;
        size_t len;

        name = *suffix ? text_format("%.*s%s", (int)(strlen(yaml) - strlen(".yaml")), yaml, suffix) : strdup(yaml);
        assert_non_null(name);
        return file_read(dirfd, name, 1 << 20, &text, &len, NULL) < 0 ? NULL : text;
}

static inline struct policy *policy_of(const char *text, const char *name)
{
        struct policy *policy = NULL;
        struct err err = {0};
        char message[2048];

        if (policy_parse(span_of_text(text), name, &policy, &err) < 0) {
                err_format(&err, message, sizeof(message));
                fail_msg("%s\n%s", message, text);
        }
        return policy;
}

static inline const char *outcome_name(enum policy_outcome outcome)
{
        return outcome == POLICY_ALLOWED ? "allowed" : outcome == POLICY_PENDING ? "pending" : "denied";
}
