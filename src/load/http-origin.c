/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <netinet/tcp.h>

#include "base/clock.h"
#include "base/macro.h"
#include "load/http-origin-internal.h"

#define BACKLOG       4096
#define EVENTS        64
#define ACCEPTS       64                    /* in a row, before others have their turn */
#define STOP_CHECK_NS (100 * NSEC_PER_MSEC) /* how often the stop flag is looked at while nothing happens */
#define SPARE_FDS     64                    /* of the process, that connections leave free */
#define MANY          16384                 /* connections of a thread, where descriptors allow them */

struct shared {
        struct http_reply_totals totals;
        struct sched_grant sched;
        union address address;
        struct digest certificate;
};

/* A connection as its thread has it. */
struct peer {
        struct http_reply reply;
        enum http_reply_state state;
        uint32_t interest; /* what epoll watches for */
        struct peer *next; /* among those that are waiting, or among the free ones */
};

struct worker {
        struct http_origin *origin;
        pthread_t thread;
        const volatile int *stop;
        int epoll;
        unsigned n_peers, n_peers_max;
        struct peer *waiting, *unused;
        int error; /* positive errno that ended it */
};

struct http_origin {
        struct http_origin_config config;
        struct shared *shared;
        uint8_t *body;
        struct http_reply_source source;
        int listener;
        struct worker workers[HTTP_ORIGIN_THREADS_MAX];
};

static int check_config(const struct http_origin_config *c, struct err *err)
{
        if (!address_is_unicast(&c->local) && !address_is_unspecified(&c->local))
                return err_set(err, ERR_USAGE, EINVAL, "an origin listens on a unicast address, or on all");
        if (c->body_bytes > HTTP_BODY_BYTES_MAX)
                return err_set(err, ERR_USAGE, EINVAL, "a body of %zu bytes is too long, at most %zu are possible",
                               c->body_bytes, HTTP_BODY_BYTES_MAX);
        if (c->events > HTTP_EVENTS_MAX || c->event_bytes < HTTP_EVENT_BYTES_MIN ||
            c->event_bytes > HTTP_EVENT_BYTES_MAX || c->every_ns < 0)
                return err_set(err, ERR_USAGE, EINVAL, "events are at most %d, and of %zu to %zu bytes",
                               HTTP_EVENTS_MAX, HTTP_EVENT_BYTES_MIN, HTTP_EVENT_BYTES_MAX);
        if (c->threads < 1 || c->threads > HTTP_ORIGIN_THREADS_MAX)
                return err_set(err, ERR_USAGE, EINVAL, "an origin has 1 to %d threads", HTTP_ORIGIN_THREADS_MAX);
        return 0;
}

int http_origin_new(const struct http_origin_config *config, struct http_origin **ret, struct err *err)
{
        _cleanup_http_origin_ struct http_origin *o = NULL;
        int r;

        r = check_config(config, err);
        if (r < 0)
                return r;
        o = calloc(1, sizeof(*o));
        if (!o)
                return err_set_nomem(err);
        o->config = *config;
        o->listener = -1;
        for (unsigned i = 0; i < HTTP_ORIGIN_THREADS_MAX; i++)
                o->workers[i].epoll = -1;
        o->body = malloc(MAX(config->body_bytes, (size_t)1));
        o->shared = mmap(NULL, sizeof(*o->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (o->shared == MAP_FAILED)
                o->shared = NULL;
        if (!o->body || !o->shared)
                return err_set_nomem(err);
        http_body_fill(o->body, config->body_bytes);
        o->source = (struct http_reply_source){.config = &o->config, .body = o->body, .totals = &o->shared->totals};
        *ret = TAKE_PTR(o);
        return 0;
}

static void free_peers(struct peer *p)
{
        while (p) {
                struct peer *next = p->next;

                free(p);
                p = next;
        }
}

void http_origin_free(struct http_origin *o)
{
        if (!o)
                return;
        for (unsigned i = 0; i < HTTP_ORIGIN_THREADS_MAX; i++) {
                if (o->workers[i].epoll >= 0)
                        close(o->workers[i].epoll);
                free_peers(o->workers[i].unused);
        }
        if (o->listener >= 0)
                close(o->listener);
        http_tls_free(o->source.tls);
        if (o->shared)
                munmap(o->shared, sizeof(*o->shared));
        free(o->body);
        free(o);
}

const union address *http_origin_address(const struct http_origin *o)
{
        return &o->shared->address;
}

const struct digest *http_origin_certificate(const struct http_origin *o)
{
        return &o->shared->certificate;
}

/* Small writes are to leave when they are made: what a connection inherits from the socket that listens. */
static int listen_at(const union address *local, union address *ret)
{
        _cleanup_close_ int fd = socket(local->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        socklen_t len = sizeof(*ret);
        const int one = 1;

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
            bind(fd, &local->any, address_len(local)) < 0 || listen(fd, BACKLOG) < 0 ||
            getsockname(fd, &ret->any, &len) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* As many descriptors as the process may have. */
static unsigned raise_limit(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 1024;
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        (void)getrlimit(RLIMIT_NOFILE, &limit);
        return (unsigned)MIN(limit.rlim_cur, (rlim_t)MANY * HTTP_ORIGIN_THREADS_MAX + SPARE_FDS);
}

static int open_worker(struct http_origin *o, struct worker *w, unsigned n_peers_max)
{
        struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE};

        w->origin = o;
        w->n_peers_max = n_peers_max;
        w->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (w->epoll < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, o->listener, &event) < 0)
                return -errno;
        return 0;
}

int http_origin_open(struct http_origin *o, struct err *err)
{
        unsigned fds = raise_limit(), most;
        char text[ADDRESS_TEXT];
        int r = 0;

        o->listener = listen_at(&o->config.local, &o->shared->address);
        if (o->listener < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -o->listener, "cannot listen at %s",
                                     address_format(&o->config.local, text));
        if (o->config.is_secure) {
                r = http_tls_new_server(&o->shared->address, &o->source.tls, err);
                if (r < 0)
                        return r;
                http_tls_digest(o->source.tls, &o->shared->certificate);
        }
        most = fds > SPARE_FDS + o->config.threads ? (fds - SPARE_FDS) / o->config.threads : 1;
        for (unsigned i = 0; i < o->config.threads && r == 0; i++)
                r = open_worker(o, &o->workers[i], MIN(most, (unsigned)MANY));
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot watch the origin's sockets");
        sched_apply(&o->config.sched, &o->shared->sched); /* threads inherit it */
        return 0;
}

static void unlink_waiting(struct worker *w, const struct peer *p)
{
        for (struct peer **at = &w->waiting; *at; at = &(*at)->next)
                if (*at == p) {
                        *at = p->next;
                        return;
                }
}

static void end_peer(struct worker *w, struct peer *p)
{
        http_reply_done(&p->reply);
        p->next = w->unused;
        w->unused = p;
        w->n_peers--;
}

/* Lets epoll watch for what the state wants; nothing but the end of the connection while it waits for its time. */
static int watch_peer(struct worker *w, struct peer *p, bool is_new)
{
        uint32_t wanted = p->state == HTTP_REPLY_READING ? EPOLLIN : p->state == HTTP_REPLY_WRITING ? EPOLLOUT : 0;
        struct epoll_event event = {.events = wanted, .data.ptr = p};

        if (!is_new && wanted == p->interest)
                return 0;
        p->interest = wanted;
        return epoll_ctl(w->epoll, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, p->reply.stream.fd, &event);
}

static void go_peer(struct worker *w, struct peer *p, bool is_new)
{
        p->state = http_reply_go(&p->reply, p->state, clock_now_ns(CLOCK_MONOTONIC));
        if (p->state == HTTP_REPLY_ENDED || watch_peer(w, p, is_new) < 0) {
                end_peer(w, p);
                return;
        }
        if (p->state == HTTP_REPLY_WAITING) {
                p->next = w->waiting;
                w->waiting = p;
        }
}

static struct peer *new_peer(struct worker *w)
{
        struct peer *p = w->unused;

        if (w->n_peers >= w->n_peers_max)
                return NULL;
        if (p)
                w->unused = p->next;
        else
                p = malloc(sizeof(*p));
        if (p)
                w->n_peers++;
        return p;
}

/* A request has mostly come by the time that its connection is accepted, so it is looked for at once. */
static void accept_peers(struct worker *w)
{
        struct http_reply_totals *totals = &w->origin->shared->totals;

        for (unsigned i = 0; i < ACCEPTS; i++) {
                int fd = accept4(w->origin->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                struct peer *p;

                if (fd < 0)
                        return; /* none is left, or it went away again; anything else comes back with the next event */
                atomic_fetch_add_explicit(&totals->connections, 1, memory_order_relaxed);
                p = new_peer(w);
                if (!p) {
                        atomic_fetch_add_explicit(&totals->turned_away, 1, memory_order_relaxed);
                        close(fd);
                        continue;
                }
                p->state = HTTP_REPLY_READING;
                if (http_reply_start(&p->reply, &w->origin->source, fd) == 0)
                        go_peer(w, p, true);
                else
                        end_peer(w, p);
        }
}

/* Goes on with those whose time has come. Return: until when there is nothing to do, at most @until_ns. */
static int64_t go_waiting(struct worker *w, int64_t now_ns, int64_t until_ns)
{
        struct peer *p = w->waiting;

        w->waiting = NULL;
        while (p) {
                struct peer *next = p->next;

                if (p->reply.due_ns <= now_ns) {
                        go_peer(w, p, false);
                } else {
                        p->next = w->waiting;
                        w->waiting = p;
                }
                p = next;
        }
        for (p = w->waiting; p; p = p->next)
                until_ns = MIN(until_ns, p->reply.due_ns);
        return until_ns;
}

static void take_event(struct worker *w, const struct epoll_event *event)
{
        struct peer *p = event->data.ptr;

        if (!p) {
                accept_peers(w);
                return;
        }
        if (p->state == HTTP_REPLY_WAITING) { /* only that the peer is gone is told to those that wait */
                unlink_waiting(w, p);
                atomic_fetch_add_explicit(&w->origin->shared->totals.lost, 1, memory_order_relaxed);
                end_peer(w, p);
                return;
        }
        go_peer(w, p, false);
}

static int serve(struct worker *w)
{
        struct epoll_event events[EVENTS];

        while (!(w->stop && *w->stop)) {
                int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
                int64_t until_ns = w->waiting ? go_waiting(w, now_ns, now_ns + STOP_CHECK_NS) : now_ns + STOP_CHECK_NS;
                struct timespec timeout = timespec_of_nsec(MAX(until_ns - now_ns, INT64_C(0)));
                int n = epoll_pwait2(w->epoll, events, EVENTS, &timeout, NULL);

                if (n < 0 && errno != EINTR)
                        return -errno;
                for (int i = 0; i < n; i++)
                        take_event(w, &events[i]);
        }
        return 0;
}

static void *run_worker(void *userdata)
{
        struct worker *w = userdata;
        int r = serve(w);

        w->error = -r;
        return NULL;
}

int http_origin_run(struct http_origin *o, const volatile int *stop, struct err *err)
{
        unsigned n = 1;
        int r = 0;

        o->workers[0].stop = stop;
        for (; n < o->config.threads && r == 0; n++) {
                o->workers[n].stop = stop;
                r = pthread_create(&o->workers[n].thread, NULL, run_worker, &o->workers[n]);
        }
        if (r != 0)
                return err_set_errno(err, ERR_ENVIRONMENT, r, "cannot start a thread of the origin");
        run_worker(&o->workers[0]);
        for (unsigned i = 1; i < n; i++)
                pthread_join(o->workers[i].thread, NULL);
        for (unsigned i = 0; i < n; i++)
                if (o->workers[i].error != 0)
                        return err_set_errno(err, ERR_ENVIRONMENT, o->workers[i].error, "the origin's sockets failed");
        return 0;
}

void http_origin_counts(const struct http_origin *o, struct http_origin_counts *ret)
{
        const struct http_reply_totals *t = &o->shared->totals;

        *ret = (struct http_origin_counts){
                .connections = atomic_load(&t->connections),
                .turned_away = atomic_load(&t->turned_away),
                .requests = atomic_load(&t->requests),
                .refused = atomic_load(&t->refused),
                .lost = atomic_load(&t->lost),
                .body_bytes = atomic_load(&t->body_bytes),
        };
}

json_t *http_origin_counts_json(const struct http_origin *o)
{
        struct http_origin_counts c;

        http_origin_counts(o, &c);
        return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "connections", (json_int_t)c.connections, "turned_away",
                         (json_int_t)c.turned_away, "requests", (json_int_t)c.requests, "refused",
                         (json_int_t)c.refused, "lost", (json_int_t)c.lost, "body_bytes", (json_int_t)c.body_bytes);
}

json_t *http_origin_notes_json(const struct http_origin *o)
{
        return json_pack("{s:I,s:o*}", "threads", (json_int_t)o->config.threads, "scheduling",
                         sched_grant_json(&o->shared->sched));
}
