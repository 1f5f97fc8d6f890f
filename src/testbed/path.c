/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed/path.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/macro.h"

#define TTL_SENT 255

/* What should have crossed one link one way, and what came of it. */
struct crossing {
        uint64_t expected;                      /* by all flows */
        uint64_t by_slice[TOPOLOGY_SLICES_MAX]; /* the same, slice by slice */
        uint64_t carried, dropped;              /* by the link's own counters */
        bool leads_here[LAYOUT_LINKS_MAX][2];   /* links that packets cross before this one */
        uint64_t lost_before;                   /* what those counted as dropped */
};

struct judgement {
        const struct layout *layout;
        const struct scrape *before, *after;
        struct crossing (*crossings)[2]; /* by link, and whether upward */
        struct path_proof *proof;
};

static void refuse(struct judgement *j, const char *format, ...) _printf_(2, 3);

static void refuse(struct judgement *j, const char *format, ...)
{
        va_list args;

        if (!j->proof->holds)
                return;
        j->proof->holds = false;
        va_start(args, format);
        vsnprintf(j->proof->reason, sizeof(j->proof->reason), format, args);
        va_end(args);
}

static const char *node_name(const struct judgement *j, size_t link, unsigned end)
{
        return j->layout->nodes[j->layout->links[link].ends[end].node].name;
}

static const char *slice_name(const struct judgement *j, size_t slice)
{
        return j->layout->topology->slices[slice].name;
}

static const struct scrape_flow *link_flow(const struct scrape *s, size_t link, bool is_upward)
{
        return is_upward ? &s->links[link].up : &s->links[link].down;
}

static void expect(struct judgement *j, const struct path_flow *flow)
{
        struct layout_step steps[LAYOUT_PATH_MAX];
        size_t n = layout_path(j->layout, flow->from, flow->to, steps);

        for (size_t i = 0; i < n; i++) {
                struct crossing *c = &j->crossings[steps[i].link][steps[i].is_upward];

                c->expected += flow->sent_packets;
                c->by_slice[flow->slice] += flow->sent_packets;
                for (size_t before = 0; before < i; before++)
                        c->leads_here[steps[before].link][steps[before].is_upward] = true;
        }
}

static void gather(struct judgement *j, const struct path_flow *flows, size_t n)
{
        for (size_t i = 0; i < n; i++)
                expect(j, &flows[i]);
        for (size_t i = 0; i < j->layout->n_links; i++)
                for (unsigned up = 0; up < 2; up++) {
                        const struct scrape_flow *before = link_flow(j->before, i, up);
                        const struct scrape_flow *after = link_flow(j->after, i, up);

                        j->crossings[i][up].carried = after->sent.packets - before->sent.packets;
                        j->crossings[i][up].dropped = after->dropped_packets - before->dropped_packets;
                }
        for (size_t i = 0; i < j->layout->n_links * 2; i++)
                for (size_t k = 0; k < j->layout->n_links * 2; k++)
                        if (j->crossings[i / 2][i % 2].leads_here[k / 2][k % 2])
                                j->crossings[i / 2][i % 2].lost_before += j->crossings[k / 2][k % 2].dropped;
}

static void check_links_run(struct judgement *j)
{
        for (size_t i = 0; i < j->layout->n_links; i++)
                if (!j->after->links[i].is_running)
                        refuse(j, "link %s is down", j->layout->links[i].name);
}

static void check_scheduler(struct judgement *j)
{
        const struct scrape *s = j->after;

        if (j->layout->topology->hops == 0)
                return;
        if (!s->has_scheduler)
                refuse(j, "the uplink has no scheduler of the kind %s: its root queue is %s",
                       topology_scheduler_name(j->layout->topology->scheduler),
                       s->root_kind[0] ? s->root_kind : "gone");
        for (size_t i = 0; i < s->n_classes; i++)
                if (!s->classes[i].is_present)
                        refuse(j, "the uplink's class of slice %s is gone", slice_name(j, i));
}

static const char *const refusal_texts[SLICE_DROP_MAX] = {
        [SLICE_DROP_NO_SLICE] = "belonged to no slice of the link",
        [SLICE_DROP_NOT_IP] = "were neither IPv4 nor IPv6",
        [SLICE_DROP_PUSH] = "could not be tagged",
        [SLICE_DROP_UNTAGGED] = "had no VLAN tag",
        [SLICE_DROP_UNKNOWN_TAG] = "had a VLAN tag of no slice of the link",
        [SLICE_DROP_DOUBLE_TAG] = "had two VLAN tags",
        [SLICE_DROP_ADDRESS] = "had an address that is not of their tag's slice",
        [SLICE_DROP_POP] = "could not be freed of their tag",
};

static void check_refused(struct judgement *j, size_t link, unsigned end)
{
        for (unsigned reason = 0; reason < SLICE_DROP_MAX; reason++) {
                uint64_t n = j->after->refused[link][end][reason] - j->before->refused[link][end][reason];

                if (n > 0)
                        refuse(j, "%s refused %" PRIu64 " packets on link %s: they %s", node_name(j, link, end), n,
                               j->layout->links[link].name, refusal_texts[reason]);
        }
}

/* What the scheduler dropped, and what waits in it, between the two scrapes. */
struct shaped {
        uint64_t sent, dropped;
        int64_t waiting;
};

static struct shaped class_delta(const struct judgement *j, size_t i)
{
        const struct scrape_class *b = &j->before->classes[i], *a = &j->after->classes[i];

        return (struct shaped){
                .sent = a->sent.packets - b->sent.packets,
                .dropped = a->dropped_packets - b->dropped_packets,
                .waiting = (int64_t)a->backlog_packets - (int64_t)b->backlog_packets,
        };
}

static struct shaped scheduler_delta(const struct judgement *j)
{
        struct shaped sum = {0};

        for (size_t i = 0; i < j->after->n_classes; i++) {
                struct shaped one = class_delta(j, i);

                sum.sent += one.sent;
                sum.dropped += one.dropped;
                sum.waiting += one.waiting;
        }
        return sum;
}

static bool is_shaped(const struct judgement *j, size_t link, bool is_upward)
{
        return is_upward && j->layout->links[link].is_uplink;
}

static void check_crossing(struct judgement *j, size_t link, bool is_upward)
{
        const struct crossing *c = &j->crossings[link][is_upward];
        uint64_t seen = c->carried + c->dropped;
        const char *name = j->layout->links[link].name;
        const char *from = node_name(j, link, is_upward ? LAYOUT_LOWER : LAYOUT_UPPER);

        if (is_shaped(j, link, is_upward)) {
                struct shaped queue = scheduler_delta(j);

                seen += queue.dropped + (uint64_t)queue.waiting;
        }
        if (seen > c->expected)
                refuse(j, "link %s carried %" PRIu64 " packets from %s, %" PRIu64 " more than were sent over it", name,
                       seen, from, seen - c->expected);
        else if (seen + c->lost_before < c->expected)
                refuse(j,
                       "link %s carried only %" PRIu64 " of %" PRIu64 " packets from %s: the others went another way",
                       name, seen, c->expected, from);
}

/* The class of a slice has to have got its packets, and no other one's. */
static void check_class(struct judgement *j, size_t i, const struct crossing *uplink)
{
        struct shaped class = class_delta(j, i);
        uint64_t got = class.sent + class.dropped + (uint64_t) class.waiting;
        bool is_shared = j->layout->topology->scheduler == TOPOLOGY_ONE_QUEUE;
        uint64_t expected = is_shared ? uplink->expected : uplink->by_slice[i];
        const char *whose = is_shared ? "all slices" : slice_name(j, i);

        if (got > expected)
                refuse(j, "the uplink's class of %s got %" PRIu64 " packets, %" PRIu64 " more than its own", whose, got,
                       got - expected);
        else if (got + uplink->lost_before < expected)
                refuse(j, "the uplink's class of %s got only %" PRIu64 " of its %" PRIu64 " packets", whose, got,
                       expected);
}

static void check_classes(struct judgement *j)
{
        const struct scrape *b = j->before, *a = j->after;
        size_t uplink;

        if (j->layout->topology->hops == 0 || !layout_link_find(j->layout, "uplink", &uplink))
                return;
        if (a->unclassified_packets > b->unclassified_packets)
                refuse(j, "%" PRIu64 " packets left the uplink's scheduler without a class",
                       a->unclassified_packets - b->unclassified_packets);
        for (size_t i = 0; i < a->n_classes; i++)
                check_class(j, i, &j->crossings[uplink][true]);
}

/* A slice's own counters at both ends of a link, one way. */
static void check_port(struct judgement *j, size_t link, bool is_upward, size_t slice)
{
        const struct crossing *c = &j->crossings[link][is_upward];
        unsigned from = is_upward ? LAYOUT_LOWER : LAYOUT_UPPER;
        uint64_t out = scrape_port(j->after, link, slice, from)->out.packets -
                       scrape_port(j->before, link, slice, from)->out.packets;
        uint64_t in = scrape_port(j->after, link, slice, !from)->in.packets -
                      scrape_port(j->before, link, slice, !from)->in.packets;
        uint64_t expected = c->by_slice[slice], lost = c->lost_before;

        if (out > expected || out + lost < expected)
                refuse(j, "%s sent %" PRIu64 " packets of slice %s over link %s, not %" PRIu64,
                       node_name(j, link, from), out, slice_name(j, slice), j->layout->links[link].name, expected);
        lost = c->dropped;
        if (is_shaped(j, link, is_upward)) {
                struct shaped queue = j->layout->topology->scheduler == TOPOLOGY_ONE_QUEUE ? scheduler_delta(j)
                                                                                           : class_delta(j, slice);

                lost += queue.dropped + (uint64_t)queue.waiting;
        }
        if (in > out || in + lost < out)
                refuse(j, "%s received %" PRIu64 " packets with the tag of slice %s over link %s, not %" PRIu64,
                       node_name(j, link, !from), in, slice_name(j, slice), j->layout->links[link].name, out);
}

static void check_ports(struct judgement *j)
{
        if (!j->before->has_ports || !j->after->has_ports)
                return;
        for (size_t link = 0; link < j->layout->n_links; link++)
                for (unsigned up = 0; up < 2; up++)
                        for (size_t slice = 0; slice < j->after->n_slices; slice++)
                                check_port(j, link, up, slice);
}

static void check_arrival(struct judgement *j, const struct path_flow *flow, const char *what)
{
        struct layout_step steps[LAYOUT_PATH_MAX];
        unsigned hops = (unsigned)layout_path(j->layout, flow->from, flow->to, steps) - 1;

        if (flow->must_arrive && flow->arrived_packets != flow->sent_packets)
                refuse(j, "only %" PRIu64 " of %" PRIu64 " packets %s arrived", flow->arrived_packets,
                       flow->sent_packets, what);
        if (flow->has_ttl && flow->ttl_max > 0 &&
            (flow->ttl_min != TTL_SENT - hops || flow->ttl_max != TTL_SENT - hops))
                refuse(j, "packets %s arrived with TTL %u to %u, not %u: they did not pass %u forwarding nodes", what,
                       flow->ttl_min, flow->ttl_max, TTL_SENT - hops, hops);
}

static void check_tags(struct judgement *j, const struct path_flow *flow, const char *what)
{
        unsigned vlan = j->layout->topology->slices[flow->slice].vlan;

        if (!flow->has_tags)
                return;
        if (flow->untagged_packets > 0)
                refuse(j, "%" PRIu64 " frames %s had no tag with VLAN %u on the wire", flow->untagged_packets, what,
                       vlan);
        if (flow->tagged_packets == 0)
                refuse(j, "no frame %s with VLAN %u was seen on the wire", what, vlan);
}

static void check_flow(struct judgement *j, bool wants_tags, const struct path_flow *flow)
{
        const struct topology *t = j->layout->topology;
        char what[256];

        snprintf(what, sizeof(what), "from %s to %s in slice %s", t->zones[flow->from].name, t->zones[flow->to].name,
                 slice_name(j, flow->slice));
        check_arrival(j, flow, what);
        if (wants_tags)
                check_tags(j, flow, what);
}

int path_judge(const struct layout *layout, bool wants_tags, const struct scrape *before, const struct scrape *after,
               const struct path_flow *flows, size_t n, struct path_proof *ret, struct err *err)
{
        _cleanup_free_ struct crossing(*crossings)[2] = calloc(layout->n_links, sizeof(*crossings));
        struct judgement j = {.layout = layout, .before = before, .after = after, .crossings = crossings, .proof = ret};

        if (!crossings)
                return err_set_nomem(err);
        *ret = (struct path_proof){.holds = true};
        gather(&j, flows, n);

        /* what explains most comes first: the first reason is the one that is kept */
        check_links_run(&j);
        check_scheduler(&j);
        for (size_t i = 0; i < layout->n_links; i++)
                for (unsigned end = 0; end < 2; end++)
                        check_refused(&j, i, end);
        for (size_t i = 0; i < layout->n_links; i++)
                for (unsigned up = 0; up < 2; up++)
                        check_crossing(&j, i, up);
        check_classes(&j);
        for (size_t i = 0; i < n; i++)
                check_flow(&j, wants_tags, &flows[i]);
        check_ports(&j);
        return 0;
}
