/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* version_number - the release, such as "0.1.0" */
const char *version_number(void);

/* version_commit - the 40 hexadecimal digits of the commit that was built, or "unknown" */
const char *version_commit(void);

/* version_is_modified - whether the tree held uncommitted changes when it was built, or no commit is known */
bool version_is_modified(void);
