/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/enclosure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_NS (20 * NSEC_PER_SEC)

int enclosure_stage(struct enclosure *e, struct err *err)
{
        return e->stage.netns.fd >= 0 ? 0 : stage_up(&e->stage, err);
}

int enclosure_wrap(struct enclosure *e, struct command_line *line, struct err *err)
{
        int r = command_line_check(line, err);

        if (r >= 0 && e->wrap)
                r = e->wrap(e, line, err);
        return r < 0 ? r : command_line_check(line, err);
}

/* Runs it, and waits. Return: 0 where it exited with status 0. */
static int run_line(struct enclosure *e, const struct command_line *line, struct command *command, struct err *err)
{
        char complaint[400];
        int r, code = 0;

        r = command_prepare(command->name, &e->stage.netns, line, command, err);
        if (r >= 0)
                r = child_go(&command->child, 0, err);
        if (r >= 0)
                r = command_wait(command, LOOK_NS, &code, err);
        if (r < 0 || code == 0)
                return r;
        command_complaint(command, complaint, sizeof(complaint));
        return err_set(err, ERR_ENVIRONMENT, EIO, "%s exited with status %d: %s", command->name, code, complaint);
}

/* Whether @line names a namespace of @kind, and another one than ours. */
static bool is_apart(const char *kind, const char *line)
{
        char path[64], ours[64];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
        n = readlink(path, ours, sizeof(ours) - 1);
        if (n < 0 || !line)
                return false;
        ours[n] = '\0';
        return strncmp(line, kind, strlen(kind)) == 0 && !streq(line, ours);
}

int enclosure_look(struct enclosure *e, const char *name, struct enclosure_view *ret, struct err *err)
{
        static const char *const words[] = {"readlink", "/proc/self/ns/mnt", "/proc/self/ns/pid", "/proc/self/ns/net"};
        struct command command = COMMAND_INIT;
        _cleanup_command_line_ struct command_line line = {0};
        _cleanup_free_ char *text = NULL;
        const char *mounts, *processes, *network;
        char *rest = NULL, stage[64];
        uint64_t inode = 0;
        size_t len;
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                command_line_add(&line, "%s", words[i]);
        command.name = name;
        r = enclosure_wrap(e, &line, err);
        if (r >= 0)
                r = run_line(e, &line, &command, err);
        if (r >= 0)
                r = command_output(&command, 4096, &text, &len, err);
        command_done(&command);
        if (r < 0)
                return r;
        mounts = strtok_r(text, "\n", &rest);
        processes = mounts ? strtok_r(NULL, "\n", &rest) : NULL;
        network = processes ? strtok_r(NULL, "\n", &rest) : NULL;
        (void)netns_inode(&e->stage.netns, &inode);
        snprintf(stage, sizeof(stage), "net:[%llu]", (unsigned long long)inode);
        *ret = (struct enclosure_view){.has_own_mounts = is_apart("mnt", mounts),
                                       .has_own_processes = is_apart("pid", processes),
                                       .shares_network = network && streq(network, stage)};
        return 0;
}
