/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed/scrape.h"

#include <errno.h>
#include <stdlib.h>

#include "base/macro.h"
#include "wire/openmetrics.h"

int scrape_init(struct scrape *s, size_t n_links, size_t n_slices)
{
        *s = (struct scrape){
                .n_links = n_links,
                .n_slices = n_slices,
                .links = calloc(n_links, sizeof(*s->links)),
                .refused = calloc(n_links, sizeof(*s->refused)),
                .ports = calloc(n_links * n_slices, sizeof(*s->ports)),
        };
        if (s->links && s->refused && s->ports)
                return 0;
        scrape_done(s);
        return -ENOMEM;
}

void scrape_done(struct scrape *s)
{
        free(s->links);
        free(s->refused);
        free(s->ports);
        *s = (struct scrape){0};
}

const struct scrape_port *scrape_port(const struct scrape *s, size_t link, size_t slice, unsigned end)
{
        return &s->ports[link * s->n_slices + slice][end];
}

/* A family that is exported for each of some things. */
struct family {
        enum openmetrics_type type;
        const char *name, *unit, *help;
};

static void start_family(struct openmetrics_writer *w, const struct family *f)
{
        openmetrics_family(w, f->type, f->name, f->unit, f->help);
}

static void add_sample(struct openmetrics_writer *w, const struct openmetrics_label *labels, size_t n, uint64_t value)
{
        openmetrics_sample(w, labels, n, (int64_t)MIN(value, (uint64_t)INT64_MAX));
}

static void format_links(const struct scrape *s, const struct layout *l, struct openmetrics_writer *w)
{
        static const struct family families[] = {
                {OPENMETRICS_COUNTER, "assay_link_packets", "packets", "Packets that crossed a link."},
                {OPENMETRICS_COUNTER, "assay_link_bytes", "bytes",
                 "Bytes of layer 2 that crossed a link, the tag included."},
                {OPENMETRICS_COUNTER, "assay_link_dropped_packets", "packets",
                 "Packets that the sending end of a link could not hand over."},
        };
        static const struct family running = {OPENMETRICS_GAUGE, "assay_link_running", NULL,
                                              "Whether both ends of a link are up."};

        for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
                start_family(w, &families[f]);
                for (size_t i = 0; i < s->n_links; i++)
                        for (unsigned up = 0; up < 2; up++) {
                                const struct scrape_flow *flow = up ? &s->links[i].up : &s->links[i].down;
                                const uint64_t values[] = {flow->sent.packets, flow->sent.bytes, flow->dropped_packets};
                                const struct openmetrics_label labels[] = {{"link", l->links[i].name},
                                                                           {"direction", up ? "up" : "down"}};

                                add_sample(w, labels, ARRAY_SIZE(labels), values[f]);
                        }
        }
        start_family(w, &running);
        for (size_t i = 0; i < s->n_links; i++) {
                const struct openmetrics_label label = {"link", l->links[i].name};

                add_sample(w, &label, 1, s->links[i].is_running);
        }
}

static void format_classes(const struct scrape *s, const struct layout *l, struct openmetrics_writer *w)
{
        static const struct family families[] = {
                {OPENMETRICS_COUNTER, "assay_class_packets", "packets",
                 "Packets that a class of the uplink handed to the link."},
                {OPENMETRICS_COUNTER, "assay_class_bytes", "bytes",
                 "Bytes of layer 2 that a class handed over, the tag included."},
                {OPENMETRICS_COUNTER, "assay_class_dropped_packets", "packets",
                 "Packets that a class dropped: its queue was full."},
                {OPENMETRICS_COUNTER, "assay_class_overlimits", NULL, "Times that a class had to wait for its rate."},
                {OPENMETRICS_GAUGE, "assay_class_backlog_packets", "packets", "Packets that wait in a class."},
        };
        static const struct family unclassified = {OPENMETRICS_COUNTER, "assay_unclassified_packets", "packets",
                                                   "Packets that left the uplink's scheduler without a class."};

        for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
                start_family(w, &families[f]);
                for (size_t i = 0; i < s->n_classes; i++) {
                        const struct scrape_class *c = &s->classes[i];
                        const uint64_t values[] = {c->sent.packets, c->sent.bytes, c->dropped_packets, c->overlimits,
                                                   c->backlog_packets};
                        bool is_shared = l->topology->scheduler == TOPOLOGY_ONE_QUEUE;
                        const struct openmetrics_label label = {"slice", is_shared ? "*" : l->topology->slices[i].name};

                        if (c->is_present)
                                add_sample(w, &label, 1, values[f]);
                }
        }
        start_family(w, &unclassified);
        add_sample(w, NULL, 0, s->unclassified_packets);
}

static const char *end_node(const struct layout *l, size_t link, unsigned end)
{
        return l->nodes[l->links[link].ends[end].node].name;
}

static void format_ports(const struct scrape *s, const struct layout *l, struct openmetrics_writer *w)
{
        static const struct family families[] = {
                {OPENMETRICS_COUNTER, "assay_slice_packets", "packets",
                 "Packets that a node sent or received over a link with a slice's tag."},
                {OPENMETRICS_COUNTER, "assay_slice_bytes", "bytes",
                 "Bytes of layer 2 that a node sent or received over a link with a slice's tag, the tag included."},
        };

        for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
                start_family(w, &families[f]);
                for (size_t i = 0; i < l->n_subnets * 4; i++) {
                        const struct layout_subnet *subnet = &l->subnets[i / 4];
                        unsigned end = i / 2 % 2;
                        const struct scrape_port *port = scrape_port(s, subnet->link, subnet->slice, end);
                        const struct scrape_count *count = i % 2 ? &port->out : &port->in;
                        const struct openmetrics_label labels[] = {
                                {"link", l->links[subnet->link].name},
                                {"node", end_node(l, subnet->link, end)},
                                {"slice", l->topology->slices[subnet->slice].name},
                                {"direction", i % 2 ? "out" : "in"},
                        };

                        add_sample(w, labels, ARRAY_SIZE(labels), f == 0 ? count->packets : count->bytes);
                }
        }
}

static void format_refusals(const struct scrape *s, const struct layout *l, struct openmetrics_writer *w)
{
        static const struct family refused = {OPENMETRICS_COUNTER, "assay_refused_packets", "packets",
                                              "Packets that a node refused at a link, and why."};

        start_family(w, &refused);
        for (size_t i = 0; i < s->n_links * 2; i++)
                for (unsigned reason = 0; reason < SLICE_DROP_MAX; reason++) {
                        const struct openmetrics_label labels[] = {{"link", l->links[i / 2].name},
                                                                   {"node", end_node(l, i / 2, i % 2)},
                                                                   {"reason", slice_drop_name(reason)}};

                        add_sample(w, labels, ARRAY_SIZE(labels), s->refused[i / 2][i % 2][reason]);
                }
}

int scrape_format(const struct scrape *s, const struct layout *l, struct text *out, struct err *err)
{
        struct openmetrics_writer w = {.out = out};

        format_links(s, l, &w);
        if (l->topology->hops > 0)
                format_classes(s, l, &w);
        if (s->has_ports) {
                format_ports(s, l, &w);
                format_refusals(s, l, &w);
        }
        return openmetrics_end(&w, err);
}
