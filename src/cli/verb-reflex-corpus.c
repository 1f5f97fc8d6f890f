/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "cli/print.h"
#include "cli/table.h"
#include "cli/verb-reflex.h"
#include "reflex/corpus.h"

#define TO_STRING_(x) #x
#define TO_STRING(x)  TO_STRING_(x)

/* What others publish of the public corpus. */
#define PUBLIC_REJECTED 450
#define PUBLIC_CLAMPED  317

struct corpus_options {
        int64_t draws, seed;
        bool json;
};

static const struct option options[] = {
        {"draws", 0, OPTION_QUANTITY, offsetof(struct corpus_options, draws), "N", TO_STRING(CORPUS_DRAWS), UNIT_COUNT,
         1, INT64_C(100000000000), .help = "requests of the own corpus"},
        {"seed", 0, OPTION_QUANTITY, offsetof(struct corpus_options, seed), "N", "1", UNIT_COUNT, 0, INT64_MAX,
         .help = "seed of the own corpus"},
        {"json", 0, OPTION_FLAG, offsetof(struct corpus_options, json), .help = "print the result as JSON"},
        {0},
};

static bool is_as_published(const struct corpus_counts *c)
{
        return c->escapes == 0 && c->answers[ANSWER_REJECT] == PUBLIC_REJECTED &&
               c->answers[ANSWER_CLAMP] == PUBLIC_CLAMPED;
}

static void add_row(struct table *table, const char *name, const struct corpus_counts *c)
{
        table_add(table, name);
        table_addf(table, "%" PRIu64, c->draws);
        for (unsigned i = 0; i < ANSWERS; i++)
                table_addf(table, "%" PRIu64, c->answers[i]);
        table_addf(table, "%" PRIu64, c->escapes);
}

static void add_escape(struct text *out, const char *name, const struct corpus_counts *c)
{
        if (c->escapes > 0)
                text_addf(out, "%s: the first escape, at draw %" PRIu64 ", broke the rule %s\n", name,
                          c->first_escape_draw, cause_name(c->first_escape));
}

static int print_counts(const struct corpus_counts *public, const struct corpus_counts *own, struct err *err)
{
        _cleanup_table_ struct table table;
        _cleanup_text_ struct text out = {0};

        table_init(&table, "lrrrrrr");
        table_add(&table, "corpus");
        table_add(&table, "draws");
        for (unsigned i = 0; i < ANSWERS; i++)
                table_add(&table, answer_name((enum answer)i));
        table_add(&table, "escapes");
        add_row(&table, "public", public);
        add_row(&table, "own", own);
        table_render(&table, 0, &out);
        add_escape(&out, "public", public);
        add_escape(&out, "own", own);
        if (!is_as_published(public))
                text_addf(&out, "public: published are %d rejected, %d clamped and no escape\n", PUBLIC_REJECTED,
                          PUBLIC_CLAMPED);
        return print_text(&out, err);
}

static json_t *to_json(const struct corpus_counts *c)
{
        json_t *json = json_pack("{s:I, s:I}", "draws", (json_int_t)c->draws, "escapes", (json_int_t)c->escapes);

        for (unsigned i = 0; i < ANSWERS && json; i++)
                json_object_set_new(json, answer_name((enum answer)i), json_integer((json_int_t)c->answers[i]));
        if (json && c->escapes > 0) {
                json_object_set_new(json, "first_escape", json_string(cause_name(c->first_escape)));
                json_object_set_new(json, "first_escape_draw", json_integer((json_int_t)c->first_escape_draw));
        }
        return json;
}

static int run(const void *opts, int argc, char **argv, struct err *err)
{
        const struct corpus_options *o = opts;
        struct corpus_counts public, own;
        int r;

        corpus_public(monitor_decide, &public);
        corpus_run(monitor_decide, (uint64_t)o->seed, (uint64_t)o->draws, &own);
        if (o->json)
                r = print_json(json_pack("{s:i, s:o, s:b, s:o, s:I}", "assay", 1, "public", to_json(&public),
                                         "as_published", is_as_published(&public), "own", to_json(&own), "seed",
                                         (json_int_t)o->seed),
                               err);
        else
                r = print_counts(&public, &own, err);
        if (r < 0)
                return r;
        return is_as_published(&public) && own.escapes == 0 ? 0 : 3;
}

const struct verb verb_reflex_corpus = {
        .name = "corpus",
        .summary = "try to get values past the monitor",
        .description =
                "Sends the monitor the public corpus of 1000 requests, and one of our own that moves time, stops, "
                "holds\n"
                "and sends extremes to every channel. Exit code 3 where a value leaves its envelope, or the "
                "public\n"
                "corpus does not come out as it is published.",
        .options = options,
        .options_size = sizeof(struct corpus_options),
        .run = run,
};
