/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/boundary-none.h"

#include <stdlib.h>

#include "campaign/enclosure.h"

static const struct key keys[] = {{0}};

const struct key_table boundary_none_table = {
        .name = "none",
        .help = "Nothing isolates; the workload is measured for itself.",
        .size = 1, /* there is nothing to read */
        .has_kind = true,
        .keys = keys,
};

static int none_up(const struct node *config, int inputs_dirfd, struct boundary **ret, struct err *err)
{
        struct enclosure *e = calloc(1, sizeof(*e));

        if (!e)
                return err_set_nomem(err);
        e->base.ops = &boundary_none_ops;
        e->stage = (struct stage)STAGE_INIT;
        *ret = &e->base;
        return 0;
}

/* What is claimed is nothing, so there is nothing to show. */
static int none_prove(struct boundary *b, struct proof *ret, struct err *err)
{
        *ret = (struct proof){.holds = true, .evidence = json_pack("{s:s}", "boundary", "none")};
        return ret->evidence ? 0 : err_set_nomem(err);
}

static int none_observe(struct boundary *b, struct text *out, struct err *err)
{
        text_add(out, "# EOF\n");
        return 0;
}

static json_t *none_describe(const struct boundary *b)
{
        return json_pack("{s:s, s:[]}", "isolation", "none", "weaker");
}

static void none_down(struct boundary *b)
{
        if (b)
                stage_down(&enclosure_of(b)->stage);
        free(b);
}

const struct boundary_ops boundary_none_ops = {
        .up = none_up,
        .prove = none_prove,
        .observe = none_observe,
        .describe = none_describe,
        .down = none_down,
};
