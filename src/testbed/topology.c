/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed/topology.h"

#include "base/text.h"
#include "config/unit.h"
#include "wire/vlan.h"

static const char *const shape_names[] = {
        [TOPOLOGY_STAR] = "star",
        [TOPOLOGY_DAISY_CHAIN] = "daisy-chain",
        [TOPOLOGY_DIRECT] = "direct",
        NULL,
};

static const char *const scheduler_names[] = {
        [TOPOLOGY_TREE] = "tree",
        [TOPOLOGY_TREE_PER_QUEUE] = "tree-per-queue",
        [TOPOLOGY_ONE_QUEUE] = "one-queue",
        NULL,
};

/* What the manifest says, before names are resolved. */
struct boundary_keys {
        int shape;
        int64_t hops;
        struct uplink_keys {
                char *to;
                int64_t rate_bps;
                int scheduler;
        } uplink;
        struct key_tables slices; /* struct slice_keys */
        struct key_tables zones;  /* struct zone_keys */
};

struct slice_keys {
        int64_t vlan, guarantee_bps, ceiling_bps, priority, queue_limit_packets;
};

struct zone_keys {
        struct key_names slices;
};

/* The kernel counts rates in bytes a second, and HTB's arithmetic is exact for those below. */
#define RATE_MIN_BPS INT64_C(8000)
#define RATE_MAX_BPS INT64_C(400000000000)

static const struct key_table uplink_keys = {
        .name = "uplink",
        .help = "The gateway's link to the zone that all traffic competes for.",
        .size = sizeof(struct uplink_keys),
        .keys =
                (const struct key[]){
                        {.name = "to",
                         .type = KEY_NAME,
                         .offset = offsetof(struct uplink_keys, to),
                         .is_required = true,
                         .help = "The zone behind the uplink."},
                        {.name = "rate",
                         .type = KEY_QUANTITY,
                         .offset = offsetof(struct uplink_keys, rate_bps),
                         .is_required = true,
                         .unit = UNIT_RATE,
                         .min = RATE_MIN_BPS,
                         .max = RATE_MAX_BPS,
                         .help = "What the uplink carries, in bits of layer 2 with the VLAN tag."},
                        {.name = "scheduler",
                         .type = KEY_CHOICE,
                         .offset = offsetof(struct uplink_keys, scheduler),
                         .fallback = "tree",
                         .choices = scheduler_names,
                         .help = "tree: one HTB tree with a class a slice. tree-per-queue: a transmit queue a slice, "
                                 "each with a tree of its own and a strict ceiling. one-queue: one class and one "
                                 "queue for all slices, a control."},
                        {},
                },
};

static const struct key_table slice_keys = {
        .name = "slice",
        .help = "A slice of the network: a VLAN on the links and a class on the uplink.",
        .size = sizeof(struct slice_keys),
        .keys =
                (const struct key[]){
                        {.name = "vlan",
                         .type = KEY_QUANTITY,
                         .offset = offsetof(struct slice_keys, vlan),
                         .is_required = true,
                         .unit = UNIT_COUNT,
                         .min = 1,
                         .max = VLAN_ID_MAX,
                         .help = "VLAN identifier of its 802.1Q tag."},
                        {.name = "guarantee",
                         .type = KEY_QUANTITY,
                         .offset = offsetof(struct slice_keys, guarantee_bps),
                         .is_required = true,
                         .unit = UNIT_RATE,
                         .min = RATE_MIN_BPS,
                         .max = RATE_MAX_BPS,
                         .help = "Rate on the uplink that it gets whatever the others do."},
                        {.name = "ceiling",
                         .type = KEY_QUANTITY,
                         .offset = offsetof(struct slice_keys, ceiling_bps),
                         .is_required = true,
                         .unit = UNIT_RATE,
                         .min = RATE_MIN_BPS,
                         .max = RATE_MAX_BPS,
                         .help = "Rate on the uplink that it gets at most."},
                        {.name = "priority",
                         .type = KEY_QUANTITY,
                         .offset = offsetof(struct slice_keys, priority),
                         .fallback = "0",
                         .unit = UNIT_COUNT,
                         .min = 0,
                         .max = 7,
                         .help = "Who is served first among slices that wait, 0 before 7."},
                        {.name = "queue-limit",
                         .type = KEY_QUANTITY,
                         .offset = offsetof(struct slice_keys, queue_limit_packets),
                         .fallback = "100p",
                         .unit = UNIT_PACKETS,
                         .min = 1,
                         .max = 1000000,
                         .help = "How many packets may wait for the uplink; further ones are dropped."},
                        {},
                },
};

static const struct key_table zone_keys = {
        .name = "zone",
        .help = "A zone: a network stack of its own, linked to the gateway.",
        .size = sizeof(struct zone_keys),
        .keys =
                (const struct key[]){
                        {.name = "slices",
                         .type = KEY_NAMES,
                         .offset = offsetof(struct zone_keys, slices),
                         .is_required = true,
                         .help = "The slices that its link carries."},
                        {},
                },
};

const struct key_table topology_keys = {
        .name = "zones",
        .has_kind = true,
        .help = "Zones as network namespaces, joined by a gateway whose uplink is shared by slices.",
        .size = sizeof(struct boundary_keys),
        .keys =
                (const struct key[]){
                        {.name = "topology",
                         .type = KEY_CHOICE,
                         .offset = offsetof(struct boundary_keys, shape),
                         .fallback = "star",
                         .choices = shape_names,
                         .help = "star: zones around one gateway. daisy-chain: a row of forwarding nodes between the "
                                 "zones and uplink.to. direct: zones joined to uplink.to without a gateway, a "
                                 "control."},
                        {.name = "hops",
                         .type = KEY_QUANTITY,
                         .offset = offsetof(struct boundary_keys, hops),
                         .unit = UNIT_COUNT,
                         .min = 1,
                         .max = TOPOLOGY_HOPS_MAX,
                         .help = "How many nodes of a daisy chain forward: the gateway and the relays before it."},
                        {.name = "uplink",
                         .type = KEY_TABLE,
                         .offset = offsetof(struct boundary_keys, uplink),
                         .is_required = true,
                         .table = &uplink_keys},
                        {.name = "slices",
                         .type = KEY_TABLES,
                         .offset = offsetof(struct boundary_keys, slices),
                         .is_required = true,
                         .table = &slice_keys},
                        {.name = "zones",
                         .type = KEY_TABLES,
                         .offset = offsetof(struct boundary_keys, zones),
                         .is_required = true,
                         .table = &zone_keys},
                        {},
                },
};

const char *topology_shape_name(enum topology_shape shape)
{
        return shape_names[shape];
}

const char *topology_scheduler_name(enum topology_scheduler scheduler)
{
        return scheduler_names[scheduler];
}

void topology_free(struct topology *t)
{
        if (!t)
                return;
        for (size_t i = 0; t->slices && i < t->n_slices; i++)
                free(t->slices[i].name);
        for (size_t i = 0; t->zones && i < t->n_zones; i++)
                free(t->zones[i].name);
        free(t->slices);
        free(t->zones);
        free(t);
}

bool topology_zone_find(const struct topology *t, const char *name, size_t *ret)
{
        for (size_t i = 0; i < t->n_zones; i++)
                if (streq(t->zones[i].name, name)) {
                        *ret = i;
                        return true;
                }
        return false;
}

bool topology_slice_find(const struct topology *t, const char *name, size_t *ret)
{
        for (size_t i = 0; i < t->n_slices; i++)
                if (streq(t->slices[i].name, name)) {
                        *ret = i;
                        return true;
                }
        return false;
}

uint32_t topology_shared_leaf_packets(const struct topology *t)
{
        uint32_t largest = 0;

        for (size_t i = 0; i < t->n_slices; i++)
                largest = MAX(largest, t->slices[i].queue_limit_packets);
        return largest;
}

/* Where a part of the boundary stands: the deepest node on the way down @keys (ended by NULL) that the input has. */
static const struct position *place(const struct node *node, const char *const *keys)
{
        const struct node *below;

        for (; *keys; keys++) {
                below = node_get(node, *keys);
                if (!below)
                        break;
                node = below;
        }
        return node ? &node->position : NULL;
}

#define PLACE(node, ...) place(node, (const char *const[]){__VA_ARGS__, NULL})

static const struct position *place_slice(const struct node *boundary, const struct topology_slice *slice,
                                          const char *key)
{
        return PLACE(boundary, "slices", slice->name, key);
}

/* A rate as a person writes it, in a buffer that lives as long as the expression it stands in. */
#define RATE(bps) unit_format(UNIT_RATE, bps, (char[48]){0})

static int check_slice(const struct topology *t, size_t i, const struct node *boundary, struct err *err)
{
        const struct topology_slice *s = &t->slices[i];

        for (size_t j = 0; j < i; j++)
                if (t->slices[j].vlan == s->vlan)
                        return err_set_at(err, ERR_USAGE, place_slice(boundary, s, "vlan"),
                                          "slice %s: VLAN %u is already that of slice %s; give each slice its own",
                                          s->name, s->vlan, t->slices[j].name);
        if (s->ceiling_bps > t->uplink_rate_bps)
                return err_set_at(err, ERR_USAGE, place_slice(boundary, s, "ceiling"),
                                  "slice %s: its ceiling of %s is above the uplink's rate of %s", s->name,
                                  RATE(s->ceiling_bps), RATE(t->uplink_rate_bps));
        if (s->guarantee_bps > s->ceiling_bps)
                return err_set_at(err, ERR_USAGE, place_slice(boundary, s, "guarantee"),
                                  "slice %s: its guarantee of %s is above its ceiling of %s", s->name,
                                  RATE(s->guarantee_bps), RATE(s->ceiling_bps));
        return 0;
}

static int check_slices(const struct topology *t, const struct node *boundary, struct err *err)
{
        int64_t guarantees = 0, ceilings = 0;
        int r;

        for (size_t i = 0; i < t->n_slices; i++) {
                const struct topology_slice *s = &t->slices[i];

                r = check_slice(t, i, boundary, err);
                if (r < 0)
                        return r;

                guarantees += s->guarantee_bps; /* 32 times 400 gbit: no overflow */
                ceilings += s->ceiling_bps;
                if (guarantees > t->uplink_rate_bps)
                        return err_set_at(err, ERR_USAGE, place_slice(boundary, s, "guarantee"),
                                          "slice %s: the guarantees up to here add up to %s, more than the uplink's "
                                          "rate of %s",
                                          s->name, RATE(guarantees), RATE(t->uplink_rate_bps));
                if (t->scheduler == TOPOLOGY_TREE_PER_QUEUE && ceilings > t->uplink_rate_bps)
                        return err_set_at(err, ERR_USAGE, place_slice(boundary, s, "ceiling"),
                                          "slice %s: the ceilings up to here add up to %s, more than the uplink's rate "
                                          "of %s; the trees of tree-per-queue lend each other nothing",
                                          s->name, RATE(ceilings), RATE(t->uplink_rate_bps));
        }
        return 0;
}

/* Every slice has to use the uplink: otherwise its class there, and what is claimed about it, means nothing. */
static int check_carriers(const struct topology *t, const struct node *boundary, struct err *err)
{
        const struct topology_zone *to = &t->zones[t->uplink_to];
        uint32_t others = 0;

        for (size_t i = 0; i < t->n_zones; i++)
                if (i != t->uplink_to)
                        others |= t->zones[i].slices;

        for (size_t i = 0; i < t->n_slices; i++) {
                const struct topology_slice *s = &t->slices[i];

                if (!(to->slices & UINT32_C(1) << i))
                        return err_set_at(err, ERR_USAGE, PLACE(boundary, "zones", to->name, "slices"),
                                          "zone %s: it is behind the uplink, and does not carry slice %s", to->name,
                                          s->name);
                if (!(others & UINT32_C(1) << i))
                        return err_set_at(err, ERR_USAGE, PLACE(boundary, "slices", s->name),
                                          "slice %s: no zone but %s carries it, so nothing can cross the uplink in it",
                                          s->name, to->name);
        }
        return 0;
}

static int check_ports(const struct topology *t, const struct node *boundary, struct err *err)
{
        size_t n = t->hops > 1 ? (t->hops - 1) * t->n_slices : 0;

        for (size_t i = 0; i < t->n_zones; i++)
                n += (size_t)__builtin_popcount(t->zones[i].slices);
        if (n <= TOPOLOGY_PORTS_MAX)
                return 0;
        return err_set_at(err, ERR_USAGE, PLACE(boundary, "zones"),
                          "zones: all links together carry %zu slices; %d are possible", n, TOPOLOGY_PORTS_MAX);
}

static int check_hops(const struct boundary_keys *keys, const struct node *boundary, unsigned *ret, struct err *err)
{
        if (keys->shape == TOPOLOGY_DAISY_CHAIN) {
                if (keys->hops == 0)
                        return err_set_at(err, ERR_USAGE, PLACE(boundary, "topology"),
                                          "topology daisy-chain: `hops` is missing; say how many nodes forward, 1 to "
                                          "%d",
                                          TOPOLOGY_HOPS_MAX);
                *ret = (unsigned)keys->hops;
                return 0;
        }
        if (keys->hops != 0)
                return err_set_at(err, ERR_USAGE, PLACE(boundary, "hops"),
                                  "hops: only topology daisy-chain has them, "
                                  "this is %s",
                                  shape_names[keys->shape]);
        *ret = keys->shape == TOPOLOGY_STAR ? 1 : 0;
        return 0;
}

static int read_slices(struct topology *t, struct key_tables *from, const struct node *boundary, struct err *err)
{
        const struct slice_keys *keys = from->entries;

        if (from->n == 0 || from->n > TOPOLOGY_SLICES_MAX)
                return err_set_at(err, ERR_USAGE, PLACE(boundary, "slices"),
                                  "slices: there are %zu; 1 to %d are possible", from->n, TOPOLOGY_SLICES_MAX);
        t->slices = calloc(from->n, sizeof(*t->slices));
        if (!t->slices)
                return err_set_nomem(err);
        t->n_slices = from->n;
        for (size_t i = 0; i < from->n; i++)
                t->slices[i] = (struct topology_slice){
                        .name = TAKE_PTR(from->names[i]),
                        .vlan = (uint16_t)keys[i].vlan,
                        .guarantee_bps = keys[i].guarantee_bps,
                        .ceiling_bps = keys[i].ceiling_bps,
                        .priority = (uint8_t)keys[i].priority,
                        .queue_limit_packets = (uint32_t)keys[i].queue_limit_packets,
                };
        return 0;
}

static const struct position *place_listed(const struct node *boundary, const char *zone, size_t item)
{
        const struct node *list = node_get(node_get(node_get(boundary, "zones"), zone), "slices");

        return list && item < list->n_items ? &list->items[item]->position : PLACE(boundary, "zones", zone);
}

static int read_zone_slices(struct topology *t, const char *zone, const struct key_names *names,
                            const struct node *boundary, uint32_t *ret, struct err *err)
{
        uint32_t slices = 0;
        size_t slice;

        if (names->n == 0)
                return err_set_at(err, ERR_USAGE, PLACE(boundary, "zones", zone, "slices"),
                                  "zone %s: it carries no slice", zone);
        for (size_t i = 0; i < names->n; i++) {
                if (!topology_slice_find(t, names->names[i], &slice))
                        return err_set_at(err, ERR_USAGE, place_listed(boundary, zone, i),
                                          "zone %s: there is no slice named %s", zone, names->names[i]);
                slices |= UINT32_C(1) << slice;
        }
        *ret = slices;
        return 0;
}

/* Names that nodes of the testbed's own have: shells and captures are asked for by name. */
static bool is_reserved(const char *name)
{
        return streq(name, "gateway") || streq(name, "uplink") || strncmp(name, "relay-", strlen("relay-")) == 0;
}

static int read_zones(struct topology *t, struct key_tables *from, const struct node *boundary, struct err *err)
{
        const struct zone_keys *keys = from->entries;
        int r;

        if (from->n < 2 || from->n > TOPOLOGY_ZONES_MAX)
                return err_set_at(err, ERR_USAGE, PLACE(boundary, "zones"),
                                  "zones: there are %zu; 2 to %d are possible", from->n, TOPOLOGY_ZONES_MAX);
        t->zones = calloc(from->n, sizeof(*t->zones));
        if (!t->zones)
                return err_set_nomem(err);
        t->n_zones = from->n;
        for (size_t i = 0; i < from->n; i++) {
                struct topology_zone *zone = &t->zones[i];

                if (is_reserved(from->names[i]))
                        return err_set_at(err, ERR_USAGE, &from->positions[i],
                                          "zone %s: the name is reserved for the testbed's own nodes and links",
                                          from->names[i]);
                zone->name = TAKE_PTR(from->names[i]);
                r = read_zone_slices(t, zone->name, &keys[i].slices, boundary, &zone->slices, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int resolve(struct topology *t, struct boundary_keys *keys, const struct node *boundary, struct err *err)
{
        int r;

        t->shape = (enum topology_shape)keys->shape;
        t->scheduler = (enum topology_scheduler)keys->uplink.scheduler;
        t->uplink_rate_bps = keys->uplink.rate_bps;
        r = check_hops(keys, boundary, &t->hops, err);
        if (r < 0)
                return r;
        r = read_slices(t, &keys->slices, boundary, err);
        if (r < 0)
                return r;
        r = read_zones(t, &keys->zones, boundary, err);
        if (r < 0)
                return r;
        if (!topology_zone_find(t, keys->uplink.to, &t->uplink_to))
                return err_set_at(err, ERR_USAGE, PLACE(boundary, "uplink", "to"), "uplink: there is no zone named %s",
                                  keys->uplink.to);
        r = check_slices(t, boundary, err);
        if (r >= 0)
                r = check_ports(t, boundary, err);
        if (r < 0)
                return r;
        return check_carriers(t, boundary, err);
}

int topology_read(const struct node *boundary, struct topology **ret, struct err *err)
{
        _cleanup_topology_ struct topology *t = calloc(1, sizeof(*t));
        struct boundary_keys keys = {0};
        int r;

        if (!t)
                return err_set_nomem(err);
        r = key_table_read(&topology_keys, boundary, "boundary", &keys, err);
        if (r >= 0)
                r = resolve(t, &keys, boundary, err);
        key_table_done(&topology_keys, &keys);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(t);
        return 0;
}

/* Of one flow: its zones and slice as indices. */
struct flow_ends {
        size_t from, to, slice;
};

static int flow_zone(const struct topology *t, const struct topology_flow *flow, const char *key, size_t *ret,
                     struct err *err)
{
        const char *name = node_scalar_at(flow->keys, key);

        if (!name)
                return err_set_at(err, ERR_USAGE, PLACE(flow->keys, key), "%s: `%s` has to name a zone", flow->where,
                                  key);
        if (!topology_zone_find(t, name, ret))
                return err_set_at(err, ERR_USAGE, PLACE(flow->keys, key), "%s: there is no zone named %s", flow->where,
                                  name);
        return 0;
}

static int flow_slice(const struct topology *t, const struct topology_flow *flow, struct flow_ends *ends,
                      struct err *err)
{
        const char *name = node_scalar_at(flow->keys, "slice");

        if (!name)
                return err_set_at(err, ERR_USAGE, PLACE(flow->keys, "slice"), "%s: `slice` has to name a slice",
                                  flow->where);
        if (!topology_slice_find(t, name, &ends->slice))
                return err_set_at(err, ERR_USAGE, PLACE(flow->keys, "slice"), "%s: there is no slice named %s",
                                  flow->where, name);
        for (unsigned i = 0; i < 2; i++) {
                const struct topology_zone *zone = &t->zones[i == 0 ? ends->from : ends->to];

                if (!(zone->slices & UINT32_C(1) << ends->slice))
                        return err_set_at(err, ERR_USAGE, PLACE(flow->keys, "slice"),
                                          "%s: zone %s does not carry slice %s", flow->where, zone->name, name);
        }
        return 0;
}

static int flow_resolve(const struct topology *t, const struct topology_flow *flow, struct flow_ends *ret,
                        struct err *err)
{
        int r;

        r = flow_zone(t, flow, "from", &ret->from, err);
        if (r < 0)
                return r;
        r = flow_zone(t, flow, "to", &ret->to, err);
        if (r < 0)
                return r;
        if (ret->from == ret->to)
                return err_set_at(err, ERR_USAGE, PLACE(flow->keys, "to"), "%s: `from` and `to` are both %s",
                                  flow->where, t->zones[ret->to].name);
        if (t->shape == TOPOLOGY_DIRECT && ret->from != t->uplink_to && ret->to != t->uplink_to)
                return err_set_at(err, ERR_USAGE, PLACE(flow->keys, "to"),
                                  "%s: topology direct joins zones only to %s, not %s to %s", flow->where,
                                  t->zones[t->uplink_to].name, t->zones[ret->from].name, t->zones[ret->to].name);
        return flow_slice(t, flow, ret, err);
}

/* What the flows send over the uplink so far, altogether (slice t->n_slices) or in one slice. */
struct uplink_load {
        int64_t rate_bps;
        bool is_overload;
};

static int load_add(struct uplink_load *load, const struct topology_flow *flow, int64_t limit_bps, const char *limit,
                    struct err *err)
{
        if (__builtin_add_overflow(load->rate_bps, flow->rate_bps, &load->rate_bps))
                load->rate_bps = INT64_MAX;
        if (load->rate_bps <= limit_bps || load->is_overload)
                return 0;
        return err_set_at(err, ERR_USAGE, PLACE(flow->keys, "rate"),
                          "%s: this makes %s in all, above %s of %s; add `overload: true` if that is meant",
                          flow->where, RATE(load->rate_bps), limit, RATE(limit_bps));
}

static int check_loads(const struct topology *t, const struct topology_flow *flows, const struct flow_ends *ends,
                       size_t n, struct err *err)
{
        struct uplink_load loads[TOPOLOGY_SLICES_MAX + 1] = {0};
        char limit[160];
        int r;

        /* An overload excuses whatever shares the queue with it, in whichever order they are listed. */
        for (size_t i = 0; i < n; i++)
                if (ends[i].to == t->uplink_to) {
                        loads[ends[i].slice].is_overload |= flows[i].is_overload;
                        loads[t->n_slices].is_overload |= flows[i].is_overload;
                }
        for (size_t i = 0; i < n; i++) {
                const struct topology_slice *slice = &t->slices[ends[i].slice];

                if (ends[i].to != t->uplink_to)
                        continue;
                if (t->scheduler != TOPOLOGY_ONE_QUEUE) {
                        snprintf(limit, sizeof(limit), "slice %s's ceiling", slice->name);
                        r = load_add(&loads[ends[i].slice], &flows[i], slice->ceiling_bps, limit, err);
                        if (r < 0)
                                return r;
                }
                r = load_add(&loads[t->n_slices], &flows[i], t->uplink_rate_bps, "the uplink's rate", err);
                if (r < 0)
                        return r;
        }
        return 0;
}

int topology_check_flows(const struct topology *t, const struct topology_flow *flows, size_t n, struct err *err)
{
        _cleanup_free_ struct flow_ends *ends = calloc(MAX(n, (size_t)1), sizeof(*ends));
        int r;

        if (!ends)
                return err_set_nomem(err);
        for (size_t i = 0; i < n; i++) {
                r = flow_resolve(t, &flows[i], &ends[i], err);
                if (r < 0)
                        return r;
        }
        return t->shape == TOPOLOGY_DIRECT ? 0 : check_loads(t, flows, ends, n, err);
}
