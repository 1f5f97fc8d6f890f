/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/disasm.h"

static const char *const suggestions[FAULT_KINDS] = {
        [FAULT_FALL_THROUGH] = "End every function with exit, or a jump.",
        [FAULT_UNREACHABLE] = "Remove the code, or the jump that skips it for good.",
        [FAULT_RECURSION] = "Write it as a loop with a counter.",
        [FAULT_CALL_DEPTH] = "Let the compiler inline some of the functions (static inline, always_inline).",
        [FAULT_LOOP] =
                "Unroll it (#pragma unroll, with a constant bound), or check for profile full, which allows loops that "
                "are shown to end.",
        [FAULT_UNINIT_REGISTER] = "Give the variable a value on every way that leads here.",
        [FAULT_UNINIT_STACK] =
                "Initialise the whole object before its address is used, padding included: struct s v = {} or "
                "__builtin_memset().",
        [FAULT_NOT_POINTER] =
                "Follow the value back: on some way here it is a number, perhaps the 0 of a lookup that found "
                "nothing.",
        [FAULT_NULL] = "Test the result of the lookup, and leave where it is 0: if (!value) return 0;",
        [FAULT_BOUNDS] =
                "Compare the index with the size before it is used, as an unsigned number, in the width in which it is "
                "used: if (i >= SIZE) return 0; or mask it: i &= SIZE - 1.",
        [FAULT_READ_ONLY] = "Copy the data to the stack or to a map of its own, and write there.",
        [FAULT_ALIGNMENT] =
                "Align the object to the size of the access (__attribute__((aligned(8)))), or use smaller ones.",
        [FAULT_POINTER_ARITH] =
                "Keep pointers as pointers: only add or subtract a 64-bit number, after a lookup's result was "
                "tested.",
        [FAULT_POINTER_COMPARE] = "Compare offsets or counters instead; a pointer may only be tested against 0.",
        [FAULT_POINTER_LEAK] = "Store or return what it points to, or a number of your own, instead of the pointer.",
        [FAULT_POINTER_PARTIAL] =
                "Access the slot as a whole pointer, or keep the pointer and the data in separate variables.",
        [FAULT_NO_ACCESS] = "Get at a map's values with map_lookup_elem().",
        [FAULT_DIVISION] = "Divide by something else, or drop the division.",
        [FAULT_SHIFT] = "Shift by less than the width of the operand.",
        [FAULT_HELPER_UNKNOWN] = "See the table of helpers in docs/formats/bpf-program.md; no others exist here.",
        [FAULT_HELPER_FORBIDDEN] = "Check for a profile that allows it, or grant the right to actuate.",
        [FAULT_HELPER_ARGUMENT] = "Pass what the helper's prototype asks for, in that order.",
        [FAULT_INSN_LIMIT] = "Split the program, or check for profile full.",
        [FAULT_STACK_LIMIT] = "Move large objects to a map of one entry, or make the chain of calls shorter.",
        [FAULT_MAP_LIMIT] = "Make the maps smaller, or check for profile full.",
        [FAULT_CONTEXT_LIMIT] = "Call the functions from fewer places, or let them be inlined.",
        [FAULT_STATE_LIMIT] = "Split the program, or keep fewer states apart: --disjuncts 1.",
        [FAULT_TERMINATION] =
                "Count the turns in one variable that changes by a constant every turn and is compared with a bound, "
                "as in for (i = 0; i < N; i++).",
        [FAULT_COST] = "Do less in one invocation, or spread the work over several.",
};

/* The instruction before one, where that is in the same stretch of the text. */
static const struct insn *before(const struct program *program, uint32_t slot)
{
        while (slot-- > 0)
                if (program->insns[slot].kind != INSN_TAIL)
                        return &program->insns[slot];
        return NULL;
}

/* Whether, in the text before @slot, a call came after the last write of a register that it clobbers. */
static bool is_clobbered(const struct program *program, uint32_t slot, uint16_t reads)
{
        uint16_t wanted = reads & 0x3e;

        for (unsigned i = 0; i < 64 && wanted && slot > 0; i++, slot--) {
                const struct insn *insn = before(program, slot);

                if (!insn)
                        return false;
                if (insn->kind == INSN_CALL_HELPER || insn->kind == INSN_CALL_LOCAL)
                        return true;
                wanted &= (uint16_t)~insn_writes(insn);
        }
        return false;
}

/* What clang makes of a call through a pointer. */
#define OPCODE_CALLX 0x8d

/* @known: what is known of the access's registers, in the words of reg_format() */
static const char *suggest_bounds(const struct program *program, const char *known)
{
        if (strstr(known, "low half"))
                return "Only the low 32 bits were compared: make the index a 32-bit unsigned variable (w1 = w1 clears "
                       "the upper half), or compare all 64 bits.";
        if (strstr(known, "context") && program->context.n_ranges > 1)
                return "Of this context a program may access some fields only: see docs/formats/bpf-program.md.";
        if (!strstr(known, "..") && !strstr(known, "+any"))
                return "The offset is fixed: use a member, or an index, that lies inside of the object.";
        return suggestions[FAULT_BOUNDS];
}

const char *explain_suggestion(const struct program *program, const struct verdict *verdict)
{
        uint32_t slot = verdict->fault.slot;
        const struct insn *insn = program->insns && slot < program->n_insns ? &program->insns[slot] : NULL;

        if (verdict->fault.kind == FAULT_OPCODE && slot < program->n_insns &&
            program->slots[(size_t)slot * INSN_SLOT_BYTES] == OPCODE_CALLX)
                return "Compile with -O2: without it, the compiler calls helpers through a register.";
        if (verdict->fault.kind == FAULT_UNINIT_REGISTER && insn && is_clobbered(program, slot, insn_reads(insn)))
                return "A call leaves r1 to r5 undefined: keep what is needed afterwards in r6 to r9 or on the stack.";
        if (verdict->fault.kind == FAULT_UNINIT_REGISTER && insn && insn->kind == INSN_EXIT)
                return "Set r0, the result, on every way to this exit.";
        if (verdict->fault.kind == FAULT_BOUNDS && verdict->known)
                return suggest_bounds(program, verdict->known);
        if (verdict->fault.kind >= FAULT_KINDS || !suggestions[verdict->fault.kind])
                return "";
        return suggestions[verdict->fault.kind];
}

/* What was observed, kept until the instructions are printed in their order. */
struct line {
        struct verifier_context context;
        uint32_t slot, number;
        char *text;
};

struct listing {
        const struct program *program;
        struct line *lines;
        uint32_t n, n_allocated;
        bool failed;
};

static void listing_done(struct listing *listing)
{
        for (uint32_t i = 0; i < listing->n; i++)
                free(listing->lines[i].text);
        free(listing->lines);
}

static void observe(void *userdata, const struct verifier_context *context, uint32_t slot, const struct state *state)
{
        struct listing *listing = userdata;
        struct text text = {0};

        if (listing->n == listing->n_allocated && !listing->failed) {
                uint32_t n = MAX(2 * listing->n_allocated, 256u);
                struct line *lines = reallocarray(listing->lines, n, sizeof(*lines));

                listing->failed = !lines;
                if (lines) {
                        listing->lines = lines;
                        listing->n_allocated = n;
                }
        }
        if (listing->failed)
                return;
        state_format(state, listing->program, &text);
        listing->lines[listing->n] = (struct line){*context, slot, listing->n, text_take(&text)};
        listing->failed = !listing->lines[listing->n++].text;
}

static int compare_lines(const void *a, const void *b)
{
        const struct line *x = a, *y = b;

        for (uint32_t i = 0; i < x->context.n && i < y->context.n; i++)
                if (x->context.calls[i] != y->context.calls[i])
                        return x->context.calls[i] < y->context.calls[i] ? -1 : 1;
        if (x->context.n != y->context.n)
                return x->context.n < y->context.n ? -1 : 1;
        if (x->slot != y->slot)
                return x->slot < y->slot ? -1 : 1;
        return x->number < y->number ? -1 : 1;
}

static bool same_context(const struct line *a, const struct line *b)
{
        return a->context.n == b->context.n &&
               memcmp(a->context.calls, b->context.calls, a->context.n * sizeof(a->context.calls[0])) == 0;
}

static void print_context(const struct program *program, const struct line *line, struct text *out)
{
        uint32_t sub = program_sub_at(program, line->slot);

        text_addf(out, "%s%s", out->len > 0 ? "\n" : "",
                  program->subs[sub].name[0] ? program->subs[sub].name : program->name);
        for (uint32_t i = line->context.n; i-- > 0;)
                text_addf(out, ", called at %" PRIu32, line->context.calls[i]);
        text_add(out, ":\n");
}

/* Turns of a loop that are kept apart make a state each. */
#define STATES_SHOWN 8

/* The instruction, under its source line where that is another one than before. */
static void print_insn(const struct program *program, uint32_t slot, const struct program_line **source,
                       struct text *out)
{
        const struct program_line *line = program_line_at(program, slot);
        char text[DISASM_SIZE];

        if (line && line != *source) {
                text_add(out, "; ");
                text_add_visible(out, line->file, strlen(line->file));
                text_addf(out, ":%" PRIu32 " ", line->line);
                text_add_visible(out, line->text, strlen(line->text));
                text_add(out, "\n");
        }
        *source = line;
        text_addf(out, "%5" PRIu32 ": %s\n", slot, disasm_insn(&program->insns[slot], slot, text));
}

static void print_rest(uint32_t n, struct text *out)
{
        if (n > STATES_SHOWN)
                text_addf(out, "           ... and %" PRIu32 " states more, of other ways here or later turns\n",
                          n - STATES_SHOWN);
}

static void print_lines(const struct listing *listing, struct text *out)
{
        const struct program_line *source = NULL;
        const struct line *last = NULL;
        uint32_t shown = 0;

        for (uint32_t i = 0; i < listing->n; i++) {
                const struct line *line = &listing->lines[i];
                bool begins = !last || !same_context(last, line);

                if (begins || last->slot != line->slot)
                        print_rest(shown, out);
                if (begins) {
                        print_context(listing->program, line, out);
                        source = NULL;
                }
                if (begins || last->slot != line->slot) {
                        print_insn(listing->program, line->slot, &source, out);
                        shown = 0;
                }
                if (shown++ < STATES_SHOWN)
                        text_addf(out, "           %s\n", line->text[0] ? line->text : "nothing known");
                last = line;
        }
        print_rest(shown, out);
}

int explain_states(const struct program *program, const struct verifier_options *options, struct text *out,
                   struct verdict *ret_verdict, struct err *err)
{
        _cleanup_(listing_done) struct listing listing = {.program = program};
        struct verifier_options observing = *options;
        int r;

        observing.observe = observe;
        observing.userdata = &listing;
        r = verifier_check(program, &observing, ret_verdict, err);
        if (r < 0)
                return r;
        if (listing.failed) {
                verdict_done(ret_verdict);
                return err_set_nomem(err);
        }
        if (listing.n > 0)
                qsort(listing.lines, listing.n, sizeof(*listing.lines), compare_lines);
        print_lines(&listing, out);
        return r;
}
