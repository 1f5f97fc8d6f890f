/* SPDX-License-Identifier: Apache-2.0 */
#include "load/slots.h"

#include <errno.h>

#include "base/macro.h"

/* A transmit stamp may seem to precede the send by as much as the two clocks' anchor is uncertain. */
#define ANCHOR_SLACK_NS (10 * NSEC_PER_USEC)

/* A peer's clock that is further away is taken for another clock, and its distance off its stamps. */
#define PEER_CLOCK_NEAR_NS NSEC_PER_SEC

const struct column slots_columns[SLOTS_N_COLUMNS] = {
        {"slot", "index", SAMPLE_CLOCK_NONE,
         "Number of the slot; it is due at the start of the schedule + slot / rate."},
        {"lateness_ns", "ns", SAMPLE_CLOCK_MONOTONIC, "User's send stamp, read before the call, less the due time."},
        {"ksend_ns", "ns", SAMPLE_CLOCK_REALTIME, "Kernel's send stamp less the due time on this clock."},
        {"precv_ns", "ns", SAMPLE_CLOCK_PEER, "Peer's receive stamp less the due time, less the peer's offset."},
        {"residence_ns", "ns", SAMPLE_CLOCK_PEER, "Peer's send stamp less its receive stamp."},
        {"krtt_ns", "ns", SAMPLE_CLOCK_REALTIME, "Kernel's receive stamp less its send stamp."},
        {"urtt_ns", "ns", SAMPLE_CLOCK_MONOTONIC, "User's receive stamp less its send stamp."},
};

size_t slots_size(size_t n)
{
        return n * (sizeof(struct slot) + sizeof(uint32_t));
}

void slots_init(struct slots *s, void *memory, size_t n, uint64_t first_sequence)
{
        *s = (struct slots){
                .n = n,
                .slot = memory,
                .slot_of_send = (uint32_t *)((struct slot *)memory + n),
                .first_sequence = first_sequence,
        };
        for (size_t i = 0; i < n; i++)
                s->slot[i] = (struct slot){
                        .sent_ns = SAMPLE_MISSING,
                        .kernel_sent_ns = SAMPLE_MISSING,
                        .peer_received_ns = SAMPLE_MISSING,
                        .peer_sent_ns = SAMPLE_MISSING,
                        .kernel_received_ns = SAMPLE_MISSING,
                        .received_ns = SAMPLE_MISSING,
                        .state = SLOT_OPEN,
                };
}

void slots_begin(struct slots *s, const struct schedule *schedule, const struct clocksync_anchor *anchor)
{
        s->schedule = *schedule;
        s->anchor = *anchor;
}

static void close_slot(struct slots *s, size_t i)
{
        __atomic_store_n(&s->n_closed, i + 1, __ATOMIC_RELEASE);
}

void slots_miss(struct slots *s, size_t i)
{
        s->slot[i].state = SLOT_MISSED;
        close_slot(s, i);
}

void slots_refuse(struct slots *s, size_t i, int64_t sent_ns)
{
        s->slot[i].sent_ns = sent_ns;
        s->slot[i].state = SLOT_REFUSED;
        close_slot(s, i);
}

void slots_request(const struct slots *s, int64_t sent_ns, struct stamp_request *ret)
{
        ret->sequence = (uint32_t)(s->first_sequence + s->n_sent);
        ret->timestamp = stamp_time_encode(STAMP_FORMAT_NTP, clocksync_realtime(&s->anchor, sent_ns));
}

void slots_sent(struct slots *s, size_t i, int64_t sent_ns)
{
        s->slot[i].sent_ns = sent_ns;
        s->slot[i].state = SLOT_SENT;
        s->slot_of_send[s->n_sent++] = (uint32_t)i;
        close_slot(s, i);
}

void slots_restart_stamps(struct slots *s)
{
        s->stamp_base = s->n_sent;
}

int slots_stamp(struct slots *s, uint32_t id, int64_t kernel_sent_ns)
{
        uint64_t send = s->stamp_base + stamp_sequence_unwrap(s->n_sent - s->stamp_base, id);
        struct slot *slot = send < s->n_sent ? &s->slot[s->slot_of_send[send]] : NULL;

        if (!slot || slot->kernel_sent_ns != SAMPLE_MISSING ||
            kernel_sent_ns < clocksync_realtime(&s->anchor, slot->sent_ns) - ANCHOR_SLACK_NS) {
                s->n_stray_stamps++;
                return 1;
        }
        slot->kernel_sent_ns = kernel_sent_ns;
        return 0;
}

/* The packet that @reply answers: one that was sent, and with the timestamp that it had. */
static struct slot *find_request(struct slots *s, const struct stamp_reply *reply, uint64_t *ret_send)
{
        uint64_t sequence = stamp_sequence_unwrap(s->first_sequence + s->n_sent, reply->sender_sequence);
        uint64_t send = sequence - s->first_sequence;
        struct slot *slot;

        if (sequence < s->first_sequence || send >= s->n_sent)
                return NULL;
        slot = &s->slot[s->slot_of_send[send]];
        if (stamp_time_encode(STAMP_FORMAT_NTP, clocksync_realtime(&s->anchor, slot->sent_ns)) !=
            reply->sender_timestamp)
                return NULL;
        *ret_send = send;
        return slot;
}

static int64_t peer_time(const struct stamp_reply *packet, uint64_t timestamp, int64_t near_ns)
{
        int64_t ns;

        return stamp_time_decode(packet->error.format, timestamp, near_ns, &ns) < 0 ? SAMPLE_MISSING : ns;
}

/* The first pair of packets fixes where the peer's clock is. */
static void note_peer_clock(struct slots *s, const struct slot *slot)
{
        int64_t distance_ns;

        if (s->has_peer_offset || slot->peer_received_ns == SAMPLE_MISSING)
                return;
        distance_ns = slot->peer_received_ns - clocksync_realtime(&s->anchor, slot->sent_ns);
        if (distance_ns >= PEER_CLOCK_NEAR_NS || distance_ns <= -PEER_CLOCK_NEAR_NS)
                s->peer_offset_ns = distance_ns;
        s->has_peer_offset = true;
}

static void note_peer_sequence(struct slots *s, uint64_t send, bool is_first_ever, const struct stamp_reply *packet)
{
        if (is_first_ever || send < s->earliest_answered) {
                s->earliest_answered = send;
                s->earliest_peer_sequence = packet->sequence;
        }
        if (is_first_ever || send > s->latest_answered) {
                s->latest_answered = send;
                s->latest_peer_sequence = packet->sequence;
        }
        if (packet->sequence != packet->sender_sequence)
                s->is_peer_stateful = true;
}

enum slots_outcome slots_receive(struct slots *s, const struct slots_reply *reply)
{
        const struct stamp_reply *packet = &reply->packet;
        struct slot *slot;
        int64_t near_ns;
        uint64_t send;

        slot = find_request(s, packet, &send);
        if (!slot) {
                s->n_unmatched++;
                return SLOTS_UNMATCHED;
        }
        if (slot->state == SLOT_ANSWERED) {
                slot->n_duplicates++;
                return SLOTS_DUPLICATE;
        }

        near_ns = clocksync_realtime(&s->anchor, slot->sent_ns);
        slot->peer_received_ns = peer_time(packet, packet->receive_timestamp, near_ns);
        slot->peer_sent_ns = peer_time(packet, packet->timestamp, near_ns);
        slot->kernel_received_ns = reply->kernel_received_ns;
        slot->received_ns = reply->received_ns;
        slot->forward_ttl = packet->sender_ttl;
        slot->return_ttl = reply->ttl;
        slot->is_reordered = send < s->next_expected;
        note_peer_sequence(s, send, s->next_expected == 0, packet);
        if (!slot->is_reordered)
                s->next_expected = send + 1;
        s->peer_error = packet->error;
        note_peer_clock(s, slot);
        s->n_answered++;
        __atomic_store_n(&slot->state, SLOT_ANSWERED, __ATOMIC_RELEASE); /* last, for readers of shared memory */
        return SLOTS_FIRST;
}

void slots_fault(struct slots *s, enum stamp_fault fault)
{
        s->n_faults[fault]++;
}

int64_t slot_rtt_ns(const struct slot *slot)
{
        return sample_interval(sample_interval(slot->peer_received_ns, slot->peer_sent_ns),
                               sample_interval(slot->kernel_sent_ns, slot->kernel_received_ns));
}

int64_t slot_rtt_user_ns(const struct slot *slot)
{
        return sample_interval(slot->sent_ns, slot->received_ns);
}

int64_t slots_lateness_ns(const struct slots *s, size_t i)
{
        return sample_interval(schedule_due_ns(&s->schedule, i), s->slot[i].sent_ns);
}

/* Extremes of what is known; 0 stands for not known. */
static void add_ttl(uint8_t ttl, uint8_t *min, uint8_t *max)
{
        if (ttl == 0)
                return;
        if (*min == 0 || ttl < *min)
                *min = ttl;
        *max = MAX(*max, ttl);
}

static bool is_negative(int64_t interval_ns)
{
        return interval_ns != SAMPLE_MISSING && interval_ns < 0;
}

static void count_answered(struct slots_counts *c, const struct slot *slot)
{
        c->received++;
        c->duplicates += slot->n_duplicates;
        c->reordered += slot->is_reordered;
        c->unstamped_receive += slot->kernel_received_ns == SAMPLE_MISSING;
        c->unstamped_peer += slot->peer_received_ns == SAMPLE_MISSING || slot->peer_sent_ns == SAMPLE_MISSING;
        /* The residence is checked too: if it is negative, no round trip by the peer's stamps can be right. */
        c->negative += is_negative(slot_rtt_ns(slot)) || is_negative(slot_rtt_user_ns(slot)) ||
                       is_negative(sample_interval(slot->peer_received_ns, slot->peer_sent_ns)) ||
                       is_negative(sample_interval(slot->kernel_sent_ns, slot->kernel_received_ns));
        add_ttl(slot->forward_ttl, &c->forward_ttl_min, &c->forward_ttl_max);
        add_ttl(slot->return_ttl, &c->return_ttl_min, &c->return_ttl_max);
}

void slots_count(const struct slots *s, size_t from, size_t to, struct slots_counts *ret)
{
        uint64_t closed = __atomic_load_n(&s->n_closed, __ATOMIC_ACQUIRE);
        struct slots_counts c = {0};

        for (size_t i = from; i < MIN(to, closed); i++) {
                const struct slot *slot = &s->slot[i];

                c.slots++;
                c.missed += slot->state == SLOT_MISSED;
                c.refused += slot->state == SLOT_REFUSED;
                if (slot->state == SLOT_SENT || slot->state == SLOT_ANSWERED)
                        c.unstamped_send += slot->kernel_sent_ns == SAMPLE_MISSING;
                if (slot->state == SLOT_ANSWERED)
                        count_answered(&c, slot);
        }
        c.sent = c.slots - c.missed;
        c.lost = c.sent - c.received;
        *ret = c;
}

int slots_lost_forward(const struct slots *s, uint64_t *ret)
{
        uint64_t sent = s->latest_answered - s->earliest_answered;
        uint32_t arrived = s->latest_peer_sequence - s->earliest_peer_sequence;

        /* More arrived than were sent: duplicates on the way there, which its sequence cannot tell from packets. */
        if (!s->is_peer_stateful || arrived > sent)
                return -ENODATA;
        *ret = sent - arrived;
        return 0;
}

static int add_hops(json_t *object, const char *key, uint8_t ttl)
{
        return ttl == 0 ? 0 : json_object_set_new(object, key, json_integer(STAMP_TTL - ttl));
}

json_t *slots_counts_json(const struct slots_counts *c)
{
        const struct {
                const char *key;
                uint64_t value;
        } members[] = {
                {"slots", c->slots},
                {"sent", c->sent},
                {"missed", c->missed},
                {"refused", c->refused},
                {"received", c->received},
                {"lost", c->lost},
                {"duplicates", c->duplicates},
                {"reordered", c->reordered},
                {"unstamped_send", c->unstamped_send},
                {"unstamped_receive", c->unstamped_receive},
                {"unstamped_peer", c->unstamped_peer},
                {"negative", c->negative},
        };
        _cleanup_json_ json_t *object = json_object();

        for (size_t i = 0; i < ARRAY_SIZE(members); i++)
                if (json_object_set_new(object, members[i].key, json_integer((json_int_t)members[i].value)) < 0)
                        return NULL;
        /* The fewest hops have the highest TTL. */
        if (add_hops(object, "forward_hops_min", c->forward_ttl_max) < 0 ||
            add_hops(object, "forward_hops_max", c->forward_ttl_min) < 0 ||
            add_hops(object, "return_hops_min", c->return_ttl_max) < 0 ||
            add_hops(object, "return_hops_max", c->return_ttl_min) < 0)
                return NULL;
        return TAKE_PTR(object);
}

int slots_write(const struct slots *s, struct sample_writer *w, struct err *err)
{
        uint64_t closed = __atomic_load_n(&s->n_closed, __ATOMIC_ACQUIRE);

        for (size_t i = 0; i < closed; i++) {
                const struct slot *slot = &s->slot[i];
                int64_t due_ns = clocksync_realtime(&s->anchor, schedule_due_ns(&s->schedule, i));
                int64_t row[SLOTS_N_COLUMNS] = {
                        (int64_t)i,
                        slots_lateness_ns(s, i),
                        sample_interval(due_ns, slot->kernel_sent_ns),
                        sample_interval(due_ns + s->peer_offset_ns, slot->peer_received_ns),
                        sample_interval(slot->peer_received_ns, slot->peer_sent_ns),
                        sample_interval(slot->kernel_sent_ns, slot->kernel_received_ns),
                        slot_rtt_user_ns(slot),
                };
                int r = sample_write(w, row, err);

                if (r < 0)
                        return r;
        }
        return 0;
}
