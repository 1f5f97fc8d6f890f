/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/json.h"
#include "load/address.h"

/* UDP sockets as instruments need them, IPv4 and IPv6 alike. */

#define UDP_BUFFER_BYTES (4 << 20)

/* What layer 2 adds to an IP packet. */
#define UDP_ETHERNET_BYTES 14
#define UDP_TAG_BYTES      4

/* What a packet brings beside its bytes. */
struct udp_arrival {
        int64_t kernel_ns; /* software receive stamp, CLOCK_REALTIME; SAMPLE_MISSING where there is none */
        uint8_t ttl;       /* 0: not known */
        uint8_t dscp;
        bool has_dropped, has_local;
        bool is_unicast;  /* sent to an address of this host; true where not known */
        uint32_t dropped; /* packets that the full receive buffer has cost so far, modulo 2^32 */
        union {
                struct in_addr v4;
                struct in6_pktinfo v6;
        } local; /* where it was sent to */
};

/* How large the buffers really are; the kernel counts its own overhead in. */
struct udp_buffers {
        int send_bytes, receive_bytes;
        bool is_send_forced, is_receive_forced; /* beyond the system's limit, which takes CAP_NET_ADMIN */
};

enum udp_stamps {
        UDP_STAMPS_NONE,
        UDP_STAMPS_RECEIVE,
        UDP_STAMPS_BOTH, /* transmit stamps with ids come by the error queue */
};

struct udp_options {
        union address local; /* family AF_UNSPEC: any address and port, in the family of @peer */
        union address peer;  /* to connect to; family AF_UNSPEC: none */
        uint8_t ttl;         /* 0: the system's */
        uint8_t dscp;
        int send_buffer_bytes; /* 0: UDP_BUFFER_BYTES */
        int beside; /* a socket of ours at the same address and port, which this one is for a peer of; 0: none */
        enum udp_stamps stamps;

        /* with each packet */
        bool want_ttl;
        bool want_dscp;
        bool want_local;    /* where it was sent to */
        bool want_overflow; /* how many the full buffer has cost */
};

/* Room for all ancillary data of a packet. */
#define UDP_CONTROL_BYTES 320

/* udp_open - a socket, bound and connected as asked, packets never fragmented by this host
 * @ret_buffers: may be NULL
 *
 * Return: the descriptor; a negative errno with the reason in @err.
 */
int udp_open(const struct udp_options *options, struct udp_buffers *ret_buffers, struct err *err);

/* udp_part - let a socket that was opened beside another one, at @local, get no more packets: those of its peer go to
 * the other one from now on, and none is lost in between; what is in its buffer stays there
 *
 * Return: 0 or a negative errno.
 */
int udp_part(int fd, const union address *local);

/* udp_dropped - packets that the full receive buffer has cost so far, modulo 2^32, for a socket that does not tell it
 * with each packet (which takes time when it is full). Return: 0 or a negative errno. */
int udp_dropped(int fd, uint32_t *ret);

/* udp_stamps_restart - let transmit stamps of @fd be numbered from 0 again, beginning with the next packet
 *
 * Return: 0 or a negative errno.
 */
int udp_stamps_restart(int fd);

/* udp_arrival_parse - the ancillary data of a received message */
void udp_arrival_parse(struct msghdr *message, struct udp_arrival *ret);

/* udp_answer_put - ancillary data for an answer: from the address that @arrival was sent to, and with its DSCP
 * @message: its control buffer has UDP_CONTROL_BYTES; its length is set, to 0 where nothing has to be said
 * @family:  of the socket
 */
void udp_answer_put(struct msghdr *message, int family, const struct udp_arrival *arrival);

/* udp_stamp_receive - take one transmit stamp from the error queue of @fd, without waiting
 *
 * Return: 0 with the packet's number and its time (CLOCK_REALTIME); 1 for an entry that is no stamp; -EAGAIN where the
 * queue is empty; another negative errno.
 */
int udp_stamp_receive(int fd, uint32_t *ret_id, int64_t *ret_ns);

/* udp_timeout - let receiving on @fd return -EAGAIN after @timeout_ns. Return: 0 or a negative errno. */
int udp_timeout(int fd, int64_t timeout_ns);

/* udp_ip_overhead - octets of IP and UDP headers of @family */
static inline uint32_t udp_ip_overhead(int family)
{
        return family == AF_INET6 ? 40 + 8 : 20 + 8;
}

/* udp_buffers_json - as an object with the members' names. Return: a new reference, or NULL if memory ran out. */
json_t *udp_buffers_json(const struct udp_buffers *buffers);
