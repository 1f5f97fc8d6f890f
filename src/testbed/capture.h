/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/span.h"
#include "sys/netns.h"

/* Frames as they cross a link, with their VLAN tags where they stand on the wire. */
struct capture;

/* capture_open - watch an interface of a namespace; from now on nothing is missed that the kernel can buffer
 * @ret: capture_free() releases it
 *
 * Return: 0 or a negative errno.
 */
int capture_open(const struct netns *ns, const char *device, struct capture **ret, struct err *err);

void capture_free(struct capture *capture);

DEFINE_CLEANUP(struct capture *, capture_free)
#define _cleanup_capture_ _cleanup_(capture_free_cleanup)

/* Called for each frame. @when_ns is the kernel's CLOCK_REALTIME, @wire_bytes the length before any cut. */
typedef void (*capture_fn)(int64_t when_ns, struct span frame, size_t wire_bytes, void *userdata);

/* capture_run - take frames until there were enough, or until told to stop
 * @pcap:        where a pcap file goes, which is whole whenever it waits for frames; NULL for none
 * @fn:          called for each frame; NULL for none
 * @max_frames:  0 for no limit
 * @stop:        non-zero, set by a signal's handler, ends it; may be NULL
 *
 * Return: 0; -EIO where @pcap cannot be written; another negative errno.
 */
int capture_run(struct capture *capture, FILE *pcap, capture_fn fn, void *userdata, uint64_t max_frames,
                const volatile int *stop, struct err *err);
