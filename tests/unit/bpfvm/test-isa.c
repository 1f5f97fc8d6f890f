/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "bpfvm/decode.h"
#include "bpfvm/isa.h"

/* tests/cases/bpf/rfc9669-opcodes.csv: the instructions that RFC 9669 lists (appendix A; the sign-extending loads from
 * section 5.2), each with what its src, offset and imm may hold. */
#define ANY INT64_MIN

struct published {
        int64_t opcode, src, offset, imm;
        char group[16];
};

static struct published published[256];
static size_t n_published;

static int64_t field_of(const char *text)
{
        return strcmp(text, "any") == 0 ? ANY : strtoll(text, NULL, 0);
}

static int load_published(void **state)
{
        _cleanup_free_ char *path = NULL, *bytes = NULL;
        struct err err = {0};
        size_t len;
        char *save = NULL;

        assert_true(asprintf(&path, "%s/bpf/rfc9669-opcodes.csv", getenv("ASSAY_TEST_CASES")) > 0);
        assert_int_equal(file_read(AT_FDCWD, path, 1 << 20, &bytes, &len, &err), 0);
        strtok_r(bytes, "\n", &save);
        for (char *line; (line = strtok_r(NULL, "\n", &save)) != NULL;) {
                struct published *p = &published[n_published++];
                char opcode[16], src[16], offset[16], imm[16];

                assert_true(n_published < ARRAY_SIZE(published));
                assert_int_equal(sscanf(line, "%15[^,],%15[^,],%15[^,],%15[^,],%15s", opcode, src, offset, imm,
                                        p->group),
                                 5);
                p->opcode = field_of(opcode);
                p->src = field_of(src);
                p->offset = field_of(offset);
                p->imm = field_of(imm);
        }
        return 0;
}

static const struct published *find_published(struct isa_slot slot)
{
        for (size_t i = 0; i < n_published; i++) {
                const struct published *p = &published[i];

                if (p->opcode == slot.opcode && (p->src == ANY || p->src == slot.src) &&
                    (p->offset == ANY || p->offset == slot.offset) && (p->imm == ANY || p->imm == slot.imm))
                        return p;
        }
        return NULL;
}

/* What is legal by the RFC but has no meaning here: the second half of a wide load as a first, maps by descriptor,
 * platform variables, code addresses, helpers by BTF id, packet access. */
static bool is_refused(struct isa_slot slot)
{
        return slot.opcode == 0x00 || (slot.opcode == 0x18 && slot.src >= 1 && slot.src <= 4) ||
               (slot.opcode == 0x85 && slot.src == 2) || slot.opcode == 0x20 || slot.opcode == 0x28 ||
               slot.opcode == 0x30 || slot.opcode == 0x40 || slot.opcode == 0x48 || slot.opcode == 0x50;
}

/* Whether a program accepts @slot as its instruction number 1, with an exit before and after, so that jumps by 0 and -1
 * have targets. A wide load gets its second half. */
static int decode_between_exits(struct isa_slot slot, struct fault *fault)
{
        _cleanup_free_ struct insn *insns = NULL;
        uint8_t bytes[4 * INSN_SLOT_BYTES];
        struct isa_slot exit = {.opcode = 0x95}, tail = {0};
        uint32_t kinds;

        isa_slot_put(exit, bytes);
        isa_slot_put(slot, bytes + 8);
        isa_slot_put(slot.opcode == 0x18 ? tail : exit, bytes + 16);
        isa_slot_put(exit, bytes + 24);
        return decode_slots(span_of(bytes, sizeof(bytes)), 1, &insns, &kinds, fault, NULL);
}

static void check_group(struct isa_slot slot, const struct published *p)
{
        const struct isa_row *row = isa_find(slot);

        if (!row || strcmp(row->group, p->group) != 0)
                fail_msg("opcode %02x: expected group %s", slot.opcode, p->group);
}

static bool is_jump(uint8_t opcode)
{
        uint8_t code = opcode & 0xf0, class = opcode & 7;

        return (class == 5 || class == 6) && code != 0x80 && code != 0x90;
}

/* Every opcode with every source register and telling offsets and immediates: accepted exactly where the RFC's list has
 * it. Jumps are tried with distances that stay inside. */
static void test_table_is_the_rfcs(void **state)
{
        static const int16_t offsets[] = {0, 1, -1, 8, 16, 32, 2, 255};
        static const int32_t imms[] = {0,    1,    2,    0x10, 0x20, 0x40, 0x41, 0x50,
                                       0x51, 0xa0, 0xa1, 0xe0, 0xe1, 0xf0, 0xf1, -1};
        unsigned accepted = 0;

        for (unsigned opcode = 0; opcode < 256; opcode++)
                for (unsigned src = 0; src < 16; src++)
                        for (size_t o = 0; o < ARRAY_SIZE(offsets); o++)
                                for (size_t i = 0; i < ARRAY_SIZE(imms); i++) {
                                        struct isa_slot slot = {(uint8_t)opcode, 0, (uint8_t)src, offsets[o], imms[i]};
                                        const struct published *p = find_published(slot);
                                        struct fault fault = {0};
                                        int64_t far = opcode == 0x06 ? slot.imm : slot.offset;

                                        if (is_jump(slot.opcode) && (far < -1 || far > 1))
                                                continue;
                                        if (opcode == 0x85 && src == 1 && (slot.imm < -1 || slot.imm > 1))
                                                continue;
                                        if (opcode == 0x18 && src >= 5 && slot.imm != 0)
                                                continue; /* only map 0 exists */

                                        bool want = p && !is_refused(slot) && src <= 10;
                                        /* the old value is written to src, which r10 cannot be */
                                        if ((opcode == 0xc3 || opcode == 0xdb) && src == 10 && (slot.imm & 1) &&
                                            slot.imm != 0xf1)
                                                want = false;
                                        int r = decode_between_exits(slot, &fault);
                                        if ((r == 0) != want)
                                                fail_msg("opcode %02x src %u offset %d imm %d: %d %s", opcode, src,
                                                         slot.offset, slot.imm, r, fault.text);
                                        accepted += r == 0;
                                        if (r == 0 && p)
                                                check_group(slot, p);
                                }
        assert_true(accepted > 1000);
}

/* r10 is read only, r11 to r15 do not exist, and a field without use is 0: for dst, in every instruction. */
static void test_dst(void **state)
{
        for (size_t i = 0; i < n_published; i++) {
                const struct published *p = &published[i];
                struct isa_slot slot = {.opcode = (uint8_t)p->opcode,
                                        .src = p->src == ANY ? 0 : (uint8_t)p->src,
                                        .offset = p->offset == ANY ? 0 : (int16_t)p->offset,
                                        .imm = p->imm == ANY ? 0 : (int32_t)p->imm};
                struct fault fault;
                uint8_t class = slot.opcode & 7;

                if (is_refused(slot))
                        continue;
                for (slot.dst = 0; slot.dst < 16; slot.dst++) {
                        bool reads = class == 2 || class == 3 || (is_jump(slot.opcode) && (slot.opcode & 0xf0) != 0);
                        bool unused = (class == 5 || class == 6) && !reads;
                        bool want = unused ? slot.dst == 0 : reads ? slot.dst <= 10 : slot.dst <= 9;

                        assert_int_equal(decode_between_exits(slot, &fault) == 0, want);
                        if (!want && slot.dst == 10 && !unused)
                                assert_int_equal(fault.kind, FAULT_FRAME_POINTER);
                        else if (!want)
                                assert_int_equal(fault.kind, unused ? FAULT_RESERVED_FIELD : FAULT_REGISTER);
                }
        }
}

/* Each decoded form leads back to its encoding. */
static void test_encoding_is_unique(void **state)
{
        for (unsigned opcode = 0; opcode < 256; opcode++) {
                size_t n = isa_by_opcode[opcode].n;
                const struct isa_row *rows = isa_by_opcode[opcode].rows, *found;

                for (size_t i = 0; i < n; i++)
                        if (!rows[i].refusal) {
                                assert_int_equal(isa_find_insn(&rows[i].insn, &found), opcode);
                                assert_ptr_equal(found, &rows[i]);
                        }
        }
}

/* Section 3.1's example: r1 += 0x11223344 in little endian. */
static void test_slot_bytes(void **state)
{
        static const uint8_t bytes[8] = {0x07, 0x01, 0x00, 0x00, 0x44, 0x33, 0x22, 0x11};
        uint8_t again[8];
        struct isa_slot slot = isa_slot_get(bytes);

        assert_int_equal(slot.opcode, 0x07);
        assert_int_equal(slot.dst, 1);
        assert_int_equal(slot.src, 0);
        assert_int_equal(slot.offset, 0);
        assert_int_equal(slot.imm, 0x11223344);
        isa_slot_put(slot, again);
        assert_memory_equal(bytes, again, 8);

        isa_slot_put((struct isa_slot){.opcode = 0x7b, .dst = 10, .src = 5, .offset = -8, .imm = -2}, again);
        static const uint8_t store[8] = {0x7b, 0x5a, 0xf8, 0xff, 0xfe, 0xff, 0xff, 0xff};
        assert_memory_equal(store, again, 8);
        assert_int_equal(isa_slot_get(again).offset, -8);
        assert_int_equal(isa_slot_get(again).imm, -2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table_is_the_rfcs),
                cmocka_unit_test(test_dst),
                cmocka_unit_test(test_encoding_is_unique),
                cmocka_unit_test(test_slot_bytes),
        };

        return cmocka_run_group_tests(tests, load_published, NULL);
}
