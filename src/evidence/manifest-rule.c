/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "base/macro.h"
#include "evidence/manifest-internal.h"
#include "stats/quantile.h"

/* Hypotheses, controls and their rules. */

enum unit manifest_rule_unit(const struct manifest_rule *rule)
{
        static const enum unit units[] = {
                [METRIC_NS] = UNIT_DURATION, [METRIC_PS] = UNIT_PICOSECONDS, [METRIC_PPB] = UNIT_PROPORTION,
                [METRIC_COUNT] = UNIT_COUNT, [METRIC_BPS] = UNIT_RATE,
        };

        return rule->form == RULE_RATIO || rule->of.is_growth ? UNIT_RATIO : units[rule->metric->unit];
}

void manifest_rules_free(struct manifest_rule *rules, size_t n)
{
        for (size_t i = 0; i < n; i++)
                free(rules[i].text);
        free(rules);
}

/* ---- operands ---- */

static int read_cell(struct manifest_reader *r, const struct node *node, const char *where, size_t *ret)
{
        const struct key_tables *arms = &r->keys.arms, *points = &r->keys.points;
        const char *arm, *point;
        size_t a = 0, p = 0;

        if (node->kind != NODE_SEQUENCE || node->n_items != 2 || !node->items[0]->scalar || !node->items[1]->scalar)
                return err_set_at(r->err, ERR_USAGE, &node->position,
                                  "%s: expected a cell [arm, point], or {growth: [[arm, point], [arm, point]]}", where);
        arm = node->items[0]->scalar;
        point = node->items[1]->scalar;
        while (a < arms->n && !streq(arms->names[a], arm))
                a++;
        if (a == arms->n)
                return key_unknown(&node->items[0]->position, where, "arm", arm, (const char *const *)arms->names,
                                   arms->n, r->err);
        while (p < points->n && !streq(points->names[p], point))
                p++;
        if (p == points->n)
                return key_unknown(&node->items[1]->position, where, "point", point, (const char *const *)points->names,
                                   points->n, r->err);
        for (size_t i = 0; i < r->m->n_cells; i++)
                if (r->m->cells[i].arm == a && r->m->cells[i].point == p) {
                        *ret = i;
                        return 0;
                }
        return err_set_at(r->err, ERR_USAGE, &node->position, "%s: there is no cell %s/%s; \"cells\" leaves it out",
                          where, arm, point);
}

static int read_operand(struct manifest_reader *r, const struct node *node, const char *where,
                        struct manifest_operand *ret)
{
        const struct node *growth = node_get(node, "growth");
        int k;

        ret->is_growth = node->kind == NODE_MAPPING;
        if (!ret->is_growth)
                return read_cell(r, node, where, &ret->cell);
        if (!growth || node->n_items != 1 || growth->kind != NODE_SEQUENCE || growth->n_items != 2)
                return err_set_at(r->err, ERR_USAGE, &node->position,
                                  "%s: expected {growth: [[arm, point], [arm, point]]}", where);
        k = read_cell(r, growth->items[0], where, &ret->cell);
        if (k == 0)
                k = read_cell(r, growth->items[1], where, &ret->base);
        if (k == 0 && ret->cell == ret->base)
                return err_set_at(r->err, ERR_USAGE, &node->position, "%s: the growth of a cell over itself", where);
        return k;
}

static const struct kind *workload_of(const struct manifest_reader *r, size_t cell)
{
        const char *name = node_scalar_at(r->m->cells[cell].config, "workload.kind");

        for (size_t i = 0; name && i < r->kinds->n_workloads; i++)
                if (streq(r->kinds->workloads[i].name, name))
                        return &r->kinds->workloads[i];
        return NULL;
}

/* The cells that a rule names: one to four. */
static size_t rule_cells(const struct manifest_rule *rule, size_t cells[static 4])
{
        size_t n = 0;

        cells[n++] = rule->of.cell;
        if (rule->of.is_growth)
                cells[n++] = rule->of.base;
        if (rule->form != RULE_VALUE)
                cells[n++] = rule->versus.cell;
        if (rule->form != RULE_VALUE && rule->versus.is_growth)
                cells[n++] = rule->versus.base;
        return n;
}

static bool is_rule_kept(const struct manifest_reader *r, const struct manifest_rule *rule)
{
        size_t cells[4], n = rule_cells(rule, cells);

        for (size_t i = 0; i < n; i++)
                if (!r->is_kept[cells[i]])
                        return false;
        return true;
}

static int read_metric(struct manifest_reader *r, const struct node *node, const char *where, const char *name,
                       struct manifest_rule *rule)
{
        const struct kind *kind = workload_of(r, rule->of.cell);
        const char *names[64];
        size_t cells[4], n_cells = rule_cells(rule, cells), n = 0;

        for (size_t i = 1; i < n_cells; i++)
                if (workload_of(r, cells[i]) != kind)
                        return err_set_at(r->err, ERR_USAGE, &rule->position,
                                          "%s: the workloads of %s and %s differ in kind, so their metrics cannot be "
                                          "compared",
                                          where, r->m->cells[cells[0]].name, r->m->cells[cells[i]].name);
        for (const struct metric *metric = kind ? kind->metrics : NULL; metric && metric->name; metric++) {
                if (streq(metric->name, name)) {
                        rule->metric = metric;
                        return 0;
                }
                if (n < ARRAY_SIZE(names))
                        names[n++] = metric->name;
        }
        return key_unknown(&node_get(node, "metric")->position, where, "metric", name, names, n, r->err);
}

/* A quantile that no trial has values enough for would never have a number, whatever is measured. */
static int check_values(struct manifest_reader *r, const struct node *node, const char *where,
                        const struct manifest_rule *rule)
{
        uint64_t needed = quantile_needed(rule->metric->ppm);
        size_t cells[4], n = rule_cells(rule, cells);

        if (rule->metric->source != METRIC_QUANTILE || !is_rule_kept(r, rule))
                return 0;
        for (size_t i = 0; i < n; i++) {
                const struct cell_size *size = &r->sizes[cells[i]];
                bool is_short = r->options->is_short || (uint64_t)size->values >= needed;
                int64_t values = MIN(size->values, size->short_values);

                if ((uint64_t)values < needed)
                        return err_set_at(r->err, ERR_USAGE, &node_get(node, "metric")->position,
                                          "%s: %s needs %" PRIu64 " values in a trial, and a trial of %s has %" PRId64
                                          "%s; make it longer, or judge a lower percentile",
                                          where, rule->metric->name, needed, r->m->cells[cells[i]].name, values,
                                          is_short ? " in the short form" : "");
        }
        return 0;
}

/* ---- bounds ---- */

static const struct {
        enum rule_form form;
        bool has_low, has_high;
} bound_forms[N_BOUNDS] = {
        [BOUND_AT_MOST] = {RULE_VALUE, false, true},
        [BOUND_AT_LEAST] = {RULE_VALUE, true, false},
        [BOUND_WITHIN] = {RULE_VALUE, true, true},
        [BOUND_RATIO_AT_MOST] = {RULE_RATIO, false, true},
        [BOUND_RATIO_AT_LEAST] = {RULE_RATIO, true, false},
        [BOUND_RATIO_WITHIN] = {RULE_RATIO, true, true},
        [BOUND_DIFFERENCE_AT_MOST] = {RULE_DIFFERENCE, false, true},
        [BOUND_DIFFERENCE_AT_LEAST] = {RULE_DIFFERENCE, true, false},
        [BOUND_DIFFERENCE_WITHIN] = {RULE_DIFFERENCE, true, true},
};

/* Which of the keys that bound is there: exactly one has to be. */
static int find_bound(struct manifest_reader *r, const struct rule_keys *keys, const char *where,
                      const struct position *at, enum rule_bound *ret)
{
        size_t found = N_BOUNDS;

        for (size_t i = 0; i < N_BOUNDS; i++) {
                if (!keys->bounds[i])
                        continue;
                if (found < N_BOUNDS)
                        return err_set_at(r->err, ERR_USAGE, at, "%s: both %s and %s; a rule has one bound", where,
                                          rule_bound_names[found], rule_bound_names[i]);
                found = i;
        }
        if (found == N_BOUNDS)
                return err_set_at(r->err, ERR_USAGE, at,
                                  "%s: no bound; expected at_most, at_least or within, alone or after \"ratio_\" or "
                                  "\"difference_\"",
                                  where);
        *ret = (enum rule_bound)found;
        return 0;
}

static int read_bound_value(struct manifest_reader *r, const struct manifest_rule *rule, const struct node *node,
                            const char *where, int64_t *ret)
{
        struct err reason = {0};
        int64_t value = 0;
        int k;

        if (!node->scalar)
                return err_set_at(r->err, ERR_USAGE, &node->position, "%s: expected %s", where,
                                  unit_expected(manifest_rule_unit(rule)));
        k = unit_parse(manifest_rule_unit(rule), node->scalar, &value, &reason);
        if (k < 0)
                return err_set_at(r->err, ERR_USAGE, &node->position, "%s: %s", where, reason.text);
        if (value < 0 && rule->form != RULE_DIFFERENCE)
                return err_set_at(r->err, ERR_USAGE, &node->position, "%s: %.64s is below 0, which no %s is", where,
                                  node->scalar, rule->form == RULE_RATIO ? "ratio" : "value");
        *ret = value;
        return 0;
}

static int read_bound(struct manifest_reader *r, struct manifest_rule *rule, const struct node *node, const char *where)
{
        int k;

        if (!rule->has_low || !rule->has_high)
                return read_bound_value(r, rule, node, where, rule->has_low ? &rule->low : &rule->high);
        if (node->kind != NODE_SEQUENCE || node->n_items != 2)
                return err_set_at(r->err, ERR_USAGE, &node->position, "%s: expected a list of two values, [low, high]",
                                  where);
        k = read_bound_value(r, rule, node->items[0], where, &rule->low);
        if (k == 0)
                k = read_bound_value(r, rule, node->items[1], where, &rule->high);
        if (k == 0 && rule->low > rule->high)
                return err_set_at(r->err, ERR_USAGE, &node->position, "%s: %.64s is above %.64s; expected [low, high]",
                                  where, node->items[0]->scalar, node->items[1]->scalar);
        return k;
}

/* ---- the text of a rule ---- */

static void add_operand(const struct manifest *m, const struct manifest_operand *operand, struct text *text)
{
        if (operand->is_growth)
                text_addf(text, "(%s over %s)", m->cells[operand->cell].name, m->cells[operand->base].name);
        else
                text_add(text, m->cells[operand->cell].name);
}

static char *rule_text(const struct manifest *m, const struct manifest_rule *rule)
{
        static const char *const versus[] = {[RULE_VALUE] = "", [RULE_RATIO] = " over ", [RULE_DIFFERENCE] = " less "};
        char low[48], high[48];
        struct text text = {0};

        text_addf(&text, "%s of ", rule->metric->name);
        add_operand(m, &rule->of, &text);
        text_add(&text, versus[rule->form]);
        if (rule->form != RULE_VALUE)
                add_operand(m, &rule->versus, &text);
        unit_format(manifest_rule_unit(rule), rule->low, low);
        unit_format(manifest_rule_unit(rule), rule->high, high);
        if (rule->has_low && rule->has_high)
                text_addf(&text, " from %s to %s", low, high);
        else if (rule->has_low)
                text_addf(&text, " at least %s", low);
        else
                text_addf(&text, " at most %s", high);
        return text_take(&text);
}

/* ---- a rule ---- */

/* What the form asks for, and what it does not allow. */
static int check_form(struct manifest_reader *r, const struct rule_keys *keys, const struct manifest_rule *rule,
                      const char *where)
{
        if (rule->form == RULE_VALUE && keys->versus)
                return err_set_at(r->err, ERR_USAGE, &keys->versus->position,
                                  "%s: \"versus\" needs a bound that begins with \"ratio_\" or \"difference_\"", where);
        if (rule->form != RULE_VALUE && !keys->versus)
                return err_set_at(r->err, ERR_USAGE, &rule->position,
                                  "%s: key \"versus\" is missing; expected the cell that \"of\" is compared with",
                                  where);
        if (rule->form == RULE_VALUE && rule->of.is_growth)
                return err_set_at(r->err, ERR_USAGE, &keys->of->position,
                                  "%s: the growth of one cell over another is bounded by \"of\", \"versus\" and "
                                  "\"ratio_at_most\"; a growth is compared with a growth",
                                  where);
        return 0;
}

static int check_comparison(struct manifest_reader *r, const struct rule_keys *keys, const struct manifest_rule *rule,
                            const char *where)
{
        if (rule->form == RULE_VALUE)
                return 0;
        if (rule->of.is_growth != rule->versus.is_growth)
                return err_set_at(r->err, ERR_USAGE, &keys->versus->position,
                                  "%s: a growth is compared with a growth, a cell with a cell", where);
        if (rule->of.cell == rule->versus.cell && rule->of.base == rule->versus.base)
                return err_set_at(r->err, ERR_USAGE, &keys->versus->position, "%s: %s is compared with itself", where,
                                  r->m->cells[rule->of.cell].name);
        if (metric_is_pooled(rule->metric))
                return err_set_at(r->err, ERR_USAGE, &rule->position,
                                  "%s: %s is pooled over all rounds, so it has no ratio or difference; expected "
                                  "at_most, at_least or within",
                                  where, rule->metric->name);
        return 0;
}

static int read_campaigns_share(struct manifest_reader *r, const struct node *node, const char *where,
                                struct manifest_rule *rule)
{
        struct err reason = {0};
        int k;

        rule->campaigns_that_fail_at_most_ppb = -1;
        if (!node)
                return 0;
        if (!node->scalar)
                return err_set_at(r->err, ERR_USAGE, &node->position, "%s: campaigns-that-fail-at-most: expected %s",
                                  where, unit_expected(UNIT_PROPORTION));
        k = unit_parse(UNIT_PROPORTION, node->scalar, &rule->campaigns_that_fail_at_most_ppb, &reason);
        if (k < 0)
                return err_set_at(r->err, ERR_USAGE, &node->position, "%s: campaigns-that-fail-at-most: %s", where,
                                  reason.text);
        if (rule->campaigns_that_fail_at_most_ppb < 0)
                return err_set_at(r->err, ERR_USAGE, &node->position, "%s: campaigns-that-fail-at-most: below 0",
                                  where);
        if (r->m->campaigns < 2)
                return err_set_at(r->err, ERR_USAGE, &node->position,
                                  "%s: campaigns-that-fail-at-most needs \"campaigns\" to be 2 at least", where);
        return 0;
}

static int read_rule(struct manifest_reader *r, const struct rule_keys *keys, const struct node *node,
                     const char *where, struct manifest_rule *rule)
{
        enum rule_bound bound = 0;
        char path[256];
        int k;

        rule->position = node->position;
        rule->is_advisory = keys->is_advisory;
        k = find_bound(r, keys, where, &node->position, &bound);
        if (k < 0)
                return k;
        rule->form = bound_forms[bound].form;
        rule->has_low = bound_forms[bound].has_low;
        rule->has_high = bound_forms[bound].has_high;
        k = read_operand(r, keys->of, where, &rule->of);
        if (k == 0)
                k = check_form(r, keys, rule, where);
        if (k == 0 && keys->versus)
                k = read_operand(r, keys->versus, where, &rule->versus);
        if (k == 0)
                k = read_metric(r, node, where, keys->metric, rule);
        if (k == 0)
                k = check_values(r, node, where, rule);
        if (k == 0)
                k = check_comparison(r, keys, rule, where);
        if (k < 0)
                return k;
        snprintf(path, sizeof(path), "%s.%s", where, rule_bound_names[bound]);
        k = read_bound(r, rule, keys->bounds[bound], path);
        if (k == 0)
                k = read_campaigns_share(r, keys->campaigns_that_fail_at_most, where, rule);
        if (k < 0)
                return k;
        rule->text = rule_text(r->m, rule);
        return rule->text ? 0 : err_set_nomem(r->err);
}

static int note_unjudged(struct manifest_reader *r, char *text)
{
        char **unjudged = text ? reallocarray(r->m->unjudged, r->m->n_unjudged + 1, sizeof(*unjudged)) : NULL;

        if (!unjudged) {
                free(text);
                return err_set_nomem(r->err);
        }
        r->m->unjudged = unjudged;
        unjudged[r->m->n_unjudged++] = text;
        return 0;
}

/* Takes the rules out whose cells are not kept, and notes them as not judged. */
static int drop_rules(struct manifest_reader *r, const char *where, struct manifest_rule *rules, size_t *n)
{
        size_t kept = 0;
        int k = 0;

        for (size_t i = 0; i < *n; i++) {
                if (is_rule_kept(r, &rules[i])) {
                        rules[kept++] = rules[i];
                        continue;
                }
                if (k == 0)
                        k = note_unjudged(r, text_format("%s: %s", where, rules[i].text));
                free(rules[i].text);
        }
        *n = kept;
        return k;
}

/* Reads a list of rules. @ret and @ret_n are set on failure too, and belong to the caller. */
static int read_rules(struct manifest_reader *r, const struct node *list, const struct key_tables *tables,
                      const char *where, struct manifest_rule **ret, size_t *ret_n)
{
        const struct rule_keys *keys = tables->entries;

        *ret = calloc(MAX(tables->n, (size_t)1), sizeof(**ret));
        if (!*ret)
                return err_set_nomem(r->err);
        for (size_t i = 0; i < tables->n; i++) {
                const struct node *node = list->kind == NODE_MAPPING ? list : list->items[i];
                char path[256];
                int k;

                snprintf(path, sizeof(path), "%s[%zu]", where, i + 1);
                (*ret_n)++;
                k = read_rule(r, &keys[i], node, path, &(*ret)[i]);
                if (k < 0)
                        return k;
        }
        return 0;
}

/* ---- hypotheses ---- */

static bool decides(const struct manifest_rule *rules, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (!rules[i].is_advisory)
                        return true;
        return false;
}

static int read_hypothesis(struct manifest_reader *r, size_t index)
{
        const struct key_tables *tables = &r->keys.hypotheses;
        struct hypothesis_keys *keys = (struct hypothesis_keys *)tables->entries + index;
        struct manifest_hypothesis *h = &r->m->hypotheses[r->m->n_hypotheses++];
        const struct node *list = node_get(node_get(r->root, "hypotheses")->items[index], "rules");
        char where[256];
        int k;

        h->name = strdup(tables->names[index]);
        h->claim = TAKE_PTR(keys->claim);
        if (!h->name)
                return err_set_nomem(r->err);
        snprintf(where, sizeof(where), "hypotheses.%s.rules", h->name);
        k = read_rules(r, list, &keys->rules, where, &h->rules, &h->n_rules);
        if (k < 0)
                return k;
        if (!decides(h->rules, h->n_rules))
                return err_set_at(r->err, ERR_USAGE, &tables->positions[index],
                                  "hypothesis \"%s\" has no rule that decides it%s", h->name,
                                  h->n_rules > 0 ? "; all of them are advisory" : "");
        return drop_rules(r, h->name, h->rules, &h->n_rules);
}

/* A hypothesis without a rule that decides would hold whatever is measured. */
static int drop_hypotheses(struct manifest_reader *r)
{
        struct manifest *m = r->m;
        size_t kept = 0;
        int k = 0;

        for (size_t i = 0; i < m->n_hypotheses; i++) {
                struct manifest_hypothesis h = m->hypotheses[i];

                if (decides(h.rules, h.n_rules)) {
                        m->hypotheses[kept++] = h;
                        continue;
                }
                if (k == 0)
                        k = note_unjudged(r, text_format("%s: the whole hypothesis", h.name));
                free(h.name);
                free(h.claim);
                manifest_rules_free(h.rules, h.n_rules);
        }
        m->n_hypotheses = kept;
        if (k == 0 && kept == 0)
                return err_set_at(r->err, ERR_USAGE, &node_get(r->root, "short")->position,
                                  "short.points leaves no hypothesis to judge");
        return k;
}

static int read_hypotheses(struct manifest_reader *r)
{
        r->m->hypotheses = calloc(r->keys.hypotheses.n, sizeof(*r->m->hypotheses));
        if (!r->m->hypotheses)
                return err_set_nomem(r->err);
        for (size_t i = 0; i < r->keys.hypotheses.n; i++) {
                int k = read_hypothesis(r, i);

                if (k < 0)
                        return k;
        }
        return drop_hypotheses(r);
}

/* ---- controls ---- */

/* Whether two cells run the same; of cells of which `short` keeps only one that is not asked. */
static bool configs_equal(const struct manifest_reader *r, size_t a, size_t b)
{
        return r->is_kept[a] != r->is_kept[b] || node_equal(r->m->cells[a].config, r->m->cells[b].config);
}

/* A same-same control measures the noise between two cells of one configuration, so it has to be that. */
static int check_same_same(struct manifest_reader *r, const struct manifest_rule *rule, const char *where)
{
        if (rule->form == RULE_VALUE || !rule->has_low || !rule->has_high)
                return err_set_at(r->err, ERR_USAGE, &rule->position,
                                  "%s: a same-same control is compared by ratio_within or difference_within", where);
        if (!configs_equal(r, rule->of.cell, rule->versus.cell) ||
            (rule->of.is_growth && !configs_equal(r, rule->of.base, rule->versus.base)))
                return err_set_at(r->err, ERR_USAGE, &rule->position,
                                  "%s: the configurations of %s and %s differ; a same-same control has to be compared "
                                  "with its like",
                                  where, r->m->cells[rule->of.cell].name, r->m->cells[rule->versus.cell].name);
        return 0;
}

static int check_control_rule(struct manifest_reader *r, size_t arm, const struct manifest_rule *rule,
                              const char *where)
{
        size_t cells[4], n = rule_cells(rule, cells);
        bool names_it = false;

        for (size_t i = 0; i < n; i++)
                names_it |= r->m->cells[cells[i]].arm == arm;
        if (!names_it)
                return err_set_at(r->err, ERR_USAGE, &rule->position, "%s: names no cell of the control", where);
        if (rule->is_advisory)
                return err_set_at(r->err, ERR_USAGE, &rule->position, "%s: the rule of a control cannot be advisory",
                                  where);
        if (rule->campaigns_that_fail_at_most_ppb >= 0)
                return err_set_at(r->err, ERR_USAGE, &rule->position,
                                  "%s: campaigns-that-fail-at-most is for the rules of a hypothesis", where);
        return r->m->arms[arm].control == CONTROL_SAME_SAME ? check_same_same(r, rule, where) : 0;
}

static int read_control_list(struct manifest_reader *r, const struct node *list, const char *where,
                             struct manifest_control *control)
{
        struct key_tables tables = {0};
        int k;

        k = key_list_read(&manifest_rule_table, list, where, &tables, r->err);
        if (k == 0)
                k = read_rules(r, list, &tables, where, &control->rules, &control->n_rules);
        key_tables_done(&manifest_rule_table, &tables);
        for (size_t i = 0; k == 0 && i < control->n_rules; i++) {
                char path[256];

                snprintf(path, sizeof(path), "%s[%zu]", where, i + 1);
                k = check_control_rule(r, control->arm, &control->rules[i], path);
        }
        return k;
}

static int read_control(struct manifest_reader *r, size_t arm)
{
        const char *name = r->m->arms[arm].name;
        const struct node *list = node_get(r->keys.control_rules, name);
        struct manifest_control *control = &r->m->controls[r->m->n_controls];
        char where[256];
        int k;

        if (!list || (list->kind == NODE_SEQUENCE && list->n_items == 0))
                return err_set_at(r->err, ERR_USAGE, &r->keys.arms.positions[arm],
                                  "control \"%s\" has no rule under \"control-rules\"", name);
        r->m->n_controls++;
        control->arm = arm;
        snprintf(where, sizeof(where), "control-rules.%s", name);
        k = read_control_list(r, list, where, control);
        if (k == 0)
                k = drop_rules(r, name, control->rules, &control->n_rules);
        if (k < 0 || control->n_rules > 0)
                return k;
        free(control->rules);
        *control = (struct manifest_control){0};
        r->m->n_controls--;
        return note_unjudged(r, text_format("%s: the whole control", name));
}

static int check_control_names(struct manifest_reader *r)
{
        const struct node *rules = r->keys.control_rules;

        for (size_t i = 0; rules && i < rules->n_items; i++) {
                const struct key_tables *arms = &r->keys.arms;
                size_t arm = 0;

                while (arm < arms->n && !streq(arms->names[arm], rules->keys[i]))
                        arm++;
                if (arm == arms->n)
                        return key_unknown(&rules->key_positions[i], "control-rules", "arm", rules->keys[i],
                                           (const char *const *)arms->names, arms->n, r->err);
                if (r->m->arms[arm].control == CONTROL_NONE)
                        return err_set_at(r->err, ERR_USAGE, &rules->key_positions[i],
                                          "control-rules: arm \"%s\" is no control; expected \"control: harm\" or "
                                          "\"control: same-same\" in it",
                                          rules->keys[i]);
        }
        return 0;
}

static int read_controls(struct manifest_reader *r)
{
        struct manifest *m = r->m;
        bool has_control = false;
        int k;

        k = check_control_names(r);
        if (k < 0)
                return k;
        m->controls = calloc(m->n_arms, sizeof(*m->controls));
        if (!m->controls)
                return err_set_nomem(r->err);
        for (size_t arm = 0; arm < m->n_arms; arm++) {
                if (m->arms[arm].control == CONTROL_NONE)
                        continue;
                has_control = true;
                k = read_control(r, arm);
                if (k < 0)
                        return k;
        }
        if (m->n_controls > 0)
                return 0;
        return err_set_at(r->err, ERR_USAGE, &node_get(r->root, has_control ? "short" : "hypotheses")->position, "%s",
                          has_control ? "short.points leaves no control to judge"
                                      : "no arm is a control, so the hypotheses prove nothing; expected one with "
                                        "\"control: harm\" or \"control: same-same\"");
}

int manifest_read_rules(struct manifest_reader *r)
{
        int k = read_hypotheses(r);

        return k == 0 ? read_controls(r) : k;
}
