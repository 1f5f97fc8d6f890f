/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/resolver.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/macro.h"
#include "sandbox/resolver-internal.h"
#include "sys/sockdiag.h"

const char *resolver_outcome_name(enum resolver_outcome outcome)
{
        static const char *const names[N_RESOLVER_OUTCOMES] = {
                [RESOLVER_ANSWERED] = "answered",
                [RESOLVER_EMPTY] = "empty",
                [RESOLVER_NAME_DENIED] = "name-denied",
                [RESOLVER_ALIAS_DENIED] = "alias-denied",
                [RESOLVER_ADDRESS_DENIED] = "address-denied",
                [RESOLVER_UNSUPPORTED] = "unsupported",
                [RESOLVER_MALFORMED] = "malformed",
                [RESOLVER_FAILED] = "failed",
        };

        return (unsigned)outcome < N_RESOLVER_OUTCOMES ? names[outcome] : "unknown";
}

uint64_t resolver_count(const struct resolver *resolver, enum resolver_outcome outcome)
{
        return resolver->counts[outcome];
}

/* ---- open flows ---- */

static int admit_longer(const struct pin *pin, void *userdata)
{
        struct resolver *resolver = userdata;
        struct err err = {0};
        int r;

        if (!resolver->options.admit)
                return 0;
        r = resolver->options.admit(resolver->options.userdata, pin, 1, &err);
        if (r < 0)
                log_warning("the address of an open flow to %s could not be kept: %s", pin->name, err.text);
        return r;
}

static int keep_remote(const struct ip_prefix *remote, void *userdata)
{
        struct resolver *resolver = userdata;
        int64_t now_ns = loop_now_ns(resolver->options.loop);

        (void)pins_extend(resolver->options.pins, remote, now_ns,
                          now_ns + (RESOLVER_PIN_S + RESOLVER_KEEP_S) * NSEC_PER_SEC, admit_longer, resolver);
        return 0;
}

void resolver_keep(struct resolver *resolver)
{
        struct err err = {0};

        if (resolver->options.sockdiag_fd >= 0 &&
            sockdiag_remotes(resolver->options.sockdiag_fd, keep_remote, resolver, &err) < 0)
                log_warning("open flows may lose their addresses: %s", err.text);
        pins_sweep(resolver->options.pins, loop_now_ns(resolver->options.loop));
}

/* Pins last for RESOLVER_KEEP_S longer than a client may use them: so the flow that it opened last is found in time. */
static int on_keep(struct loop_timer *timer)
{
        struct resolver *resolver = CONTAINER_OF(timer, struct resolver, keep_timer);
        struct loop *loop = resolver->options.loop;

        resolver_keep(resolver);
        resolver_client_resume(resolver);
        return loop_timer_set(loop, timer, loop_now_ns(loop) + RESOLVER_KEEP_S * NSEC_PER_SEC, on_keep);
}

/* ---- life ---- */

int resolver_new(const struct resolver_options *options, struct resolver **ret, struct err *err)
{
        _cleanup_resolver_ struct resolver *resolver = calloc(1, sizeof(*resolver));
        int r;

        if (!resolver)
                return err_set_nomem(err);
        resolver->options = *options;
        for (size_t i = 0; i < RESOLVER_SERVICES_MAX; i++)
                resolver->services[i] = (struct resolver_service){.resolver = resolver, .fd = -1};
        r = resolver_upstream_open(resolver, err);
        if (r < 0)
                return r;
        if (loop_timer_set(options->loop, &resolver->keep_timer,
                           loop_now_ns(options->loop) + RESOLVER_KEEP_S * NSEC_PER_SEC, on_keep) < 0)
                return err_set_nomem(err);
        *ret = TAKE_PTR(resolver);
        return 0;
}

void resolver_free(struct resolver *resolver)
{
        if (!resolver)
                return;
        for (size_t i = 0; i < RESOLVER_SERVICES_MAX; i++) {
                loop_io_remove(&resolver->services[i].io);
                close_cleanup(&resolver->services[i].fd);
                resolver->services[i].fd = -1;
        }
        resolver_client_close_all(resolver);
        loop_timer_remove(&resolver->keep_timer);
        resolver_upstream_close(resolver);
        free(resolver);
}

int resolver_serve(struct resolver *resolver, int fd, struct err *err)
{
        struct resolver_service *service = NULL;
        socklen_t len = sizeof(int);
        int type, r;

        for (size_t i = 0; i < RESOLVER_SERVICES_MAX && !service; i++)
                if (resolver->services[i].fd < 0)
                        service = &resolver->services[i];
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0) {
                r = err_set_errno(err, ERR_BUG, errno, "a resolver was given what is no socket");
        } else if (!service) {
                r = err_set(err, ERR_BUG, ENOSPC, "a resolver was given more than %d sockets", RESOLVER_SERVICES_MAX);
        } else {
                service->fd = fd;
                r = resolver_client_serve(service, type, err);
                if (r < 0)
                        service->fd = -1;
        }
        if (r < 0)
                close_cleanup(&fd);
        return r;
}
