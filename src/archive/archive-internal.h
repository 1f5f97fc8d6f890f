/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "archive/archive.h"

#define ARCHIVE_HIDDEN_PREFIX ".assay-new." /* and the name that the archive will have */

#define BAG_DECLARATION  "bagit.txt"
#define BAG_INFO         "bag-info.txt"
#define BAG_MANIFEST     "manifest-sha256.txt"
#define BAG_TAG_MANIFEST "tagmanifest-sha256.txt"

/* archive_check_writable - 0 where @archive is locked and not finished, else an error of kind bug */
int archive_check_writable(const struct archive *archive, struct err *err);

/* archive_hidden_sweep - remove, below @parent_dirfd, archives that were not published and that nobody makes. Return: 0
 * or a negative errno. */
int archive_hidden_sweep(int parent_dirfd);

/* journal_parse - the lines of a journal, as archive_journal_read() gives them */
int journal_parse(struct span s, json_t **ret, struct err *err);

/* journal_cut - cut a last line without line feed off the open journal, and sync. Return: 0 or a negative errno. */
int journal_cut(int fd);

/* journal_append - append @line and sync, or leave the file as it was
 * @archive_fd: the archive's folder, which has data/
 */
int journal_append(int archive_fd, const json_t *line, struct err *err);

/* archive_trial_name_is_valid - whether @name can be the name of a trial's folder */
bool archive_trial_name_is_valid(const char *name);
