/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "archive/archive-internal.h"
#include "archive/bag.h"
#include "base/text.h"
#include "seal/digest.h"

/* bag_report_add - add a fault of @path
 *
 * Return: 0 or -ENOMEM.
 */
int bag_report_add(struct bag_report *report, enum bag_fault_kind kind, const char *path, const char *format, ...)
        _printf_(4, 5);

/* bag_next_line - take the next line off *@s; lines end in LF, CR LF or CR, the last one perhaps in nothing
 *
 * Return: whether there was one; it has no line end in @ret.
 */
bool bag_next_line(struct span *s, struct span *ret);

/* One line of a manifest. */
struct bag_entry {
        char *path; /* decoded */
        struct digest digest;
};

struct bag_manifest {
        size_t n, allocated;
        struct bag_entry *entries; /* sorted by path, no path twice */
};

/* bag_manifest_parse - read the bytes of the manifest @name; bad lines are faults in @report and are left out
 * @is_payload:  whether its paths have to be below data/; otherwise they may not be
 *
 * Return: 0, and bag_manifest_done() releases @ret; or -ENOMEM.
 */
int bag_manifest_parse(struct span s, const char *name, bool is_payload, struct bag_manifest *ret,
                       struct bag_report *report);

void bag_manifest_done(struct bag_manifest *manifest);

#define _cleanup_bag_manifest_ _cleanup_(bag_manifest_done)

/* bag_declaration_parse - check the bytes of bagit.txt; faults go to @report. Return: 0 or -ENOMEM. */
int bag_declaration_parse(struct span s, struct bag_report *report);

/* What Payload-Oxum in bag-info.txt says. */
struct bag_oxum {
        bool is_present;
        uint64_t bytes, files;
};

/* bag_info_parse - check the bytes of bag-info.txt and find Payload-Oxum; faults go to @report. Return: 0 or -ENOMEM.
 */
int bag_info_parse(struct span s, struct bag_oxum *ret, struct bag_report *report);
