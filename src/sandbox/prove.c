/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/prove.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "sandbox/bundle.h"
#include "sandbox/listener.h"
#include "sandbox/policy.h"
#include "sandbox/proof-cache.h"
#include "sandbox/runner-internal.h"
#include "sandbox/way.h"

#define MARKER_PATIENCE_NS (2 * NSEC_PER_SEC)

struct prover {
        struct run *run;
        int (*proven)(struct run *run);
        struct listener listener;
        struct text record;  /* one line an attempt, for the cache */
        size_t way, address; /* what was asked for last */

        /* What orders the checks; see prove.h. */
        int marker_fd; /* -1: the enforcer lets nothing through */
        uint16_t marker_port;
        struct loop_io marker_io;
        struct loop_timer marker_timer;
        bool is_marked, is_answered;
        int answer;
};

/* ---- what to try ---- */

/* Whether the command may go there anyway, so that there is nothing to prove. */
static bool is_allowed(const struct prover *p)
{
        struct target target = {.address = p->listener.at[p->address], .port = p->listener.port};
        struct decision decision;

        for (int transport = 0; transport < N_TRANSPORTS; transport++) {
                target.transport = (enum transport)transport;
                policy_decide(p->run->sandbox.policy, &target, &decision);
                if (decision.outcome != POLICY_DENIED)
                        return true;
        }
        return false;
}

static bool applies(const struct prover *p, const struct way *way)
{
        unsigned family;

        if (way->nested_allows && p->run->options->nested)
                return false;
        if (way->families == 0)
                return p->address == 0;
        family = p->listener.at[p->address].family == AF_INET ? WAY_V4 : WAY_V6;
        return (way->families & family) && !is_allowed(p);
}

/* Goes to the next attempt from where @p is, that place included. Return: NULL at the end. */
static const struct way *seek(struct prover *p)
{
        const struct way *way;

        for (; (way = way_at(p->way)); p->way++, p->address = 0)
                for (; p->address < p->listener.n; p->address++)
                        if (applies(p, way))
                                return way;
        return NULL;
}

static int on_marker_lost(struct loop_timer *timer);

/* All was tried: what was open for that is closed again. */
static int finish(struct prover *p, struct err *err)
{
        struct sandbox *sandbox = &p->run->sandbox;
        int r = 0;

        loop_timer_remove(&p->marker_timer);
        loop_io_remove(&p->marker_io);
        if (p->marker_fd >= 0)
                r = sandbox->enforcer->expose(sandbox, &sandbox->control, p->marker_port, false, err);
        if (r < 0)
                return r;
        if (!p->record.failed)
                proof_cache_put(p->run, p->record.data);
        return p->proven(p->run);
}

static int ask(struct prover *p, struct err *err)
{
        const struct way *way = seek(p);
        struct message m = {.kind = way ? MESSAGE_TRY : MESSAGE_PROVEN, .value = (int)p->way};
        int r;

        if (way && way->families) {
                m.to = p->listener.at[p->address];
                m.port = p->listener.port;
        }
        if (way && p->marker_fd >= 0) {
                m.marker = p->run->sandbox.control;
                m.marker_port = p->marker_port;
                r = loop_timer_set(p->run->sandbox.loop, &p->marker_timer,
                                   clock_now_ns(CLOCK_MONOTONIC) + MARKER_PATIENCE_NS, on_marker_lost);
                if (r < 0)
                        return err_set_nomem(err);
        }
        p->is_marked = p->marker_fd < 0;
        p->is_answered = false;
        r = message_send(p->run->channel_fd, &m, -1);
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot reach the prober inside the sandbox");
        return way ? 0 : finish(p, err);
}

/* ---- what came of it ---- */

/* "tcp to 127.0.0.1" */
static void describe(const struct prover *p, const struct way *way, char *buf, size_t size)
{
        char address[IP_TEXT_MAX];

        if (way->families == 0) {
                snprintf(buf, size, "%s", way->name);
                return;
        }
        ip_prefix_format(&p->listener.at[p->address], address);
        address[strcspn(address, "/")] = '\0';
        snprintf(buf, size, "%s to %s", way->name, address);
}

static int judge(struct prover *p, const struct way *way, int result, struct err *err)
{
        struct bundle *bundle = p->run->sandbox.bundle;
        unsigned arrived = listener_drain(&p->listener);
        const char *detail = result < 0 ? strerrorname_np(-result) : "sent, and did not arrive";
        char name[128];

        describe(p, way, name, sizeof(name));
        if (arrived > 0 || (way->families == 0 && result >= 0)) {
                bundle_proof(bundle, name, BUNDLE_PROOF_ESCAPED, arrived > 0 ? "it arrived" : "not refused", false);
                return err_set(err, ERR_ENVIRONMENT, EPERM,
                               "the sandbox is not closed here: %s %s; the command was not run", name,
                               arrived > 0 ? "gets out" : "is not refused");
        }
        bundle_proof(bundle, name, BUNDLE_PROOF_STOPPED, detail, false);
        text_addf(&p->record, "%s: %s\n", name, detail ? detail : "refused");
        return 0;
}

/* Goes on when both the answer and the marker are there. */
static int go_on(struct prover *p)
{
        struct err *err = p->run->err;
        int r;

        if (!p->is_answered || !p->is_marked)
                return 0;
        r = judge(p, way_at(p->way), p->answer, err);
        if (r < 0)
                return r;
        p->address++;
        return ask(p, err);
}

int prover_hear(struct prover *p, const struct message *answer)
{
        if (!way_at(p->way) || p->is_answered)
                return err_set(p->run->err, ERR_BUG, EPROTO, "the prober answers what it was not asked");
        p->is_answered = true;
        p->answer = answer->value;
        return go_on(p);
}

/* ---- markers and controls ---- */

static int on_marker(struct loop_io *io, uint32_t events)
{
        struct prover *p = CONTAINER_OF(io, struct prover, marker_io);
        char byte;

        while (recv(io->fd, &byte, sizeof(byte), MSG_DONTWAIT) >= 0)
                p->is_marked = true;
        return p->is_marked ? go_on(p) : 0;
}

static int on_marker_lost(struct loop_timer *timer)
{
        struct prover *p = CONTAINER_OF(timer, struct prover, marker_timer);

        bundle_proof(p->run->sandbox.bundle, PROOF_MARKER, BUNDLE_PROOF_LOST, "it did not arrive", false);
        return err_set(
                p->run->err, ERR_ENVIRONMENT, ETIMEDOUT,
                "what the enforcer %s has to let out does not arrive: that nothing else gets out proves nothing, "
                "and the command was not run",
                p->run->sandbox.enforcer->name);
}

/* A port of this host that the enforcer lets through for now. */
static int open_marker(struct prover *p, struct err *err)
{
        struct sandbox *sandbox = &p->run->sandbox;
        struct sockaddr_storage where;
        socklen_t len;
        int r = 0;

        if (!sandbox->enforcer->expose || sandbox->control.family == 0)
                return 0;
        p->marker_fd = socket(sandbox->control.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        len = ip_prefix_sockaddr(&sandbox->control, 0, &where);
        if (p->marker_fd < 0 || bind(p->marker_fd, (struct sockaddr *)&where, len) < 0 ||
            getsockname(p->marker_fd, (struct sockaddr *)&where, &len) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot listen for the proof's marker");
        p->marker_port = ntohs(((struct sockaddr_in *)&where)->sin_port); /* at the same place in either family */
        r = loop_io_add(sandbox->loop, &p->marker_io, p->marker_fd, EPOLLIN, on_marker);
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot wait for the proof's marker");
        bundle_proof(sandbox->bundle, PROOF_MARKER, BUNDLE_PROOF_ARRIVED, "after each attempt", false);
        text_add(&p->record, PROOF_MARKER ": after each attempt\n");
        return sandbox->enforcer->expose(sandbox, &sandbox->control, p->marker_port, true, err);
}

/* That the listener notices what is sent to it from outside, without which nothing that does not arrive proves
 * anything.
 */
static void record_controls(struct prover *p)
{
        for (size_t i = 0; i < p->listener.n; i++) {
                char address[IP_TEXT_MAX], line[128];

                ip_prefix_format(&p->listener.at[i], address);
                address[strcspn(address, "/")] = '\0';
                snprintf(line, sizeof(line), PROOF_CONTROL "from outside to %s", address);
                bundle_proof(p->run->sandbox.bundle, line, BUNDLE_PROOF_ARRIVED, "noticed", false);
                text_addf(&p->record, "%s: noticed\n", line);
        }
}

/* ---- its life ---- */

int prover_start(struct run *run, int (*proven)(struct run *run), struct prover **ret)
{
        struct prover *p;
        int r;

        p = calloc(1, sizeof(*p));
        if (!p)
                return err_set_nomem(run->err);
        p->run = run;
        p->proven = proven;
        p->listener = (struct listener)LISTENER_INIT;
        p->marker_fd = -1;
        *ret = p;
        r = listener_open(&p->listener, run->err);
        if (r < 0)
                return r;
        record_controls(p);
        r = open_marker(p, run->err);
        return r < 0 ? r : ask(p, run->err);
}

void prover_free(struct prover *p)
{
        if (!p)
                return;
        loop_timer_remove(&p->marker_timer);
        loop_io_remove(&p->marker_io);
        close_cleanup(&p->marker_fd);
        listener_done(&p->listener);
        text_done(&p->record);
        free(p);
}

/* ---- inside ---- */

/* That it did not get out is noticed by who waits for it. */
static void send_marker(const struct message *request)
{
        _cleanup_close_ int fd = socket(request->marker.family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct sockaddr_storage where;
        socklen_t len = ip_prefix_sockaddr(&request->marker, request->marker_port, &where);

        if (fd >= 0)
                (void)!sendto(fd, "m", 1, MSG_NOSIGNAL, (struct sockaddr *)&where, len);
}

int prover_try(int channel_fd, const struct message *request)
{
        struct message m = *request;
        int fd, r;

        while (m.kind == MESSAGE_TRY) {
                const struct way *way = m.value >= 0 ? way_at((size_t)m.value) : NULL;

                if (!way)
                        return 1;
                r = way->try(&m.to, m.port);
                if (m.marker_port)
                        send_marker(&m);
                m = (struct message){.kind = MESSAGE_TRIED, .value = r};
                r = message_send(channel_fd, &m, -1);
                if (r == 0)
                        r = message_receive(channel_fd, false, &m, &fd);
                if (r < 0)
                        return 1;
                close_cleanup(&fd);
        }
        return m.kind != MESSAGE_PROVEN;
}
