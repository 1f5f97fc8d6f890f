/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"

/* experiment_folder - where experiments are looked for, in order; @index counts from 0; NULL after the last */
const char *experiment_folder(unsigned index);

/* experiment_find - the path of an experiment's manifest
 * @name: a path (with a "/" or ending in .yaml) is taken as it is; a plain name is looked for in the folders of
 *        $ASSAY_EXPERIMENTS, experiments/ here, and where Assay is installed, in this order
 * @ret:  the caller frees it
 *
 * Return: 0; -ENOENT with what was looked for, and the nearest name that exists, in @err.
 */
int experiment_find(const char *name, char **ret, struct err *err);

/* The experiments that can be found by name. */
struct experiment_list {
        size_t n;
        char **names; /* sorted; a name that an earlier folder has hides those of later ones */
        char **paths;
};

/* experiment_list - all of them, of every folder that is searched; experiment_list_done() releases them
 *
 * Return: 0, or a negative errno with the reason.
 */
int experiment_list(struct experiment_list *ret, struct err *err);
void experiment_list_done(struct experiment_list *list);
