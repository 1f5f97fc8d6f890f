/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>

#include "base/hash.h"
#include "sandbox/policy-internal.h"

/* A hash table of what rules are for: names, suffixes and ranges. Rules for the same one form a chain. A name is looked
 * up as it is and with each suffix that it has; an address with each length of range that occurs. */

struct policy_index {
        size_t mask;            /* the number of slots, a power of two, less 1 */
        uint64_t lengths[2][3]; /* which lengths of range occur, of IPv4 and of IPv6, a bit each */
        bool has_name, has_suffix;
        uint32_t slots[]; /* the first rule of a chain, + 1; 0: free */
};

struct rule_key {
        enum policy_match match;
        unsigned length_bits; /* of a range; 256 more of IPv6, to tell them apart */
        const void *bytes;
        size_t len;
};

static unsigned family_index(int family)
{
        return family == AF_INET6;
}

static struct rule_key key_of_address(const struct ip_prefix *prefix)
{
        unsigned is_v6 = family_index(prefix->family);

        return (struct rule_key){POLICY_MATCH_ADDRESS, prefix->length_bits + 256 * is_v6, prefix->bytes,
                                 is_v6 ? 16 : 4};
}

static struct rule_key key_of_rule(const struct policy_rule *rule)
{
        if (rule->match == POLICY_MATCH_ADDRESS)
                return key_of_address(&rule->prefix);
        return (struct rule_key){rule->match, 0, rule->name, strlen(rule->name)};
}

static bool key_equal(const struct rule_key *a, const struct rule_key *b)
{
        return a->match == b->match && a->length_bits == b->length_bits &&
               span_equal(span_of(a->bytes, a->len), span_of(b->bytes, b->len));
}

/* The keys in the table are those of the policy, so who asks cannot make its chains longer. */
static uint64_t key_hash(const struct rule_key *key)
{
        uint64_t start = HASH_START ^ key->match ^ (uint64_t)key->length_bits << 8;
        uint64_t hash = hash_bytes(start, key->bytes, key->len);

        return hash ^ hash >> 32;
}

/* The slot of @key, or the free one where it would stand: there always is one. */
static uint32_t *find_slot(const struct policy_layer *layer, const struct rule_key *key)
{
        struct policy_index *index = layer->index;

        for (size_t at = key_hash(key) & index->mask;; at = (at + 1) & index->mask) {
                uint32_t *slot = &index->slots[at];
                struct rule_key other;

                if (*slot == 0)
                        return slot;
                other = key_of_rule(&layer->rules[*slot - 1]);
                if (key_equal(key, &other))
                        return slot;
        }
}

int policy_index_build(struct policy_layer *layer)
{
        size_t n_slots = 8;
        struct policy_index *index;

        while (n_slots < 2 * layer->n_rules + 2)
                n_slots *= 2;
        index = calloc(1, sizeof(*index) + n_slots * sizeof(index->slots[0]));
        if (!index)
                return -ENOMEM;
        index->mask = n_slots - 1;
        layer->index = index;
        for (size_t i = layer->n_rules; i-- > 0;) { /* from the last, so that each chain ends up in order */
                struct policy_rule *rule = &layer->rules[i];
                struct rule_key key = key_of_rule(rule);
                uint32_t *slot = find_slot(layer, &key);

                rule->next = *slot;
                *slot = (uint32_t)i + 1;
                index->has_name |= rule->match == POLICY_MATCH_NAME;
                index->has_suffix |= rule->match == POLICY_MATCH_SUFFIX;
                if (rule->match == POLICY_MATCH_ADDRESS)
                        index->lengths[family_index(rule->prefix.family)][rule->prefix.length_bits / 64] |=
                                UINT64_C(1) << rule->prefix.length_bits % 64;
        }
        return 0;
}

void policy_index_free(struct policy_index *index)
{
        free(index);
}

static void visit_key(const struct policy_layer *layer, const struct rule_key *key,
                      void (*fn)(const struct policy_rule *rule, void *userdata), void *userdata)
{
        for (uint32_t i = *find_slot(layer, key); i != 0; i = layer->rules[i - 1].next)
                fn(&layer->rules[i - 1], userdata);
}

static void visit_name(const struct policy_layer *layer, const char *name,
                       void (*fn)(const struct policy_rule *rule, void *userdata), void *userdata)
{
        struct rule_key key = {POLICY_MATCH_NAME, 0, name, strlen(name)};

        if (layer->index->has_name)
                visit_key(layer, &key, fn, userdata);
        key.match = POLICY_MATCH_SUFFIX;
        for (const char *dot = name; layer->index->has_suffix && key.len > 0;) {
                dot = strchr(dot, '.');
                dot = dot ? dot + 1 : name + strlen(name);
                key.bytes = dot;
                key.len = strlen(dot);
                visit_key(layer, &key, fn, userdata);
        }
}

static void visit_address(const struct policy_layer *layer, const struct ip_prefix *address,
                          void (*fn)(const struct policy_rule *rule, void *userdata), void *userdata)
{
        const uint64_t *lengths = layer->index->lengths[family_index(address->family)];

        for (unsigned word = 0; word < 3; word++)
                for (uint64_t rest = lengths[word]; rest != 0; rest &= rest - 1) {
                        struct ip_prefix range = *address;
                        struct rule_key key;

                        range.length_bits = word * 64 + (unsigned)__builtin_ctzll(rest);
                        ip_prefix_mask(&range);
                        key = key_of_address(&range);
                        visit_key(layer, &key, fn, userdata);
                }
}

void policy_index_visit(const struct policy_layer *layer, const char *name, const struct ip_prefix *address,
                        void (*fn)(const struct policy_rule *rule, void *userdata), void *userdata)
{
        if (name)
                visit_name(layer, name, fn, userdata);
        if (address)
                visit_address(layer, address, fn, userdata);
}
