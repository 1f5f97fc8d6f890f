/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/span.h"
#include "sys/netlink.h"

/* Compiled BPF programs (bpf/, embedded into this program), loaded into the kernel and attached to links. Nothing is
 * pinned: an attachment belongs to its link and goes with it, maps and programs go with the last attachment or
 * descriptor, so nothing is left of a namespace that is gone. Loading needs CAP_BPF and CAP_NET_ADMIN in the initial
 * user namespace; root of a user namespace has neither. */
struct bpf_image;

/* bpf_image_open - read an object file
 * @object: the bytes, which must stay as they are until bpf_image_load()
 * @name:   of the image, for messages
 * @ret:    bpf_image_free() releases it; what is attached stays attached
 */
int bpf_image_open(struct span object, const char *name, struct bpf_image **ret, struct err *err);

/* bpf_image_set_constants - give the program's only read-only variable its value, before bpf_image_load()
 * @size: has to be the variable's */
int bpf_image_set_constants(struct bpf_image *image, const void *data, size_t size, struct err *err);

/* bpf_image_set_entries - how many a map may have, before bpf_image_load(); the kernel makes room for all of them at
 * once
 */
int bpf_image_set_entries(struct bpf_image *image, const char *map, uint32_t n, struct err *err);

/* bpf_image_load - give programs and maps to the kernel, which verifies them
 *
 * Return: 0; -EPERM, kind unsupported, where this process may not; another negative errno.
 */
int bpf_image_load(struct bpf_image *image, struct err *err);

enum bpf_direction { BPF_ENTERING, BPF_LEAVING };

/* bpf_image_attach - let a program see every frame that enters or leaves a link
 * @program:  name of its function
 * @order:    from 1 on; where several are attached, in which order they run. A program passes a frame on to the next by
 *            returning TC_ACT_UNSPEC
 *
 * The link needs qdisc_add_clsact() first. Return: 0; -EEXIST where the order is taken; another negative errno.
 */
int bpf_image_attach(struct bpf_image *image, const char *program, struct netlink *nl, int index,
                     enum bpf_direction direction, uint16_t order, struct err *err);

/* bpf_image_hold - as bpf_image_attach(), to a link of the caller's network namespace that outlives this process: the
 * program is attached as long as the descriptor is open, and goes with it, also after SIGKILL
 *
 * Needs Linux 6.6 (tcx). Return: the descriptor; -EOPNOTSUPP, kind unsupported, on an older kernel; another negative
 * errno.
 */
int bpf_image_hold(struct bpf_image *image, const char *program, int index, enum bpf_direction direction,
                   struct err *err);

/* bpf_image_hold_group - let a program see what processes of a control group do, as its section says; as
 * bpf_image_hold(), it is attached as long as the descriptor is open
 *
 * Return: the descriptor; a negative errno, kind unsupported, where the kernel refuses.
 */
int bpf_image_hold_group(struct bpf_image *image, const char *program, int cgroup_fd, struct err *err);

/* bpf_image_map - the descriptor of a map, borrowed. Return: -ENOENT, kind bug, where there is none of that name. */
int bpf_image_map(const struct bpf_image *image, const char *name, struct err *err);

/* bpf_image_sum_counters - read elements of a per-CPU array map of 64-bit counters, summed over CPUs
 * @map:     name of the map
 * @first:   first key
 * @n:       how many keys
 * @n_words: counters in an element, as in the map
 * @ret:     @n times @n_words sums
 *
 * Return: 0; -ENOENT where there is no such map or it has not this shape; another negative errno.
 */
int bpf_image_sum_counters(const struct bpf_image *image, const char *map, uint32_t first, uint32_t n, size_t n_words,
                           uint64_t *ret, struct err *err);

/* bpf_image_put - set the element of a hash map, whether it is there or not
 * @key, @value: as many bytes as the map's have
 *
 * Return: 0; -ENOENT, kind bug, where there is no such map; -E2BIG where it is full; another negative errno.
 */
int bpf_image_put(struct bpf_image *image, const char *map, const void *key, const void *value, struct err *err);

/* bpf_image_remove - remove the element of a hash map; absent counts as done */
int bpf_image_remove(struct bpf_image *image, const char *map, const void *key, struct err *err);

void bpf_image_free(struct bpf_image *image);

DEFINE_CLEANUP(struct bpf_image *, bpf_image_free)
#define _cleanup_bpf_image_ _cleanup_(bpf_image_free_cleanup)
