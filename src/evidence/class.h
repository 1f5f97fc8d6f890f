/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "archive/archive.h"
#include "archive/bag.h"
#include "base/err.h"
#include "base/json.h"

/* How far an archive can be relied on. It is derived each time and stored nowhere, so that nobody can type it. */

enum evidence_class {
        CLASS_ATTRIBUTABLE, /* a clean build, the whole experiment as its manifest asks, every sample and digest */
        CLASS_PROVISIONAL,  /* a modified build, a shortened or overridden run, a weaker mechanism */
        CLASS_SUPERSEDED,   /* a later attributable archive takes its place */
        CLASS_HISTORICAL,   /* raw samples or their digests are missing: nobody can make it again */
        CLASS_INVALID,      /* the campaign lacks rounds, or the archive does not check */
};

/* class_name - "attributable", ... */
const char *class_name(enum evidence_class class);

struct class_input {
        struct archive *archive;
        const json_t *verdict;
        const struct bag_report *bag; /* NULL: the digests were not checked */
        size_t n_differences;         /* between what is frozen and what was made again */
        const char *superseded_by;    /* as the registry says; NULL: by nothing */
};

/* class_derive - the worst class that any reason asks for
 * @ret_reasons: an array of {"class", "reason"}, all that apply; empty for an attributable archive; a new reference
 *
 * Return: 0, or a negative errno with the reason where plan, journal or a trial cannot be read.
 */
int class_derive(const struct class_input *input, enum evidence_class *ret, json_t **ret_reasons, struct err *err);
