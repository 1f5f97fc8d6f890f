/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/holder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/macro.h"

#define PROCESSES_MAX 1024
#define LOOKS_MAX     16384 /* at descriptors and threads: who has more of them does not hold the supervisor up */
#define NAME_BYTES    64

struct processes {
        size_t n, looks;
        pid_t pids[PROCESSES_MAX];
};

/* Calls nothing where the folder cannot be read, as that of a process that is gone or another's. */
static DIR *open_folder(pid_t pid, const char *name)
{
        char path[NAME_BYTES];

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
        return opendir(path);
}

static bool has_socket(struct processes *processes, pid_t pid, const char *name)
{
        _cleanup_closedir_ DIR *folder = open_folder(pid, "fd");
        const struct dirent *entry;

        while (folder && processes->looks < LOOKS_MAX && (entry = readdir(folder))) {
                char target[NAME_BYTES];
                ssize_t len = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);

                processes->looks++;
                target[MAX(len, (ssize_t)0)] = '\0';
                if (streq(target, name))
                        return true;
        }
        return false;
}

/* Children are listed by the thread that made them. */
static void add_children(struct processes *processes, pid_t pid)
{
        _cleanup_closedir_ DIR *folder = open_folder(pid, "task");
        const struct dirent *entry;

        while (folder && processes->looks < LOOKS_MAX && (entry = readdir(folder))) {
                _cleanup_fclose_ FILE *f = NULL;
                char path[2 * NAME_BYTES + sizeof(entry->d_name)];
                int child;

                if (entry->d_name[0] == '.')
                        continue;
                processes->looks++;
                snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid, entry->d_name);
                f = fopen(path, "re");
                while (f && processes->n < PROCESSES_MAX && fscanf(f, "%d", &child) == 1)
                        processes->pids[processes->n++] = child;
        }
}

pid_t holder_find(pid_t top, uint32_t inode)
{
        struct processes processes = {.n = 0};
        char name[NAME_BYTES];

        snprintf(name, sizeof(name), "socket:[%u]", inode);
        add_children(&processes, top);
        for (size_t i = 0; i < processes.n; i++) {
                if (has_socket(&processes, processes.pids[i], name))
                        return processes.pids[i];
                add_children(&processes, processes.pids[i]);
        }
        return 0;
}
