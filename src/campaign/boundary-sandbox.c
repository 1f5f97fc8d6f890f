/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/boundary-sandbox.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "campaign/enclosure.h"
#include "sandbox/enforcer.h"
#include "sandbox/policy.h"
#include "sandbox/rules.h"

struct keys {
        char *enforce, *policy;
};

static const struct key keys[] = {
        {.name = "enforce",
         .type = KEY_NAME,
         .offset = offsetof(struct keys, enforce),
         .is_required = true,
         .help = "The enforcer, as `assay exec --enforce` knows it."},
        {.name = "policy",
         .type = KEY_FILE,
         .offset = offsetof(struct keys, policy),
         .help = "What commands may reach; without it nothing."},
        {},
};

const struct key_table boundary_sandbox_table = {
        .name = "sandbox",
        .help = "Commands run by `assay exec`.",
        .size = sizeof(struct keys),
        .has_kind = true,
        .keys = keys,
};

struct sandbox_boundary {
        struct enclosure base;
        struct keys keys;
        const struct enforcer_ops *enforcer;
        char self[PATH_MAX];
        char policy_path[PATH_MAX]; /* "": none */
};

static struct sandbox_boundary *sandbox_boundary_of(struct boundary *b)
{
        return (struct sandbox_boundary *)b; /* the first member's first member */
}

static int wrap(struct enclosure *e, struct command_line *line, struct err *err)
{
        struct sandbox_boundary *s = sandbox_boundary_of(&e->base);
        _cleanup_command_line_ struct command_line inner = *line;

        *line = (struct command_line){0};
        command_line_add(line, "%s", s->self);
        command_line_add(line, "exec");
        command_line_add(line, "--enforce");
        command_line_add(line, "%s", s->enforcer->name);
        if (s->policy_path[0]) {
                command_line_add(line, "--policy");
                command_line_add(line, "%s", s->policy_path);
        }
        if (e->record) {
                command_line_add(line, "--prove");
                command_line_add(line, "always");
                command_line_add(line, "--bundle");
                command_line_add(line, "%s", e->record);
        }
        command_line_add(line, "--");
        command_line_append(line, &inner);
        return 0;
}

static void sandbox_down(struct boundary *b)
{
        struct sandbox_boundary *s = sandbox_boundary_of(b);

        if (!s)
                return;
        stage_down(&s->base.stage);
        key_table_done(&boundary_sandbox_table, &s->keys);
        free(s);
}

/* The policy as the archive has it, by a path without links, which `assay exec` does not follow. */
static int find_policy(struct sandbox_boundary *s, int inputs_dirfd, struct err *err)
{
        char link[64], folder[PATH_MAX];
        ssize_t n;

        if (!s->keys.policy)
                return 0;
        snprintf(link, sizeof(link), "/proc/self/fd/%d", inputs_dirfd);
        n = readlink(link, folder, sizeof(folder) - 1);
        if (n < 0)
                return err_set_errno(err, ERR_IO, errno, "cannot find the policy %s", s->keys.policy);
        folder[n] = '\0';
        if (snprintf(s->policy_path, sizeof(s->policy_path), "%s/%s", folder, s->keys.policy) >= PATH_MAX)
                return err_set(err, ERR_IO, ENAMETOOLONG, "the path of the policy %s is too long", s->keys.policy);
        return 0;
}

/* What a name leads to lies beyond the host, which an enforcer may want to forward. */
static int open_stage(struct stage *stage, const struct policy *policy, struct err *err)
{
        int r = stage_up(stage, err);

        if (r >= 0 && policy && rules_has_names(policy))
                r = netns_sysctl_write(&stage->netns, "ipv4/ip_forward", "1", err);
        return r;
}

static int sandbox_up(const struct node *config, int inputs_dirfd, struct boundary **ret, struct err *err)
{
        struct sandbox_boundary *s = calloc(1, sizeof(*s));
        _cleanup_policy_ struct policy *policy = NULL;
        int r;

        if (!s)
                return err_set_nomem(err);
        s->base = (struct enclosure){.base.ops = &boundary_sandbox_ops, .stage = STAGE_INIT, .wrap = wrap};
        r = key_table_read(&boundary_sandbox_table, node_get(config, "boundary"), "boundary", &s->keys, err);
        if (r >= 0)
                r = command_self(s->self, sizeof(s->self), err);
        if (r >= 0)
                r = find_policy(s, inputs_dirfd, err);
        if (r >= 0 && s->policy_path[0])
                r = policy_load(AT_FDCWD, s->policy_path, &policy, err);
        if (r >= 0)
                r = open_stage(&s->base.stage, policy, err);
        if (r < 0) {
                sandbox_down(&s->base.base);
                return r;
        }
        s->enforcer = enforcer_find(s->keys.enforce); /* there is one: it was checked */
        s->base.is_cut_off = s->enforcer == &enforcer_deny_all;
        *ret = &s->base.base;
        return 0;
}

/* That the enforcer lets a command run at all, which it does not where it cannot be put in force; and that what the
 * command sees of the network is what the enforcer says. */
static int sandbox_prove(struct boundary *b, struct proof *ret, struct err *err)
{
        struct sandbox_boundary *s = sandbox_boundary_of(b);
        struct enclosure_view view;
        int r;

        *ret = (struct proof){0};
        r = enclosure_look(&s->base, "assay exec", &view, err);
        if (r < 0)
                return r;
        ret->holds =
                view.has_own_mounts && view.has_own_processes && view.shares_network == s->enforcer->shares_network;
        if (!ret->holds)
                snprintf(ret->reason, sizeof(ret->reason),
                         "a command inside %s does not see the namespaces that it should", s->enforcer->name);
        ret->evidence = json_pack("{s:s, s:b}", "enforcer", s->enforcer->name, "shares_network", view.shares_network);
        return ret->evidence ? 0 : err_set_nomem(err);
}

static int sandbox_observe(struct boundary *b, struct text *out, struct err *err)
{
        text_add(out, "# EOF\n");
        return 0;
}

static json_t *sandbox_describe(const struct boundary *b)
{
        const struct sandbox_boundary *s = (const struct sandbox_boundary *)b;

        return json_pack("{s:s, s:s, s:s, s:[]}", "isolation", "sandbox", "enforcer", s->enforcer->name, "strength",
                         s->enforcer->strength == STRENGTH_ENFORCED ? "enforced" : "unenforced", "weaker");
}

const struct boundary_ops boundary_sandbox_ops = {
        .up = sandbox_up,
        .prove = sandbox_prove,
        .observe = sandbox_observe,
        .describe = sandbox_describe,
        .down = sandbox_down,
};

int boundary_sandbox_check(const struct node *boundary, struct err *err)
{
        const struct node *enforce = node_get(boundary, "enforce");
        const char *names[16];
        size_t n = 0;

        for (; enforcers[n] && n < ARRAY_SIZE(names); n++) {
                names[n] = enforcers[n]->name;
                if (streq(names[n], enforce->scalar))
                        return 0;
        }
        return key_unknown(&enforce->position, "boundary.enforce", "enforcer", enforce->scalar, names, n, err);
}

/* Before a campaign the policy lies beside its manifest; where it does not, for it is resumed, nothing is asked. */
static int load_policy(const struct node *boundary, struct policy **ret, struct err *err)
{
        const struct node *file = node_get(boundary, "policy");
        const char *slash = file ? strrchr(file->position.file, '/') : NULL;
        char path[PATH_MAX];
        struct stat st;

        if (!file) {
                *ret = policy_new_deny_all();
                return *ret ? 0 : err_set_nomem(err);
        }
        snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash + 1 - file->position.file) : 0, file->position.file,
                 file->scalar);
        return stat(path, &st) < 0 ? 1 : policy_load(AT_FDCWD, path, ret, err);
}

/* A command of root's runs as a user without rights, who has to be able to run this program: it is the client. */
static int self_missing(const struct node *config, struct err *err)
{
        const char *kind = node_scalar_at(config, "workload.kind");
        char path[PATH_MAX];
        struct stat st;
        int r;

        if (geteuid() != 0 || streq(kind, "command"))
                return 0;
        r = command_self(path, sizeof(path), err);
        for (char *end = path; r >= 0 && end; end = strchr(end + 1, '/')) {
                char part[PATH_MAX];

                snprintf(part, sizeof(part), "%.*s", end == path ? 1 : (int)(end - path), path);
                if (stat(part, &st) < 0 || !(st.st_mode & S_IXOTH))
                        return err_set(
                                err, ERR_UNSUPPORTED, EACCES,
                                "commands in a sandbox may not run %s, since others may not enter %s; install it, or "
                                "build it elsewhere",
                                path, part);
        }
        if (r < 0 || (stat(path, &st) == 0 && st.st_mode & S_IXOTH))
                return r;
        return err_set(err, ERR_UNSUPPORTED, EACCES, "commands in a sandbox may not run %s", path);
}

struct choice {
        const char *enforce;
        const struct policy *policy;
};

static int choose(void *userdata, struct err *err)
{
        const struct choice *choice = userdata;
        const struct enforcer_ops *enforcer;

        return enforcer_choose(choice->enforce, choice->policy, &enforcer, err);
}

/* Asked on a stage, as a trial will do: what an enforcer can depends on what addresses the host has. */
int boundary_sandbox_missing(const struct node *config, struct err *err)
{
        const struct node *boundary = node_get(config, "boundary");
        _cleanup_policy_ struct policy *policy = NULL;
        struct choice choice = {.enforce = node_scalar_at(boundary, "enforce")};
        struct stage stage = STAGE_INIT;
        int r = self_missing(config, err);

        if (r >= 0)
                r = load_policy(boundary, &policy, err);
        if (r != 0)
                return MIN(r, 0);
        choice.policy = policy;
        r = open_stage(&stage, policy, err);
        if (r >= 0)
                r = netns_run(&stage.netns, choose, &choice, err);
        stage_down(&stage);
        return r;
}

bool boundary_sandbox_has_network(const struct node *boundary)
{
        const struct enforcer_ops *enforcer = enforcer_find(node_scalar_at(boundary, "enforce"));

        return enforcer && enforcer != &enforcer_deny_all;
}
