/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/certificate.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/cfg.h"

void certificate_free(struct certificate *certificate)
{
        if (!certificate)
                return;
        for (uint32_t i = 0; i < certificate->n_contexts; i++) {
                struct certificate_context *context = &certificate->contexts[i];

                for (uint32_t k = 0; k < context->n_points; k++) {
                        while (context->points[k].states) {
                                struct certificate_state *state = context->points[k].states;

                                context->points[k].states = state->next;
                                free(state->state.slots);
                                free(state);
                        }
                        free(context->points[k].counts);
                }
                free(context->points);
                free(context->loops);
        }
        free(certificate->contexts);
        free(certificate);
}

/* Everything that a part's digest is over, as text or bytes one after the other, each with its length before it. */
struct hash {
        EVP_MD_CTX *md;
        bool failed;
};

static void add(struct hash *hash, const void *data, size_t len)
{
        uint8_t length[8];

        put_be64(length, len);
        if (!EVP_DigestUpdate(hash->md, length, sizeof(length)) || !EVP_DigestUpdate(hash->md, data, len))
                hash->failed = true;
}

static void add_text(struct hash *hash, const char *text)
{
        add(hash, text, strlen(text));
}

static void add_number(struct hash *hash, uint64_t number)
{
        uint8_t bytes[8];

        put_be64(bytes, number);
        add(hash, bytes, sizeof(bytes));
}

static void add_program(struct hash *hash, const struct program *program)
{
        const struct context_def *context = &program->context;

        add(hash, program->slots, (size_t)program->n_insns * INSN_SLOT_BYTES);
        for (uint32_t i = 0; i < program->n_subs; i++) {
                add_number(hash, program->subs[i].start);
                add_number(hash, program->subs[i].end);
        }
        add_number(hash, context->size);
        for (size_t i = 0; i < context->n_ranges; i++) {
                add_number(hash, context->ranges[i].offset);
                add_number(hash, context->ranges[i].size);
                add_number(hash, (uint64_t)context->ranges[i].is_writable << 1 | context->ranges[i].is_aligned);
        }
}

static void add_maps(struct hash *hash, const struct program *program)
{
        for (uint32_t i = 0; i < program->n_maps; i++) {
                const struct map_def *map = &program->maps[i];

                add_text(hash, map->name);
                add_text(hash, map_kind_name(map->kind));
                add_number(hash, map->key_size);
                add_number(hash, map->value_size);
                add_number(hash, map->max_entries);
                add_number(hash, (uint64_t)map->is_read_only << 1 | map->is_global);
        }
}

static void add_helpers(struct hash *hash)
{
        size_t n;
        const struct helper *helpers = helper_table(&n);

        for (size_t i = 0; i < n; i++) {
                add_number(hash, helpers[i].id);
                add_text(hash, helpers[i].name);
                add(hash, helpers[i].args, sizeof(helpers[i].args));
                add_number(hash, helpers[i].ret);
                add_number(hash, helpers[i].profiles);
                add_number(hash, helpers[i].map_kinds);
                add_number(hash, helpers[i].is_actuation);
                add_number(hash, (uint64_t)helpers[i].ret_min);
                add_number(hash, (uint64_t)helpers[i].ret_max);
        }
}

static void add_profile(struct hash *hash, const struct verifier_options *options)
{
        const struct profile *profile = options->profile;
        const struct cost_table *costs = options->costs ? options->costs : cost_default();

        add_text(hash, profile->name);
        add_number(hash, profile->allows_loops);
        add_number(hash, profile->helper_bit);
        add_number(hash, profile->max_slots);
        add_number(hash, profile->max_stack_bytes);
        add_number(hash, profile->max_maps);
        add_number(hash, profile->max_map_bytes);
        add_number(hash, profile->max_cost_ps);
        add_number(hash, options->may_actuate);
        for (unsigned i = 0; i < COST_CLASSES; i++)
                add_number(hash, costs->class_ps[i]);
        for (unsigned i = 0; i < COST_HELPERS_MAX; i++)
                add_number(hash, costs->helper_ps[i]);
}

const char *certificate_part_name(enum certificate_part part)
{
        static const char *const names[CERTIFICATE_PARTS] = {"program", "maps", "helpers", "profile"};

        return part < CERTIFICATE_PARTS ? names[part] : "unknown";
}

static int digest_failed(struct err *err)
{
        return err_set(err, ERR_ENVIRONMENT, EIO, "libcrypto cannot compute SHA-256; is it installed?");
}

int certificate_digests(const struct program *program, const struct verifier_options *options,
                        uint8_t ret[CERTIFICATE_PARTS][CERTIFICATE_DIGEST], struct err *err)
{
        struct hash hash = {.md = EVP_MD_CTX_new()};

        if (!hash.md)
                return digest_failed(err);
        for (unsigned part = 0; part < CERTIFICATE_PARTS; part++) {
                if (!EVP_DigestInit_ex(hash.md, EVP_sha256(), NULL))
                        hash.failed = true;
                add_text(&hash, "assay-bpf-certificate-1");
                add_text(&hash, certificate_part_name((enum certificate_part)part));
                if (part == CERTIFICATE_PROGRAM)
                        add_program(&hash, program);
                else if (part == CERTIFICATE_MAPS)
                        add_maps(&hash, program);
                else if (part == CERTIFICATE_HELPERS)
                        add_helpers(&hash);
                else
                        add_profile(&hash, options);
                if (!EVP_DigestFinal_ex(hash.md, ret[part], NULL))
                        hash.failed = true;
        }
        EVP_MD_CTX_free(hash.md);
        return hash.failed ? digest_failed(err) : 0;
}

int certificate_compare_chains(const struct verifier_context *a, const struct verifier_context *b)
{
        for (uint32_t i = 0; i < a->n && i < b->n; i++)
                if (a->calls[i] != b->calls[i])
                        return a->calls[i] < b->calls[i] ? -1 : 1;
        return (a->n > b->n) - (a->n < b->n);
}

const struct certificate_context *certificate_find(const struct certificate *certificate,
                                                   const struct verifier_context *chain)
{
        uint32_t low = 0, high = certificate->n_contexts;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                int order = certificate_compare_chains(&certificate->contexts[middle].chain, chain);

                if (order == 0)
                        return &certificate->contexts[middle];
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

const struct certificate_point *certificate_point_at(const struct certificate_context *context, uint32_t slot)
{
        uint32_t low = 0, high = context->n_points;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (context->points[middle].slot == slot)
                        return &context->points[middle];
                if (context->points[middle].slot < slot)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

/* What the verifier's observers gather into. Contexts are found by a hash of their chains, points by their block. */
struct recorder {
        const struct cfg *cfg;
        struct certificate *certificate;
        uint32_t *buckets;  /* numbers of contexts, counted from 1 */
        uint32_t n_buckets; /* a power of two */
        uint32_t **points;  /* by context, then by block of the function: numbers of points, counted from 1 */
        bool failed;
};

static void recorder_done(struct recorder *rec)
{
        for (uint32_t i = 0; rec->points && i < rec->certificate->n_contexts; i++)
                free(rec->points[i]);
        free(rec->points);
        free(rec->buckets);
}

/* Make room for one more element of an array that doubles. Return: false if memory ran out. */
static bool grow(void **array, uint32_t n, size_t size)
{
        void *larger;

        if (n != 0 && (n & (n - 1)) != 0)
                return true;
        larger = reallocarray(*array, n == 0 ? 1 : 2 * (size_t)n, size);
        if (!larger)
                return false;
        *array = larger;
        return true;
}

static uint32_t hash_chain(const struct verifier_context *chain)
{
        uint32_t hash = chain->n;

        for (uint32_t i = 0; i < chain->n; i++)
                hash = (hash ^ chain->calls[i]) * UINT32_C(0x9e3779b1);
        return hash ^ hash >> 16;
}

static uint32_t *bucket_of(const struct recorder *rec, const struct verifier_context *chain)
{
        uint32_t i = hash_chain(chain) & (rec->n_buckets - 1);

        while (rec->buckets[i] != 0 &&
               certificate_compare_chains(&rec->certificate->contexts[rec->buckets[i] - 1].chain, chain) != 0)
                i = (i + 1) & (rec->n_buckets - 1);
        return &rec->buckets[i];
}

/* At most half of the buckets are used. Return: false if memory ran out. */
static bool grow_buckets(struct recorder *rec)
{
        uint32_t n = rec->certificate->n_contexts;

        if (rec->n_buckets > 2 * n)
                return true;
        free(rec->buckets);
        rec->n_buckets = MAX(2 * rec->n_buckets, 16u);
        rec->buckets = calloc(rec->n_buckets, sizeof(*rec->buckets));
        for (uint32_t i = 0; rec->buckets && i < n; i++)
                *bucket_of(rec, &rec->certificate->contexts[i].chain) = i + 1;
        return rec->buckets;
}

/* Number of a chain's context, made where there is none yet for a function at @slot. -1: memory ran out. */
static int64_t context_of(struct recorder *rec, const struct verifier_context *chain, uint32_t slot)
{
        struct certificate *certificate = rec->certificate;
        uint32_t n = certificate->n_contexts, *bucket;
        const struct cfg_sub *sub = &rec->cfg->subs[rec->cfg->blocks[rec->cfg->block_of[slot]].sub];

        if (!grow_buckets(rec))
                return -1;
        bucket = bucket_of(rec, chain);
        if (*bucket != 0)
                return *bucket - 1;
        if (!grow((void **)&certificate->contexts, n, sizeof(*certificate->contexts)) ||
            !grow((void **)&rec->points, n, sizeof(*rec->points)))
                return -1;
        rec->points[n] = calloc(sub->n_blocks, sizeof(**rec->points));
        certificate->contexts[n] = (struct certificate_context){.chain = {.n = chain->n}};
        memcpy(certificate->contexts[n].chain.calls, chain->calls, sizeof(chain->calls));
        *bucket = ++certificate->n_contexts;
        return rec->points[n] ? n : -1;
}

/* The point of a block in a chain's context; NULL if memory ran out. */
static struct certificate_point *point_of(struct recorder *rec, const struct verifier_context *chain, uint32_t slot)
{
        uint32_t block = rec->cfg->block_of[slot], *number;
        int64_t at = context_of(rec, chain, slot);
        struct certificate_context *context;

        if (at < 0)
                return NULL;
        context = &rec->certificate->contexts[at];
        number = &rec->points[at][block - rec->cfg->subs[rec->cfg->blocks[block].sub].entry];
        if (*number == 0) {
                if (!grow((void **)&context->points, context->n_points, sizeof(*context->points)))
                        return NULL;
                context->points[context->n_points] = (struct certificate_point){.slot = slot};
                *number = ++context->n_points;
        }
        return &context->points[*number - 1];
}

static struct certificate_state *copy_state(const struct state *state, const struct verifier_context *chain)
{
        struct certificate_state *copy = malloc(sizeof(*copy) + chain->n_turns * sizeof(*copy->turns));

        if (!copy)
                return NULL;
        copy->state = *state;
        for (unsigned reg = 0; reg < INSN_REGISTERS; reg++)
                if (state->regs[reg].kind == REG_UNINIT)
                        copy->state.regs[reg] = (struct reg){.kind = REG_UNINIT};
        copy->state.slots = calloc(state->n_slots + 1u, sizeof(*copy->state.slots));
        if (!copy->state.slots) {
                free(copy);
                return NULL;
        }
        if (state->n_slots > 0)
                memcpy(copy->state.slots, state->slots, state->n_slots * sizeof(*state->slots));
        copy->n_turns = chain->n_turns;
        if (chain->n_turns > 0)
                memcpy(copy->turns, chain->turns, chain->n_turns * sizeof(*copy->turns));
        return copy;
}

static void record_state(void *userdata, const struct verifier_context *chain, uint32_t slot, const struct state *state)
{
        struct recorder *rec = userdata;
        struct certificate_point *point;
        struct certificate_state *copy;

        if (rec->failed || rec->cfg->blocks[rec->cfg->block_of[slot]].start != slot)
                return;
        point = point_of(rec, chain, slot);
        copy = point ? copy_state(state, chain) : NULL;
        if (!copy) {
                rec->failed = true;
                return;
        }
        copy->next = point->states;
        point->states = copy;
        point->n_states++;
}

/* A loop that is settled again: what was said of it then is replaced, since the ways that it takes have become more. */
static void forget_ending(struct certificate_context *context, uint32_t head)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < context->n_loops; i++)
                if (context->loops[i].head != head)
                        context->loops[n++] = context->loops[i];
        if (n == context->n_loops)
                return;
        context->n_loops = n;
        for (uint32_t k = 0; k < context->n_points; k++) {
                struct certificate_point *point = &context->points[k];

                n = 0;
                for (uint32_t i = 0; i < point->n_counts; i++)
                        if (point->counts[i].head != head)
                                point->counts[n++] = point->counts[i];
                point->n_counts = n;
        }
}

static void record_ending(void *userdata, const struct verifier_context *chain, const struct verifier_ending *ending)
{
        struct recorder *rec = userdata;
        int64_t number = rec->failed ? -1 : context_of(rec, chain, ending->head);
        struct certificate_context *context = number < 0 ? NULL : &rec->certificate->contexts[number];

        if (context)
                forget_ending(context, ending->head);
        if (!context || !grow((void **)&context->loops, context->n_loops, sizeof(*context->loops)))
                rec->failed = true;
        else
                context->loops[context->n_loops++] = *ending;
}

static void record_count(void *userdata, const struct verifier_context *chain, const struct verifier_count *count)
{
        struct recorder *rec = userdata;
        struct certificate_point *point = rec->failed ? NULL : point_of(rec, chain, count->slot);

        if (!point || !grow((void **)&point->counts, point->n_counts, sizeof(*point->counts)))
                rec->failed = true;
        else
                point->counts[point->n_counts++] = *count;
}

static int compare_contexts(const void *a, const void *b)
{
        return certificate_compare_chains(&((const struct certificate_context *)a)->chain,
                                          &((const struct certificate_context *)b)->chain);
}

static int compare_points(const void *a, const void *b)
{
        uint32_t x = ((const struct certificate_point *)a)->slot, y = ((const struct certificate_point *)b)->slot;

        return (x > y) - (x < y);
}

static int compare_endings(const void *a, const void *b)
{
        uint32_t x = ((const struct verifier_ending *)a)->head, y = ((const struct verifier_ending *)b)->head;

        return (x > y) - (x < y);
}

static void sort(struct certificate *certificate)
{
        if (certificate->n_contexts == 0)
                return;
        qsort(certificate->contexts, certificate->n_contexts, sizeof(*certificate->contexts), compare_contexts);
        for (uint32_t i = 0; i < certificate->n_contexts; i++) {
                struct certificate_context *context = &certificate->contexts[i];

                if (context->n_points > 0)
                        qsort(context->points, context->n_points, sizeof(*context->points), compare_points);
                if (context->n_loops > 0)
                        qsort(context->loops, context->n_loops, sizeof(*context->loops), compare_endings);
        }
}

int certificate_make(const struct program *program, const struct verifier_options *options, struct certificate **ret,
                     struct verdict *ret_verdict, struct err *err)
{
        _cleanup_certificate_ struct certificate *certificate = calloc(1, sizeof(*certificate));
        _cleanup_cfg_ struct cfg *cfg = NULL;
        _cleanup_(recorder_done) struct recorder rec = {.certificate = certificate};
        struct verifier_options recording = *options;
        struct verdict verdict = {0};
        struct fault fault;
        int r;

        if (!certificate)
                return err_set_nomem(err);
        r = program->fault.kind == FAULT_NONE ? cfg_build(program, &cfg, &fault, err) : 1;
        if (r < 0)
                return r;
        if (r > 0) /* there is nothing to observe, and the verifier says why */
                return verifier_check(program, options, ret_verdict, err);

        rec.cfg = cfg;
        recording.observe = record_state;
        recording.observe_ending = record_ending;
        recording.observe_count = record_count;
        recording.userdata = &rec;
        r = verifier_check(program, &recording, &verdict, err);
        if (r == 0)
                r = certificate_digests(program, options, certificate->digests, err);
        if (r == 0 && rec.failed)
                r = err_set_nomem(err);
        if (r < 0) {
                verdict_done(&verdict);
                return r;
        }
        *ret_verdict = verdict;
        if (r > 0)
                return r;
        sort(certificate);
        *ret = TAKE_PTR(certificate);
        return 0;
}
