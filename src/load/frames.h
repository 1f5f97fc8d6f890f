/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "wire/marker.h"

/* Datagrams of background load as whole Ethernet frames, by a packet socket: the kernel's own way from a UDP socket to
 * the link, which is a third of all the work of a packet, is left out. So is all that the sending host hangs there:
 * nftables on output and postrouting, cgroup programs, IPsec. Queues and tc programs of the link see the frames. */
struct frames;

/* Octets that have to be free before the payload of each datagram: Ethernet, IPv6 or IPv4, UDP. */
#define FRAMES_HEADER_MAX (14 + 40 + 8)

/* frames_new - open the packet socket in the caller's network namespace
 * @udp_fd:            a connected UDP socket, which is borrowed: the frames have its two addresses, its DSCP and hop
 * limit
 * @payload_bytes:     of each datagram, MARKER_LEN or more
 * @send_buffer_bytes: asked for, forced where that is allowed
 *
 * Return: 0; -EPERM, kind unsupported, without CAP_NET_RAW; another negative errno with the reason.
 */
int frames_new(int udp_fd, uint32_t payload_bytes, int send_buffer_bytes, struct frames **ret, struct err *err);
void frames_free(struct frames *f);

DEFINE_CLEANUP(struct frames *, frames_free)
#define _cleanup_frames_ _cleanup_(frames_free_cleanup)

/* frames_aim - look up by which link frames leave, and for which MAC; to be done again now and then
 *
 * Return: 0; -ENOENT while the neighbour's MAC is not known, which a datagram by the UDP socket makes the kernel ask
 * for; -EOPNOTSUPP, kind unsupported, where the way does not begin with an Ethernet link of this host; another negative
 * errno.
 */
int frames_aim(struct frames *f, struct err *err);

/* frames_descriptor - where to send whole frames, once it is aimed */
int frames_descriptor(const struct frames *f);

/* frames_put_header - write the headers before @payload. Return: their length; the frame begins so many octets before.
 */
size_t frames_put_header(const struct frames *f, uint8_t *payload);

/* frames_seal - after the mark of @payload was written, put in the UDP checksum; what follows the mark is all zero */
void frames_seal(const struct frames *f, uint8_t *payload);
