/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive.h"

/* The BagIt side (RFC 8493) of an archive: digests of every file, and what does not agree with them. */

/* One line of bag-info.txt. The label has no ":" and no line break; those of the value are written as blanks. */
struct bag_info {
        const char *label;
        const char *value;
};

/* bag_seal - sweep the trials, then write bagit.txt, bag-info.txt (@info, Bag-Software-Agent, Payload-Oxum),
 * manifest-sha256.txt and tagmanifest-sha256.txt over what is in the archive, each atomically, the tag manifest last
 *
 * Return: 0; a negative errno with the reason, also where something other than a regular file or a folder lies there.
 */
int bag_seal(struct archive *archive, const struct bag_info *info, size_t n_info, struct err *err);

enum bag_fault_kind {
        BAG_MISSING,    /* listed, not there */
        BAG_EXTRA,      /* there, not listed */
        BAG_CHANGED,    /* another digest */
        BAG_MALFORMED,  /* a tag file that is not what RFC 8493 says, or a path that leads out */
        BAG_UNREADABLE, /* a link, a device, or an error in reading */
};

struct bag_fault {
        enum bag_fault_kind kind;
        char *path;   /* decoded; print it with text_add_visible() */
        char *detail; /* for people: expected and found; safe to print */
};

struct bag_report {
        size_t n_faults, allocated;
        struct bag_fault *faults; /* sorted by path */
        uint64_t files;           /* of the payload, read and compared */
        uint64_t bytes;           /* in them */
};

/* What bag_check() asks for beside RFC 8493. */
enum bag_flags {
        /* An archive's own rules: there is a tag manifest, and it lists every tag file but itself and the attestation.
         */
        BAG_AS_ARCHIVE = 1 << 0,
};

/* bag_check - compare all files with the digests
 *
 * Every fault is reported, not only the first. Return: 0 with the faults (maybe none) in @ret, which bag_report_done()
 * releases; a negative errno where the archive could not be read at all.
 */
int bag_check(struct archive *archive, enum bag_flags flags, struct bag_report *ret, struct err *err);

void bag_report_done(struct bag_report *report);

#define _cleanup_bag_report_ _cleanup_(bag_report_done)

/* bag_fault_name - "missing", "extra", "changed", "malformed", "unreadable" */
const char *bag_fault_name(enum bag_fault_kind kind);

/* bag_encode_path - a path as a bag's manifest writes it: "%", CR and LF percent-encoded. NULL if memory ran out. */
char *bag_encode_path(const char *path);

/* bag_decode_path - the reverse, exactly: only %25, %0D and %0A (either case) are decoded; another "%" is malformed
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int bag_decode_path(struct span encoded, char **ret);
