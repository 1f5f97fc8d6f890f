/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>

#include "sandbox/policy-internal.h"

/* The open part of the address space, cut where a rule or a special range begins or ends. Between two cuts all
 * addresses are decided alike, so one question stands for all of them. */

struct cut {
        uint8_t first[16]; /* of IPv4: the first 4 */
};

struct cuts {
        int family;
        size_t n, allocated;
        struct cut *cuts;
};

struct ranges {
        size_t n, allocated;
        struct policy_range *ranges;
};

static size_t width_bytes(int family)
{
        return family == AF_INET ? 4 : 16;
}

/* Adds 1, or takes it away. Return: false where that leaves the family's addresses. */
static bool step(uint8_t *bytes, size_t len, bool is_up)
{
        for (size_t i = len; i-- > 0;) {
                bytes[i] += is_up ? 1 : (uint8_t)-1;
                if (bytes[i] != (is_up ? 0 : 0xff))
                        return true;
        }
        return false;
}

static int cuts_add(struct cuts *cuts, const uint8_t *first)
{
        if (cuts->n == cuts->allocated) {
                size_t more = 2 * cuts->allocated + 64;
                struct cut *bigger = reallocarray(cuts->cuts, more, sizeof(*bigger));

                if (!bigger)
                        return -ENOMEM;
                cuts->cuts = bigger;
                cuts->allocated = more;
        }
        memset(&cuts->cuts[cuts->n], 0, sizeof(cuts->cuts[0]));
        memcpy(cuts->cuts[cuts->n++].first, first, width_bytes(cuts->family));
        return 0;
}

/* Cuts before and behind a range. */
static int cuts_add_prefix(struct cuts *cuts, const struct ip_prefix *prefix)
{
        size_t width = width_bytes(cuts->family);
        uint8_t end[16];
        int r;

        if (prefix->family != cuts->family)
                return 0;
        memcpy(end, prefix->bytes, width);
        for (size_t bit = prefix->length_bits; bit < 8 * width; bit++)
                end[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
        r = cuts_add(cuts, prefix->bytes);
        return r == 0 && step(end, width, true) ? cuts_add(cuts, end) : r;
}

/* A range of IPv4 is decided behind the translator's prefix, too. */
static int cuts_add_both(struct cuts *cuts, const struct ip_prefix *prefix)
{
        struct ip_prefix behind = special_translated(prefix);
        int r = cuts_add_prefix(cuts, prefix);

        return r == 0 && prefix->family == AF_INET ? cuts_add_prefix(cuts, &behind) : r;
}

static int compare_cuts(const void *a, const void *b)
{
        return memcmp(a, b, sizeof(struct cut));
}

static int find_cuts(const struct policy *policy, struct cuts *cuts)
{
        static const struct ip_prefix mapped = {AF_INET6, {[10] = 0xff, [11] = 0xff}, 96};
        const struct special *special;
        int r = cuts_add_prefix(cuts, &mapped);

        for (size_t i = 0; r == 0 && (special = special_at(i)); i++)
                r = cuts_add_both(cuts, &special->prefix);
        for (size_t l = 0; l < policy->n_layers; l++)
                for (size_t i = 0; r == 0 && i < policy->layers[l]->n_rules; i++)
                        if (policy->layers[l]->rules[i].match == POLICY_MATCH_ADDRESS)
                                r = cuts_add_both(cuts, &policy->layers[l]->rules[i].prefix);
        if (r == 0 && cuts->n > 0)
                qsort(cuts->cuts, cuts->n, sizeof(cuts->cuts[0]), compare_cuts);
        return r;
}

static int ranges_add(struct ranges *ranges, const struct policy_range *range)
{
        if (ranges->n == ranges->allocated) {
                size_t more = 2 * ranges->allocated + 64;
                struct policy_range *bigger = reallocarray(ranges->ranges, more, sizeof(*bigger));

                if (!bigger)
                        return -ENOMEM;
                ranges->ranges = bigger;
                ranges->allocated = more;
        }
        ranges->ranges[ranges->n++] = *range;
        return 0;
}

/* What is open from @first to @last. */
static int add_between(const struct policy *policy, int family, const uint8_t *first, const uint8_t *last,
                       struct ranges *ranges)
{
        struct target target = {.address = {.family = family, .length_bits = (unsigned)width_bytes(family) * 8}};
        struct special special;
        int r = 0;

        memcpy(target.address.bytes, first, width_bytes(family));
        target_address_normalise(&target.address);
        if (target.address.family != family)
                return 0; /* mapped addresses of IPv4: they are among those of IPv4 already */
        if (special_find(&target.address, &special) && special.kind == SPECIAL_LOOPBACK)
                return 0;
        for (target.transport = 0; r == 0 && target.transport < N_TRANSPORTS; target.transport++) {
                _cleanup_free_ struct policy_opening *openings = NULL;
                size_t n = 0;

                r = policy_openings(policy, &target, &openings, &n);
                for (size_t i = 0; r == 0 && i < n; i++) {
                        struct policy_range range = {.family = family,
                                                     .transport = target.transport,
                                                     .ports = openings[i].ports,
                                                     .is_pending = openings[i].is_pending};

                        memcpy(range.first, first, width_bytes(family));
                        memcpy(range.last, last, width_bytes(family));
                        r = ranges_add(ranges, &range);
                }
        }
        return r;
}

static int add_family(const struct policy *policy, int family, struct ranges *ranges)
{
        struct cuts cuts = {.family = family};
        int r = find_cuts(policy, &cuts);

        for (size_t i = 0; r == 0 && i < cuts.n; i++) {
                uint8_t last[16];

                memset(last, 0xff, sizeof(last));
                if (i + 1 < cuts.n) {
                        if (compare_cuts(&cuts.cuts[i], &cuts.cuts[i + 1]) == 0)
                                continue;
                        memcpy(last, cuts.cuts[i + 1].first, sizeof(last));
                        step(last, width_bytes(family), false);
                }
                r = add_between(policy, family, cuts.cuts[i].first, last, ranges);
        }
        free(cuts.cuts);
        return r;
}

static int compare_ranges(const void *a, const void *b)
{
        const struct policy_range *left = a, *right = b;

        if (left->family != right->family)
                return left->family == AF_INET ? -1 : 1;
        if (left->transport != right->transport)
                return left->transport < right->transport ? -1 : 1;
        if (left->ports.first != right->ports.first)
                return left->ports.first < right->ports.first ? -1 : 1;
        if (left->ports.last != right->ports.last)
                return left->ports.last < right->ports.last ? -1 : 1;
        return memcmp(left->first, right->first, sizeof(left->first));
}

/* Makes one of two ranges that follow each other, where they are open for the same. */
static void merge(struct ranges *ranges)
{
        size_t n = 0;

        for (size_t i = 0; i < ranges->n; i++) {
                struct policy_range *range = &ranges->ranges[i], *before = n > 0 ? &ranges->ranges[n - 1] : NULL;
                uint8_t next[16] = {0};

                if (before && before->family == range->family && before->transport == range->transport &&
                    before->ports.first == range->ports.first && before->ports.last == range->ports.last &&
                    before->is_pending == range->is_pending) {
                        memcpy(next, before->last, width_bytes(range->family));
                        if (step(next, width_bytes(range->family), true) &&
                            memcmp(next, range->first, width_bytes(range->family)) == 0) {
                                memcpy(before->last, range->last, sizeof(before->last));
                                continue;
                        }
                }
                ranges->ranges[n++] = *range;
        }
        ranges->n = n;
}

int policy_ranges(const struct policy *policy, struct policy_range **ret, size_t *ret_n)
{
        struct ranges ranges = {0};
        int r = add_family(policy, AF_INET, &ranges);

        if (r == 0)
                r = add_family(policy, AF_INET6, &ranges);
        if (r < 0) {
                free(ranges.ranges);
                return r;
        }
        if (ranges.n > 0)
                qsort(ranges.ranges, ranges.n, sizeof(ranges.ranges[0]), compare_ranges);
        merge(&ranges);
        *ret = ranges.ranges;
        *ret_n = ranges.n;
        return 0;
}
