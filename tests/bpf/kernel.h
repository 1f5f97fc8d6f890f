/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bpfvm/map.h"

/* The running kernel's verifier, and whatever runs its programs, by bpf(2) alone. */

#define KERNEL_MAPS_MAX 8

struct kernel {
        const struct map_def *defs;
        uint32_t n_maps;
        int maps[KERNEL_MAPS_MAX];
        int program; /* -1: none is loaded */
};

/* kernel_limit - from now on this process has CAP_BPF and nothing else: with more, the kernel's verifier would let
 * pointers out and uninitialised stack bytes be read
 *
 * Return: NULL, or why it could not be done.
 */
const char *kernel_limit(void);

/* kernel_open - make the maps, arrays and hashes. Return: 0 or a negative errno. */
int kernel_open(struct kernel *kernel, const struct map_def *defs, uint32_t n_maps);

void kernel_close(struct kernel *kernel);

/* kernel_load - verify a program as a socket filter; wide loads name maps by index. The one before is unloaded.
 * @level: of the log, 1 for what it says of each instruction, 4 for statistics only
 *
 * Return: 0 if it was accepted, else a negative errno (-EACCES and -EINVAL are refusals, with the reason in @log).
 */
int kernel_load(struct kernel *kernel, const uint8_t *slots, size_t len, uint32_t level, char *log, size_t log_size);

/* kernel_reset - arrays back to their initial values, hashes empty of the keys 0 to 7 */
int kernel_reset(struct kernel *kernel);

/* kernel_run - run the loaded program once
 * @context: a __sk_buff, overwritten with what the program left
 *
 * Return: 0 with what it returned, 32 bits, in @ret; a negative errno.
 */
int kernel_run(struct kernel *kernel, const void *packet, size_t packet_len, void *context, size_t context_len,
               uint32_t *ret);

/* kernel_time - run the loaded program @repeat times
 *
 * Return: 0 with the nanoseconds that the kernel measured for one run, on average and rounded down, in @ret_ns.
 */
int kernel_time(struct kernel *kernel, uint32_t repeat, uint32_t *ret_ns);

/* kernel_lookup - copy the value under @key. Return: 0; -ENOENT. */
int kernel_lookup(struct kernel *kernel, uint32_t map, const void *key, void *value);
