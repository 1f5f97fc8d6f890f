/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "bpfvm/map.h"

/* Programs made at random for a socket filter (context __sk_buff), most of them sound: the generator knows what each
 * register and stack slot holds and writes what makes sense, and only in some programs a statement that probably does
 * not. All values end up in r0, folded to 32 bits. */

struct gen_options {
        uint32_t statements;     /* about so many */
        uint32_t wild_percent;   /* of programs that have one or two senseless statements */
        bool no_loops, no_calls; /* leave them out */
};

/* The maps that the programs name by index: an array, a hash, and an array of one that is read only. */
#define GEN_ARRAY 0
#define GEN_HASH  1
#define GEN_TABLE 2
#define GEN_MAPS  3

extern const struct map_def gen_maps[GEN_MAPS];

/* gen_program - encoded slots of one program
 * @ret, @ret_len: bytes, which the caller frees
 * @ret_is_wild:   whether it has a senseless statement
 */
void gen_program(struct rng *rng, const struct gen_options *options, uint8_t **ret, size_t *ret_len, bool *ret_is_wild);

/* gen_context - bytes of a __sk_buff: length, mark, priority and cb filled in, all else zero */
#define GEN_CONTEXT_BYTES 192
#define GEN_PACKET_BYTES  64 /* of the packet that goes with it, Ethernet header included */
void gen_context(struct rng *rng, uint8_t context[static GEN_CONTEXT_BYTES]);
