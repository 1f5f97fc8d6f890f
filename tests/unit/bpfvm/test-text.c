/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "base/hex.h"
#include "bpfvm/assemble.h"
#include "bpfvm/disasm.h"
#include "bpfvm/program.h"

/* Encodings as llvm-mc 14 gives them (-triple bpfel -show-encoding), and section 3.1's example of RFC 9669. */
static const struct {
        const char *text, *hex;
        const char *ours; /* as the disassembler prints it, where that differs */
} known[] = {
        {"r1 += 0x11223344", "0701000044332211", "r1 += 287454020"},
        {"lock *(u64 *)(r1 + 8) += r2", "db21080000000000", NULL},
        {"lock *(u32 *)(r10 - 4) += w3", "c33afcff00000000", "lock *(u32 *)(r10 - 4) += r3"},
        {"r0 s>>= r1", "cf10000000000000", NULL},
        {"w3 = -w3", "8403000000000000", NULL},
        {"if r1 s< -5 goto +3", "c5010300fbffffff", NULL},
        {"if w2 != w3 goto -2", "5e32feff00000000", NULL},
        {"r2 = be32 r2", "dc02000020000000", NULL},
        {"r1 = 81985529216486895 ll", "18010000efcdab890000000067452301", "r1 = 0x123456789abcdef ll"},
        {"*(u16 *)(r10 - 2) = r1", "6b1afeff00000000", NULL},
        {"r0 = *(u8 *)(r1 - 1)", "7110ffff00000000", NULL},
        {"w0 = *(u8 *)(r1 - 1)", "7110ffff00000000", "r0 = *(u8 *)(r1 - 1)"},
        {"call 5", "8500000005000000", "call ktime_get_ns"},
        {"exit", "9500000000000000", NULL},
        {"goto -1", "0500ffff00000000", NULL},
        {"r0 = *(u64 *)(r10 - 512)", "79a000fe00000000", NULL},
        {"w0 ^= 1", "a400000001000000", NULL},
        {"w5 = w6", "bc65000000000000", NULL},
        {"r7 <<= 63", "670700003f000000", NULL},
        {"r0 = le64 r0", "d400000040000000", NULL},
};

/* Longer programs around one instruction, so that targets lie inside. */
static void disassemble_one(const uint8_t *slots, size_t len, char *buf)
{
        _cleanup_object_ struct object *object = NULL;
        uint8_t program[10 * INSN_SLOT_BYTES];
        static const uint8_t leave[INSN_SLOT_BYTES] = {0x95};
        struct fault fault = {0};

        for (size_t i = 0; i < 10; i++)
                memcpy(program + 8 * i, leave, 8);
        memcpy(program + 16, slots, len);
        assert_int_equal(object_of_slots(span_of(program, sizeof(program)), "t", NULL, 0, &object, &fault, NULL), 0);
        if (object->programs[0]->fault.kind != FAULT_NONE)
                fail_msg("%s", object->programs[0]->fault.text);
        disasm_insn(&object->programs[0]->insns[2], 2, buf);
}

static void test_known_encodings(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
                _cleanup_free_ uint8_t *want = NULL, *got = NULL;
                size_t want_len, got_len, offset;
                char text[DISASM_SIZE];
                struct err err = {0};

                assert_int_equal(hex_decode(span_of_text(known[i].hex), &want, &want_len, &offset), 0);
                if (assemble_text(span_of_text(known[i].text), "t", &got, &got_len, &err) < 0)
                        fail_msg("%s: %s", known[i].text, err.text);
                assert_int_equal(got_len, want_len);
                assert_memory_equal(got, want, want_len);
                disassemble_one(want, want_len, text);
                assert_string_equal(text, known[i].ours ? known[i].ours : known[i].text);
        }
}

/* Forms that LLVM 14 does not write; the bytes are spelled out from the tables of RFC 9669. */
static void test_forms_of_the_rfc(void **state)
{
        static const struct {
                const char *text, *hex;
        } forms[] = {
                {"r3 s/= r4", "3f43010000000000"},
                {"w3 s%= 7", "9403010007000000"},
                {"r1 = (s8)r2", "bf21080000000000"},
                {"w1 = (s16)w2", "bc21100000000000"},
                {"r1 = (s32)r2", "bf21200000000000"},
                {"r1 = *(s16 *)(r2 + 4)", "8921040000000000"},
                {"r5 = bswap16 r5", "d705000010000000"},
                {"gotol +2", "0600000002000000"},
                {"r2 = atomic_fetch_xor((u64 *)(r1 + 0), r2)", "db210000a1000000"},
                {"r2 = atomic_xchg((u32 *)(r1 + 0), r2)", "c3210000e1000000"},
                {"r0 = atomic_cmpxchg((u64 *)(r1 + 16), r0, r3)", "db311000f1000000"},
                {"lock *(u32 *)(r1 + 0) ^= r2", "c3210000a0000000"},
                {"if r1 & 4 goto +1", "4501010004000000"},
                {"call +1", "8510000001000000"},
                {"*(u64 *)(r10 - 8) = -1", "7a0af8ffffffffff"},
                {"call 4242", "8500000092100000"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                _cleanup_free_ uint8_t *want = NULL, *got = NULL;
                size_t want_len, got_len, offset;
                char text[DISASM_SIZE];

                assert_int_equal(hex_decode(span_of_text(forms[i].hex), &want, &want_len, &offset), 0);
                assert_int_equal(assemble_text(span_of_text(forms[i].text), "t", &got, &got_len, NULL), 0);
                assert_int_equal(got_len, want_len);
                assert_memory_equal(got, want, want_len);
                disassemble_one(want, want_len, text);
                assert_string_equal(text, forms[i].text);
        }
}

static void test_labels(void **state)
{
        static const char text[] = "top: if r1 == 0 goto end ; a comment\n"
                                   "  r1 -= 1  # another\n"
                                   "\n"
                                   "call f\n"
                                   "goto top\n"
                                   "end:\n"
                                   "exit\n"
                                   "f: r0 = 0x10\r\n"
                                   "exit";
        static const char want[] = "1501030000000000" /* to slot 4 */
                                   "1701000001000000"
                                   "8510000002000000" /* to slot 5 */
                                   "0500fcff00000000"
                                   "9500000000000000"
                                   "b700000010000000"
                                   "9500000000000000";
        _cleanup_free_ uint8_t *bytes = NULL, *expected = NULL;
        size_t len, n, offset;

        assert_int_equal(assemble_text(span_of_text(text), "t", &bytes, &len, NULL), 0);
        assert_int_equal(hex_decode(span_of_text(want), &expected, &n, &offset), 0);
        assert_int_equal(len, n);
        assert_memory_equal(bytes, expected, n);
}

static void test_errors_have_a_place(void **state)
{
        static const struct {
                const char *text, *message;
        } bad[] = {
                {"r0 = frog", "t:1:6: expected a number"},
                {"exit\n  frob r1", "t:2:3: expected an instruction"},
                {"exit exit", "t:1:6: expected nothing more on the line"},
                {"r16 = 1", "t:1:1: expected an instruction"},
                {"r0 += w1", "t:1:7: expected a register r0 to r10"},
                {"w0 = r1", "t:1:6: expected a register w0 to w10"},
                {"r0 += 0x1ffffffff", "t:1:7: expected a number of 32 bits"},
                {"r0 = 0x1ffffffffffffffff ll", "t:1:6: expected a number of 64 bits at most"},
                {"goto nowhere", "t:1:6: expected a label"},
                {"call nobody", "t:1:6: expected a label or a helper"},
                {"a:\na:\nexit", "t:2:1: expected a label that no line before has"},
                {"r0 = *(u24 *)(r1 + 0)", "t:1:8: expected a type u8, u16, u32, u64, s8, s16 or s32"},
                {"r0 = *(u8 *)(r1 + 40000)", "t:1:17: expected an offset of 16 bits"},
                {"r1 = bswap16 r2", "t:1:6: expected the same register as before the ="},
                {"r1 = atomic_fetch_add((u64 *)(r2 + 0), r3)", "t:1:40: expected the same register as before the ="},
                {"lock *(u64 *)(r1 + 0) -= r2", "t:1:23: expected +=, |=, &= or ^="},
                {"r0 = *(s64 *)(r1 + 0)", "t:1:8: expected a type u8, u16, u32, u64, s8, s16 or s32"},
                {"lock *(u8 *)(r1 + 0) += r2", "t:1:1: expected operands that the instruction has"},
                {".slot 95", "t:1:7: expected 16 hexadecimal digits"},
                {"if r1 = 5 goto +1", "t:1:7: expected a comparison such as ==, s>= or &"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                uint8_t *bytes = NULL;
                struct err err = {0};
                char text[1024];
                size_t len;

                assert_int_equal(assemble_text(span_of_text(bad[i].text), "t", &bytes, &len, &err), -EINVAL);
                assert_null(bytes);
                err_format(&err, text, sizeof(text));
                assert_string_equal(text, bad[i].message);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_known_encodings),
                cmocka_unit_test(test_forms_of_the_rfc),
                cmocka_unit_test(test_labels),
                cmocka_unit_test(test_errors_have_a_place),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
