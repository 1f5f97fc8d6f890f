/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <assay-bpf.h>
#include <errno.h>

#include "tests/test.h"

/* What the tests of the public library share. They use its header alone, as anybody would. */

static inline void object_cleanup(struct assay_bpf_object **object)
{
        assay_bpf_object_free(*object);
}

static inline void report_cleanup(struct assay_bpf_report **report)
{
        assay_bpf_report_free(*report);
}

static inline void machine_cleanup(struct assay_bpf_machine **machine)
{
        assay_bpf_machine_free(*machine);
}

#define _cleanup_api_object_  _cleanup_(object_cleanup)
#define _cleanup_api_report_  _cleanup_(report_cleanup)
#define _cleanup_api_machine_ _cleanup_(machine_cleanup)

/* api_load - raw instructions, given as 64-bit words */
static inline struct assay_bpf_object *api_load(const uint64_t *words, size_t n)
{
        struct assay_bpf_object *object = NULL;

        assert_int_equal(assay_bpf_object_load(words, n * sizeof(*words), "t", &object, NULL, 0), 0);
        return object;
}

#define API_LOAD(...)                                                                                                  \
        api_load((const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* Instructions by RFC 9669: imm << 32 | offset << 16 | src << 12 | dst << 8 | opcode. */
#define I_MOV(dst, imm) ((uint64_t)(uint32_t)(imm) << 32 | (uint64_t)(dst) << 8 | 0xb7)
#define I_ADD(dst, imm) ((uint64_t)(uint32_t)(imm) << 32 | (uint64_t)(dst) << 8 | 0x07)
#define I_LOAD_BYTE(dst, src, off)                                                                                     \
        ((uint64_t)(uint16_t)(off) << 16 | (uint64_t)(src) << 12 | (uint64_t)(dst) << 8 | 0x71)
#define I_LOAD_WORD(dst, src, off)                                                                                     \
        ((uint64_t)(uint16_t)(off) << 16 | (uint64_t)(src) << 12 | (uint64_t)(dst) << 8 | 0x61)
#define I_STORE_WORD(dst, off, src)                                                                                    \
        ((uint64_t)(uint16_t)(off) << 16 | (uint64_t)(src) << 12 | (uint64_t)(dst) << 8 | 0x63)
#define I_JUMP_BACK(dst, imm, off)                                                                                     \
        ((uint64_t)(uint32_t)(imm) << 32 | (uint64_t)(uint16_t)(off) << 16 | (uint64_t)(dst) << 8 |                    \
         0xa5) /* unsigned < */
#define I_CALL(helper) ((uint64_t)(uint32_t)(helper) << 32 | 0x85)
#define I_EXIT         0x95
