/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/macro.h"
#include "bpfvm/certificate.h"

/* The file: docs/formats/bpf-certificate.md. 64-bit words are written as signed integers of the same bits. */

static const char *const kind_names[] = {
        [REG_UNINIT] = "none", [REG_MIXED] = "mixed", [REG_SCALAR] = "number", [REG_CONTEXT] = "context",
        [REG_STACK] = "stack", [REG_VALUE] = "value", [REG_MAP] = "map",
};

static json_t *word(uint64_t bits)
{
        return json_integer((json_int_t)bits);
}

static json_t *scalar_out(const struct scalar *s)
{
        if (scalar_is_const(s))
                return word(s->tnum.value);
        return json_pack("[IIIIIIIIII]", (json_int_t)s->tnum.value, (json_int_t)s->tnum.mask, (json_int_t)s->word.umin,
                         (json_int_t)s->word.umax, (json_int_t)s->word.smin, (json_int_t)s->word.smax,
                         (json_int_t)s->half.umin, (json_int_t)s->half.umax, (json_int_t)s->half.smin,
                         (json_int_t)s->half.smax);
}

static json_t *reg_out(const struct reg *reg)
{
        json_t *out = json_pack("{ss}", "kind", kind_names[reg->kind]);

        if (reg->kind == REG_UNINIT || reg->kind == REG_MIXED)
                return out;
        json_object_set_new(out, "value", scalar_out(&reg->value));
        if (reg->kind != REG_SCALAR)
                json_object_set_new(out, "index", json_integer(reg->index));
        if (reg->may_be_null)
                json_object_set_new(out, "null", json_true());
        if (reg->id != 0)
                json_object_set_new(out, "copies", json_integer(reg->id));
        return out;
}

static json_t *slot_out(const struct slot *slot)
{
        json_t *out = json_pack("{si,si}", "place", (int)slot->place, "written", (int)slot->init);

        if (slot->size == 0)
                return out;
        json_object_set_new(out, "at", json_integer(slot->at));
        json_object_set_new(out, "size", json_integer(slot->size));
        json_object_set_new(out, "holds", reg_out(&slot->value));
        return out;
}

static json_t *turns_out(const struct certificate_state *claim)
{
        json_t *turns = json_array();

        for (uint32_t i = 0; i < claim->n_turns; i++)
                json_array_append_new(turns, json_pack("{sI,sI,sI}", "frame", (json_int_t)claim->turns[i].frame, "head",
                                                       (json_int_t)claim->turns[i].head, "turn",
                                                       (json_int_t)claim->turns[i].turn));
        return turns;
}

static json_t *state_out(const struct certificate_state *claim)
{
        const struct state *state = &claim->state;
        json_t *regs = json_object(), *slots = json_array();
        char name[8];

        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++) {
                if (state->regs[reg].kind == REG_UNINIT)
                        continue;
                snprintf(name, sizeof(name), "r%u", reg);
                json_object_set_new(regs, name, reg_out(&state->regs[reg]));
        }
        for (size_t i = 0; i < state->n_slots; i++)
                json_array_append_new(slots, slot_out(&state->slots[i]));
        return json_pack("{si,so,so,so}", "frames", (int)state->depth, "registers", regs, "stack", slots, "turns",
                         turns_out(claim));
}

static json_t *place_out(struct verifier_place place)
{
        if (place.reg == VERIFIER_STACK)
                return json_pack("{si,si}", "offset", (int)place.offset, "size", (int)place.size);
        return json_pack("{si}", "register", (int)place.reg);
}

static json_t *count_out(const struct verifier_count *count)
{
        return json_pack("{sI,so,sb,sI,sI}", "head", (json_int_t)count->head, "at", place_out(count->at), "low",
                         (int)count->is_low, "least", (json_int_t)count->least, "most", (json_int_t)count->most);
}

static json_t *ending_out(const struct verifier_ending *ending)
{
        return json_pack("{sI,so,sb,sI,sI,sI}", "head", (json_int_t)ending->head, "counter", place_out(ending->counter),
                         "low", (int)ending->is_low, "least", (json_int_t)ending->least, "most",
                         (json_int_t)ending->most, "turns", (json_int_t)ending->turns);
}

static json_t *point_out(const struct certificate_point *point)
{
        json_t *states = json_array(), *counts = json_array();

        for (const struct certificate_state *state = point->states; state; state = state->next)
                json_array_append_new(states, state_out(state));
        for (uint32_t i = 0; i < point->n_counts; i++)
                json_array_append_new(counts, count_out(&point->counts[i]));
        return json_pack("{sI,so,so}", "slot", (json_int_t)point->slot, "states", states, "counts", counts);
}

static json_t *context_out(const struct certificate_context *context)
{
        json_t *calls = json_array(), *points = json_array(), *loops = json_array();

        for (uint32_t i = 0; i < context->chain.n; i++)
                json_array_append_new(calls, json_integer(context->chain.calls[i]));
        for (uint32_t i = 0; i < context->n_points; i++)
                json_array_append_new(points, point_out(&context->points[i]));
        for (uint32_t i = 0; i < context->n_loops; i++)
                json_array_append_new(loops, ending_out(&context->loops[i]));
        return json_pack("{so,so,so}", "calls", calls, "points", points, "loops", loops);
}

json_t *certificate_to_json(const struct certificate *certificate)
{
        json_t *digests = json_object(), *contexts = json_array();
        char hex[2 * CERTIFICATE_DIGEST + 1];

        for (unsigned part = 0; part < CERTIFICATE_PARTS; part++) {
                for (size_t i = 0; i < CERTIFICATE_DIGEST; i++)
                        snprintf(hex + 2 * i, 3, "%02x", certificate->digests[part][i]);
                json_object_set_new(digests, certificate_part_name((enum certificate_part)part), json_string(hex));
        }
        for (uint32_t i = 0; i < certificate->n_contexts; i++)
                json_array_append_new(contexts, context_out(&certificate->contexts[i]));
        return json_pack("{ss,si,so,so}", "assay", "bpf-certificate", "version", CERTIFICATE_VERSION, "digests",
                         digests, "contexts", contexts);
}

/* Reading. Whatever the file says is only taken apart here; whether it makes sense is for the auditor. */

static int bad(struct err *err, const char *where, const char *what)
{
        return err_set(err, ERR_DATA, EINVAL, "certificate: %s: %s", where, what);
}

/* An integer within bounds. */
static int get_number(const json_t *object, const char *where, const char *key, int64_t least, int64_t most,
                      int64_t *ret, struct err *err)
{
        int r = json_get_i64(object, where, key, ret, err);

        if (r < 0)
                return r;
        return *ret < least || *ret > most ? bad(err, where, "a number is out of range") : 0;
}

static int scalar_in(const json_t *json, struct scalar *ret, struct err *err)
{
        uint64_t words[10];

        if (json_is_integer(json)) {
                *ret = scalar_const((uint64_t)json_integer_value(json));
                return 0;
        }
        if (!json_is_array(json) || json_array_size(json) != ARRAY_SIZE(words))
                return bad(err, "value", "expected an integer, or ten");
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                if (!json_is_integer(json_array_get(json, i)))
                        return bad(err, "value", "expected an integer, or ten");
                words[i] = (uint64_t)json_integer_value(json_array_get(json, i));
        }
        *ret = (struct scalar){
                {words[0], words[1]},
                {words[2], words[3], (int64_t)words[4], (int64_t)words[5]},
                {words[6], words[7], (int64_t)words[8], (int64_t)words[9]},
        };
        return 0;
}

static int reg_in(const json_t *json, struct reg *ret, struct err *err)
{
        const char *name;
        int64_t index = 0, id = 0;
        unsigned kind = 0;
        int r;

        *ret = (struct reg){0};
        if (!json_is_object(json))
                return bad(err, "registers", "expected an object");
        r = json_get_string(json, "register", "kind", &name, err);
        if (r < 0)
                return r;
        while (kind < ARRAY_SIZE(kind_names) && !streq(kind_names[kind], name))
                kind++;
        if (kind == ARRAY_SIZE(kind_names))
                return bad(err, "register", "no such kind");
        ret->kind = (uint8_t)kind;
        if (kind == REG_UNINIT || kind == REG_MIXED)
                return 0;
        r = scalar_in(json_object_get(json, "value"), &ret->value, err);
        if (r == 0 && json_object_get(json, "index"))
                r = get_number(json, "register", "index", 0, UINT16_MAX, &index, err);
        if (r == 0 && json_object_get(json, "copies"))
                r = get_number(json, "register", "copies", 1, INT32_MAX, &id, err);
        ret->index = (uint16_t)index;
        ret->id = (uint32_t)id;
        ret->may_be_null = kind == REG_VALUE && json_is_true(json_object_get(json, "null"));
        return r;
}

static int slot_in(const json_t *json, struct slot *ret, struct err *err)
{
        int64_t place, written, at = 0, size = 0;
        int r;

        if (!json_is_object(json))
                return bad(err, "stack", "expected objects");
        r = get_number(json, "stack", "place", 0, PROFILE_CALL_DEPTH * STATE_FRAME_PLACES - 1, &place, err);
        if (r == 0)
                r = get_number(json, "stack", "written", 0, UINT8_MAX, &written, err);
        if (r == 0 && json_object_get(json, "holds")) {
                r = get_number(json, "stack", "at", 0, 7, &at, err);
                if (r == 0)
                        r = get_number(json, "stack", "size", 1, 8, &size, err);
                if (r == 0)
                        r = reg_in(json_object_get(json, "holds"), &ret->value, err);
        }
        if (r < 0)
                return r;
        ret->place = (uint16_t)place;
        ret->init = (uint8_t)written;
        ret->at = (uint8_t)at;
        ret->size = (uint8_t)size;
        return 0;
}

static int slots_in(const json_t *json, struct state *state, struct err *err)
{
        size_t n = json_array_size(json);

        if (n > PROFILE_CALL_DEPTH * STATE_FRAME_PLACES)
                return bad(err, "stack", "more slots than there are");
        state->slots = calloc(n + 1, sizeof(*state->slots));
        if (!state->slots)
                return err_set_nomem(err);
        for (; state->n_slots < n; state->n_slots++) {
                struct slot *slot = &state->slots[state->n_slots];
                int r = slot_in(json_array_get(json, state->n_slots), slot, err);

                if (r < 0)
                        return r;
                if (state->n_slots > 0 && slot[-1].place >= slot->place)
                        return bad(err, "stack", "slots are not in ascending order");
        }
        return 0;
}

static int turns_in(const json_t *json, struct certificate_state *claim, struct err *err)
{
        for (; claim->n_turns < json_array_size(json); claim->n_turns++) {
                const json_t *turn = json_array_get(json, claim->n_turns);
                int64_t frame, head, number;
                int r;

                r = get_number(turn, "turn", "frame", 0, PROFILE_CALL_DEPTH - 1, &frame, err);
                if (r == 0)
                        r = get_number(turn, "turn", "head", 0, UINT32_MAX, &head, err);
                if (r == 0)
                        r = get_number(turn, "turn", "turn", 0, UINT32_MAX, &number, err);
                if (r < 0)
                        return r;
                claim->turns[claim->n_turns] =
                        (struct verifier_turn){(uint32_t)frame, (uint32_t)head, (uint32_t)number};
        }
        return 0;
}

static int state_in(const json_t *json, struct state *state, struct err *err)
{
        json_t *regs, *slots, *value;
        const char *key;
        int64_t depth;
        int r;

        r = get_number(json, "state", "frames", 1, PROFILE_CALL_DEPTH, &depth, err);
        if (r == 0)
                r = json_get_object(json, "state", "registers", &regs, err);
        if (r == 0)
                r = json_get_array(json, "state", "stack", &slots, err);
        if (r < 0)
                return r;
        state->depth = (uint8_t)depth;
        json_object_foreach(regs, key, value)
        {
                if (strlen(key) != 2 || key[0] != 'r' || key[1] < '0' || key[1] > '9')
                        return bad(err, "registers", "expected r0 to r9");
                r = reg_in(value, &state->regs[key[1] - '0'], err);
                if (r < 0)
                        return r;
        }
        return slots_in(slots, state, err);
}

static int place_in(const json_t *json, struct verifier_place *ret, struct err *err)
{
        int64_t reg = VERIFIER_STACK, offset = 0, size = 0;
        int r;

        if (json_object_get(json, "register")) {
                r = get_number(json, "place", "register", 0, INSN_FRAME_POINTER - 1, &reg, err);
        } else {
                r = get_number(json, "place", "offset", -PROFILE_FRAME_BYTES, -1, &offset, err);
                if (r == 0)
                        r = get_number(json, "place", "size", 1, 8, &size, err);
        }
        *ret = (struct verifier_place){(uint8_t)reg, (uint8_t)size, (int16_t)offset};
        return r;
}

/* The members that counts and endings have in common. */
static int change_in(const json_t *json, const char *key, int64_t *head, struct verifier_place *place, bool *is_low,
                     int64_t *least, int64_t *most, struct err *err)
{
        json_t *at;
        int r;

        r = get_number(json, "counter", "head", 0, UINT32_MAX, head, err);
        if (r == 0)
                r = json_get_object(json, "counter", key, &at, err);
        if (r == 0)
                r = place_in(at, place, err);
        if (r == 0)
                r = json_get_bool(json, "counter", "low", is_low, err);
        if (r == 0)
                r = json_get_i64(json, "counter", "least", least, err);
        if (r == 0)
                r = json_get_i64(json, "counter", "most", most, err);
        return r;
}

static int counts_in(const json_t *json, struct certificate_point *point, struct err *err)
{
        size_t n = json_array_size(json);

        point->counts = calloc(n + 1, sizeof(*point->counts));
        if (!point->counts)
                return err_set_nomem(err);
        for (; point->n_counts < n; point->n_counts++) {
                struct verifier_count *count = &point->counts[point->n_counts];
                int64_t head;
                int r = change_in(json_array_get(json, point->n_counts), "at", &head, &count->at, &count->is_low,
                                  &count->least, &count->most, err);

                if (r < 0)
                        return r;
                count->head = (uint32_t)head;
                count->slot = point->slot;
        }
        return 0;
}

static int point_in(const json_t *json, struct certificate_point *point, struct err *err)
{
        json_t *states, *counts;
        int64_t slot;
        int r;

        r = get_number(json, "point", "slot", 0, UINT32_MAX, &slot, err);
        if (r == 0)
                r = json_get_array(json, "point", "states", &states, err);
        if (r == 0)
                r = json_get_array(json, "point", "counts", &counts, err);
        if (r < 0)
                return r;
        point->slot = (uint32_t)slot;
        for (size_t i = 0; i < json_array_size(states) && r == 0; i++) {
                const json_t *from = json_array_get(states, i);
                struct certificate_state *claim;
                json_t *turns;

                r = json_get_array(from, "state", "turns", &turns, err);
                if (r < 0)
                        return r;
                if (json_array_size(turns) > VERIFIER_TURNS_MAX)
                        return bad(err, "turns", "more loops around than there can be");
                claim = calloc(1, sizeof(*claim) + json_array_size(turns) * sizeof(*claim->turns));
                if (!claim)
                        return err_set_nomem(err);
                claim->next = point->states;
                point->states = claim;
                point->n_states++;
                r = state_in(from, &claim->state, err);
                if (r == 0)
                        r = turns_in(turns, claim, err);
        }
        return r < 0 ? r : counts_in(counts, point, err);
}

static int points_in(const json_t *json, struct certificate_context *context, struct err *err)
{
        size_t n = json_array_size(json);

        context->points = calloc(n + 1, sizeof(*context->points));
        if (!context->points)
                return err_set_nomem(err);
        while (context->n_points < n) {
                struct certificate_point *point = &context->points[context->n_points];
                int r = point_in(json_array_get(json, context->n_points++), point, err);

                if (r < 0)
                        return r;
                if (context->n_points > 1 && point[-1].slot >= point->slot)
                        return bad(err, "points", "not in ascending order");
        }
        return 0;
}

static int loops_in(const json_t *json, struct certificate_context *context, struct err *err)
{
        size_t n = json_array_size(json);

        context->loops = calloc(n + 1, sizeof(*context->loops));
        if (!context->loops)
                return err_set_nomem(err);
        for (; context->n_loops < n; context->n_loops++) {
                struct verifier_ending *ending = &context->loops[context->n_loops];
                int64_t head, turns;
                int r = change_in(json_array_get(json, context->n_loops), "counter", &head, &ending->counter,
                                  &ending->is_low, &ending->least, &ending->most, err);

                if (r == 0)
                        r = json_get_i64(json_array_get(json, context->n_loops), "loop", "turns", &turns, err);
                if (r < 0)
                        return r;
                ending->head = (uint32_t)head;
                ending->turns = (uint64_t)turns;
        }
        return 0;
}

static int context_in(const json_t *json, struct certificate_context *context, struct err *err)
{
        json_t *calls, *points, *loops;
        int r;

        r = json_get_array(json, "context", "calls", &calls, err);
        if (r == 0)
                r = json_get_array(json, "context", "points", &points, err);
        if (r == 0)
                r = json_get_array(json, "context", "loops", &loops, err);
        if (r < 0)
                return r;
        if (json_array_size(calls) >= PROFILE_CALL_DEPTH)
                return bad(err, "calls", "a longer chain than there are frames");
        for (size_t i = 0; i < json_array_size(calls); i++) {
                const json_t *call = json_array_get(calls, i);

                if (!json_is_integer(call) || json_integer_value(call) < 0 || json_integer_value(call) > UINT32_MAX)
                        return bad(err, "calls", "expected slots");
                context->chain.calls[context->chain.n++] = (uint32_t)json_integer_value(call);
        }
        r = points_in(points, context, err);
        return r < 0 ? r : loops_in(loops, context, err);
}

static int digests_in(const json_t *json, struct certificate *certificate, struct err *err)
{
        for (unsigned part = 0; part < CERTIFICATE_PARTS; part++) {
                _cleanup_free_ uint8_t *bytes = NULL;
                size_t len, offset;
                const char *hex;
                int r = json_get_string(json, "digests", certificate_part_name((enum certificate_part)part), &hex, err);

                if (r < 0)
                        return r;
                r = hex_decode(span_of_text(hex), &bytes, &len, &offset);
                if (r == -ENOMEM)
                        return err_set_nomem(err);
                if (r < 0 || len != CERTIFICATE_DIGEST)
                        return bad(err, "digests", "expected 64 hexadecimal digits");
                memcpy(certificate->digests[part], bytes, len);
        }
        return 0;
}

static int check_header(const json_t *json, struct err *err)
{
        const char *format;
        int64_t version;
        int r;

        if (!json_is_object(json))
                return bad(err, "file", "expected an object");
        r = json_get_string(json, "file", "assay", &format, err);
        if (r == 0)
                r = json_get_i64(json, "file", "version", &version, err);
        if (r < 0)
                return r;
        return streq(format, "bpf-certificate") && version == CERTIFICATE_VERSION
                       ? 0
                       : bad(err, "file", "expected a bpf-certificate of version 1");
}

int certificate_of_json(const json_t *json, struct certificate **ret, struct err *err)
{
        _cleanup_certificate_ struct certificate *certificate = calloc(1, sizeof(*certificate));
        json_t *digests, *contexts;
        int r;

        if (!certificate)
                return err_set_nomem(err);
        r = check_header(json, err);
        if (r == 0)
                r = json_get_object(json, "file", "digests", &digests, err);
        if (r == 0)
                r = digests_in(digests, certificate, err);
        if (r == 0)
                r = json_get_array(json, "file", "contexts", &contexts, err);
        if (r < 0)
                return r;
        certificate->contexts = calloc(json_array_size(contexts) + 1, sizeof(*certificate->contexts));
        if (!certificate->contexts)
                return err_set_nomem(err);
        while (certificate->n_contexts < json_array_size(contexts)) {
                struct certificate_context *context = &certificate->contexts[certificate->n_contexts];

                r = context_in(json_array_get(contexts, certificate->n_contexts++), context, err);
                if (r < 0)
                        return r;
                if (certificate->n_contexts > 1 && certificate_compare_chains(&context[-1].chain, &context->chain) >= 0)
                        return bad(err, "contexts", "not in ascending order");
        }
        *ret = TAKE_PTR(certificate);
        return 0;
}
