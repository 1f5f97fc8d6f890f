/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/counterexample.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/rng.h"
#include "bpfvm/oracle.h"

/* The search. An input is a row of bytes: the context, the answers of the outside world, and the values of map entries,
 * whose keys are learned from the lookups that are seen. Inputs are run, and judged by how far they follow the way to
 * the refused instruction, and how near the operands are of the branch where they leave it. Good ones are kept and
 * changed: bytes that equal an operand of that branch are replaced by what would turn it; otherwise by constants of the
 * program, edges of the widths, or anything. */

#define POOL          8
#define CONSTANTS_MAX 96
#define STEPS_MAX     20000
#define STORE_MAX     (UINT64_C(16) << 20) /* maps are cleared before every run */
#define SHRINK_STEPS  50000

struct input {
        uint8_t *bytes;
        uint32_t present;   /* entries that are there, by bit */
        unsigned progress;  /* blocks of the way that were followed */
        unsigned closeness; /* bits that the operands agree in, where it was left */
};

struct search {
        const struct program *program;
        const struct verifier_options *options;
        const struct verdict *verdict;
        struct store *store;
        uint8_t *context;
        struct rng rng;

        size_t n_bytes; /* of an input */
        size_t words_at, values_at[COUNTEREXAMPLE_ENTRIES];
        struct counterexample_entry entries[COUNTEREXAMPLE_ENTRIES];
        uint32_t n_entries;
        struct input pool[POOL], trial;
        uint32_t n_pool;
        uint64_t constants[CONSTANTS_MAX];
        uint32_t n_constants;
        uint64_t tries, spent; /* inputs, and what they cost of the effort's steps */

        /* The run: where it is on the way, and the operands that turned it off. */
        const struct input *input;
        size_t position;
        uint32_t n_words, branch;
        bool has_left;
        uint64_t operands[2], left[2];
        uint64_t steps;
};

void counterexample_free(struct counterexample *c)
{
        if (!c)
                return;
        for (uint32_t i = 0; i < c->n_entries; i++) {
                free(c->entries[i].key);
                free(c->entries[i].value);
        }
        free(c->entries);
        free(c->context);
        free(c);
}

bool counterexample_is_due(enum fault_kind kind)
{
        return (kind >= FAULT_UNINIT_REGISTER && kind <= FAULT_NO_ACCESS) || kind == FAULT_HELPER_FORBIDDEN ||
               kind == FAULT_HELPER_ARGUMENT || kind == FAULT_HELPER_UNKNOWN;
}

static uint64_t next_word(void *userdata)
{
        struct search *s = userdata;
        uint64_t word;

        memcpy(&word, s->input->bytes + s->words_at + 8 * (s->n_words++ % COUNTEREXAMPLE_WORDS), sizeof(word));
        return word;
}

static uint32_t next_half(void *userdata)
{
        return (uint32_t)next_word(userdata);
}

static int64_t actuate(void *userdata, enum helper_id helper, const uint64_t args[static 2])
{
        return helper == HELPER_GPIO_GET ? (int64_t)next_word(userdata) : 0;
}

/* Where in the stack of a run a register points, if @size bytes are there. */
static const uint8_t *stack_bytes(const struct oracle_view *view, unsigned reg, uint32_t size)
{
        const struct value *value = &view->frames[view->depth - 1].regs[reg];
        int64_t at = value_offset(value);

        if (value->kind != VALUE_STACK || at < -PROFILE_FRAME_BYTES || at > -(int64_t)size)
                return NULL;
        return view->frames[value->index].bytes + PROFILE_FRAME_BYTES + at;
}

/* A lookup is about to happen: its key can be made one that is there. */
static void learn_key(struct search *s, const struct oracle_view *view)
{
        const struct value *map = &view->frames[view->depth - 1].regs[1];
        const struct map_def *def;
        const uint8_t *key;

        if (map->kind != VALUE_MAP || s->n_entries == COUNTEREXAMPLE_ENTRIES)
                return;
        def = &s->program->maps[map->index];
        key = def->kind == MAP_RING ? NULL : stack_bytes(view, 2, def->key_size);
        if (!key)
                return;
        for (uint32_t i = 0; i < s->n_entries; i++)
                if (s->entries[i].map == map->index && memcmp(s->entries[i].key, key, def->key_size) == 0)
                        return;
        s->entries[s->n_entries].key = malloc(def->key_size);
        if (!s->entries[s->n_entries].key)
                return;
        memcpy(s->entries[s->n_entries].key, key, def->key_size);
        s->entries[s->n_entries++].map = map->index;
}

static int observe(void *userdata, const struct oracle_view *view)
{
        struct search *s = userdata;
        const struct insn *insn = &s->program->insns[view->slot];
        const struct oracle_frame *frame = &view->frames[view->depth - 1];
        const struct verifier_step *next =
                s->position + 1 < s->verdict->n_path ? &s->verdict->path[s->position + 1] : NULL;

        if (next && view->slot == next->slot && view->depth == next->depth) {
                s->position++;
        } else if (s->branch != FAULT_NO_SLOT && !s->has_left) {
                s->has_left = true;
                memcpy(s->left, s->operands, sizeof(s->left));
        }
        s->branch = FAULT_NO_SLOT;
        if (insn->kind == INSN_BRANCH) {
                s->branch = view->slot;
                s->operands[0] = frame->regs[insn->dst].bits;
                s->operands[1] = insn->flags & INSN_IMM ? (uint64_t)insn->imm : frame->regs[insn->src].bits;
        } else if (insn->kind == INSN_CALL_HELPER && insn->imm == HELPER_MAP_LOOKUP) {
                learn_key(s, view);
        } else if (view->slot == s->verdict->fault.slot && !s->has_left && insn->kind >= INSN_LOAD &&
                   insn->kind <= INSN_ATOMIC) {
                /* Arrived, and perhaps without a fault: the offset is what would have to change. */
                s->left[0] = (uint64_t)value_offset(&frame->regs[insn->kind == INSN_LOAD ? insn->src : insn->dst]);
                s->left[1] = UINT32_MAX;
        }
        return 0;
}

static void prepare_maps(struct search *s, const struct input *input)
{
        store_clear(s->store);
        for (uint32_t i = 0; i < s->n_entries; i++) {
                const struct counterexample_entry *entry = &s->entries[i];

                if (input->present >> i & 1 && s->values_at[i] != 0)
                        store_update(s->store, entry->map, entry->key, input->bytes + s->values_at[i], STORE_ANY);
        }
}

/* Run one input on maps that are prepared. Return: 1 if it is a counterexample; 0; a negative errno. */
static int run(struct search *s, struct input *input, struct fault *fault, struct err *err)
{
        struct embed embed = {.userdata = s, .time_ns = next_word, .random_u32 = next_half, .actuate = actuate};
        struct oracle_options how = {.max_steps = STEPS_MAX,
                                     .embed = &embed,
                                     .profile = s->options->profile,
                                     .may_actuate = s->options->may_actuate,
                                     .observe = observe,
                                     .userdata = s};
        struct oracle_result result = {0};
        int r;

        if (s->program->context.size > 0)
                memcpy(s->context, input->bytes, s->program->context.size);
        s->input = input;
        s->position = 0;
        s->n_words = 0;
        s->branch = FAULT_NO_SLOT;
        s->has_left = false;
        s->left[0] = s->left[1] = 0;
        s->tries++;
        r = oracle_run(s->program, s->store, s->program->context.size > 0 ? s->context : NULL, &how, &result, fault,
                       err);
        s->steps = result.steps;
        s->spent += result.steps + COUNTEREXAMPLE_INPUT_STEPS;
        input->progress = (unsigned)s->position;
        input->closeness = (unsigned)(s->left[0] == s->left[1] ? 64 : __builtin_clzll(s->left[0] ^ s->left[1]));
        if (r < 0)
                return r;
        return r == 1 && fault->kind == s->verdict->fault.kind && fault->slot == s->verdict->fault.slot;
}

/* Room for the values of entries that were learned since. Return: 0 or -ENOMEM. */
static int grow(struct search *s)
{
        for (uint32_t i = 0; i < s->n_entries; i++) {
                size_t size = s->program->maps[s->entries[i].map].value_size, old = s->n_bytes;

                if (s->values_at[i] != 0)
                        continue;
                for (uint32_t k = 0; k <= s->n_pool; k++) {
                        struct input *input = k < s->n_pool ? &s->pool[k] : &s->trial;
                        uint8_t *bytes = realloc(input->bytes, old + size);

                        if (!bytes)
                                return -ENOMEM;
                        memset(bytes + old, 0, size);
                        input->bytes = bytes;
                }
                s->values_at[i] = old;
                s->n_bytes = old + size;
        }
        return 0;
}

static bool is_better(const struct input *a, const struct input *b)
{
        return a->progress != b->progress ? a->progress > b->progress : a->closeness > b->closeness;
}

/* Keep the trial if the pool has room, or something worse. Return: 0 or -ENOMEM. */
static int keep(struct search *s)
{
        struct input *worst = &s->pool[0];
        uint8_t *bytes;

        if (s->n_pool < POOL) {
                worst = &s->pool[s->n_pool];
                *worst = (struct input){.bytes = malloc(s->n_bytes)};
                if (!worst->bytes)
                        return -ENOMEM;
                s->n_pool++;
        } else {
                for (uint32_t i = 1; i < s->n_pool; i++)
                        if (is_better(worst, &s->pool[i]))
                                worst = &s->pool[i];
                if (is_better(worst, &s->trial))
                        return 0;
        }
        bytes = worst->bytes;
        *worst = s->trial;
        worst->bytes = bytes;
        memcpy(bytes, s->trial.bytes, s->n_bytes);
        return 0;
}

static void gather_constants(struct search *s)
{
        for (uint32_t slot = 0; slot < s->program->n_insns && s->n_constants < CONSTANTS_MAX; slot++) {
                const struct insn *insn = &s->program->insns[slot];

                if (insn->kind == INSN_BRANCH || insn->kind == INSN_ALU ||
                    (insn->kind == INSN_WIDE && insn->op == WIDE_CONSTANT))
                        s->constants[s->n_constants++] = (uint64_t)insn->imm;
        }
        s->constants[s->n_constants < CONSTANTS_MAX ? s->n_constants++ : 0] = 0;
}

static uint64_t draw_value(struct search *s)
{
        switch (rng_below(&s->rng, 5)) {
        case 0:
                return s->constants[rng_below(&s->rng, s->n_constants)] + rng_below(&s->rng, 3) - 1;
        case 1:
                return UINT64_MAX << rng_below(&s->rng, 64);
        case 2:
                return UINT64_C(1) << rng_below(&s->rng, 64);
        case 3:
                return rng_below(&s->rng, 64);
        default:
                return rng_next(&s->rng);
        }
}

static void put(struct search *s, size_t at, uint64_t value, size_t size)
{
        if (at + size <= s->n_bytes)
                memcpy(s->trial.bytes + at, &value, size);
}

/* Replace bytes that hold an operand of the branch that was not to be left, by the other operand or next to it. Return:
 * false if there are none. */
static bool replace_operand(struct search *s)
{
        static const size_t sizes[] = {8, 4, 2, 1};
        unsigned which = (unsigned)rng_below(&s->rng, 2);
        uint64_t from = s->left[which], to = s->left[1 - which] + rng_below(&s->rng, 3) - 1;
        size_t start = rng_below(&s->rng, s->n_bytes), size = sizes[rng_below(&s->rng, ARRAY_SIZE(sizes))];

        for (size_t i = 0; i < s->n_bytes; i++) {
                size_t at = (start + i) % s->n_bytes;

                if (at + size > s->n_bytes || memcmp(s->trial.bytes + at, &from, size) != 0)
                        continue;
                put(s, at, to, size);
                return true;
        }
        return false;
}

/* Change the trial a little, or more. */
static void mutate(struct search *s)
{
        for (uint64_t n = 1 + rng_below(&s->rng, 3); n > 0; n--) {
                size_t size = (size_t)1 << rng_below(&s->rng, 4), at = rng_below(&s->rng, s->n_bytes) / size * size;
                uint64_t value;

                switch (rng_below(&s->rng, 8)) {
                case 0:
                case 1:
                case 2:
                        if (!replace_operand(s))
                                put(s, at, draw_value(s), size);
                        break;
                case 3:
                        if (s->n_entries > 0)
                                s->trial.present ^= 1u << rng_below(&s->rng, s->n_entries);
                        break;
                case 4: /* the same value in two places */
                        value = 0;
                        if (at + size <= s->n_bytes)
                                memcpy(&value, s->trial.bytes + at, size);
                        put(s, rng_below(&s->rng, s->n_bytes) / size * size, value, size);
                        break;
                default:
                        put(s, at, draw_value(s), size);
                        break;
                }
        }
}

/* The next input: first some plain ones, then changed ones of the pool, mostly of the best. */
static void choose(struct search *s)
{
        const struct input *from;

        if (s->tries < 4) {
                memset(s->trial.bytes, s->tries == 1 ? 0xff : s->tries == 2 ? 1 : 0, s->n_bytes);
                s->trial.present = s->tries & 1 ? UINT32_MAX : 0;
                return;
        }
        from = &s->pool[rng_below(&s->rng, s->n_pool)];
        for (uint32_t i = 0; i < s->n_pool && rng_below(&s->rng, 3); i++)
                if (is_better(&s->pool[i], from))
                        from = &s->pool[i];
        memcpy(s->trial.bytes, from->bytes, s->n_bytes);
        s->trial.present = from->present;
        mutate(s);
}

/* The trial as a result. */
static struct counterexample *take(const struct search *s, const struct fault *fault)
{
        _cleanup_counterexample_ struct counterexample *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->context = malloc(s->program->context.size + 1u);
        c->entries = calloc(s->n_entries + 1u, sizeof(*c->entries));
        if (!c->context || !c->entries)
                return NULL;
        memcpy(c->context, s->trial.bytes, s->program->context.size);
        for (uint32_t i = 0; i < s->n_entries; i++) {
                const struct map_def *def = &s->program->maps[s->entries[i].map];
                struct counterexample_entry *entry = &c->entries[c->n_entries];

                if (!(s->trial.present >> i & 1) || s->values_at[i] == 0)
                        continue;
                c->n_entries++;
                entry->map = s->entries[i].map;
                entry->key = malloc(def->key_size);
                entry->value = malloc(def->value_size);
                if (!entry->key || !entry->value)
                        return NULL;
                memcpy(entry->key, s->entries[i].key, def->key_size);
                memcpy(entry->value, s->trial.bytes + s->values_at[i], def->value_size);
        }
        memcpy(c->words, s->trial.bytes + s->words_at, sizeof(c->words));
        c->n_words = MIN(s->n_words, (uint32_t)COUNTEREXAMPLE_WORDS);
        c->steps = s->steps;
        c->tries = s->tries;
        c->fault = *fault;
        return TAKE_PTR(c);
}

static void search_done(struct search *s)
{
        for (uint32_t i = 0; i < s->n_pool; i++)
                free(s->pool[i].bytes);
        for (uint32_t i = 0; i < s->n_entries; i++)
                free(s->entries[i].key);
        free(s->trial.bytes);
        free(s->context);
        store_free(s->store);
}

static int prepare(struct search *s, struct err *err)
{
        s->words_at = s->program->context.size;
        s->n_bytes = s->words_at + 8 * COUNTEREXAMPLE_WORDS;
        s->context = malloc(s->program->context.size + 1u);
        s->trial.bytes = calloc(1, s->n_bytes);
        if (!s->context || !s->trial.bytes)
                return err_set_nomem(err);
        gather_constants(s);
        return store_new(s->program->maps, s->program->n_maps, &s->store, err);
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
        while (n > 0 && bytes[n - 1] == 0)
                n--;
        return n == 0;
}

/* Whether the trial, with some bytes or entries less, still does it; else it stays as it was. Return: 0 or a negative
 * errno. */
static int try_less(struct search *s, size_t at, size_t size, uint32_t entries, struct fault *fault, struct err *err)
{
        uint32_t present = s->trial.present;
        struct fault less;
        uint8_t was[64];
        int r;

        memcpy(was, s->trial.bytes + at, size);
        memset(s->trial.bytes + at, 0, size);
        s->trial.present &= ~entries;
        prepare_maps(s, &s->trial);
        r = run(s, &s->trial, &less, err);
        if (r == 1) {
                *fault = less;
                return 0;
        }
        memcpy(s->trial.bytes + at, was, size);
        s->trial.present = present;
        return r;
}

/* What a counterexample does not need goes, so that a person sees what matters: entries of maps, then bytes, in ever
 * smaller pieces. */
static int shrink(struct search *s, struct fault *fault, struct err *err)
{
        uint64_t limit = s->spent + SHRINK_STEPS;
        int r = 0;

        for (uint32_t i = 0; i < s->n_entries && r == 0; i++)
                if (s->trial.present >> i & 1)
                        r = try_less(s, 0, 0, 1u << i, fault, err);
        for (size_t size = 64; size > 0 && r == 0; size /= 2)
                for (size_t at = 0; at + size <= s->n_bytes && r == 0 && s->spent < limit; at += size)
                        if (!is_zero(s->trial.bytes + at, size))
                                r = try_less(s, at, size, 0, fault, err);
        return r;
}

/* Whether nothing is left of the effort, which began at @start_ns. */
static bool is_spent(const struct search *s, const struct counterexample_effort *effort, int64_t start_ns)
{
        if (effort->steps != 0 && s->spent >= effort->steps)
                return true;
        return effort->ns != 0 && clock_now_ns(CLOCK_MONOTONIC) - start_ns >= effort->ns;
}

/* The trial is one: make it small, and run it once more for what it asks of helpers, and its steps. Return: 1; a
 * negative errno. */
static int finish(struct search *s, struct fault *fault, struct counterexample **ret, struct err *err)
{
        uint64_t tries = s->tries;
        int r = shrink(s, fault, err);

        prepare_maps(s, &s->trial);
        if (r == 0)
                r = run(s, &s->trial, fault, err);
        if (r < 0)
                return r;
        s->tries = tries;
        *ret = take(s, fault);
        return *ret ? 1 : err_set_nomem(err);
}

static int search(struct search *s, const struct counterexample_effort *effort, struct counterexample **ret,
                  struct err *err)
{
        int64_t start_ns = clock_now_ns(CLOCK_MONOTONIC);

        do {
                struct fault fault = {0};
                int r;

                choose(s);
                prepare_maps(s, &s->trial);
                r = run(s, &s->trial, &fault, err);
                if (r < 0)
                        return r;
                if (r == 1)
                        return finish(s, &fault, ret, err);
                if (keep(s) < 0 || grow(s) < 0)
                        return err_set_nomem(err);
        } while (!is_spent(s, effort, start_ns));
        return 0;
}

int counterexample_find(const struct program *program, const struct verifier_options *options,
                        const struct verdict *verdict, const struct counterexample_effort *effort, uint64_t seed,
                        struct counterexample **ret, struct err *err)
{
        _cleanup_(search_done) struct search s = {.program = program, .options = options, .verdict = verdict};
        uint64_t bytes = 0;
        int r;

        for (uint32_t i = 0; i < program->n_maps; i++)
                bytes += map_bytes(&program->maps[i]);
        if (program->fault.kind != FAULT_NONE || !counterexample_is_due(verdict->fault.kind) || bytes > STORE_MAX)
                return 0;
        rng_seed(&s.rng, seed);
        r = prepare(&s, err);
        return r < 0 ? r : search(&s, effort, ret, err);
}

int counterexample_replay(const struct program *program, const struct verifier_options *options,
                          const struct counterexample *c, struct fault *fault, struct err *err)
{
        struct verdict none = {.fault = {.kind = FAULT_KINDS, .slot = FAULT_NO_SLOT}};
        _cleanup_(search_done) struct search s = {.program = program, .options = options, .verdict = &none};
        int r;

        r = prepare(&s, err);
        if (r < 0)
                return r;
        memcpy(s.trial.bytes, c->context, program->context.size);
        memcpy(s.trial.bytes + s.words_at, c->words, sizeof(c->words));
        for (uint32_t i = 0; i < c->n_entries; i++)
                store_update(s.store, c->entries[i].map, c->entries[i].key, c->entries[i].value, STORE_ANY);
        *fault = (struct fault){0};
        r = run(&s, &s.trial, fault, err);
        return r < 0 ? r : 0;
}
