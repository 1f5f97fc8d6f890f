/* SPDX-License-Identifier: Apache-2.0 */
#include "load/datagram-client.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/sample.h"
#include "load/udp.h"
#include "wire/dns.h"

#define CAUSES_MAX 16 /* different failures that are told apart */

struct shared {
        struct sched_grant sched;
        atomic_size_t done;
};

struct datagram_client {
        struct datagram_client_config config;
        struct shared *shared;
        struct datagram_sample *samples;
        size_t n;
        int fd; /* of an echo, once it is there; of a look-up, its own */
        uint8_t asked[DATAGRAM_BYTES_MAX], answer[DATAGRAM_BYTES_MAX + 1];
};

static void *share_memory(size_t size)
{
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        return p == MAP_FAILED ? NULL : p;
}

static int check_config(const struct datagram_client_config *c, struct err *err)
{
        uint8_t buf[DNS_UDP_MAX];

        if (c->n_requests < 1 || c->n_requests + c->n_warmup > DATAGRAM_CLIENT_REQUESTS_MAX)
                return err_set(err, ERR_USAGE, EINVAL, "expected 1 to %d questions, the warm-up included",
                               DATAGRAM_CLIENT_REQUESTS_MAX);
        if (!c->question.name && (c->question.bytes < DATAGRAM_BYTES_MIN || c->question.bytes > DATAGRAM_BYTES_MAX))
                return err_set(err, ERR_USAGE, EINVAL, "a datagram has %d to %d bytes here", DATAGRAM_BYTES_MIN,
                               DATAGRAM_BYTES_MAX);
        if (c->question.name && datagram_ask(&c->question, 0, buf) < 0)
                return err_set(err, ERR_USAGE, EINVAL, "\"%s\" is not a name that can be looked up", c->question.name);
        return 0;
}

int datagram_client_new(const struct datagram_client_config *config, struct datagram_client **ret, struct err *err)
{
        _cleanup_datagram_client_ struct datagram_client *c = NULL;
        int r;

        r = check_config(config, err);
        if (r < 0)
                return r;
        c = calloc(1, sizeof(*c));
        if (!c)
                return err_set_nomem(err);
        c->fd = -1;
        c->config = *config;
        c->n = config->n_warmup + config->n_requests;
        c->shared = share_memory(sizeof(*c->shared));
        c->samples = share_memory(c->n * sizeof(*c->samples));
        if (!c->shared || !c->samples)
                return err_set_nomem(err);
        *ret = TAKE_PTR(c);
        return 0;
}

void datagram_client_free(struct datagram_client *c)
{
        if (!c)
                return;
        close_cleanup(&c->fd);
        if (c->shared)
                munmap(c->shared, sizeof(*c->shared));
        if (c->samples)
                munmap(c->samples, c->n * sizeof(*c->samples));
        free(c);
}

int datagram_client_open(struct datagram_client *c, struct err *err)
{
        sched_apply(&c->config.sched, &c->shared->sched);
        return 0;
}

static int open_socket(struct datagram_client *c)
{
        c->fd = socket(c->config.peer.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (c->fd < 0 || connect(c->fd, &c->config.peer.any, address_len(&c->config.peer)) < 0)
                return -errno;
        return 0;
}

/* Waits for the answer to question number @i, and passes over those to others. Checking it is not part of the round
 * trip. */
static int await(struct datagram_client *c, uint64_t i, int64_t begin_ns, struct datagram_sample *sample)
{
        for (;;) {
                int64_t left_ns = begin_ns + c->config.timeout_ns - clock_now_ns(CLOCK_MONOTONIC);
                int64_t came_ns;
                enum datagram_answer answer;
                ssize_t n;
                int r = left_ns >= NSEC_PER_USEC ? udp_timeout(c->fd, left_ns) : -EAGAIN;

                if (r < 0)
                        return r;
                n = recv(c->fd, c->answer, sizeof(c->answer), 0);
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n < 0)
                        continue;
                came_ns = clock_now_ns(CLOCK_MONOTONIC);
                answer = datagram_check(&c->config.question, i, span_of(c->answer, (size_t)n));
                if (answer == DATAGRAM_WRONG)
                        sample->failure = DATAGRAM_FAILURE_WRONG;
                if (answer == DATAGRAM_RIGHT)
                        sample->round_trip_ns = came_ns - begin_ns;
                if (answer != DATAGRAM_STALE)
                        return 0;
        }
}

static void exchange(struct datagram_client *c, uint64_t i, struct datagram_sample *sample)
{
        int len = datagram_ask(&c->config.question, i, c->asked), r = 0;
        int64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);

        *sample = (struct datagram_sample){.round_trip_ns = SAMPLE_MISSING};
        if (c->fd < 0)
                r = open_socket(c);
        if (r == 0 && send(c->fd, c->asked, (size_t)len, 0) < 0)
                r = -errno;
        if (r == 0)
                r = await(c, i, begin_ns, sample);
        if (r < 0) {
                sample->failure = r == -EAGAIN ? DATAGRAM_FAILURE_LOST : DATAGRAM_FAILURE_SYSTEM;
                sample->detail = r == -EAGAIN ? 0 : -r;
        }
        if (c->config.question.name || r < 0) {
                close_cleanup(&c->fd);
                c->fd = -1;
        }
}

int datagram_client_run(struct datagram_client *c, int64_t start_ns, const volatile int *stop, struct err *err)
{
        if (clock_sleep_until_ns(CLOCK_MONOTONIC, start_ns, stop) < 0)
                return 0;
        for (size_t i = 0; i < c->n && !(stop && *stop); i++) {
                exchange(c, i, &c->samples[i]);
                atomic_store(&c->shared->done, i + 1);
        }
        return 0;
}

const struct datagram_sample *datagram_client_samples(const struct datagram_client *c, size_t *ret_n,
                                                      size_t *ret_warmup)
{
        *ret_n = MIN(atomic_load(&c->shared->done), c->n);
        *ret_warmup = MIN(*ret_n, (size_t)c->config.n_warmup);
        return c->samples;
}

void datagram_client_count(const struct datagram_client *c, struct datagram_client_counts *ret)
{
        size_t from, to;
        const struct datagram_sample *s = datagram_client_samples(c, &to, &from);

        *ret = (struct datagram_client_counts){.requests = to - from};
        for (size_t i = from; i < to; i++)
                ret->failed += s[i].failure != DATAGRAM_FAILURE_NONE;
        ret->completed = ret->requests - ret->failed;
}

struct cause {
        uint8_t failure;
        int detail;
        uint64_t count, first;
};

static const char *cause_text(const struct cause *cause)
{
        if (cause->failure == DATAGRAM_FAILURE_SYSTEM)
                return strerror(cause->detail);
        return cause->failure == DATAGRAM_FAILURE_LOST ? "no answer in time" : "a wrong answer";
}

json_t *datagram_client_failures_json(const struct datagram_client *c)
{
        _cleanup_json_ json_t *list = json_array();
        struct cause causes[CAUSES_MAX] = {0};
        size_t n = 0, from, to;
        const struct datagram_sample *s = datagram_client_samples(c, &to, &from);

        for (size_t i = from; i < to; i++) {
                size_t k = 0;

                if (s[i].failure == DATAGRAM_FAILURE_NONE)
                        continue;
                while (k < n && (causes[k].failure != s[i].failure || causes[k].detail != s[i].detail))
                        k++;
                if (k == n && n < CAUSES_MAX)
                        causes[n++] = (struct cause){.failure = s[i].failure, .detail = s[i].detail, .first = i - from};
                causes[MIN(k, (size_t)CAUSES_MAX - 1)].count++; /* the last one stands for those after it */
        }
        for (size_t k = 0; k < n; k++)
                if (json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "cause", cause_text(&causes[k]), "count",
                                                          (json_int_t)causes[k].count, "first",
                                                          (json_int_t)causes[k].first)) < 0)
                        return NULL;
        return TAKE_PTR(list);
}

json_t *datagram_client_notes_json(const struct datagram_client *c)
{
        return json_pack("{s:o*}", "scheduling", sched_grant_json(&c->shared->sched));
}
