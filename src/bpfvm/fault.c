/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/fault.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
        const char *name;
        const char *meaning;
} kinds[FAULT_KINDS] = {
        [FAULT_NONE] = {"none", "Nothing is wrong."},
        [FAULT_LENGTH] = {"length",
                          "The instructions are not a whole number of 8-byte slots, are none, or are too many."},
        [FAULT_OPCODE] = {"opcode", "No instruction has this opcode."},
        [FAULT_REGISTER] = {"register", "A register number is above 10."},
        [FAULT_FRAME_POINTER] = {"frame-pointer", "The instruction writes r10, which is read only."},
        [FAULT_RESERVED_FIELD] = {"reserved-field", "A field that the instruction does not use is not zero."},
        [FAULT_FIELD_VALUE] = {"field-value", "A field that selects the operation has a value that selects none."},
        [FAULT_WIDE_TAIL] = {"wide-tail",
                             "The second half of a wide load is missing or holds more than its immediate."},
        [FAULT_UNSUPPORTED] = {"unsupported", "RFC 9669 allows the instruction, but nothing here gives it a meaning."},
        [FAULT_JUMP_RANGE] = {"jump-range", "A jump or call leads out of the program, or a jump out of its function."},
        [FAULT_JUMP_TAIL] = {"jump-tail", "A jump or call leads into the second half of a wide load."},
        [FAULT_FALL_THROUGH] = {"fall-through", "Execution can run past the last instruction of a function."},
        [FAULT_UNREACHABLE] = {"unreachable", "No path leads to the instruction."},
        [FAULT_RECURSION] = {"recursion", "A function can call itself, directly or through others."},
        [FAULT_CALL_DEPTH] = {"call-depth", "Calls nest deeper than there are frames."},
        [FAULT_LOOP] = {"loop", "A jump leads back where the profile allows no loops."},
        [FAULT_UNINIT_REGISTER] = {"uninit-register",
                                   "A register is read that was not written before, or was clobbered by a call."},
        [FAULT_UNINIT_STACK] = {"uninit-stack", "A byte of the stack is read that was not written before."},
        [FAULT_NOT_POINTER] = {"not-pointer", "Memory is accessed through a number."},
        [FAULT_NULL] = {"null", "Memory is accessed through a pointer that may be null."},
        [FAULT_BOUNDS] = {"bounds", "An access is not wholly inside the memory that its pointer points into."},
        [FAULT_READ_ONLY] = {"read-only", "A write to memory that programs may only read."},
        [FAULT_ALIGNMENT] = {"alignment", "An access that has to be aligned to its size is not."},
        [FAULT_POINTER_ARITH] = {"pointer-arith", "Arithmetic on a pointer other than adding or subtracting a number."},
        [FAULT_POINTER_COMPARE] = {"pointer-compare", "A comparison that would tell the value of a pointer."},
        [FAULT_POINTER_LEAK] = {"pointer-leak", "A pointer would become visible outside the program."},
        [FAULT_POINTER_PARTIAL] = {"pointer-partial", "Part of a pointer is read from the stack, or stored."},
        [FAULT_NO_ACCESS] = {"no-access", "The pointer is of a kind that is never accessed directly."},
        [FAULT_DIVISION] = {"division", "Division or modulo by an immediate zero."},
        [FAULT_SHIFT] = {"shift", "A shift by an immediate that is not below the width of the operand."},
        [FAULT_HELPER_UNKNOWN] = {"helper-unknown", "No helper has this number."},
        [FAULT_HELPER_FORBIDDEN] = {"helper-forbidden",
                                    "The profile, or the missing right to actuate, forbids the helper."},
        [FAULT_HELPER_ARGUMENT] = {"helper-argument", "An argument is not of the kind that the helper asks for."},
        [FAULT_MAP] = {"map", "There is no such map, or its definition is not one that its kind allows."},
        [FAULT_INSN_LIMIT] = {"insn-limit", "The program has more instructions than the profile allows."},
        [FAULT_STACK_LIMIT] = {"stack-limit", "The program needs more stack than the profile allows."},
        [FAULT_MAP_LIMIT] = {"map-limit", "The program has more maps, or larger ones, than the profile allows."},
        [FAULT_CONTEXT_LIMIT] = {"context-limit",
                                 "More chains of calls lead through the functions than the check goes through."},
        [FAULT_STATE_LIMIT] = {"state-limit", "What is known of the program takes more memory than the check may use."},
        [FAULT_TERMINATION] = {"termination", "Nothing shows that a loop ends."},
        [FAULT_COST] = {"cost", "The worst case costs more than the budget."},
        [FAULT_UTILISATION] = {"utilisation", "Cost times rate, over everything attached, is above the cap."},
        [FAULT_CERTIFICATE] = {"certificate", "A certificate does not show that the program is safe."},
        [FAULT_STEP_LIMIT] = {"step-limit", "The program ran for more instructions than it was allowed."},
};

const char *fault_name(enum fault_kind kind)
{
        return kind >= 0 && kind < FAULT_KINDS ? kinds[kind].name : "unknown";
}

const char *fault_meaning(enum fault_kind kind)
{
        return kind >= 0 && kind < FAULT_KINDS ? kinds[kind].meaning : "";
}

enum fault_kind fault_find(const char *name)
{
        for (enum fault_kind kind = 0; kind < FAULT_KINDS; kind++)
                if (streq(name, kinds[kind].name))
                        return kind;
        return FAULT_KINDS;
}

int fault_set(struct fault *fault, enum fault_kind kind, uint32_t slot, const char *format, ...)
{
        va_list args;

        if (!fault)
                return 1;

        fault->kind = kind;
        fault->slot = slot;
        va_start(args, format);
        vsnprintf(fault->text, sizeof(fault->text), format, args);
        va_end(args);
        return 1;
}
