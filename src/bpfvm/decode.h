/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "bpfvm/fault.h"
#include "bpfvm/insn.h"

/* decode_slots - instructions from raw little-endian 8-byte slots, which may be any bytes
 * @slots:  at most PROFILE_SLOTS_MAX of them
 * @n_maps: wide loads may name maps below this
 * @ret:    one decoded instruction a slot, on the heap; the caller frees them
 * @ret_kinds: bit set of the kinds (1 << enum insn_kind) that occur
 *
 * Checks each encoding by isa.h, and that every jump and call leads to an instruction of the program.
 * Return: 0; 1 with the first fault in @fault (kinds FAULT_LENGTH to FAULT_JUMP_TAIL, FAULT_MAP); -ENOMEM.
 */
int decode_slots(struct span slots, uint32_t n_maps, struct insn **ret, uint32_t *ret_kinds, struct fault *fault,
                 struct err *err);
