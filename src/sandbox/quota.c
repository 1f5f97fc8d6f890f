/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/quota.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/macro.h"

#define BUCKETS   1024
#define BURST_DIV 10 /* so much of a second's allowance may come at once */

/* A bucket of tokens that may run into debt, which is then waited off: so one move is never cut. */
struct bucket {
        int64_t rate;   /* tokens a second; 0: no limit */
        int64_t burst;  /* the most that it holds */
        int64_t tokens; /* at @at_ns */
        int64_t at_ns;
};

/* One set of limits and where it stands. */
struct meter {
        struct bucket bytes, opens;
        uint64_t bytes_left;
        bool has_bytes;
        uint64_t n_open, most_open; /* most_open 0: no limit */
};

struct quota_target {
        struct quota_target *chain;
        struct meter meter;
        char name[];
};

struct quotas {
        bool has_limits, has_target_limits;
        struct policy_limits per_target;
        struct meter total;
        struct quota_target *buckets[BUCKETS];
        struct quota_target unlimited; /* what flows count against where targets have no limits of their own */
};

static struct bucket bucket_of(uint64_t rate, int64_t least)
{
        int64_t burst = MAX((int64_t)rate / BURST_DIV, least);

        return (struct bucket){.rate = (int64_t)rate, .burst = burst, .tokens = burst};
}

/* A bucket begins full, at the first use. */
static void bucket_fill(struct bucket *bucket, int64_t now_ns)
{
        __int128 more = (__int128)bucket->rate * (now_ns - bucket->at_ns) / NSEC_PER_SEC;

        if (bucket->at_ns != 0 && more <= 0)
                return; /* too little time for a whole token: it goes on being counted from then */
        if (bucket->at_ns != 0)
                bucket->tokens = (int64_t)MIN(bucket->tokens + more, (__int128)bucket->burst);
        bucket->at_ns = now_ns;
}

/* Return: how long until there is no debt. */
static int64_t bucket_wait_ns(const struct bucket *bucket)
{
        if (bucket->rate == 0 || bucket->tokens >= 0)
                return 0;
        return (int64_t)((__int128)-bucket->tokens * NSEC_PER_SEC / bucket->rate) + 1;
}

static struct meter meter_of(const struct policy_limits *limits)
{
        return (struct meter){
                .bytes = bucket_of(limits->rate_bps / 8, 1500),
                .opens = bucket_of(limits->new_connections_hz, 1),
                .bytes_left = limits->bytes,
                .has_bytes = limits->bytes > 0,
                .most_open = limits->connections,
        };
}

static bool is_limited(const struct policy_limits *limits)
{
        return limits->rate_bps || limits->bytes || limits->connections || limits->new_connections_hz;
}

int quotas_new(const struct policy *policy, struct quotas **ret)
{
        struct quotas *quotas = calloc(1, sizeof(*quotas));

        if (!quotas)
                return -ENOMEM;
        quotas->per_target = policy->per_target;
        quotas->total = meter_of(&policy->total);
        quotas->has_target_limits = is_limited(&policy->per_target);
        quotas->has_limits = quotas->has_target_limits || is_limited(&policy->total);
        *ret = quotas;
        return 0;
}

void quotas_free(struct quotas *quotas)
{
        if (!quotas)
                return;
        for (size_t i = 0; i < BUCKETS; i++)
                while (quotas->buckets[i]) {
                        struct quota_target *target = quotas->buckets[i];

                        quotas->buckets[i] = target->chain;
                        free(target);
                }
        free(quotas);
}

/* Targets stay until the end: what was moved to them counts for the whole run. */
static struct quota_target *find_target(struct quotas *quotas, const char *name)
{
        size_t len = strlen(name) + 1;
        uint64_t hash = hash_bytes(HASH_START, name, len);
        struct quota_target *target;

        if (!quotas->has_target_limits)
                return &quotas->unlimited;
        hash = (hash ^ hash >> 32) % BUCKETS;
        for (target = quotas->buckets[hash]; target; target = target->chain)
                if (streq(target->name, name))
                        return target;
        target = calloc(1, sizeof(*target) + len);
        if (!target)
                return NULL;
        memcpy(target->name, name, len);
        target->meter = meter_of(&quotas->per_target);
        target->chain = quotas->buckets[hash];
        quotas->buckets[hash] = target;
        return target;
}

/* Whether one more flow may be opened. Return: the limit that is reached, or NULL. */
static const char *open_refusal(struct meter *meter, int64_t now_ns)
{
        if (meter->has_bytes && meter->bytes_left == 0)
                return "limits: bytes";
        if (meter->most_open > 0 && meter->n_open >= meter->most_open)
                return "limits: connections";
        bucket_fill(&meter->opens, now_ns);
        return meter->opens.rate > 0 && meter->opens.tokens < 1 ? "limits: new-connections" : NULL;
}

static void count_open(struct meter *meter)
{
        meter->n_open++;
        if (meter->opens.rate > 0)
                meter->opens.tokens--;
}

int quota_open(struct quotas *quotas, const char *target, int64_t now_ns, struct quota_flow *flow, const char **ret_why)
{
        struct quota_target *found = find_target(quotas, target);
        const char *why;

        if (!found)
                return -ENOMEM;
        why = open_refusal(&quotas->total, now_ns);
        if (!why)
                why = open_refusal(&found->meter, now_ns);
        if (why) {
                *ret_why = why;
                return -EDQUOT;
        }
        count_open(&quotas->total);
        count_open(&found->meter);
        flow->target = found;
        return 0;
}

void quota_close(struct quotas *quotas, struct quota_flow *flow)
{
        if (!flow->target)
                return;
        quotas->total.n_open--;
        flow->target->meter.n_open--;
        flow->target = NULL;
}

static size_t chunk_of(const struct meter *meter, size_t most)
{
        if (meter->bytes.rate > 0)
                most = MIN(most, (size_t)meter->bytes.burst);
        return meter->has_bytes ? MIN(most, (size_t)meter->bytes_left) : most;
}

size_t quota_chunk(const struct quotas *quotas, const struct quota_flow *flow, size_t most)
{
        if (!quotas->has_limits || !flow->target)
                return most;
        return chunk_of(&flow->target->meter, chunk_of(&quotas->total, most));
}

/* Return: 0; -EDQUOT. */
static int count_bytes(struct meter *meter, size_t len, int64_t now_ns, int64_t *wait_ns)
{
        if (meter->bytes.rate > 0) {
                bucket_fill(&meter->bytes, now_ns);
                meter->bytes.tokens -= (int64_t)len;
                *wait_ns = MAX(*wait_ns, bucket_wait_ns(&meter->bytes));
        }
        if (!meter->has_bytes)
                return 0;
        if (len > meter->bytes_left) {
                meter->bytes_left = 0;
                return -EDQUOT;
        }
        meter->bytes_left -= len;
        return 0;
}

int quota_move(struct quotas *quotas, const struct quota_flow *flow, size_t len, int64_t now_ns, int64_t *ret_wait_ns)
{
        int r, s;

        *ret_wait_ns = 0;
        if (!quotas->has_limits || !flow->target)
                return 0;
        r = count_bytes(&quotas->total, len, now_ns, ret_wait_ns);
        s = count_bytes(&flow->target->meter, len, now_ns, ret_wait_ns);
        return r < 0 ? r : s;
}
