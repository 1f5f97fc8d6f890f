/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/pins.h"

#include <errno.h>
#include <sys/random.h>

#include "base/macro.h"
#include "base/span.h"

#define BUCKETS_MIN ((size_t)64)

/* All names of an address are in one chain. */
struct node {
        struct node *next;
        int64_t expires_ns;
        uint8_t address[16];
        uint8_t family;
        char name[];
};

struct pins {
        size_t max, n;
        size_t n_buckets; /* a power of two, at least as many as there are pins */
        struct node **buckets;
        uint64_t key[2]; /* so that nobody can choose addresses that share a bucket */
};

int pins_new(size_t max, struct pins **ret)
{
        struct pins *pins = calloc(1, sizeof(*pins));

        if (!pins)
                return -ENOMEM;
        pins->max = max;
        pins->n_buckets = BUCKETS_MIN;
        pins->buckets = calloc(pins->n_buckets, sizeof(struct node *));
        if (!pins->buckets || getrandom(pins->key, sizeof(pins->key), 0) != sizeof(pins->key)) {
                int r = pins->buckets ? -errno : -ENOMEM;

                pins_free(pins);
                return r;
        }
        *ret = pins;
        return 0;
}

void pins_free(struct pins *pins)
{
        if (!pins)
                return;
        for (size_t i = 0; pins->buckets && i < pins->n_buckets; i++)
                while (pins->buckets[i]) {
                        struct node *node = pins->buckets[i];

                        pins->buckets[i] = node->next;
                        free(node);
                }
        free(pins->buckets);
        free(pins);
}

/* The two halves of a 128-bit product hold every bit of both factors. */
static uint64_t fold(uint64_t a, uint64_t b)
{
        unsigned __int128 product = (unsigned __int128)a * b;

        return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash(const struct pins *pins, const uint8_t address[static 16])
{
        uint64_t high = get_be64(address), low = get_be64(address + 8);

        return fold(fold(high ^ pins->key[0], low ^ pins->key[1]) ^ pins->key[1], pins->key[0] | 1);
}

static struct node **bucket(const struct pins *pins, const uint8_t address[static 16])
{
        return &pins->buckets[hash(pins, address) & (pins->n_buckets - 1)];
}

static bool is_of(const struct node *node, const struct ip_prefix *address)
{
        return node->family == address->family && memcmp(node->address, address->bytes, 16) == 0;
}

/* More buckets where there are more pins; where memory is short, chains get longer instead. */
static void grow(struct pins *pins)
{
        size_t n_old = pins->n_buckets;
        struct node **old = pins->buckets, **larger;

        if (pins->n < n_old)
                return;
        larger = calloc(2 * n_old, sizeof(struct node *));
        if (!larger)
                return;
        pins->buckets = larger;
        pins->n_buckets = 2 * n_old;
        for (size_t i = 0; i < n_old; i++)
                while (old[i]) {
                        struct node *node = old[i], **to = bucket(pins, node->address);

                        old[i] = node->next;
                        node->next = *to;
                        *to = node;
                }
        free(old);
}

/* Looks for a pin of the address and @name, and for what the address could give up for a new one. */
static struct node *find(const struct pins *pins, const struct ip_prefix *address, const char *name,
                         struct node ***ret_first, size_t *ret_names)
{
        size_t n = 0;

        *ret_first = NULL;
        for (struct node **at = bucket(pins, address->bytes); *at; at = &(*at)->next) {
                if (!is_of(*at, address))
                        continue;
                if (streq((*at)->name, name))
                        return *at;
                if (!*ret_first || (*at)->expires_ns < (**ret_first)->expires_ns)
                        *ret_first = at;
                n++;
        }
        *ret_names = n;
        return NULL;
}

static void drop(struct pins *pins, struct node **at)
{
        struct node *node = *at;

        *at = node->next;
        free(node);
        pins->n--;
}

int pins_add(struct pins *pins, const struct pin *pin, int64_t now_ns)
{
        size_t n_names = 0, size = strlen(pin->name) + 1;
        struct node *node, **first, **to;

        node = find(pins, &pin->address, pin->name, &first, &n_names);
        if (node) {
                node->expires_ns = MAX(node->expires_ns, pin->expires_ns);
                return 0;
        }
        if (n_names >= PINS_NAMES_MAX)
                drop(pins, first);
        else if (pins->n >= pins->max && pins_sweep(pins, now_ns) == 0)
                return -ENOSPC;

        node = malloc(sizeof(*node) + size);
        if (!node)
                return -ENOMEM;
        *node = (struct node){.expires_ns = pin->expires_ns, .family = (uint8_t)pin->address.family};
        memcpy(node->address, pin->address.bytes, sizeof(node->address));
        memcpy(node->name, pin->name, size);
        grow(pins);
        to = bucket(pins, node->address);
        node->next = *to;
        *to = node;
        pins->n++;
        return 0;
}

const char *pins_next(const struct pins *pins, const struct ip_prefix *address, int64_t now_ns, const char *after)
{
        const struct node *node;

        if (after)
                node = ((const struct node *)(const void *)(after - offsetof(struct node, name)))->next;
        else
                node = *bucket(pins, address->bytes);
        for (; node; node = node->next)
                if (is_of(node, address) && node->expires_ns > now_ns)
                        return node->name;
        return NULL;
}

int pins_extend(struct pins *pins, const struct ip_prefix *address, int64_t now_ns, int64_t until_ns,
                int (*fn)(const struct pin *pin, void *userdata), void *userdata)
{
        for (struct node *node = *bucket(pins, address->bytes); node; node = node->next) {
                struct pin pin = {.address = *address, .name = node->name, .expires_ns = until_ns};
                int r;

                if (!is_of(node, address) || node->expires_ns <= now_ns || node->expires_ns >= until_ns)
                        continue;
                r = fn ? fn(&pin, userdata) : 0;
                if (r < 0)
                        return r;
                node->expires_ns = until_ns;
        }
        return 0;
}

size_t pins_sweep(struct pins *pins, int64_t now_ns)
{
        size_t before = pins->n;

        for (size_t i = 0; i < pins->n_buckets; i++)
                for (struct node **at = &pins->buckets[i]; *at;) {
                        if ((*at)->expires_ns <= now_ns)
                                drop(pins, at);
                        else
                                at = &(*at)->next;
                }
        return before - pins->n;
}

size_t pins_count(const struct pins *pins)
{
        return pins->n;
}
