/* SPDX-License-Identifier: Apache-2.0 */
#include "base/version.h"

#include <stdio.h>
#include <string.h>

#include "version-tag.h"

#define COMMIT_DIGITS 40

const char *version_number(void)
{
        return ASSAY_VERSION;
}

const char *version_commit(void)
{
        static char commit[COMMIT_DIGITS + 1];

        if (strspn(VERSION_TAG, "0123456789abcdef") < COMMIT_DIGITS)
                return "unknown";
        if (!commit[0])
                snprintf(commit, sizeof(commit), "%s", VERSION_TAG);
        return commit;
}

bool version_is_modified(void)
{
        return strlen(VERSION_TAG) != COMMIT_DIGITS;
}
