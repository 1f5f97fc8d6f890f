/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/boundary-wrapper.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "campaign/enclosure.h"
#include "campaign/runc.h"

struct keys {
        int program, network;
};

enum { PROGRAM_BWRAP, PROGRAM_RUNC };
enum { NETWORK_HOST, NETWORK_NONE };

static const char *const programs[] = {"bwrap", "runc", NULL};
static const char *const networks[] = {"host", "none", NULL};

static const struct key keys[] = {
        {.name = "program",
         .type = KEY_CHOICE,
         .offset = offsetof(struct keys, program),
         .is_required = true,
         .choices = programs,
         .help = "What runs the command, with namespaces of its own and the host's files to read: bubblewrap, or a "
                 "container of runc, which needs root."},
        {.name = "network",
         .type = KEY_CHOICE,
         .offset = offsetof(struct keys, network),
         .fallback = "host",
         .choices = networks,
         .help = "Whether the command shares the network, or (of bwrap only) has a namespace of its own with nothing "
                 "in it."},
        {},
};

const struct key_table boundary_wrapper_table = {
        .name = "wrapper",
        .help = "A program of others that runs a command in namespaces, as a peer.",
        .size = sizeof(struct keys),
        .has_kind = true,
        .keys = keys,
};

struct wrapper {
        struct enclosure base;
        struct keys keys;
        struct runc runc;
};

static struct wrapper *wrapper_of(struct boundary *b)
{
        return (struct wrapper *)b; /* the first member's first member */
}

static int read_keys(const struct node *config, struct keys *ret, struct err *err)
{
        return key_table_read(&boundary_wrapper_table, node_get(config, "boundary"), "boundary", ret, err);
}

static int wrap_bwrap(struct enclosure *e, struct command_line *line, struct err *err)
{
        static const char *const words[] = {
                "bwrap",  "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev",
                "--proc", "/proc"};
        _cleanup_command_line_ struct command_line inner = *line;

        *line = (struct command_line){0};
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                command_line_add(line, "%s", words[i]);
        if (wrapper_of(&e->base)->keys.network == NETWORK_HOST)
                command_line_add(line, "--share-net");
        command_line_add(line, "--");
        command_line_append(line, &inner);
        return 0;
}

static int wrap_runc(struct enclosure *e, struct command_line *line, struct err *err)
{
        return runc_wrap(&wrapper_of(&e->base)->runc, line, err);
}

static void wrapper_down(struct boundary *b)
{
        struct wrapper *w = wrapper_of(b);

        if (!w)
                return;
        runc_down(&w->runc);
        stage_down(&w->base.stage);
        key_table_done(&boundary_wrapper_table, &w->keys);
        free(w);
}

static int wrapper_up(const struct node *config, int inputs_dirfd, struct boundary **ret, struct err *err)
{
        struct wrapper *w = calloc(1, sizeof(*w));
        int r;

        if (!w)
                return err_set_nomem(err);
        w->base = (struct enclosure){.base.ops = &boundary_wrapper_ops, .stage = STAGE_INIT, .wrap = wrap_bwrap};
        w->runc = (struct runc)RUNC_INIT;
        r = read_keys(config, &w->keys, err);
        if (r >= 0 && w->keys.program == PROGRAM_RUNC) {
                w->base.wrap = wrap_runc;
                r = runc_up(&w->runc, err);
        }
        if (r >= 0)
                r = enclosure_stage(&w->base, err);
        if (r < 0) {
                wrapper_down(&w->base.base);
                return r;
        }
        *ret = &w->base.base;
        return 0;
}

/* That a command inside sees namespaces of its own, and shares the stage's network only where it is to. */
static int wrapper_prove(struct boundary *b, struct proof *ret, struct err *err)
{
        struct wrapper *w = wrapper_of(b);
        const char *program = programs[w->keys.program];
        struct enclosure_view view;
        int r;

        *ret = (struct proof){0};
        r = enclosure_look(&w->base, program, &view, err);
        if (r < 0)
                return r;
        ret->holds = view.has_own_mounts && view.has_own_processes &&
                     view.shares_network == (w->keys.network == NETWORK_HOST);
        if (!ret->holds)
                snprintf(ret->reason, sizeof(ret->reason),
                         "a command inside %s does not see the namespaces that it should", program);
        ret->evidence = json_pack("{s:s, s:b}", "program", program, "shares_network", view.shares_network);
        return ret->evidence ? 0 : err_set_nomem(err);
}

static int wrapper_observe(struct boundary *b, struct text *out, struct err *err)
{
        text_add(out, "# EOF\n");
        return 0;
}

static json_t *wrapper_describe(const struct boundary *b)
{
        const struct wrapper *w = (const struct wrapper *)b;

        return json_pack("{s:s, s:s, s:s, s:[]}", "isolation", "wrapper", "program", programs[w->keys.program],
                         "network", networks[w->keys.network], "weaker");
}

const struct boundary_ops boundary_wrapper_ops = {
        .up = wrapper_up,
        .prove = wrapper_prove,
        .observe = wrapper_observe,
        .describe = wrapper_describe,
        .down = wrapper_down,
};

int boundary_wrapper_missing(const struct node *config, struct err *err)
{
        struct keys k = {0};
        char path[PATH_MAX];
        int r = read_keys(config, &k, err);

        if (r >= 0)
                r = command_find(programs[k.program], path, sizeof(path), err);
        if (r >= 0 && k.program == PROGRAM_RUNC && geteuid() != 0)
                r = err_set(err, ERR_UNSUPPORTED, EPERM, "containers of runc need root");
        key_table_done(&boundary_wrapper_table, &k);
        return r;
}

int boundary_wrapper_check(const struct node *boundary, struct err *err)
{
        const struct node *network = node_get(boundary, "network");

        if (!network || boundary_wrapper_has_network(boundary) || !streq(node_scalar_at(boundary, "program"), "runc"))
                return 0;
        return err_set_at(err, ERR_USAGE, &network->position,
                          "boundary.network: a container of runc shares the host's here; none is only for bwrap");
}

bool boundary_wrapper_has_network(const struct node *boundary)
{
        const char *network = node_scalar_at(boundary, "network");

        return !network || streq(network, networks[NETWORK_HOST]);
}
