/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/identity.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"

/* How @uid of this user namespace is called in the one above it. Return: 0; -ENOENT where it has no name there. */
static int outer_uid(const char *map, uid_t uid, uid_t *ret)
{
        unsigned inner, outer, count;
        int used;

        for (; sscanf(map, "%u %u %u%n", &inner, &outer, &count, &used) == 3; map += used)
                if (uid >= inner && uid - inner < count) {
                        *ret = outer + (uid - inner);
                        return 0;
                }
        return -ENOENT;
}

static int find_user(const char *user, struct passwd **ret, struct err *err)
{
        uint64_t number;

        if (number_parse_u64(span_of_text(user), &number) == 0)
                *ret = number < UINT32_MAX ? getpwuid((uid_t)number) : NULL;
        else
                *ret = getpwnam(user);
        if (!*ret)
                return err_set(err, ERR_USAGE, EINVAL, "there is no user %s", user);
        if ((*ret)->pw_uid == 0)
                return err_set(err, ERR_USAGE, EINVAL, "the command never runs as root; name another user");
        return 0;
}

static int become_user(const char *user, struct identity *id, struct err *err)
{
        int n = IDENTITY_GROUPS;
        struct passwd *entry;
        int r;

        r = find_user(user, &entry, err);
        if (r < 0)
                return r;
        id->uid = id->inner_uid = entry->pw_uid;
        id->gid = id->inner_gid = entry->pw_gid;
        id->name = entry->pw_name; /* the library's memory, which nothing overwrites: nobody is looked up again */
        id->home = entry->pw_dir;
        id->shell = entry->pw_shell;
        if (getgrouplist(entry->pw_name, entry->pw_gid, id->groups, &n) < 0)
                return err_set(err, ERR_USAGE, E2BIG, "user %s is in more than %d groups", user, IDENTITY_GROUPS);
        id->n_groups = (size_t)n;
        return 0;
}

static void become_nobody(bool nested, struct identity *id)
{
        id->uid = id->gid = IDENTITY_NOBODY;
        id->inner_uid = id->inner_gid = nested ? IDENTITY_NOBODY : 0;
        id->name = (char *)(nested ? "nobody" : "root");
        id->home = (char *)"/tmp"; /* root's own it cannot even enter */
        id->n_groups = 0;
}

static int stay_who_one_is(const char *user, struct identity *id, struct err *err)
{
        struct passwd *entry;
        int r;

        id->is_rootless = true;
        id->uid = id->inner_uid = geteuid();
        id->gid = id->inner_gid = getegid();
        if (!user)
                return 0;
        r = find_user(user, &entry, err);
        if (r < 0)
                return r;
        if (entry->pw_uid != id->uid)
                return err_set(err, ERR_USAGE, EINVAL, "only root can run a command as another user (--user %s)", user);
        return 0;
}

int identity_choose(const char *user, bool nested, struct identity *ret, struct err *err)
{
        _cleanup_free_ char *map = NULL;
        uid_t outer, unused;
        size_t len;
        int r;

        *ret = (struct identity){0};
        if (geteuid() != 0)
                return stay_who_one_is(user, ret, err);
        r = file_read(AT_FDCWD, "/proc/self/uid_map", 64 * 1024, &map, &len, err);
        if (r < 0)
                return r;
        if (user)
                r = become_user(user, ret, err);
        else
                become_nobody(nested, ret);
        if (r < 0 || outer_uid(map, ret->uid, &unused) == 0)
                return r;
        /* Root of a user namespace that has nobody else in it is an ordinary user outside. */
        if (outer_uid(map, 0, &outer) < 0 || outer == 0)
                return err_set(err, ERR_UNSUPPORTED, EPERM,
                               "this is the host's root in a user namespace without user %u: the command would run as "
                               "root; start it as an ordinary user",
                               (unsigned)ret->uid);
        *ret = (struct identity){0};
        return stay_who_one_is(user, ret, err);
}

void identity_environment(const struct identity *identity)
{
        if (identity->name) {
                setenv("USER", identity->name, 1);
                setenv("LOGNAME", identity->name, 1);
        }
        if (identity->home)
                setenv("HOME", identity->home, 1);
        if (identity->shell)
                setenv("SHELL", identity->shell, 1);
}
