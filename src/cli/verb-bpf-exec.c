/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/hex.h"
#include "bpfvm/elf.h"
#include "bpfvm/oracle.h"
#include "cli/bpf-input.h"
#include "cli/print.h"
#include "cli/verb-bpf.h"

#define PLUGIN_BYTES_MAX (64u << 20)

struct exec_options {
        struct bpf_input input;
        const char *mem;
        struct option_strings entries, answers;
        int64_t steps;
        bool lax, json, plugin, elf;
};

static const struct option options[] = {
        BPF_INPUT_OPTIONS(struct exec_options, input),
        {"mem", 0, OPTION_STRING, offsetof(struct exec_options, mem), "HEX", .help = "the bytes that r1 points to"},
        {"entry", 0, OPTION_STRINGS, offsetof(struct exec_options, entries), "MAP:KEY:VALUE",
         .help = "what a map holds at the start, key and value in hexadecimal"},
        {"answer", 0, OPTION_STRINGS, offsetof(struct exec_options, answers), "NUMBER",
         .help = "what a helper that asks for the time, chance or a level is told; several take turns"},
        {"steps", 0, OPTION_QUANTITY, offsetof(struct exec_options, steps), "COUNT", "1000000", UNIT_COUNT, 1,
         INT64_MAX, .help = "stop after so many instructions"},
        {"lax", 0, OPTION_FLAG, offsetof(struct exec_options, lax), .help = "check memory accesses only"},
        {"plugin", 0, OPTION_FLAG, offsetof(struct exec_options, plugin), .help = "be a plugin of bpf_conformance"},
        {"elf", 0, OPTION_FLAG, offsetof(struct exec_options, elf),
         .help = "with --plugin: standard input is an ELF object"},
        {"json", 0, OPTION_FLAG, offsetof(struct exec_options, json), .help = "print JSON"},
        {0},
};

/* One run with what came out of it. */
struct outcome {
        int r; /* of oracle_run() */
        struct oracle_result result;
        struct fault fault;
        struct store *store;
        uint8_t *memory;
        struct text trace;
        uint64_t answers[OPTION_STRINGS_MAX];
        size_t n_answers, next_answer;
};

static void outcome_done(struct outcome *outcome)
{
        store_free(outcome->store);
        free(outcome->memory);
        text_done(&outcome->trace);
}

static void add_trace(void *userdata, const char *line, size_t len)
{
        struct outcome *out = userdata;

        text_add_visible(&out->trace, line, len > 0 && line[len - 1] == '\n' ? len - 1 : len);
        text_add(&out->trace, "\n");
}

static uint64_t answer(void *userdata)
{
        struct outcome *out = userdata;

        return out->answers[out->next_answer++ % out->n_answers];
}

static uint32_t answer_half(void *userdata)
{
        return (uint32_t)answer(userdata);
}

static int64_t answer_level(void *userdata, enum helper_id helper, const uint64_t args[static 2])
{
        return helper == HELPER_GPIO_GET ? (int64_t)answer(userdata) : 0;
}

static int take_answers(const struct exec_options *o, struct outcome *out, struct err *err)
{
        for (size_t i = 0; i < o->answers.n; i++) {
                char *end = NULL;

                errno = 0;
                out->answers[i] = strtoull(o->answers.items[i], &end, 0);
                if (errno != 0 || end == o->answers.items[i] || *end != 0)
                        return err_set(err, ERR_USAGE, EINVAL, "--answer %s: expected a number, such as 7 or 0x1f",
                                       o->answers.items[i]);
        }
        out->n_answers = o->answers.n;
        return 0;
}

/* "MAP:KEY:VALUE" into the maps. */
static int put_entry(const struct program *program, struct store *store, const char *spec, struct err *err)
{
        size_t name_len = strcspn(spec, ":"), key_len = 0, value_len = 0, offset;
        const char *key_text = spec + name_len + (spec[name_len] != 0);
        size_t key_text_len = strcspn(key_text, ":");
        const char *value_text = key_text + key_text_len + (key_text[key_text_len] != 0);
        _cleanup_free_ uint8_t *key = NULL, *value = NULL;
        uint32_t map = 0;
        int r;

        while (map < program->n_maps &&
               (strncmp(program->maps[map].name, spec, name_len) != 0 || program->maps[map].name[name_len] != 0))
                map++;
        if (map == program->n_maps || program->maps[map].kind == MAP_RING)
                return err_set(err, ERR_USAGE, ENOENT, "--entry %s: the program has no map of that name with keys",
                               spec);
        if (hex_decode(span_of(key_text, key_text_len), &key, &key_len, &offset) < 0 ||
            hex_decode(span_of_text(value_text), &value, &value_len, &offset) < 0 ||
            key_len != program->maps[map].key_size || value_len != program->maps[map].value_size)
                return err_set(err, ERR_USAGE, EINVAL,
                               "--entry %s: expected MAP:KEY:VALUE with %" PRIu32 " and %" PRIu32
                               " bytes in hexadecimal",
                               spec, program->maps[map].key_size, program->maps[map].value_size);
        r = store_update(store, map, key, value, STORE_ANY);
        return r < 0 ? err_set(err, ERR_USAGE, -r, "--entry %s: the map has no room for it", spec) : 0;
}

/* The context's bytes: those of --mem, zero behind them. */
static int make_memory(struct program *program, const char *hex, uint8_t **ret, struct err *err)
{
        _cleanup_free_ uint8_t *bytes = NULL;
        size_t len = 0, offset;

        if (hex && hex_decode(span_of_text(hex), &bytes, &len, &offset) < 0)
                return err_set(err, ERR_USAGE, EINVAL, "memory: expected pairs of hexadecimal digits");
        if (len > UINT32_MAX / 2)
                return err_set(err, ERR_USAGE, EINVAL, "memory: %zu bytes are too many", len);
        if (program->context.size == 0)
                context_flat(&program->context, (uint32_t)len, true);
        if (len > program->context.size)
                return err_set(err, ERR_USAGE, EINVAL, "memory: %zu bytes, but the program's context (%s) has %" PRIu32,
                               len, program->context.name, program->context.size);

        *ret = calloc(1, (size_t)program->context.size + 1);
        if (!*ret)
                return err_set_nomem(err);
        if (len > 0)
                memcpy(*ret, bytes, len);
        return 0;
}

static int execute(struct program *program, const struct exec_options *o, const char *memory, struct outcome *out,
                   struct err *err)
{
        struct embed embed = {.userdata = out, .trace = add_trace};
        struct oracle_options how = {.max_steps = (uint64_t)o->steps, .embed = &embed, .is_lax = o->lax || o->plugin};
        int r;

        r = make_memory(program, memory, &out->memory, err);
        if (r == 0)
                r = store_new(program->maps, program->n_maps, &out->store, err);
        if (r == 0)
                r = take_answers(o, out, err);
        for (size_t i = 0; i < o->entries.n && r == 0; i++)
                r = put_entry(program, out->store, o->entries.items[i], err);
        if (r < 0)
                return r;
        if (out->n_answers > 0) {
                embed.time_ns = answer;
                embed.random_u32 = answer_half;
                embed.actuate = answer_level;
        }
        out->r = oracle_run(program, out->store, program->context.size > 0 ? out->memory : NULL, &how, &out->result,
                            &out->fault, err);
        return out->r < 0 ? out->r : 0;
}

static void add_hex(struct text *out, const uint8_t *bytes, size_t len)
{
        for (size_t i = 0; i < len; i++)
                text_addf(out, "%02x", bytes[i]);
}

/* What the program left in its rings, record by record. */
static json_t *rings_to_json(struct store *store)
{
        json_t *rings = json_object();

        for (uint32_t i = 0; i < store_count(store); i++) {
                struct span record;
                json_t *records;

                if (store_def(store, i)->kind != MAP_RING)
                        continue;
                records = json_array();
                while (store_ring_next(store, i, &record) > 0) {
                        _cleanup_text_ struct text hex = {0};

                        add_hex(&hex, record.data, record.len);
                        json_array_append_new(records, json_string(hex.data ? hex.data : ""));
                        store_ring_release(store, i);
                }
                json_object_set_new(rings, store_def(store, i)->name, records);
        }
        return rings;
}

static json_t *outcome_to_json(const struct program *program, const struct outcome *out)
{
        _cleanup_text_ struct text memory = {0}, r0 = {0};
        json_t *all;

        add_hex(&memory, out->memory, program->context.size);
        text_addf(&r0, "0x%" PRIx64, out->result.r0);
        if (memory.failed || r0.failed || out->trace.failed)
                return NULL;
        all = json_pack("{s:i, s:s, s:I, s:s, s:s, s:o}", "assay", 1, "program", program->name, "instructions_run",
                        (json_int_t)out->result.steps, "memory", memory.data ? memory.data : "", "trace",
                        out->trace.data ? out->trace.data : "", "rings", rings_to_json(out->store));
        if (all && out->r == 0)
                json_object_set_new(all, "r0", json_string(r0.data));
        if (all && out->r == 1)
                json_object_set_new(all, "fault", bpf_fault_to_json(program, &out->fault));
        return all;
}

static void print_outcome(const struct program *program, struct outcome *out)
{
        _cleanup_json_ json_t *rings = rings_to_json(out->store);
        const char *name;
        json_t *records, *record;
        size_t i;

        if (out->trace.data)
                printf("%s", out->trace.data);
        json_object_foreach(rings, name, records) json_array_foreach(records, i, record)
                printf("%s: %s\n", name, json_string_value(record));
        if (out->r == 0)
                printf("r0 = 0x%" PRIx64 " (%" PRIi64 "), %" PRIu64 " instructions\n", out->result.r0,
                       (int64_t)out->result.r0, out->result.steps);
        else
                bpf_print_fault(program, &out->fault);
}

/* The contract of the plugins of bpf_conformance: r0 in hexadecimal and exit 0, or a message on standard error. */
static int run_plugin(const struct exec_options *o, int argc, char **argv, struct err *err)
{
        struct bpf_input input = o->input;
        _cleanup_free_ char *text = NULL;
        _cleanup_free_ uint8_t *bytes = NULL;
        _cleanup_object_ struct object *object = NULL;
        _cleanup_(outcome_done) struct outcome out = {0};
        struct program *program = NULL;
        size_t len, n, offset;
        int r;

        r = file_read_stream(STDIN_FILENO, "standard input", PLUGIN_BYTES_MAX, &text, &len, err);
        if (r < 0)
                return r;
        if (hex_decode(span_of(text, len), &bytes, &n, &offset) < 0)
                return err_set(err, ERR_DATA, EINVAL, "standard input: expected pairs of hexadecimal digits");
        if (o->elf && !elf_is(span_of(bytes, n)))
                return err_set(err, ERR_DATA, EINVAL, "standard input: not an ELF object");
        input.is_hex = input.is_asm = false;
        r = bpf_input_load_bytes(&input, span_of(bytes, n), "standard input", &object, err);
        if (r >= 0)
                r = bpf_input_program(&input, object, &program, err);
        if (r < 0)
                return r;
        if (program->fault.kind != FAULT_NONE)
                return err_set(err, ERR_DATA, EINVAL, "slot %" PRIu32 ": %s: %s", program->fault.slot,
                               fault_name(program->fault.kind), program->fault.text);

        /* memory takes the place of any context that the object names */
        program->context = (struct context_def){0};
        r = execute(program, o, argc > 0 ? argv[0] : NULL, &out, err);
        if (r < 0)
                return r;
        if (out.r == 1)
                return err_set(err, ERR_ENVIRONMENT, EINVAL, "slot %" PRIu32 ": %s: %s", out.fault.slot,
                               fault_name(out.fault.kind), out.fault.text);
        printf("%" PRIx64 "\n", out.result.r0);
        return 0;
}

/* Exit code 1: the program did something that a checked one cannot do; 3: it is no legal program. */
static int run(const void *opts, int argc, char **argv, struct err *err)
{
        const struct exec_options *o = opts;
        _cleanup_object_ struct object *object = NULL;
        _cleanup_(outcome_done) struct outcome out = {0};
        struct program *program = NULL;
        int r;

        if (o->plugin)
                return run_plugin(o, argc, argv, err);
        if (argc != 1)
                return err_set(err, ERR_USAGE, EINVAL, "which program? Give a file, or - for standard input");

        r = bpf_input_load(&o->input, argv[0], &object, err);
        if (r >= 0)
                r = bpf_input_program(&o->input, object, &program, err);
        if (r < 0)
                return r;
        if (program->fault.kind != FAULT_NONE) {
                bpf_print_fault(program, &program->fault);
                return 3;
        }

        r = execute(program, o, o->mem, &out, err);
        if (r == 0 && o->json)
                r = print_json(outcome_to_json(program, &out), err);
        else if (r == 0)
                print_outcome(program, &out);
        return r < 0 ? r : out.r;
}

const struct verb verb_bpf_exec = {
        .name = "exec",
        .arguments = "FILE",
        .summary = "run a program once on given memory",
        .description =
                "Runs a program in the checking interpreter and prints what it returns, its trace lines and the "
                "records\n"
                "that it left in rings. It stops at the first instruction that breaks a rule, as the verifier would\n"
                "foresee; --lax stops only at memory accesses outside.\n"
                "Exit code 1: a rule was broken; 3: an instruction is not a legal one.",
        .min_args = 0,
        .max_args = 1,
        .options = options,
        .options_size = sizeof(struct exec_options),
        .run = run,
};
