/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/experiment.h"

#include <dirent.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"

#define SUFFIX ".yaml"

const char *experiment_folder(unsigned index)
{
        const char *chosen = getenv("ASSAY_EXPERIMENTS");
        const char *folders[] = {chosen && chosen[0] ? chosen : "experiments", ASSAY_DATADIR "/experiments"};

        return index < ARRAY_SIZE(folders) ? folders[index] : NULL;
}

void experiment_list_done(struct experiment_list *list)
{
        for (size_t i = 0; i < list->n; i++) {
                free(list->names[i]);
                free(list->paths[i]);
        }
        free(list->names);
        free(list->paths);
        *list = (struct experiment_list){0};
}

static bool list_has(const struct experiment_list *list, const char *name)
{
        for (size_t i = 0; i < list->n; i++)
                if (streq(list->names[i], name))
                        return true;
        return false;
}

static int list_insert(struct experiment_list *list, const char *folder, const char *name)
{
        char **names = reallocarray(list->names, list->n + 1, sizeof(char *)), **paths;
        size_t at = list->n;

        if (!names)
                return -ENOMEM;
        list->names = names;
        paths = reallocarray(list->paths, list->n + 1, sizeof(char *));
        if (!paths)
                return -ENOMEM;
        list->paths = paths;

        for (; at > 0 && strcmp(names[at - 1], name) > 0; at--) {
                names[at] = names[at - 1];
                paths[at] = paths[at - 1];
        }
        names[at] = strdup(name);
        paths[at] = text_format("%s/%s" SUFFIX, folder, name);
        list->n++;
        return names[at] && paths[at] ? 0 : -ENOMEM;
}

static int list_folder(struct experiment_list *list, const char *folder)
{
        _cleanup_closedir_ DIR *dir = opendir(folder);
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                size_t len = strlen(entry->d_name);
                char name[256];
                int r;

                if (len <= strlen(SUFFIX) || !streq(entry->d_name + len - strlen(SUFFIX), SUFFIX))
                        continue;
                snprintf(name, sizeof(name), "%.*s", (int)(len - strlen(SUFFIX)), entry->d_name);
                if (!text_is_name(name) || list_has(list, name))
                        continue;
                r = list_insert(list, folder, name);
                if (r < 0)
                        return r;
        }
        return 0;
}

int experiment_list(struct experiment_list *ret, struct err *err)
{
        struct experiment_list list = {0};

        for (unsigned i = 0; experiment_folder(i); i++)
                if (list_folder(&list, experiment_folder(i)) < 0) {
                        experiment_list_done(&list);
                        return err_set_nomem(err);
                }
        *ret = list;
        return 0;
}

int experiment_find(const char *name, char **ret, struct err *err)
{
        struct experiment_list list = {0};
        const char *nearest;
        size_t len = strlen(name);
        int r;

        if (strchr(name, '/') || (len > strlen(SUFFIX) && streq(name + len - strlen(SUFFIX), SUFFIX))) {
                *ret = strdup(name);
                return *ret ? 0 : err_set_nomem(err);
        }

        r = experiment_list(&list, err);
        if (r < 0)
                return r;
        r = -ENOENT;
        for (size_t i = 0; i < list.n && r == -ENOENT; i++)
                if (streq(list.names[i], name)) {
                        *ret = TAKE_PTR(list.paths[i]);
                        r = 0;
                }
        if (r < 0) {
                nearest = text_nearest(name, (const char *const *)list.names, list.n);
                err_set(err, ERR_USAGE, ENOENT, "there is no experiment %s%s%s%s in %s or %s; `assay list` shows them",
                        name, nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "",
                        experiment_folder(0), experiment_folder(1));
        }
        experiment_list_done(&list);
        return r;
}
