/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "archive/archive.h"
#include "base/err.h"
#include "evidence/manifest.h"
#include "evidence/plan.h"

/* finish_archive - summarise what the archive holds, judge it, store both, and seal the bag
 * @ret_exit_code: that of the verdict
 */
int finish_archive(struct archive *archive, const struct manifest *manifest, const struct plan *plan,
                   int *ret_exit_code, struct err *err);
