/* SPDX-License-Identifier: Apache-2.0 */
#include "load/http-client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/macro.h"
#include "base/sample.h"
#include "wire/http1.h"

#define CAUSES_MAX 16 /* different failures that are told apart */

struct shared {
        struct sched_grant sched;
        atomic_ullong next; /* number of the next request to begin */
        atomic_int has_first;
        struct digest first; /* digest of the first body */
};

struct worker {
        struct http_client *client;
        pthread_t thread;
        unsigned number;
        int64_t start_ns;
        const volatile int *stop;
        struct http_exchange exchange;
};

struct http_client {
        struct http_client_config config;
        struct shared *shared;
        struct http_sample *samples;
        size_t n;
        struct http_tls *tls;
        char request[HTTP_CLIENT_TARGET_MAX + 1024];
        pthread_mutex_t first_lock;
        struct worker *workers;
};

int http_url_parse(const char *text, struct http_url *ret, struct err *err)
{
        static const char *const schemes[] = {"http://", "https://"};
        struct http_url url = {0};
        const char *authority, *target;
        size_t len;

        url.is_secure = strncasecmp(text, schemes[1], strlen(schemes[1])) == 0;
        authority = text + strlen(schemes[url.is_secure]);
        if (strncasecmp(text, schemes[url.is_secure], strlen(schemes[url.is_secure])) != 0)
                return err_set(err, ERR_USAGE, EINVAL, "\"%s\" does not begin with http:// or https://", text);
        for (const char *c = text; *c; c++)
                if (*c <= ' ' || *c > '~')
                        return err_set(err, ERR_USAGE, EINVAL,
                                       "the URL has a character that has to be encoded as %%%02X", (unsigned char)*c);
        len = strcspn(authority, "/?#");
        target = authority + len;
        if (len == 0 || len >= sizeof(url.authority) || memchr(authority, '@', len))
                return err_set(err, ERR_USAGE, EINVAL, "\"%s\" names no host, or a user, which is not possible", text);
        if (strchr(text, '#') || strlen(target) + 1 >= sizeof(url.target))
                return err_set(err, ERR_USAGE, EINVAL, "the URL has a fragment, or more than %d characters",
                               HTTP_CLIENT_TARGET_MAX);
        snprintf(url.authority, sizeof(url.authority), "%.*s", (int)len, authority);
        snprintf(url.target, sizeof(url.target), "%s%s", *target == '/' ? "" : "/", target);
        *ret = url;
        return 0;
}

static int check_config(const struct http_client_config *c, struct err *err)
{
        if (c->threads < 1 || c->threads > HTTP_CLIENT_THREADS_MAX)
                return err_set(err, ERR_USAGE, EINVAL, "a client has 1 to %d threads", HTTP_CLIENT_THREADS_MAX);
        if (c->url.is_secure && c->is_proxied)
                return err_set(err, ERR_USAGE, EINVAL, "https through a proxy is not possible");
        if (c->n_requests < 1 || c->n_requests + c->n_warmup > HTTP_CLIENT_REQUESTS_MAX)
                return err_set(err, ERR_USAGE, EINVAL, "expected 1 to %d requests, the warm-up included",
                               HTTP_CLIENT_REQUESTS_MAX);
        return 0;
}

static void *share_memory(size_t size)
{
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        return p == MAP_FAILED ? NULL : p;
}

static void write_request(struct http_client *c)
{
        const struct http_client_config *k = &c->config;

        snprintf(c->request, sizeof(c->request),
                 "GET %s%s%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: assay\r\nAccept: */*\r\n%s\r\n",
                 k->is_proxied ? "http://" : "", k->is_proxied ? k->url.authority : "", k->url.target, k->url.authority,
                 k->is_kept ? "" : "Connection: close\r\n");
}

int http_client_new(const struct http_client_config *config, struct http_client **ret, struct err *err)
{
        _cleanup_http_client_ struct http_client *c = NULL;
        int r;

        r = check_config(config, err);
        if (r < 0)
                return r;
        c = calloc(1, sizeof(*c));
        if (!c)
                return err_set_nomem(err);
        c->config = *config;
        c->n = config->n_warmup + config->n_requests;
        pthread_mutex_init(&c->first_lock, NULL);
        c->workers = calloc(config->threads, sizeof(*c->workers));
        c->shared = share_memory(sizeof(*c->shared));
        c->samples = share_memory(c->n * sizeof(*c->samples));
        if (!c->workers || !c->shared || !c->samples)
                return err_set_nomem(err);
        write_request(c);
        *ret = TAKE_PTR(c);
        return 0;
}

void http_client_free(struct http_client *c)
{
        if (!c)
                return;
        for (unsigned i = 0; c->workers && i < c->config.threads; i++)
                if (c->workers[i].exchange.buffer)
                        munmap(c->workers[i].exchange.buffer, c->workers[i].exchange.buffer_size);
        free(c->workers);
        http_tls_free(c->tls);
        if (c->shared)
                munmap(c->shared, sizeof(*c->shared));
        if (c->samples)
                munmap(c->samples, c->n * sizeof(*c->samples));
        pthread_mutex_destroy(&c->first_lock);
        free(c);
}

/* Only what a body really fills becomes memory. */
static int open_worker(struct http_client *c, unsigned i)
{
        struct worker *w = &c->workers[i];
        size_t size = c->config.body_max + 2 * HTTP1_HEAD_LEN;
        void *buffer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (buffer == MAP_FAILED)
                return -errno;
        w->client = c;
        w->number = i;
        w->exchange = (struct http_exchange){
                .peer = &c->config.peer,
                .tls = c->tls,
                .request = span_of_text(c->request),
                .is_kept = c->config.is_kept,
                .timeout_ns = c->config.timeout_ns,
                .buffer = buffer,
                .buffer_size = size,
                .stream.fd = -1,
        };
        return 0;
}

/* The host of an authority, without port and brackets. */
static void host_of(const char *authority, char *buf, size_t size)
{
        size_t len = authority[0] == '[' ? strcspn(authority, "]") : strcspn(authority, ":");

        snprintf(buf, size, "%.*s", (int)(authority[0] == '[' ? len - 1 : len), authority + (authority[0] == '['));
}

int http_client_open(struct http_client *c, struct err *err)
{
        const struct http_client_config *k = &c->config;
        char host[sizeof(k->url.authority)];

        host_of(k->url.authority, host, sizeof(host));
        if (k->url.is_secure) {
                int r = http_tls_new_client(host, k->authorities, k->has_pin ? &k->pin : NULL, &c->tls, err);

                if (r < 0)
                        return r;
        }
        for (unsigned i = 0; i < c->config.threads; i++) {
                int r = open_worker(c, i);

                if (r < 0)
                        return err_set_errno(err, ERR_ENVIRONMENT, -r, "no memory for %u threads", c->config.threads);
        }
        sched_apply(&c->config.sched, &c->shared->sched); /* threads inherit it */
        return 0;
}

/* Whether the body is the one that was expected, or like the first that came. */
static bool is_expected(struct http_client *c, const struct digest *digest)
{
        if (c->config.has_digest)
                return digest_equal(digest, &c->config.digest);
        if (!atomic_load(&c->shared->has_first)) {
                pthread_mutex_lock(&c->first_lock);
                if (!atomic_load(&c->shared->has_first))
                        c->shared->first = *digest;
                atomic_store(&c->shared->has_first, 1);
                pthread_mutex_unlock(&c->first_lock);
        }
        return digest_equal(digest, &c->shared->first);
}

/* After the response, and so outside of every duration. */
static void check_body(struct http_client *c, struct http_outcome *o)
{
        struct digest digest;

        if (c->config.body_max < o->body.len)
                o->failure = HTTP_FAILURE_TOO_LONG;
        else if (c->config.has_length && o->body.len != c->config.length)
                o->failure = HTTP_FAILURE_LENGTH;
        else if (digest_of_bytes(o->body, &digest, NULL) < 0 || !is_expected(c, &digest))
                o->failure = HTTP_FAILURE_DIGEST;
}

static void keep(struct http_sample *s, const struct http_outcome *o, unsigned thread)
{
        bool is_good = o->failure == HTTP_FAILURE_NONE;

        s->start_ns = o->start_ns;
        s->connect_ns = is_good ? o->connect_ns : SAMPLE_MISSING;
        s->first_byte_ns = is_good ? o->first_byte_ns : SAMPLE_MISSING;
        s->request_ns = is_good ? o->request_ns : SAMPLE_MISSING;
        s->body_bytes = is_good ? o->body.len : 0;
        s->thread = (uint16_t)thread;
        s->failure = (uint8_t)o->failure;
        s->detail = o->detail;
        __atomic_store_n(&s->is_done, 1, __ATOMIC_RELEASE);
}

static void *run_worker(void *userdata)
{
        struct worker *w = userdata;
        struct http_client *c = w->client;

        w->exchange.stop = w->stop;
        if (clock_sleep_until_ns(CLOCK_MONOTONIC, w->start_ns, w->stop) < 0)
                return NULL;
        while (!(w->stop && *w->stop)) {
                uint64_t i = atomic_fetch_add(&c->shared->next, 1);
                struct http_outcome o;

                if (i >= c->n)
                        break;
                http_exchange_run(&w->exchange, &o);
                if (o.failure == HTTP_FAILURE_NONE)
                        check_body(c, &o);
                if (o.failure != HTTP_FAILURE_STOPPED)
                        keep(&c->samples[i], &o, w->number);
        }
        http_exchange_end(&w->exchange);
        return NULL;
}

int http_client_run(struct http_client *c, int64_t start_ns, const volatile int *stop, struct err *err)
{
        unsigned n = 0;
        int r = 0;

        for (; n < c->config.threads && r == 0; n++) {
                struct worker *w = &c->workers[n];

                w->start_ns = start_ns;
                w->stop = stop;
                r = pthread_create(&w->thread, NULL, run_worker, w);
        }
        for (unsigned i = 0; i < n - (r != 0); i++)
                pthread_join(c->workers[i].thread, NULL);
        return r == 0 ? 0 : err_set_errno(err, ERR_ENVIRONMENT, r, "cannot start %u threads", c->config.threads);
}

const struct http_sample *http_client_samples(const struct http_client *c, size_t *ret_n, size_t *ret_warmup)
{
        *ret_n = MIN((size_t)atomic_load(&c->shared->next), c->n);
        *ret_warmup = MIN(*ret_n, (size_t)c->config.n_warmup);
        return c->samples;
}

/* Bits a second of each thread while it had a request under way, added up. */
static uint64_t throughput(const struct http_client *c, const struct http_sample *s, size_t from, size_t to)
{
        uint64_t sum = 0;

        for (unsigned t = 0; t < c->config.threads; t++) {
                unsigned __int128 bits = 0, busy_ns = 0;

                for (size_t i = from; i < to; i++) {
                        if (s[i].thread != t || !s[i].is_done || s[i].failure != HTTP_FAILURE_NONE)
                                continue;
                        bits += (unsigned __int128)s[i].body_bytes * 8;
                        busy_ns += (uint64_t)s[i].request_ns;
                }
                if (busy_ns > 0)
                        sum += (uint64_t)(bits * NSEC_PER_SEC / busy_ns);
        }
        return sum;
}

void http_client_count(const struct http_client *c, struct http_client_counts *ret)
{
        int64_t first_ns = INT64_MAX, last_ns = 0;
        size_t from, to;
        const struct http_sample *s = http_client_samples(c, &to, &from);

        *ret = (struct http_client_counts){0};
        for (size_t i = from; i < to; i++) {
                if (!__atomic_load_n(&s[i].is_done, __ATOMIC_ACQUIRE))
                        continue;
                ret->requests++;
                first_ns = MIN(first_ns, s[i].start_ns);
                if (s[i].failure != HTTP_FAILURE_NONE) {
                        ret->failed++;
                        continue;
                }
                ret->completed++;
                ret->connections += s[i].connect_ns != SAMPLE_MISSING;
                ret->body_bytes += s[i].body_bytes;
                last_ns = MAX(last_ns, s[i].start_ns + s[i].request_ns);
        }
        if (last_ns > first_ns)
                ret->requests_per_ks = (uint64_t)((unsigned __int128)ret->completed * 1000 * NSEC_PER_SEC /
                                                  (uint64_t)(last_ns - first_ns));
        ret->throughput_bps = throughput(c, s, from, to);
}

bool http_client_digest(const struct http_client *c, struct digest *ret)
{
        if (!c->config.has_digest && !atomic_load(&c->shared->has_first))
                return false;
        *ret = c->config.has_digest ? c->config.digest : c->shared->first;
        return true;
}

struct cause {
        uint8_t failure;
        int detail;
        uint64_t count, first;
};

static size_t count_causes(const struct http_client *c, struct cause causes[static CAUSES_MAX])
{
        size_t n = 0, from, to;
        const struct http_sample *s = http_client_samples(c, &to, &from);

        for (size_t i = from; i < to; i++) {
                size_t k = 0;

                if (!__atomic_load_n(&s[i].is_done, __ATOMIC_ACQUIRE) || s[i].failure == HTTP_FAILURE_NONE)
                        continue;
                while (k < n && (causes[k].failure != s[i].failure || causes[k].detail != s[i].detail))
                        k++;
                if (k == n && n < CAUSES_MAX)
                        causes[n++] = (struct cause){.failure = s[i].failure, .detail = s[i].detail, .first = i - from};
                causes[MIN(k, (size_t)CAUSES_MAX - 1)].count++; /* the last one stands for those after it */
        }
        return n;
}

json_t *http_client_failures_json(const struct http_client *c)
{
        _cleanup_json_ json_t *list = json_array();
        struct cause causes[CAUSES_MAX] = {0};
        size_t n = count_causes(c, causes);

        for (size_t i = 0; i < n; i++) {
                char text[HTTP_FAILURE_TEXT];

                http_failure_format((enum http_failure)causes[i].failure, causes[i].detail, text);
                if (json_array_append_new(list, json_pack("{s:s,s:I,s:I}", "cause", text, "count",
                                                          (json_int_t)causes[i].count, "first",
                                                          (json_int_t)causes[i].first)) < 0)
                        return NULL;
        }
        return TAKE_PTR(list);
}

json_t *http_client_counts_json(const struct http_client *c)
{
        struct http_client_counts k;

        http_client_count(c, &k);
        return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "requests", (json_int_t)k.requests, "completed",
                         (json_int_t)k.completed, "failed", (json_int_t)k.failed, "connections",
                         (json_int_t)k.connections, "body_bytes", (json_int_t)k.body_bytes, "throughput_bps",
                         (json_int_t)k.throughput_bps, "requests_per_ks", (json_int_t)k.requests_per_ks);
}

json_t *http_client_notes_json(const struct http_client *c)
{
        char hex[DIGEST_HEX_SIZE];
        struct digest digest;

        return json_pack("{s:I,s:s?,s:o*}", "threads", (json_int_t)c->config.threads, "sha256",
                         http_client_digest(c, &digest) ? digest_format(&digest, hex) : NULL, "scheduling",
                         sched_grant_json(&c->shared->sched));
}
