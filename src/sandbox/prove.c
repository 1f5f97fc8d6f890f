/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/prove.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sandbox/bundle.h"
#include "sandbox/listener.h"
#include "sandbox/proof-cache.h"
#include "sandbox/runner-internal.h"
#include "sandbox/way.h"

struct prover {
        struct run *run;
        struct listener listener;
        struct text record;  /* one line an attempt, for the cache */
        size_t way, address; /* what was asked for last */
};

/* ---- what to try ---- */

static bool applies(const struct prover *p, const struct way *way)
{
        unsigned family;

        if (way->nested_allows && p->run->options->nested)
                return false;
        if (way->families == 0)
                return p->address == 0;
        family = p->listener.at[p->address].family == AF_INET ? WAY_V4 : WAY_V6;
        return way->families & family;
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

static int ask(struct prover *p, struct err *err)
{
        const struct way *way = seek(p);
        struct message m = {.kind = way ? MESSAGE_TRY : MESSAGE_PROVEN, .value = (int)p->way};
        int r;

        if (way && way->families) {
                m.to = p->listener.at[p->address];
                m.port = p->listener.port;
        }
        r = message_send(p->run->channel_fd, &m, -1);
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot reach the prober inside the sandbox");
        return way ? 0 : 1;
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

int prover_hear(struct prover *p, const struct message *answer, struct err *err)
{
        int r;

        if (!way_at(p->way))
                return err_set(err, ERR_BUG, EPROTO, "the prober answers what it was not asked");
        r = judge(p, way_at(p->way), answer->value, err);
        if (r < 0)
                return r;
        p->address++;
        r = ask(p, err);
        if (r == 1 && !p->record.failed)
                proof_cache_put(p->run, p->record.data);
        return r;
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
                snprintf(line, sizeof(line), PROOF_CONTROL "%s", address);
                bundle_proof(p->run->sandbox.bundle, line, BUNDLE_PROOF_ARRIVED, "noticed", false);
                text_addf(&p->record, "%s: noticed\n", line);
        }
}

/* ---- its life ---- */

int prover_start(struct run *run, struct prover **ret, struct err *err)
{
        struct prover *p;
        int r;

        if (!run->options->proves_always && proof_cache_get(run))
                return 1;
        p = calloc(1, sizeof(*p));
        if (!p)
                return err_set_nomem(err);
        p->run = run;
        p->listener = (struct listener)LISTENER_INIT;
        *ret = p;
        r = listener_open(&p->listener, err);
        if (r < 0)
                return r;
        record_controls(p);
        return ask(p, err);
}

void prover_free(struct prover *p)
{
        if (!p)
                return;
        listener_done(&p->listener);
        text_done(&p->record);
        free(p);
}

/* ---- inside ---- */

int prover_try(int channel_fd, const struct message *request)
{
        struct message m = *request;
        int fd, r;

        while (m.kind == MESSAGE_TRY) {
                const struct way *way = m.value >= 0 ? way_at((size_t)m.value) : NULL;

                if (!way)
                        return 1;
                m = (struct message){.kind = MESSAGE_TRIED, .value = way->try(&m.to, m.port)};
                r = message_send(channel_fd, &m, -1);
                if (r == 0)
                        r = message_receive(channel_fd, false, &m, &fd);
                if (r < 0)
                        return 1;
                close_cleanup(&fd);
        }
        return m.kind != MESSAGE_PROVEN;
}
