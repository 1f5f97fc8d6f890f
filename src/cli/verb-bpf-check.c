/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/number.h"
#include "bpfvm/certificate.h"
#include "bpfvm/counterexample.h"
#include "bpfvm/explain.h"
#include "bpfvm/verifier.h"
#include "cli/bpf-check.h"
#include "cli/bpf-input.h"
#include "cli/print.h"
#include "cli/verb-bpf.h"

struct check_options {
        struct bpf_input input;
        struct bpf_check check;
        const char *certificate;
        bool json;
};

static const struct option options[] = {
        BPF_INPUT_OPTIONS(struct check_options, input),
        BPF_CHECK_OPTIONS(struct check_options, check),
        {"certificate", 0, OPTION_STRING, offsetof(struct check_options, certificate), "FILE",
         .help = "write what was found out, for `assay bpf audit`"},
        {"json", 0, OPTION_FLAG, offsetof(struct check_options, json), .help = "print JSON"},
        {0},
};

/* One program with what was found out of it. */
struct checked {
        const struct program *program;
        struct verdict verdict;
        struct certificate *certificate;
        struct counterexample *example;
        int r;
};

static void checked_done(struct checked *c)
{
        verdict_done(&c->verdict);
        certificate_free(c->certificate);
        counterexample_free(c->example);
}

static int check(struct checked *c, const struct check_options *o, const struct verifier_options *how, struct err *err)
{
        c->r = o->certificate ? certificate_make(c->program, how, &c->certificate, &c->verdict, err)
                              : verifier_check(c->program, how, &c->verdict, err);
        if (c->r == 1) {
                const struct counterexample_effort effort = {.ns = COUNTEREXAMPLE_NS};
                int r = counterexample_find(c->program, how, &c->verdict, &effort, 1, &c->example, err);

                return r < 0 ? r : 0;
        }
        return c->r < 0 ? c->r : 0;
}

/* " (prog.c:12)", or " (12)" in the same file as before, or nothing on the same line. */
static void print_line(const struct program_line *line, const struct program_line *before, struct text *out)
{
        const char *slash = strrchr(line->file, '/');

        if (before && streq(before->file, line->file)) {
                if (before->line != line->line)
                        text_addf(out, " (%" PRIu32 ")", line->line);
                return;
        }
        text_add(out, " (");
        print_visible(out, slash ? slash + 1 : line->file);
        text_addf(out, ":%" PRIu32 ")", line->line);
}

/* The slots at which blocks begin, with their source lines: "0 (prog.c:12) > 5 (13) > 9". */
static void print_way(const char *title, const struct program *program, const struct verifier_step *steps, size_t n,
                      struct text *out)
{
        const struct program_line *before = NULL;

        if (n == 0)
                return;
        text_addf(out, "  %s, by slots%s: ", title, program->n_lines > 0 ? " (and lines)" : "");
        for (size_t i = 0; i < n; i++) {
                const struct program_line *line;

                if (n > 24 && i == 12) {
                        text_addf(out, " > ... %zu more ...", n - 24);
                        i = n - 12;
                }
                line = program_line_at(program, steps[i].slot);
                text_addf(out, "%s%" PRIu32, i > 0 ? " > " : "", steps[i].slot);
                if (line)
                        print_line(line, before, out);
                before = line;
        }
        text_add(out, "\n");
}

static void print_hex(struct text *out, const uint8_t *bytes, size_t len)
{
        for (size_t i = 0; i < len; i++)
                text_addf(out, "%02x", bytes[i]);
}

/* The context's bytes, but for zeros at its end; as `exec --mem` takes them. */
static void print_context(const uint8_t *bytes, size_t size, struct text *out)
{
        size_t n = size;

        while (n > 0 && bytes[n - 1] == 0)
                n--;
        if (size == 0)
                return;
        text_add(out, "    context ");
        print_hex(out, bytes, n);
        text_addf(out, "%s%s\n", n > 0 ? " " : "", n == 0 ? "all zero" : n < size ? "and then zeros" : "");
}

/* What `exec` has to be given, besides what `check` was. */
static void print_replay(const struct checked *c, struct text *out)
{
        const struct counterexample *example = c->example;
        size_t n = c->program->context.size;

        while (n > 0 && example->context[n - 1] == 0)
                n--;
        text_add(out, "    replay: assay bpf exec");
        if (n > 0) {
                text_add(out, " --mem ");
                print_hex(out, example->context, n);
        }
        for (uint32_t i = 0; i < example->n_entries; i++) {
                const struct map_def *map = &c->program->maps[example->entries[i].map];

                text_add(out, " --entry ");
                print_visible(out, map->name);
                text_add(out, ":");
                print_hex(out, example->entries[i].key, map->key_size);
                text_add(out, ":");
                print_hex(out, example->entries[i].value, map->value_size);
        }
        for (uint32_t i = 0; i < example->n_words; i++)
                text_addf(out, " --answer 0x%" PRIx64, example->words[i]);
        text_add(out, " and the same file and options\n");
}

static void print_example(const struct checked *c, struct text *out)
{
        const struct counterexample *example = c->example;

        if (!example) {
                if (counterexample_is_due(c->verdict.fault.kind))
                        text_add(out, "  counterexample: none found; the check could not prove it safe\n");
                return;
        }
        text_addf(out, "  counterexample: after %" PRIu64 " instruction%s it ends in %s at slot %" PRIu32 "\n",
                  example->steps, example->steps == 1 ? "" : "s", fault_name(example->fault.kind), example->fault.slot);
        text_add(out, "    ");
        print_visible(out, example->fault.text);
        text_add(out, "\n");
        print_context(example->context, c->program->context.size, out);
        for (uint32_t i = 0; i < example->n_entries; i++) {
                const struct map_def *map = &c->program->maps[example->entries[i].map];

                text_add(out, "    map ");
                print_visible(out, map->name);
                text_add(out, " key ");
                print_hex(out, example->entries[i].key, map->key_size);
                text_add(out, " value ");
                print_hex(out, example->entries[i].value, map->value_size);
                text_add(out, "\n");
        }
        for (uint32_t i = 0; i < example->n_words; i++)
                text_addf(out, "    answer %u of a helper 0x%" PRIx64 "\n", i + 1, example->words[i]);
        if (c->verdict.fault.kind != FAULT_HELPER_FORBIDDEN)
                print_replay(c, out);
}

static void print_refused(const struct checked *c, struct text *out)
{
        const char *suggestion = explain_suggestion(c->program, &c->verdict);

        if (c->verdict.known && c->verdict.known[0]) {
                text_add(out, "  known: ");
                print_visible(out, c->verdict.known);
                text_add(out, "\n");
        }
        print_way("way there", c->program, c->verdict.path, c->verdict.n_path, out);
        print_example(c, out);
        if (suggestion[0])
                text_addf(out, "  try: %s\n", suggestion);
}

static void print_accepted(const struct checked *c, const struct verifier_options *how, struct text *out)
{
        const struct verdict *v = &c->verdict;
        char time[48];

        print_visible(out, c->program->name);
        text_addf(out, ": accepted for profile %s\n", how->profile->name);
        text_addf(out,
                  "  work: %" PRIu64 " transfers of at most %" PRIu64 ", %" PRIu64 " comparisons of at most %" PRIu64
                  ", %" PRIu32 " chain%s of calls\n",
                  v->transfers, v->transfers_bound, v->comparisons, v->comparisons_bound, v->contexts,
                  v->contexts == 1 ? "" : "s");
        text_addf(out, "  stack: %" PRIu32 " bytes\n", v->stack_bytes);
        text_addf(out, "  worst case: %s%s by table %s\n", v->cost_ps == UINT64_MAX ? "more than " : "",
                  number_format_ns((int64_t)(v->cost_ps / 1000), time),
                  how->costs ? how->costs->name : cost_default()->name);
        print_way("costliest way", c->program, v->costliest, v->n_costliest, out);
}

static json_t *hex_json(const uint8_t *bytes, size_t len)
{
        _cleanup_text_ struct text hex = {0};

        print_hex(&hex, bytes, len);
        return hex.failed ? NULL : json_string(hex.data ? hex.data : "");
}

static json_t *way_json(const struct verifier_step *steps, size_t n)
{
        json_t *way = json_array();

        for (size_t i = 0; i < n; i++)
                json_array_append_new(way, json_integer(steps[i].slot));
        return way;
}

static json_t *example_json(const struct checked *c)
{
        const struct counterexample *example = c->example;
        json_t *entries = json_array(), *answers = json_array();

        for (uint32_t i = 0; i < example->n_entries; i++) {
                const struct counterexample_entry *entry = &example->entries[i];
                const struct map_def *map = &c->program->maps[entry->map];

                json_array_append_new(entries, json_pack("{s:i, s:o, s:o}", "map", (int)entry->map, "key",
                                                         hex_json(entry->key, map->key_size), "value",
                                                         hex_json(entry->value, map->value_size)));
        }
        for (uint32_t i = 0; i < example->n_words; i++)
                json_array_append_new(answers, json_integer((json_int_t)example->words[i]));
        return json_pack("{s:o, s:o, s:o, s:I, s:o}", "context", hex_json(example->context, c->program->context.size),
                         "maps", entries, "answers", answers, "steps", (json_int_t)example->steps, "fault",
                         bpf_fault_to_json(c->program, &example->fault));
}

static json_t *checked_json(const struct checked *c, const struct verifier_options *how)
{
        const struct verdict *v = &c->verdict;
        json_t *json = json_pack("{s:s, s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "name", c->program->name, "accepted",
                                 c->r == 0, "profile", how->profile->name, "transfers", (json_int_t)v->transfers,
                                 "transfers_bound", (json_int_t)v->transfers_bound, "comparisons",
                                 (json_int_t)v->comparisons, "comparisons_bound", (json_int_t)v->comparisons_bound,
                                 "contexts", (json_int_t)v->contexts, "state_bytes", (json_int_t)v->state_bytes);

        if (c->r == 0) {
                json_object_set_new(json, "stack_bytes", json_integer(v->stack_bytes));
                json_object_set_new(json, "cost_ps",
                                    v->cost_ps <= INT64_MAX ? json_integer((json_int_t)v->cost_ps) : json_null());
                json_object_set_new(json, "costliest", way_json(v->costliest, v->n_costliest));
                return json;
        }
        json_object_set_new(json, "fault", bpf_fault_to_json(c->program, &v->fault));
        json_object_set_new(json, "known", json_string(v->known ? v->known : ""));
        json_object_set_new(json, "path", way_json(v->path, v->n_path));
        json_object_set_new(json, "suggestion", json_string(explain_suggestion(c->program, v)));
        json_object_set_new(json, "counterexample", c->example ? example_json(c) : json_null());
        return json;
}

static int save_certificate(const struct checked *c, const char *path, struct err *err)
{
        _cleanup_json_ json_t *json = certificate_to_json(c->certificate);

        if (!json)
                return err_set_nomem(err);
        return json_save(AT_FDCWD, path, json, err);
}

/* Check one program, print what came out or add it to @results. Return: 0; 3 refused; a negative errno. */
static int check_one(const struct program *program, const struct check_options *o, const struct verifier_options *how,
                     json_t *results, struct err *err)
{
        _cleanup_(checked_done) struct checked c = {.program = program};
        _cleanup_text_ struct text out = {0};
        int r;

        r = check(&c, o, how, err);
        if (r == 0 && c.certificate)
                r = save_certificate(&c, o->certificate, err);
        if (r < 0)
                return r;
        if (results) {
                json_array_append_new(results, checked_json(&c, how));
        } else if (c.r == 0) {
                print_accepted(&c, how, &out);
        } else {
                bpf_print_fault(program, &c.verdict.fault);
                print_refused(&c, &out);
        }
        r = print_text(&out, err);
        return r < 0 ? r : c.r == 0 ? 0 : 3;
}

static int run_check(const void *given, int argc, char **argv, struct err *err)
{
        const struct check_options *o = given;
        _cleanup_object_ struct object *object = NULL;
        _cleanup_json_ json_t *results = o->json ? json_array() : NULL;
        struct program *program = NULL;
        struct verifier_options how;
        struct cost_table costs;
        int r, worst = 0;

        r = bpf_check_options(&o->check, &costs, &how, err);
        how.wants_costliest = true;
        if (r >= 0)
                r = bpf_input_load(&o->input, argv[0], &object, err);
        if (r >= 0 && (o->input.program || o->certificate))
                r = bpf_input_program(&o->input, object, &program, err);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < object->n_programs; i++) {
                if (program && object->programs[i] != program)
                        continue;
                r = check_one(object->programs[i], o, &how, results, err);
                if (r < 0)
                        return r;
                worst = MAX(worst, r);
        }
        if (o->json) {
                r = print_json(json_pack("{s:i, s:O}", "assay", 1, "programs", results), err);
                if (r < 0)
                        return r;
        }
        return worst;
}

const struct verb verb_bpf_check = {
        .name = "check",
        .arguments = "FILE",
        .summary = "say whether programs are safe, and if not, why",
        .description = "Checks every program of FILE. An accepted one is safe on every input, ends, and costs at most "
                       "what is\n"
                       "printed. For a refused one: the reason, what is known there, the way to it, an input that "
                       "shows it if\n"
                       "one is found, and what to try. Exit 3 if one is refused.",
        .min_args = 1,
        .max_args = 1,
        .options = options,
        .options_size = sizeof(struct check_options),
        .run = run_check,
};
