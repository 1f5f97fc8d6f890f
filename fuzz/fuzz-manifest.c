/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kinds.h"
#include "evidence/plan.h"
#include "fuzz/fuzz.h"
#include "tests/unit/evidence/manifest-kinds.h"

#define TRIALS_MAX 500 /* of a plan that is written out: a larger one only takes longer */

/* A tree has to come back from its JSON as it was. */
static void check_tree(struct span bytes)
{
        _cleanup_node_ struct node *node = NULL, *again = NULL;
        _cleanup_json_ json_t *json = NULL;

        if (node_parse(bytes, "input", NULL, &node, NULL) < 0)
                return;
        json = node_to_json(node);
        if (!json || node_from_json(json, "json", &again, NULL) < 0 || !node_equal(node, again))
                abort();
}

static char *plan_text(const struct plan *plan)
{
        _cleanup_json_ json_t *json = NULL;

        if (plan_to_json(plan, &json, NULL) < 0)
                abort();
        return json_format(json);
}

/* A manifest that is accepted can be planned, and its plan is the same when it is made again from what it says. */
static void check_plan(const struct manifest *m, const struct kinds *kinds, const struct manifest_options *options)
{
        _cleanup_plan_ struct plan *plan = NULL, *again = NULL;
        _cleanup_free_ char *text = NULL, *second = NULL;
        _cleanup_free_ const char **overrides = NULL;
        _cleanup_json_ json_t *json = NULL;
        struct manifest_options stored;
        struct err err = {0};

        if (m->n_cells * (m->rounds + m->warmup_rounds) > TRIALS_MAX)
                return;
        if (plan_make(m, kinds, options, NULL, 0, &plan, &err) < 0) {
                if (err.kind == ERR_BUG)
                        abort();
                return;
        }
        text = plan_text(plan);
        if (!text || json_parse(span_of_text(text), "plan.json", &json, NULL) < 0 ||
            plan_options_from_json(json, &stored, &overrides, NULL) < 0 ||
            plan_make(m, kinds, &stored, NULL, 0, &again, NULL) < 0)
                abort();
        second = plan_text(again);
        if (!second || strcmp(text, second) != 0)
                abort();
}

/* The kinds that ship, each key of which reads bytes of the manifest; and those of tests, which have types of keys and
 * of metrics that no kind that ships has yet. */
static void check_manifest(struct span bytes, const struct kinds *kinds)
{
        for (int i = 0; i < 2; i++) {
                const struct manifest_options options = {.is_short = i == 1};
                _cleanup_manifest_ struct manifest *m = NULL;
                struct err err = {0};

                if (manifest_parse(bytes, "input", -1, kinds, &options, &m, &err) == 0)
                        check_plan(m, kinds, &options);
                else if (err.kind != ERR_USAGE || err.text[0] == '\0')
                        abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const struct span bytes = span_of(data, size);

        check_tree(bytes);
        check_manifest(bytes, kinds_all());
        check_manifest(bytes, &test_kinds);
        return 0;
}
