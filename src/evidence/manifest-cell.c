/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "base/file.h"
#include "base/macro.h"
#include "evidence/manifest-internal.h"

/* Cells: which there are, what configuration each has, and whether its kinds accept that. */

#define INCLUDE_DEPTH_MAX 4

/* ---- included files ---- */

/* Reads a file below the manifest's folder into m->inputs, if it is not there yet. @at is where it is named. */
static int read_input(struct manifest_reader *r, const char *path, const struct position *at,
                      const struct manifest_input **ret)
{
        struct manifest *m = r->m;
        _cleanup_free_ char *data = NULL, *copy = NULL;
        _cleanup_close_ int fd = -1;
        struct manifest_input *inputs;
        size_t len;
        int k;

        *ret = manifest_find_input(m, path);
        if (*ret)
                return 0;
        if (m->n_inputs == MANIFEST_INPUTS_MAX)
                return err_set_at(r->err, ERR_USAGE, at, "more than %d files are included", MANIFEST_INPUTS_MAX);

        fd = file_open_beneath(r->inputs_dirfd, path);
        if (fd < 0)
                return err_set_at(r->err, ERR_USAGE, at, "cannot open %s below the manifest's folder: %s", path,
                                  strerror(-fd));
        k = file_read_fd(fd, path, node_limits_default.bytes, &data, &len, r->err);
        if (k < 0) {
                if (r->err) {
                        r->err->kind = ERR_USAGE;
                        r->err->position = *at;
                }
                return k;
        }
        copy = strdup(path);
        inputs = reallocarray(m->inputs, m->n_inputs + 1, sizeof(*inputs));
        if (inputs)
                m->inputs = inputs;
        if (!copy || !inputs)
                return err_set_nomem(r->err);
        *ret = &m->inputs[m->n_inputs];
        m->inputs[m->n_inputs++] = (struct manifest_input){.path = TAKE_PTR(copy), .data = TAKE_PTR(data), .len = len};
        return 0;
}

/* ---- base ---- */

static int read_base(struct manifest_reader *r, const struct node *base, unsigned depth, struct node **ret);

/* The `base` of the manifest @path, which a `base` includes. */
static int include_base(struct manifest_reader *r, const char *path, const struct position *at, unsigned depth,
                        struct node **ret)
{
        const char *slash = strrchr(r->name, '/'), *version;
        _cleanup_free_ char *name = NULL;
        _cleanup_node_ struct node *root = NULL;
        const struct manifest_input *input;
        const struct node *base;
        int k;

        if (depth == INCLUDE_DEPTH_MAX)
                return err_set_at(r->err, ERR_USAGE, at, "base.include: more than %d files include one another",
                                  INCLUDE_DEPTH_MAX);
        k = read_input(r, path, at, &input);
        if (k < 0)
                return k;
        name = text_format("%.*s%s", slash ? (int)(slash - r->name) + 1 : 0, r->name, path);
        if (!name)
                return err_set_nomem(r->err);
        k = node_parse(span_of(input->data, input->len), name, NULL, &root, r->err);
        if (k < 0)
                return k;

        version = node_scalar_at(root, "assay");
        base = node_get(root, "base");
        if (!version || !streq(version, "1") || !base)
                return err_set_at(r->err, ERR_USAGE, at,
                                  "base.include: %s is not a manifest with the keys \"assay: 1\" and \"base\"", path);
        return read_base(r, base, depth + 1, ret);
}

/* Lays the three configurations that @keys may have over @into. */
static int lay_over(struct node *into, const struct override_keys *keys, struct err *err)
{
        const struct node *const values[] = {keys->boundary, keys->workload, keys->background};
        static const char *const names[] = {"boundary", "workload", "background"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_node_ struct node *over = NULL, *copy = NULL;

                if (!values[i])
                        continue;
                over = node_new_mapping();
                copy = node_copy(values[i]);
                if (!over || !copy || node_put(over, names[i], &values[i]->position, copy) < 0)
                        return err_set_nomem(err);
                TAKE_PTR(copy);
                if (node_merge(into, over) < 0)
                        return err_set_nomem(err);
        }
        return 0;
}

static int read_base(struct manifest_reader *r, const struct node *base, unsigned depth, struct node **ret)
{
        _cleanup_node_ struct node *merged = NULL;
        struct override_keys keys = {0};
        int k;

        k = key_table_read(&manifest_base_table, base, "base", &keys, r->err);
        if (k == 0 && keys.include)
                k = include_base(r, keys.include, &node_get(base, "include")->position, depth, &merged);
        if (k == 0 && !merged) {
                merged = node_new_mapping();
                k = merged ? 0 : err_set_nomem(r->err);
        }
        if (k == 0) {
                merged->position = base->position;
                k = lay_over(merged, &keys, r->err);
        }
        key_table_done(&manifest_base_table, &keys);
        if (k == 0)
                *ret = TAKE_PTR(merged);
        return k;
}

/* ---- arms and points ---- */

static int read_arms(struct manifest_reader *r)
{
        const struct key_tables *tables = &r->keys.arms;
        const struct override_keys *keys = tables->entries;
        struct manifest *m = r->m;

        m->arms = calloc(tables->n, sizeof(*m->arms));
        if (!m->arms)
                return err_set_nomem(r->err);
        for (size_t i = 0; i < tables->n; i++) {
                struct manifest_arm *arm = &m->arms[m->n_arms++];

                arm->control = (enum control_kind)keys[i].control;
                arm->name = strdup(tables->names[i]);
                arm->overrides = node_new_mapping();
                if (!arm->name || !arm->overrides)
                        return err_set_nomem(r->err);
                if (lay_over(arm->overrides, &keys[i], r->err) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int read_points(struct manifest_reader *r)
{
        const struct key_tables *tables = &r->keys.points;
        const struct override_keys *keys = tables->entries;
        struct manifest *m = r->m;

        m->points = calloc(tables->n, sizeof(*m->points));
        if (!m->points)
                return err_set_nomem(r->err);
        for (size_t i = 0; i < tables->n; i++) {
                struct manifest_point *point = &m->points[m->n_points++];

                point->name = strdup(tables->names[i]);
                point->overrides = node_new_mapping();
                if (!point->name || !point->overrides)
                        return err_set_nomem(r->err);
                if (lay_over(point->overrides, &keys[i], r->err) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* ---- which cells there are ---- */

/* Marks in @has the points that `cells` gives to one arm. */
static int mark_points(struct manifest_reader *r, const char *arm, const struct node *list, bool *has)
{
        struct key_tables *points = &r->keys.points;

        if (list->kind == NODE_SCALAR && streq(list->scalar, "all")) {
                memset(has, true, points->n);
                return 0;
        }
        if (list->kind != NODE_SEQUENCE || list->n_items == 0)
                return err_set_at(r->err, ERR_USAGE, &list->position,
                                  "cells.%s: expected \"all\" or a list of points such as [idle]", arm);
        for (size_t i = 0; i < list->n_items; i++) {
                const struct node *item = list->items[i];
                size_t at = 0;

                while (item->scalar && at < points->n && !streq(points->names[at], item->scalar))
                        at++;
                if (!item->scalar)
                        return err_set_at(r->err, ERR_USAGE, &item->position, "cells.%s: expected the name of a point",
                                          arm);
                if (at == points->n)
                        return key_unknown(&item->position, "cells", "point", item->scalar,
                                           (const char *const *)points->names, points->n, r->err);
                if (has[at])
                        return err_set_at(r->err, ERR_USAGE, &item->position,
                                          "cells.%s: point \"%s\" stands here twice", arm, item->scalar);
                has[at] = true;
        }
        return 0;
}

/* Makes @ret_has, a flag for each arm and point: whether that cell exists. */
static int read_grid(struct manifest_reader *r, bool **ret_has)
{
        const struct key_tables *arms = &r->keys.arms, *points = &r->keys.points;
        const struct node *cells = r->keys.cells;
        _cleanup_free_ bool *has = calloc(arms->n * points->n, sizeof(*has));

        if (!has)
                return err_set_nomem(r->err);
        if (!cells)
                memset(has, true, arms->n * points->n);
        for (size_t i = 0; cells && i < cells->n_items; i++) {
                size_t arm = 0;
                int k;

                while (arm < arms->n && !streq(arms->names[arm], cells->keys[i]))
                        arm++;
                if (arm == arms->n)
                        return err_negative(key_unknown(&cells->key_positions[i], "cells", "arm", cells->keys[i],
                                                        (const char *const *)arms->names, arms->n, r->err));
                k = mark_points(r, cells->keys[i], cells->items[i], has + arm * points->n);
                if (k < 0)
                        return k;
        }
        *ret_has = TAKE_PTR(has);
        return 0;
}

/* An arm or a point without a cell would have overrides that nothing ever checks. */
static int check_grid(struct manifest_reader *r, const bool *has)
{
        const struct key_tables *arms = &r->keys.arms, *points = &r->keys.points;

        for (size_t arm = 0; arm < arms->n; arm++)
                if (!memchr(has + arm * points->n, true, points->n))
                        return err_set_at(r->err, ERR_USAGE, &arms->positions[arm],
                                          "arm \"%s\" has no cell; name it under \"cells\", or remove it",
                                          arms->names[arm]);
        for (size_t point = 0; point < points->n; point++) {
                bool used = false;

                for (size_t arm = 0; arm < arms->n; arm++)
                        used |= has[arm * points->n + point];
                if (!used)
                        return err_set_at(r->err, ERR_USAGE, &points->positions[point],
                                          "point \"%s\" has no cell; name it under \"cells\", or remove it",
                                          points->names[point]);
        }
        return 0;
}

/* Makes @ret_keeps, a flag for each point: whether `short` keeps it. Its names are checked in every form. */
static int read_short_points(struct manifest_reader *r, bool **ret_keeps)
{
        const struct key_names *names = &r->shortened.points;
        const struct key_tables *points = &r->keys.points;
        const struct node *list = node_at(r->root, "short.points");
        _cleanup_free_ bool *keeps = calloc(points->n, sizeof(*keeps));

        if (!keeps)
                return err_set_nomem(r->err);
        if (!list || !r->options->is_short)
                memset(keeps, true, points->n);
        for (size_t i = 0; list && i < names->n; i++) {
                size_t at = 0;

                while (at < points->n && !streq(points->names[at], names->names[i]))
                        at++;
                if (at == points->n)
                        return key_unknown(&list->items[i]->position, "short.points", "point", names->names[i],
                                           (const char *const *)points->names, points->n, r->err);
                keeps[at] = true;
        }
        *ret_keeps = TAKE_PTR(keeps);
        return 0;
}

/* ---- the configuration of a cell ---- */

static int check_kind(const struct node *config, const char *where, const char *what, const struct kind *kinds,
                      size_t n_kinds, const struct kind **ret, struct err *err)
{
        const struct node *name = node_get(config, "kind");
        const char *names[64];
        size_t n = 0;

        if (config->kind != NODE_MAPPING)
                return err_set_at(err, ERR_USAGE, &config->position, "%s: expected a mapping with the key \"kind\"",
                                  where);
        for (size_t i = 0; i < n_kinds; i++) {
                if (name && name->scalar && streq(kinds[i].name, name->scalar)) {
                        *ret = &kinds[i];
                        return key_table_check(kinds[i].table, config, where, err);
                }
                if (n < ARRAY_SIZE(names))
                        names[n++] = kinds[i].name;
        }
        if (!name || !name->scalar)
                return err_set_at(err, ERR_USAGE, name ? &name->position : &config->position,
                                  "%s: key \"kind\" is missing; it says which %s this is", where, what);
        return key_unknown(&name->position, where, what, name->scalar, names, n, err);
}

static int note_file(const struct node *file, void *userdata)
{
        const struct manifest_input *input;

        return read_input(userdata, file->scalar, &file->position, &input);
}

/* Checks one boundary or workload of a cell; its files become inputs where the cell is kept. */
static int check_part(struct manifest_reader *r, const struct node *config, const char *where, bool is_boundary,
                      bool is_kept)
{
        const struct kind *kind = NULL;
        int k;

        if (is_boundary)
                k = check_kind(config, where, "boundary", r->kinds->boundaries, r->kinds->n_boundaries, &kind, r->err);
        else
                k = check_kind(config, where, "workload", r->kinds->workloads, r->kinds->n_workloads, &kind, r->err);
        return k == 0 && is_kept ? key_table_files(kind->table, config, note_file, r) : k;
}

static int check_background(struct manifest_reader *r, const struct node *background, bool is_kept)
{
        for (size_t i = 0; background && i < background->n_items; i++) {
                char where[256];
                int k;

                if (!text_is_name(background->keys[i]))
                        return err_set_at(r->err, ERR_USAGE, &background->key_positions[i],
                                          "background: \"%.64s\" is not a name (a-z, 0-9, \".\" and \"-\", at most 64)",
                                          background->keys[i]);
                snprintf(where, sizeof(where), "background.%s", background->keys[i]);
                k = check_part(r, background->items[i], where, false, is_kept);
                if (k < 0)
                        return k;
        }
        return 0;
}

static int check_config(struct manifest_reader *r, const struct node *config, bool is_kept)
{
        static const char *const parts[] = {"boundary", "workload"};
        const struct node *background = node_get(config, "background");
        int k;

        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                const struct node *part = node_get(config, parts[i]);

                if (!part)
                        return err_set_at(r->err, ERR_USAGE, &config->position, "key \"%s\" is missing", parts[i]);
                k = check_part(r, part, parts[i], i == 0, is_kept);
                if (k < 0)
                        return k;
        }
        if (background && background->kind != NODE_MAPPING)
                return err_set_at(r->err, ERR_USAGE, &background->position,
                                  "background: expected a mapping of names to workloads");
        k = check_background(r, background, is_kept);
        return k == 0 ? r->kinds->check_cell(config, r->err) : k;
}

static int merge_config(struct manifest_reader *r, size_t arm, size_t point, bool is_kept, struct node **ret)
{
        _cleanup_node_ struct node *config = node_copy(r->m->base);
        int k = 0;

        if (!config || node_merge(config, r->m->arms[arm].overrides) < 0 ||
            node_merge(config, r->m->points[point].overrides) < 0)
                return err_set_nomem(r->err);
        if (is_kept && r->options->is_short)
                k = lay_over(config, &r->shortened, r->err);
        if (k == 0 && is_kept)
                k = manifest_override_config(r, config);
        if (k < 0)
                return k;

        r->n_values += node_count(config);
        if (r->n_values > MANIFEST_VALUES_MAX)
                return err_set_at(r->err, ERR_USAGE, &r->root->position,
                                  "the configurations of all cells have more than %d values together",
                                  MANIFEST_VALUES_MAX);
        *ret = TAKE_PTR(config);
        return 0;
}

static int count_values(struct manifest_reader *r, const struct node *config, int64_t *ret)
{
        struct trial_estimate estimate;
        int k = r->kinds->estimate(config, &estimate, r->err);

        if (k >= 0)
                *ret = estimate.values;
        return k;
}

static int add_cell(struct manifest_reader *r, size_t arm, size_t point, bool is_kept)
{
        struct manifest *m = r->m;
        struct manifest_cell *cell = &m->cells[m->n_cells];
        struct cell_size *size = &r->sizes[m->n_cells];
        int k;

        *cell = (struct manifest_cell){.arm = arm, .point = point};
        *size = (struct cell_size){.short_values = INT64_MAX};
        r->is_kept[m->n_cells++] = is_kept;
        cell->name = text_format("%s/%s", m->arms[arm].name, m->points[point].name);
        if (!cell->name)
                return err_set_nomem(r->err);
        k = merge_config(r, arm, point, is_kept, &cell->config);
        if (k >= 0)
                k = check_config(r, cell->config, is_kept);
        if (k >= 0)
                k = count_values(r, cell->config, &size->values);
        if (k < 0)
                err_prefix(r->err, "cell %s", cell->name);
        return k;
}

/* What `short` would make of the cell added last has to be right in the long form too: a mistake is not found first on
 * the day that somebody runs the short one. */
static int check_shortened(struct manifest_reader *r, size_t arm, size_t point)
{
        const struct manifest *m = r->m;
        _cleanup_node_ struct node *config = node_copy(m->base);
        int k;

        if (!config || node_merge(config, m->arms[arm].overrides) < 0 ||
            node_merge(config, m->points[point].overrides) < 0 || lay_over(config, &r->shortened, r->err) < 0)
                return err_set_nomem(r->err);
        k = check_config(r, config, false);
        if (k >= 0)
                k = count_values(r, config, &r->sizes[m->n_cells - 1].short_values);
        if (k < 0)
                err_prefix(r->err, "short: cell %s/%s", m->arms[arm].name, m->points[point].name);
        return k;
}

static bool is_in_short(const struct manifest_reader *r, size_t point)
{
        const struct key_names *names = &r->shortened.points;

        for (size_t i = 0; i < names->n; i++)
                if (streq(names->names[i], r->m->points[point].name))
                        return true;
        return names->n == 0;
}

static int make_cells(struct manifest_reader *r, const bool *has, const bool *keeps)
{
        struct manifest *m = r->m;
        size_t n = 0;
        int k;

        for (size_t i = 0; i < m->n_arms * m->n_points; i++)
                n += has[i];
        if (n > MANIFEST_CELLS_MAX)
                return err_set_at(r->err, ERR_USAGE, &r->root->position, "%zu cells; at most %d are allowed", n,
                                  MANIFEST_CELLS_MAX);
        m->cells = calloc(n, sizeof(*m->cells));
        r->is_kept = calloc(n, sizeof(*r->is_kept));
        r->sizes = calloc(n, sizeof(*r->sizes));
        if (!m->cells || !r->is_kept || !r->sizes)
                return err_set_nomem(r->err);
        for (size_t arm = 0; arm < m->n_arms; arm++)
                for (size_t point = 0; point < m->n_points; point++) {
                        if (!has[arm * m->n_points + point])
                                continue;
                        k = add_cell(r, arm, point, keeps[point]);
                        if (k == 0 && r->keys.shortened && !r->options->is_short && is_in_short(r, point))
                                k = check_shortened(r, arm, point);
                        if (k < 0)
                                return k;
                }
        return 0;
}

int manifest_read_cells(struct manifest_reader *r)
{
        _cleanup_free_ bool *has = NULL, *keeps = NULL;
        int k;

        k = read_base(r, r->keys.base, 0, &r->m->base);
        if (k >= 0)
                k = read_arms(r);
        if (k >= 0)
                k = read_points(r);
        if (k >= 0)
                k = read_grid(r, &has);
        if (k >= 0)
                k = check_grid(r, has);
        if (k >= 0)
                k = read_short_points(r, &keeps);
        if (k >= 0)
                k = make_cells(r, has, keeps);
        return k;
}

/* ---- keeping some ---- */

static void renumber(struct manifest_operand *operand, const size_t *new)
{
        operand->cell = new[operand->cell];
        operand->base = new[operand->base];
}

static void renumber_rules(struct manifest_rule *rules, size_t n, const size_t *new)
{
        for (size_t i = 0; i < n; i++) {
                renumber(&rules[i].of, new);
                renumber(&rules[i].versus, new);
        }
}

int manifest_keep_cells(struct manifest_reader *r)
{
        struct manifest *m = r->m;
        _cleanup_free_ size_t *new = calloc(m->n_cells, sizeof(*new));
        size_t kept = 0;

        if (!new)
                return err_set_nomem(r->err);
        for (size_t i = 0; i < m->n_cells; i++) {
                new[i] = kept;
                if (r->is_kept[i]) {
                        struct manifest_cell cell = m->cells[i];

                        m->cells[i] = m->cells[kept];
                        m->cells[kept++] = cell;
                }
        }
        while (m->n_cells > kept) {
                m->n_cells--;
                free(m->cells[m->n_cells].name);
                node_free(m->cells[m->n_cells].config);
        }
        for (size_t i = 0; i < m->n_hypotheses; i++)
                renumber_rules(m->hypotheses[i].rules, m->hypotheses[i].n_rules, new);
        for (size_t i = 0; i < m->n_controls; i++)
                renumber_rules(m->controls[i].rules, m->controls[i].n_rules, new);

        if ((uint64_t)kept * (m->rounds + m->warmup_rounds) > MANIFEST_TRIALS_MAX)
                return err_set_at(r->err, ERR_USAGE, &r->root->position,
                                  "%zu cells in %u rounds are more than %d trials", kept, m->rounds + m->warmup_rounds,
                                  MANIFEST_TRIALS_MAX);
        return 0;
}
