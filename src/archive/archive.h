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
 * is where its files are; what they mean is evidence's business. All paths are relative to the archive.
 *
 * Life cycle: archive_create(), archive_prepare() and archive_publish(), or archive_open() and archive_lock();
 * archive_trials_sweep() where it was opened; files and trials written; bag_seal(). What writes needs the lock, and
 * does not write to a finished archive (kind bug). */

#define ARCHIVE_MANIFEST "data/manifest.yaml"
#define ARCHIVE_INPUTS   "data/inputs"
#define ARCHIVE_PLAN     "data/plan.json"
#define ARCHIVE_RUN_ENV  "data/run-env.json"
#define ARCHIVE_RUN_ENV_RESUMED                                                                                        \
        "data/run-env-resumed-%u.json" /* from 1 on, one for each line "resumed" of the journal */
#define ARCHIVE_JOURNAL     "data/journal.jsonl"
#define ARCHIVE_TRIALS      "data/trials"
#define ARCHIVE_SUMMARY     "data/summary.json"
#define ARCHIVE_VERDICT     "data/verdict.json"
#define ARCHIVE_ATTESTATION "attestation.dsse.json" /* beside data/, in no manifest */

struct archive;

/* archive_create - make the folder @name below @parent_dirfd with data/ in it, and lock it
 *
 * Return: 0; -EEXIST with a reason that says what to do; another negative errno.
 */
int archive_create(int parent_dirfd, const char *name, struct archive **ret, struct err *err);

/* archive_prepare - as archive_create(), but under a hidden name, until archive_publish(): an archive is either not
 * there or has all that going on with it needs. What a kill left of an earlier one in @parent_dirfd is removed. */
int archive_prepare(int parent_dirfd, const char *name, struct archive **ret, struct err *err);

/* archive_publish - give what archive_prepare() made below @parent_dirfd its @name
 *
 * Return: 0; -EEXIST with a reason that says what to do; another negative errno.
 */
int archive_publish(struct archive *archive, int parent_dirfd, const char *name, struct err *err);

/* archive_abandon - remove what archive_prepare() made for @name, which was not published. Return: 0 or a negative
 * errno. */
int archive_abandon(int parent_dirfd, const char *name);

/* archive_open - open an existing archive, finished or not, for reading */
int archive_open(int parent_dirfd, const char *path, struct archive **ret, struct err *err);

void archive_free(struct archive *archive);

DEFINE_CLEANUP(struct archive *, archive_free)
#define _cleanup_archive_ _cleanup_(archive_free_cleanup)

/* archive_dirfd - the folder's descriptor, borrowed */
int archive_dirfd(const struct archive *archive);

/* archive_is_finished - whether the bag's tag manifest, which is written last, is there (nothing is checked) */
bool archive_is_finished(const struct archive *archive);

/* archive_lock - take the exclusive lock of a running campaign (flock on the folder), so that nobody resumes it twice,
 * and cut off what a power cut left of the journal's last line
 *
 * The lock is held until archive_free() in this process and until each child forked meanwhile has closed its copy of
 * the descriptor, by exec or by ending. Return: 0, or -EBUSY with a reason.
 */
int archive_lock(struct archive *archive, struct err *err);

/* archive_write - store a file atomically and synced, making its folders
 * @path: below data/, such as "data/inputs/a.yaml"; or ARCHIVE_ATTESTATION, also in a finished archive
 */
int archive_write(struct archive *archive, const char *path, struct span data, struct err *err);
int archive_write_json(struct archive *archive, const char *path, const json_t *value, struct err *err);

/* archive_trial_begin - make data/trials/.@name.partial, emptied of what an interrupted attempt left, for the files of
 * a running trial
 * @name: [a-z0-9.-], 1 to 200 characters, not starting with "." or "-"
 *
 * Return: its descriptor, which the caller closes; -EEXIST where the trial is committed; another negative errno.
 */
int archive_trial_begin(struct archive *archive, const char *name, struct err *err);

/* archive_trial_commit - sync the folder's files, rename it to data/trials/@name, sync, then append @line, an object,
 * to the journal with "event": "trial" and "trial": @name in it. After a kill or a power cut at any moment, and the
 * next archive_trials_sweep(), the trial is there whole, or not at all; so it is where this fails. */
int archive_trial_commit(struct archive *archive, const char *name, const json_t *line, struct err *err);

/* archive_trial_open - the folder of a trial that is not partial. Return: its descriptor, which the caller closes, or a
 * negative errno. */
int archive_trial_open(const struct archive *archive, const char *name, struct err *err);

/* archive_trials_sweep - remove what a kill may have left: partial trials, trials that no line of the journal names,
 * and temporary files. A trial that the journal names and that is not there is an error of kind integrity. */
int archive_trials_sweep(struct archive *archive, struct err *err);

/* archive_journal_append - append one line and sync it
 * @line: an object with a member "event" (docs/formats/journal.md) other than "trial", whose lines
 *        archive_trial_commit() writes
 */
int archive_journal_append(struct archive *archive, const json_t *line, struct err *err);

/* archive_journal_read - all whole lines as an array of objects (a new reference), each with its "event". A last line
 * without line feed, as a power cut leaves it, is not read; any other malformed line is an error of kind data. */
int archive_journal_read(const struct archive *archive, json_t **ret, struct err *err);
