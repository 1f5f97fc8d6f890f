/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed/scrape.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/macro.h"

void scrape_done(struct scrape *s)
{
        free(s->ports);
        *s = (struct scrape){0};
}

const struct scrape_port *scrape_port(const struct scrape *s, size_t link, size_t slice, unsigned end)
{
        return &s->ports[link * s->n_slices + slice][end];
}

static void family(struct text *out, const char *name, const char *type, const char *help)
{
        text_addf(out, "# TYPE assay_%s %s\n# HELP assay_%s %s\n", name, type, name, help);
}

static void format_links(const struct scrape *s, const struct layout *l, struct text *out)
{
        static const struct {
                const char *name, *help;
        } families[] = {
                {"link_packets", "Packets that crossed a link."},
                {"link_bytes", "Bytes of layer 2 that crossed a link, the tag included."},
                {"link_dropped_packets", "Packets that the sending end of a link could not hand over."},
        };

        for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
                family(out, families[f].name, "counter", families[f].help);
                for (size_t i = 0; i < s->n_links; i++)
                        for (unsigned up = 0; up < 2; up++) {
                                const struct scrape_flow *flow = up ? &s->links[i].up : &s->links[i].down;
                                const uint64_t values[] = {flow->sent.packets, flow->sent.bytes, flow->dropped_packets};

                                text_addf(out, "assay_%s_total{link=\"%s\",direction=\"%s\"} %" PRIu64 "\n",
                                          families[f].name, l->links[i].name, up ? "up" : "down", values[f]);
                        }
        }
        family(out, "link_running", "gauge", "Whether both ends of a link are up.");
        for (size_t i = 0; i < s->n_links; i++)
                text_addf(out, "assay_link_running{link=\"%s\"} %d\n", l->links[i].name, s->links[i].is_running);
}

static void format_classes(const struct scrape *s, const struct layout *l, struct text *out)
{
        static const struct {
                const char *name, *type, *suffix, *help;
        } families[] = {
                {"class_packets", "counter", "_total", "Packets that a class of the uplink handed to the link."},
                {"class_bytes", "counter", "_total", "Bytes of layer 2 that a class handed over, the tag included."},
                {"class_dropped_packets", "counter", "_total", "Packets that a class dropped: its queue was full."},
                {"class_overlimits", "counter", "_total", "Times that a class had to wait for its rate."},
                {"class_backlog_packets", "gauge", "", "Packets that wait in a class."},
        };

        for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
                family(out, families[f].name, families[f].type, families[f].help);
                for (size_t i = 0; i < s->n_classes; i++) {
                        const struct scrape_class *c = &s->classes[i];
                        const uint64_t values[] = {c->sent.packets, c->sent.bytes, c->dropped_packets, c->overlimits,
                                                   c->backlog_packets};
                        bool is_shared = l->topology->scheduler == TOPOLOGY_ONE_QUEUE;

                        if (c->is_present)
                                text_addf(out, "assay_%s%s{slice=\"%s\"} %" PRIu64 "\n", families[f].name,
                                          families[f].suffix, is_shared ? "*" : l->topology->slices[i].name, values[f]);
                }
        }
        family(out, "unclassified_packets", "counter", "Packets that left the uplink's scheduler without a class.");
        text_addf(out, "assay_unclassified_packets_total %" PRIu64 "\n", s->unclassified_packets);
}

static const char *end_node(const struct layout *l, size_t link, unsigned end)
{
        return l->nodes[l->links[link].ends[end].node].name;
}

static void format_ports(const struct scrape *s, const struct layout *l, struct text *out)
{
        static const char *const families[] = {"slice_packets", "slice_bytes"};
        static const char *const helps[] = {
                "Packets that a node sent or received over a link with a slice's tag.",
                "Bytes of layer 2 that a node sent or received over a link with a slice's tag, the tag included.",
        };

        for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
                family(out, families[f], "counter", helps[f]);
                for (size_t i = 0; i < l->n_subnets * 4; i++) {
                        const struct layout_subnet *subnet = &l->subnets[i / 4];
                        unsigned end = i / 2 % 2;
                        const struct scrape_port *port = scrape_port(s, subnet->link, subnet->slice, end);
                        const struct scrape_count *count = i % 2 ? &port->out : &port->in;

                        text_addf(out,
                                  "assay_%s_total{link=\"%s\",node=\"%s\",slice=\"%s\",direction=\"%s\"} %" PRIu64 "\n",
                                  families[f], l->links[subnet->link].name, end_node(l, subnet->link, end),
                                  l->topology->slices[subnet->slice].name, i % 2 ? "out" : "in",
                                  f == 0 ? count->packets : count->bytes);
                }
        }
}

static void format_refusals(const struct scrape *s, const struct layout *l, struct text *out)
{
        family(out, "refused_packets", "counter", "Packets that a node refused at a link, and why.");
        for (size_t i = 0; i < s->n_links * 2; i++)
                for (unsigned reason = 0; reason < SLICE_DROP_MAX; reason++)
                        text_addf(out,
                                  "assay_refused_packets_total{link=\"%s\",node=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
                                  l->links[i / 2].name, end_node(l, i / 2, i % 2), slice_drop_name(reason),
                                  s->refused[i / 2][i % 2][reason]);
}

void scrape_format(const struct scrape *s, const struct layout *l, struct text *out)
{
        format_links(s, l, out);
        if (l->topology->hops > 0)
                format_classes(s, l, out);
        if (s->has_ports) {
                format_ports(s, l, out);
                format_refusals(s, l, out);
        }
        text_add(out, "# EOF\n");
}
