/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/manifest.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/file.h"
#include "base/macro.h"
#include "evidence/manifest-internal.h"
#include "seal/digest.h"

/* Reading a manifest from top to bottom: its counts, then its cells (manifest-cell.c), then its rules
 * (manifest-rule.c).
 */

/* The keys of a manifest that `short` and the command line may give another value. */
static const char *const counts[] = {"rounds", "warmup-rounds", "campaigns", "seed"};

/* The keys whose configuration the command line may change. */
static const char *const configurations[] = {"boundary", "workload", "background"};

static bool is_one_of(const char *name, size_t len, const char *const *names, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (strlen(names[i]) == len && strncmp(names[i], name, len) == 0)
                        return true;
        return false;
}

/* ---- overrides ---- */

static int put_copy(struct node *into, const char *key, const struct position *at, const struct node *value,
                    struct err *err)
{
        _cleanup_node_ struct node *copy = node_copy(value);

        if (!copy || node_put(into, key, at, copy) < 0)
                return err_set_nomem(err);
        TAKE_PTR(copy);
        return 0;
}

/* Lays what `short` says of the counts over the top of the manifest, where the table of its keys reads them. */
static int short_counts(struct manifest_reader *r)
{
        const struct node *shortened = node_get(r->root, "short");

        if (!shortened)
                return err_set_at(r->err, ERR_USAGE, &r->root->position,
                                  "there is no short form: key \"short\" is missing");
        for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
                const struct node *value = node_get(shortened, counts[i]);
                int k = value ? put_copy(r->root, counts[i], NULL, value, r->err) : 0;

                if (k < 0)
                        return k;
        }
        return 0;
}

/* Takes a "path=value" apart: @ret_path is a copy of the path, @position names the override in errors. */
static int override_split(const char *override, char **ret_path, const char **ret_value, struct position *position,
                          struct err *err)
{
        const char *equals = strchr(override, '=');

        *position = (struct position){0};
        snprintf(position->file, sizeof(position->file), "--set %s", override);
        if (!text_is_utf8(override, strlen(override)))
                return err_set_at(err, ERR_USAGE, NULL, "--set: an override that is not UTF-8");
        for (const char *p = override; *p; p++)
                if ((unsigned char)*p < 0x20 || *p == 0x7f)
                        return err_set_at(err, ERR_USAGE, NULL, "--set: an override with a control character");
        if (!equals)
                return err_set_at(err, ERR_USAGE, position, "expected path=value, such as workload.duration=5s");
        *ret_value = equals + 1;
        *ret_path = strndup(override, (size_t)(equals - override));
        return *ret_path ? 0 : err_set_nomem(err);
}

/* Lays one override over the counts, or checks that it is one of a configuration, to which each cell applies it. */
static int override_count(struct manifest_reader *r, const char *override)
{
        _cleanup_free_ char *path = NULL;
        struct position position;
        const char *value;
        int k;

        k = override_split(override, &path, &value, &position, r->err);
        if (k < 0)
                return k;
        if (is_one_of(path, strlen(path), counts, ARRAY_SIZE(counts)))
                return node_set(r->root, path, value, &position, r->err);
        if (is_one_of(path, strcspn(path, "."), configurations, ARRAY_SIZE(configurations)))
                return 0;
        return err_set_at(
                r->err, ERR_USAGE, &position,
                "cannot set \"%.64s\"; expected rounds, warmup-rounds, campaigns, seed, or a path that begins "
                "with boundary, workload or background",
                path);
}

int manifest_override_config(struct manifest_reader *r, struct node *config)
{
        for (size_t i = 0; i < r->options->n_overrides; i++) {
                _cleanup_free_ char *path = NULL;
                struct position position;
                const char *value;
                int k;

                k = override_split(r->options->overrides[i], &path, &value, &position, r->err);
                if (k == 0 && !is_one_of(path, strlen(path), counts, ARRAY_SIZE(counts)))
                        k = node_set(config, path, value, &position, r->err);
                if (k < 0)
                        return k;
        }
        return 0;
}

/* ---- the top ---- */

static const struct position *position_of(const struct manifest_reader *r, const char *key)
{
        const struct node *value = node_get(r->root, key);

        return value ? &value->position : &r->root->position;
}

/* Rounds that campaigns do not divide: where the one stands that the command line set, else the campaigns. */
static int check_campaigns(struct manifest_reader *r)
{
        long long rounds = r->keys.rounds, campaigns = r->keys.campaigns;
        const struct position *at = position_of(r, "rounds");

        if (at->line > 0)
                at = position_of(r, "campaigns");
        if (rounds % campaigns != 0)
                return err_set_at(r->err, ERR_USAGE, at, "rounds: %lld is not a multiple of campaigns, %lld", rounds,
                                  campaigns);
        if (rounds / campaigns < 6)
                return err_set_at(r->err, ERR_USAGE, at,
                                  "rounds: %lld rounds in %lld campaigns are %lld each; each needs 6 at least", rounds,
                                  campaigns, rounds / campaigns);
        return 0;
}

static int check_counts(struct manifest_reader *r)
{
        const struct manifest_keys *keys = &r->keys;

        if (keys->hypotheses.n == 0)
                return err_set_at(r->err, ERR_USAGE, position_of(r, "hypotheses"),
                                  "hypotheses: none; expected at least one");
        if (keys->arms.n == 0 || keys->points.n == 0)
                return err_set_at(r->err, ERR_USAGE, position_of(r, keys->arms.n == 0 ? "arms" : "points"),
                                  "%s: none; expected at least one", keys->arms.n == 0 ? "arms" : "points");
        return check_campaigns(r);
}

/* What needs no other part of the manifest. */
static void take_simple(struct manifest_reader *r)
{
        struct manifest_keys *keys = &r->keys;

        r->m->id = TAKE_PTR(keys->id);
        r->m->title = TAKE_PTR(keys->title);
        r->m->rounds = (uint32_t)keys->rounds;
        r->m->warmup_rounds = (uint32_t)keys->warmup_rounds;
        r->m->campaigns = (uint32_t)keys->campaigns;
        r->m->seed = (uint64_t)keys->seed;
        r->m->caveats = keys->caveats.names;
        r->m->n_caveats = keys->caveats.n;
        keys->caveats = (struct key_names){0};
}

static int read_top(struct manifest_reader *r)
{
        int k;

        k = r->options->is_short ? short_counts(r) : 0;
        for (size_t i = 0; k == 0 && i < r->options->n_overrides; i++)
                k = override_count(r, r->options->overrides[i]);
        if (k == 0)
                k = key_table_read(&manifest_table, r->root, "", &r->keys, r->err);
        if (k == 0)
                k = check_counts(r);
        if (k == 0 && r->keys.shortened)
                k = key_table_read(&manifest_short_table, r->keys.shortened, "short", &r->shortened, r->err);
        if (k < 0)
                return k;
        take_simple(r);
        return 0;
}

static void reader_done(struct manifest_reader *r)
{
        key_table_done(&manifest_table, &r->keys);
        key_table_done(&manifest_short_table, &r->shortened);
        node_free(r->root);
        free(r->is_kept);
        free(r->sizes);
        manifest_free(r->m);
}

static int take_bytes(struct manifest *m, struct span bytes, const char *name, struct err *err)
{
        struct digest digest;
        int r;

        m->path = strdup(name);
        m->data = malloc(bytes.len + 1);
        if (!m->path || !m->data)
                return err_set_nomem(err);
        if (bytes.len > 0)
                memcpy(m->data, bytes.data, bytes.len);
        m->data[bytes.len] = '\0';
        m->len = bytes.len;
        r = digest_of_bytes(bytes, &digest, err);
        if (r == 0)
                digest_format(&digest, m->sha256);
        return r;
}

int manifest_parse(struct span bytes, const char *name, int inputs_dirfd, const struct kinds *kinds,
                   const struct manifest_options *options, struct manifest **ret, struct err *err)
{
        static const struct manifest_options none;
        _cleanup_(reader_done) struct manifest_reader r = {
                .kinds = kinds,
                .options = options ? options : &none,
                .name = name,
                .inputs_dirfd = inputs_dirfd,
                .err = err,
        };
        int k;

        r.m = calloc(1, sizeof(*r.m));
        if (!r.m)
                return err_set_nomem(err);
        k = node_parse(bytes, name, NULL, &r.root, err);
        if (k == 0)
                k = take_bytes(r.m, bytes, name, err);
        if (k == 0)
                k = read_top(&r);
        if (k == 0)
                k = manifest_read_cells(&r);
        if (k == 0)
                k = manifest_read_rules(&r);
        if (k == 0)
                k = manifest_keep_cells(&r);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(r.m);
        return 0;
}

int manifest_load(int dirfd, const char *path, const struct kinds *kinds, const struct manifest_options *options,
                  struct manifest **ret, struct err *err)
{
        const char *slash = strrchr(path, '/'), *below = options && options->inputs ? options->inputs : ".";
        _cleanup_free_ char *folder = NULL, *bytes = NULL;
        _cleanup_close_ int inputs = -1;
        size_t len;
        int r;

        r = file_read(dirfd, path, node_limits_default.bytes, &bytes, &len, err);
        if (r < 0)
                return r;
        folder = text_format("%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, below);
        if (!folder)
                return err_set_nomem(err);
        inputs = openat(dirfd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (inputs < 0 && errno != ENOENT) /* a manifest that includes nothing needs no such folder */
                return err_set_errno(err, ERR_IO, errno, "cannot open the folder %s", folder);
        return manifest_parse(span_of(bytes, len), path, inputs, kinds, options, ret, err);
}

const struct manifest_input *manifest_find_input(const struct manifest *manifest, const char *path)
{
        for (size_t i = 0; i < manifest->n_inputs; i++)
                if (streq(manifest->inputs[i].path, path))
                        return &manifest->inputs[i];
        return NULL;
}

static void free_lists(struct manifest *m)
{
        for (size_t i = 0; i < m->n_inputs; i++) {
                free(m->inputs[i].path);
                free(m->inputs[i].data);
        }
        for (size_t i = 0; i < m->n_caveats; i++)
                free(m->caveats[i]);
        for (size_t i = 0; i < m->n_unjudged; i++)
                free(m->unjudged[i]);
        free(m->inputs);
        free(m->caveats);
        free(m->unjudged);
}

void manifest_free(struct manifest *m)
{
        if (!m)
                return;
        for (size_t i = 0; i < m->n_arms; i++) {
                free(m->arms[i].name);
                node_free(m->arms[i].overrides);
        }
        for (size_t i = 0; i < m->n_points; i++) {
                free(m->points[i].name);
                node_free(m->points[i].overrides);
        }
        for (size_t i = 0; i < m->n_cells; i++) {
                free(m->cells[i].name);
                node_free(m->cells[i].config);
        }
        for (size_t i = 0; i < m->n_hypotheses; i++) {
                free(m->hypotheses[i].name);
                free(m->hypotheses[i].claim);
                manifest_rules_free(m->hypotheses[i].rules, m->hypotheses[i].n_rules);
        }
        for (size_t i = 0; i < m->n_controls; i++)
                manifest_rules_free(m->controls[i].rules, m->controls[i].n_rules);
        free_lists(m);
        free(m->arms);
        free(m->points);
        free(m->cells);
        free(m->hypotheses);
        free(m->controls);
        node_free(m->base);
        free(m->path);
        free(m->data);
        free(m->id);
        free(m->title);
        free(m);
}
