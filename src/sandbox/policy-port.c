/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/number.h"
#include "sandbox/policy-internal.h"

/* Sets of ports, as ascending ranges. */

#define RANGES_MAX 256 /* of one set: each decision walks through it */

const char port_set_expected[] = "a port such as 443, a range such as 8000-8999, a list of both, or any";

bool port_set_has(const struct port_set *set, uint16_t port)
{
        for (size_t i = 0; i < set->n && set->ranges[i].first <= port; i++)
                if (port <= set->ranges[i].last)
                        return true;
        return false;
}

int port_set_any(struct port_set *ret)
{
        struct port_range *range = malloc(sizeof(*range));

        if (!range)
                return -ENOMEM;
        *range = (struct port_range){0, UINT16_MAX};
        *ret = (struct port_set){1, range};
        return 0;
}

int port_set_intersect(struct port_set *into, const struct port_set *other)
{
        struct port_range *ranges = calloc(into->n + other->n + 1, sizeof(*ranges));
        size_t n = 0;

        if (!ranges)
                return -ENOMEM;
        for (size_t i = 0, k = 0; i < into->n && k < other->n;) {
                struct port_range both = {MAX(into->ranges[i].first, other->ranges[k].first),
                                          MIN(into->ranges[i].last, other->ranges[k].last)};

                if (both.first <= both.last)
                        ranges[n++] = both;
                if (into->ranges[i].last < other->ranges[k].last)
                        i++;
                else
                        k++;
        }
        free(into->ranges);
        *into = (struct port_set){n, ranges};
        return 0;
}

/* ---- reading ---- */

static int parse_port(struct span text, uint16_t *ret)
{
        uint64_t number;

        if (number_parse_u64(text, &number) < 0 || number == 0 || number > UINT16_MAX)
                return -EINVAL;
        *ret = (uint16_t)number;
        return 0;
}

static int parse_range(const char *text, struct port_range *ret)
{
        const char *dash = strchr(text, '-');
        struct span first = span_of(text, dash ? (size_t)(dash - text) : strlen(text));
        struct span last = dash ? span_of_text(dash + 1) : first;

        if (parse_port(first, &ret->first) < 0 || parse_port(last, &ret->last) < 0 || ret->first > ret->last)
                return -EINVAL;
        return 0;
}

static int err_port(const struct node *node, const char *where, const char *expected, struct err *err)
{
        char found[64];

        return err_set_at(err, ERR_USAGE, &node->position, "%s: %s is not %s", where, node_kind_text(node, found),
                          expected);
}

static int compare_ranges(const void *a, const void *b)
{
        const struct port_range *left = a, *right = b;

        return (left->first > right->first) - (left->first < right->first);
}

static void sort_and_merge(struct port_set *set)
{
        size_t n = 0;

        qsort(set->ranges, set->n, sizeof(*set->ranges), compare_ranges);
        for (size_t i = 0; i < set->n; i++) {
                struct port_range range = set->ranges[i];

                if (n > 0 && range.first <= (uint32_t)set->ranges[n - 1].last + 1)
                        set->ranges[n - 1].last = MAX(set->ranges[n - 1].last, range.last);
                else
                        set->ranges[n++] = range;
        }
        set->n = n;
}

int port_set_read(const struct node *node, const char *where, struct port_set *ret, struct err *err)
{
        const struct node *const one[] = {node};
        bool is_list = node->kind == NODE_SEQUENCE;
        size_t n = is_list ? node->n_items : 1;
        _cleanup_free_ struct port_range *ranges = NULL;
        struct port_set set = {0};

        if (node->kind == NODE_MAPPING)
                return err_port(node, where, port_set_expected, err);
        if (!is_list && streq(node->scalar, "any"))
                return port_set_any(ret) < 0 ? err_set_nomem(err) : 0;
        if (n > RANGES_MAX)
                return err_set_at(err, ERR_USAGE, &node->position, "%s: %zu ports and ranges; at most %d are allowed",
                                  where, n, RANGES_MAX);
        ranges = calloc(MAX(n, (size_t)1), sizeof(*ranges));
        if (!ranges)
                return err_set_nomem(err);
        set = (struct port_set){.ranges = ranges};
        for (; set.n < n; set.n++) {
                const struct node *item = is_list ? node->items[set.n] : one[0];

                if (item->kind != NODE_SCALAR || parse_range(item->scalar, &ranges[set.n]) < 0)
                        return err_port(item, where,
                                        is_list ? "a port such as 443 or a range such as 8000-8999" : port_set_expected,
                                        err);
        }
        sort_and_merge(&set);
        *ret = (struct port_set){set.n, TAKE_PTR(ranges)};
        return 0;
}

void port_set_format(const struct port_set *set, struct text *out)
{
        if (set->n == 1 && set->ranges[0].first == 0 && set->ranges[0].last == UINT16_MAX) {
                text_add(out, "any");
                return;
        }
        for (size_t i = 0; i < set->n; i++) {
                text_addf(out, "%s%u", i > 0 ? ", " : "", set->ranges[i].first);
                if (set->ranges[i].last != set->ranges[i].first)
                        text_addf(out, "-%u", set->ranges[i].last);
        }
}
