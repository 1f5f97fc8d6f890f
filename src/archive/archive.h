/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/span.h"

/* An archive is a folder with the layout of docs/formats/archive.md, a BagIt bag (RFC 8493) once it is finished. This
 * is where its files are; what they mean is evidence's business. All paths are relative to the archive. */

struct archive;

/* archive_create - make the folder @name below @parent_dirfd with data/ in it
 *
 * Return: 0; -EEXIST with a reason that says what to do; another negative errno.
 */
int archive_create(int parent_dirfd, const char *name, struct archive **ret, struct err *err);

/* archive_open - open an existing archive, finished or not */
int archive_open(int parent_dirfd, const char *path, struct archive **ret, struct err *err);

void archive_free(struct archive *archive);

DEFINE_CLEANUP(struct archive *, archive_free)
#define _cleanup_archive_ _cleanup_(archive_free_cleanup)

/* archive_dirfd - the folder's descriptor, borrowed */
int archive_dirfd(const struct archive *archive);

/* archive_is_finished - whether the bag's tag files are there (nothing is checked) */
bool archive_is_finished(const struct archive *archive);

/* archive_lock - take the exclusive lock of a running campaign (flock on the folder), so that nobody resumes it twice.
 * Return: 0, or -EBUSY with a reason. It is held until archive_free(). */
int archive_lock(struct archive *archive, struct err *err);

/* archive_write - store a file below data/ atomically and synced, making its folders; @path such as
 * "data/inputs/a.yaml" */
int archive_write(struct archive *archive, const char *path, struct span data, struct err *err);
int archive_write_json(struct archive *archive, const char *path, const json_t *value, struct err *err);

/* archive_trial_begin - make data/trials/.@name.partial, emptied of what an interrupted attempt left, for the files of
 * a running trial. Return: its descriptor (the caller closes it) or a negative errno. */
int archive_trial_begin(struct archive *archive, const char *name, struct err *err);

/* archive_trial_commit - sync the folder's files, rename it to data/trials/@name, sync, then append @line (one JSON
 * object) to data/journal.jsonl and sync that. After a kill at any moment the trial is there whole, or not at all. */
int archive_trial_commit(struct archive *archive, const char *name, const json_t *line, struct err *err);

/* archive_trial_open - the folder of a committed trial. Return: its descriptor or a negative errno. */
int archive_trial_open(const struct archive *archive, const char *name, struct err *err);

/* archive_trials_sweep - remove partial trials, and committed folders that no journal line names */
int archive_trials_sweep(struct archive *archive, struct err *err);

/* archive_journal_append - append one line and sync it */
int archive_journal_append(struct archive *archive, const json_t *line, struct err *err);

/* archive_journal_read - all whole lines as a JSON array (a new reference). A last line without line feed, as a power
 * cut leaves it, is not read and is cut off when the archive is locked; any other malformed line is an error. */
int archive_journal_read(struct archive *archive, json_t **ret, struct err *err);
