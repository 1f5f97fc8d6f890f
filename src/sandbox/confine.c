/* SPDX-License-Identifier: Apache-2.0 */
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"
#include "sandbox/runner-internal.h"
#include "sys/landlock.h"
#include "sys/userns.h"

#define LAST_POSSIBLE_CAP 63
#define SECUREBITS                                                                                                     \
        (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |               \
         SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* As root: from here on this process has no right of the host's. */
static int become_unprivileged(const struct identity *id, struct err *err)
{
        if (setgroups(id->n_groups, id->groups) < 0 || setresgid(id->gid, id->gid, id->gid) < 0 ||
            setresuid(id->uid, id->uid, id->uid) < 0)
                return err_set_errno(err, errno == EPERM ? ERR_UNSUPPORTED : ERR_ENVIRONMENT, errno,
                                     "cannot become user %u", (unsigned)id->uid);
        /* or its own user map would belong to root; before the command runs it is shut off again (init.c) */
        prctl(PR_SET_DUMPABLE, 1);
        return 0;
}

/* A user namespace below the one that owns N: whatever right is won inside is none over N. */
static int enter_inner_namespace(const struct identity *id, struct err *err)
{
        uid_t outer_uid = geteuid();
        gid_t outer_gid = getegid();

        if (unshare(CLONE_NEWUSER) < 0)
                return userns_not_allowed(err, errno);
        return userns_map_self(id->inner_uid, id->inner_gid, outer_uid, outer_gid, err);
}

static int drop_rights(struct err *err)
{
        struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[2] = {0};

        for (int cap = 0; cap <= LAST_POSSIBLE_CAP; cap++)
                if (prctl(PR_CAPBSET_DROP, cap) < 0 && errno != EINVAL) /* that one this kernel has not */
                        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot give up capability %d", cap);
        if (prctl(PR_SET_SECUREBITS, SECUREBITS) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            syscall(__NR_capset, &head, none) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot give up the rights of the sandbox's root");
        return 0;
}

/* With --read and --write: what every program needs, and the sandbox's own folders. */
static const struct landlock_path common_paths[] = {
        {"/usr", false},   {"/bin", false},    {"/sbin", false}, {"/lib", false},    {"/lib32", false},
        {"/lib64", false}, {"/libx32", false}, {"/etc", false},  {"/opt", false},    {"/sys", false},
        {"/proc", true},   {"/dev", true},     {"/run", true},   {"/var/run", true}, {"/tmp", true},
};

static int restrict_files(const struct sandbox_options *o, struct err *err)
{
        struct landlock_path paths[ARRAY_SIZE(common_paths) + 2 * SANDBOX_PATHS_MAX];
        size_t n = 0;

        if (o->read.n == 0 && o->write.n == 0)
                return landlock_restrict(NULL, 0, err);
        for (size_t i = 0; i < ARRAY_SIZE(common_paths); i++)
                paths[n++] = common_paths[i];
        for (size_t i = 0; i < o->read.n; i++)
                paths[n++] = (struct landlock_path){o->read.items[i], false};
        for (size_t i = 0; i < o->write.n; i++)
                paths[n++] = (struct landlock_path){o->write.items[i], true};
        return landlock_restrict(paths, n, err);
}

int confine_self(const struct run *run, int *ret_listener_fd, struct err *err)
{
        int r = 0;

        if (!run->identity.is_rootless)
                r = become_unprivileged(&run->identity, err);
        if (r == 0)
                r = enter_inner_namespace(&run->identity, err);
        if (r == 0)
                r = drop_rights(err);
        if (r == 0)
                r = restrict_files(run->options, err);
        *ret_listener_fd = -1;
        if (r < 0)
                return r;
        return run->is_asked ? seccomp_install_asking(&run->filter, ret_listener_fd, err)
                             : seccomp_install(&run->filter, err);
}
