/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "archive/archive.h"
#include "archive/bag.h"
#include "base/err.h"
#include "base/json.h"
#include "evidence/class.h"
#include "evidence/difference.h"
#include "evidence/kind.h"

/* Whether an archive is what it says: every file has its digest; plan, summary and verdict come out again, byte by
 * byte, from manifest, journal, trials and samples; and plan, journal and trials agree on which trial ran when. */

struct verify_report {
        struct bag_report bag;
        struct differences differences;
        json_t *summary, *verdict; /* as they came out; NULL where they could not be made */
        enum evidence_class class;
        json_t *reasons; /* of the class */
};

/* verify_archive - check digests, make everything again, compare
 * @ret: verify_report_done() releases it
 *
 * Faults and differences are results; so is a file that is missing or malformed, which is a difference of what was to
 * be made from it. Return: 0, or a negative errno with the reason where the archive could not be examined at all.
 */
int verify_archive(struct archive *archive, const struct kinds *kinds, struct verify_report *ret, struct err *err);

/* verify_passed - whether nothing was found. If not, the exit code is 5. */
bool verify_passed(const struct verify_report *report);

void verify_report_done(struct verify_report *report);

#define _cleanup_verify_report_ _cleanup_(verify_report_done)
