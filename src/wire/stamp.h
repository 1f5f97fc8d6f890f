/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/span.h"

/* The Simple Two-way Active Measurement Protocol, RFC 8762, unauthenticated mode: one packet format for each direction,
 * both 44 octets in UDP, the request followed by any padding that the sender likes, which comes back. The session
 * identifier is that of RFC 8972; peers without it send 0. */

#define STAMP_PORT 862
#define STAMP_LEN  44
#define STAMP_TTL  255 /* of every packet that is sent, so that the far end can count hops */

/* How a 64-bit timestamp is to be read; the Z bit of the error estimate beside it (RFC 8186). */
enum stamp_format {
        STAMP_FORMAT_NTP, /* seconds since 1900 and a fraction in units of 2^-32 s (RFC 5905) */
        STAMP_FORMAT_PTP, /* seconds and nanoseconds since 1970, the truncated format of IEEE 1588 */
};

/* The error estimate of RFC 4656, 4.1.2: the clock is within @multiplier * 2^(@scale - 32) seconds. */
struct stamp_error {
        bool is_synchronised; /* to UTC by an outside source */
        enum stamp_format format;
        uint8_t scale;      /* 0 to 63 */
        uint8_t multiplier; /* never 0: a packet that has 0 there is corrupt */
};

struct stamp_request {
        uint32_t sequence;
        uint64_t timestamp; /* of sending; as on the wire, see stamp_time_decode() */
        struct stamp_error error;
        uint16_t session;
};

struct stamp_reply {
        uint32_t sequence;        /* the reflector's own where it is stateful, else a copy of the sender's */
        uint64_t timestamp;       /* of reflecting */
        struct stamp_error error; /* of both stamps of the reflector */
        uint16_t session;
        uint64_t receive_timestamp;

        /* copies of what the reflector received */
        uint32_t sender_sequence;
        uint64_t sender_timestamp;
        struct stamp_error sender_error;
        uint8_t sender_ttl; /* as it arrived; 0 from a reflector that does not copy it */
};

/* Why a packet is not taken. */
enum stamp_fault {
        STAMP_FAULT_NONE,
        STAMP_FAULT_SHORT,      /* fewer than 44 octets */
        STAMP_FAULT_MULTIPLIER, /* an error estimate with multiplier 0 */
        STAMP_FAULT_REPLY,      /* a reflector's packet where a sender's is expected: answering it would make a loop */
        STAMP_FAULT_TIMESTAMP,  /* a timestamp that is no time: nanoseconds of 10^9 or more */
        N_STAMP_FAULTS,
};

/* stamp_fault_name - stable lower-case name, such as "short" */
const char *stamp_fault_name(enum stamp_fault fault);

/* stamp_faults_json - counts by fault as an object with their names, STAMP_FAULT_NONE left out
 *
 * Return: a new reference, or NULL if memory ran out.
 */
json_t *stamp_faults_json(const uint64_t counts[static N_STAMP_FAULTS]);

/* stamp_request_put - write the 44 octets of a sender's packet; reserved octets are zero */
void stamp_request_put(const struct stamp_request *request, uint8_t buf[static STAMP_LEN]);

/* stamp_request_parse - read a sender's packet
 * @packet: UDP payload; what follows the 44 octets is padding and not looked at
 *
 * Return: STAMP_FAULT_NONE with @ret set, or why the packet is not taken. Octets that RFC 8762 reserves may hold
 * anything (senders of TWAMP Light put padding there), except what only a reflector writes.
 */
enum stamp_fault stamp_request_parse(struct span packet, struct stamp_request *ret);

/* stamp_reply_put - write the 44 octets of a reflector's packet; reserved octets are zero */
void stamp_reply_put(const struct stamp_reply *reply, uint8_t buf[static STAMP_LEN]);

/* stamp_reply_parse - read a reflector's packet
 *
 * Return: as stamp_request_parse(). The sender's own fields come back unchecked: only the sender knows what it sent.
 */
enum stamp_fault stamp_reply_parse(struct span packet, struct stamp_reply *ret);

/* stamp_time_encode - @unix_ns (since 1970, CLOCK_REALTIME) as the 64 bits of a timestamp
 *
 * NTP: rounded up to a unit of 2^-32 s (0.23 ns), so that every reader gets @unix_ns back, whether it rounds down or to
 * the nearest. Seconds wrap at the end of an era (NTP in 2036, PTP in 2106), as they have to.
 */
uint64_t stamp_time_encode(enum stamp_format format, int64_t unix_ns);

/* stamp_time_decode - the time that a timestamp means
 * @near_unix_ns: a time within 68 years of it, which selects the era; the own clock does
 * @ret:          nanoseconds since 1970, rounded to the nearest. On the timescale of the peer: PTP clocks that follow
 *                IEEE 1588 count TAI, 37 s ahead of UTC since 2017.
 *
 * Return: 0; -ENODATA for a timestamp of 0, which means none; -ERANGE for a PTP timestamp of 10^9 ns or more.
 */
int stamp_time_decode(enum stamp_format format, uint64_t timestamp, int64_t near_unix_ns, int64_t *ret);

/* stamp_error_of_ns - the smallest estimate of at least @error_ns that the field can hold; multiplier at least 1 */
struct stamp_error stamp_error_of_ns(bool is_synchronised, enum stamp_format format, uint64_t error_ns);

/* stamp_error_ns - an estimate in nanoseconds, rounded up; UINT64_MAX where it does not fit */
uint64_t stamp_error_ns(const struct stamp_error *error);

/* stamp_sequence_unwrap - the 64-bit number with the low 32 bits @sequence that is nearest to @near
 *
 * Never below 0: next to the start, a number from "before" it comes out one wrap later and so matches nothing.
 */
uint64_t stamp_sequence_unwrap(uint64_t near, uint32_t sequence);
