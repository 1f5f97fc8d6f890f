/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/sample.h"
#include "fuzz/fuzz.h"
#include "load/slots.h"
#include "wire/marker.h"
#include "wire/stamp.h"
#include "wire/vlan.h"

/* The first byte says what the rest is: a request (q), replies to a probe (p), a frame (v), a datagram of load (m). */

#define N_SLOTS 8

/* A timestamp that can be read comes back to within its unit. */
static void check_time(enum stamp_format format, uint64_t timestamp)
{
        const int64_t now_ns = INT64_C(1795000000) * NSEC_PER_SEC;
        uint64_t distance, again;
        int64_t ns;

        if (stamp_time_decode(format, timestamp, now_ns, &ns) < 0)
                return;
        again = stamp_time_encode(format, ns);
        distance = MIN(again - timestamp, timestamp - again); /* eras wrap */
        if (distance > (format == STAMP_FORMAT_NTP ? 5 : 0))  /* a nanosecond is 4.3 units of NTP */
                abort();
}

static void check_request(struct span s)
{
        struct stamp_request request, again;
        uint8_t buf[STAMP_LEN];

        if (stamp_request_parse(s, &request) != STAMP_FAULT_NONE)
                return;
        stamp_request_put(&request, buf);
        if (memcmp(buf, s.data, 16) != 0 || stamp_request_parse(span_of(buf, STAMP_LEN), &again) != STAMP_FAULT_NONE)
                abort();
        check_time(request.error.format, request.timestamp);
        if (stamp_error_ns(&request.error) == 0)
                abort();
}

static void check_reply(struct span s, struct slots *slots)
{
        struct slots_reply reply = {.received_ns = slots->anchor.monotonic_ns};
        struct stamp_request request;
        uint8_t buf[STAMP_LEN];

        if (stamp_reply_parse(s, &reply.packet) != STAMP_FAULT_NONE)
                return;
        stamp_reply_put(&reply.packet, buf);
        if (memcmp(buf, s.data, 36) != 0)
                abort();
        /* Nothing that a reflector can make of these fields is answered by another one. */
        if (labs((long)(int32_t)((uint32_t)(reply.packet.timestamp >> 32) -
                                 (uint32_t)(reply.packet.receive_timestamp >> 32))) < 3600 &&
            reply.packet.receive_timestamp != 0 &&
            stamp_request_parse(span_of(buf, STAMP_LEN), &request) == STAMP_FAULT_NONE)
                abort();
        check_time(reply.packet.error.format, reply.packet.receive_timestamp);

        /* Once as it came, and once as if it knew what was sent. */
        slots_receive(slots, &reply);
        slots_request(slots, slots->slot[0].sent_ns, &request);
        reply.packet.sender_timestamp = request.timestamp;
        reply.packet.sender_sequence %= N_SLOTS;
        slots_receive(slots, &reply);
        slots_stamp(slots, reply.packet.sequence, (int64_t)(reply.packet.timestamp >> 1));
}

/* A probe that has sent packets, at one moment for simplicity, and gets replies of 44 octets each. */
static void check_replies(struct span s)
{
        const struct schedule schedule = schedule_at_rate(NSEC_PER_SEC, 1000);
        const struct clocksync_anchor anchor = {.monotonic_ns = NSEC_PER_SEC,
                                                .realtime_ns = INT64_C(1795000000) * NSEC_PER_SEC};
        uint64_t memory[N_SLOTS * 8];
        struct slots_counts c;
        struct slots slots;
        struct span packet;

        if (slots_size(N_SLOTS) > sizeof(memory))
                abort();
        slots_init(&slots, memory, N_SLOTS, 0);
        slots_begin(&slots, &schedule, &anchor);
        for (size_t i = 0; i < N_SLOTS; i++)
                slots_sent(&slots, i, NSEC_PER_SEC);
        for (size_t at = 0; span_sub(s, at, STAMP_LEN, &packet); at += STAMP_LEN)
                check_reply(packet, &slots);
        slots_count(&slots, 0, N_SLOTS, &c);
        if (c.sent + c.missed != c.slots || c.received + c.lost != c.sent || c.received > N_SLOTS)
                abort();
}

static void check_frame(struct span s)
{
        struct vlan_frame frame, tagged;
        uint8_t buf[256];
        size_t len = s.len;

        if (vlan_parse(s, &frame) < 0)
                return;
        if (frame.payload.len > s.len || frame.payload.data + frame.payload.len != s.data + s.len)
                abort();
        if (frame.n_tags == 2 || len > sizeof(buf))
                return;
        memcpy(buf, s.data, len);
        if (vlan_push(buf, &len, sizeof(buf), &(struct vlan_tag){.id = 7}) < 0)
                return;
        if (vlan_parse(span_of(buf, len), &tagged) < 0 || tagged.n_tags != frame.n_tags + 1 || tagged.outer.id != 7 ||
            !span_equal(tagged.payload, frame.payload))
                abort();
}

static void check_marker(struct span s)
{
        struct marker marker;
        uint8_t buf[MARKER_LEN];

        if (marker_parse(s, &marker) < 0)
                return;
        marker_put(&marker, buf);
        if (memcmp(buf, s.data, MARKER_LEN) != 0)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size == 0)
                return 0;
        switch (data[0]) {
        case 'q':
                check_request(span_of(data + 1, size - 1));
                break;
        case 'p':
                check_replies(span_of(data + 1, size - 1));
                break;
        case 'v':
                check_frame(span_of(data + 1, size - 1));
                break;
        case 'm':
                check_marker(span_of(data + 1, size - 1));
                break;
        default:
                break;
        }
        return 0;
}
