/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/names.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macro.h"
#include "sandbox/bundle.h"
#include "sandbox/resolver.h"
#include "sandbox/rules.h"
#include "sys/sockdiag.h"

#define N_SOCKETS 4 /* datagrams and streams, of IPv4 and IPv6 */
#define BACKLOG   64

struct names {
        struct sandbox *sandbox;
        struct pins *pins;
        struct resolver *resolver;
        int fds[N_SOCKETS]; /* -1: none, or the resolver's by now */
        int sockdiag_fd;
};

/* Return: a descriptor; -EADDRNOTAVAIL and the like without IPv6; another negative errno. */
static int listen_at(int family, int type)
{
        struct sockaddr_in v4 = {.sin_family = AF_INET,
                                 .sin_port = htons(RULES_DNS_PORT),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                                  .sin6_port = htons(RULES_DNS_PORT),
                                  .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        const struct sockaddr *where = family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
        _cleanup_close_ int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || bind(fd, where, family == AF_INET ? sizeof(v4) : sizeof(v6)) < 0 ||
            (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
                return -errno;
        return TAKE_FD(fd);
}

int names_open(struct sandbox *sandbox, struct names **ret, struct err *err)
{
        static const int families[] = {AF_INET, AF_INET, AF_INET6, AF_INET6};
        static const int types[] = {SOCK_DGRAM, SOCK_STREAM, SOCK_DGRAM, SOCK_STREAM};
        _cleanup_names_ struct names *names = calloc(1, sizeof(*names));

        if (!names)
                return err_set_nomem(err);
        names->sandbox = sandbox;
        names->sockdiag_fd = -1;
        for (size_t i = 0; i < N_SOCKETS; i++)
                names->fds[i] = -1;
        for (size_t i = 0; i < N_SOCKETS; i++) {
                names->fds[i] = listen_at(families[i], types[i]);
                if (names->fds[i] < 0 && families[i] == AF_INET)
                        return err_set_errno(err, ERR_ENVIRONMENT, -names->fds[i],
                                             "cannot listen for questions about names");
        }
        names->sockdiag_fd = sockdiag_open(err);
        if (names->sockdiag_fd < 0)
                return names->sockdiag_fd;
        snprintf(sandbox->resolver, sizeof(sandbox->resolver), "127.0.0.1");
        *ret = TAKE_PTR(names);
        return 0;
}

void names_free(struct names *names)
{
        if (!names)
                return;
        resolver_free(names->resolver);
        pins_free(names->pins);
        for (size_t i = 0; i < N_SOCKETS; i++)
                if (names->fds[i] >= 0)
                        close(names->fds[i]);
        if (names->sockdiag_fd >= 0)
                close(names->sockdiag_fd);
        free(names);
}

static int admit(void *userdata, const struct pin *pins, size_t n, struct err *err)
{
        struct names *names = userdata;
        const struct enforcer_ops *enforcer = names->sandbox->enforcer;

        return enforcer->admit ? enforcer->admit(names->sandbox, pins, n, err) : 0;
}

static const char *answer_of(enum resolver_outcome outcome)
{
        switch (outcome) {
        case RESOLVER_ANSWERED:
        case RESOLVER_EMPTY:
        case RESOLVER_UNSUPPORTED:
                return "NOERROR";
        case RESOLVER_NAME_DENIED:
        case RESOLVER_ALIAS_DENIED:
        case RESOLVER_ADDRESS_DENIED:
                return "NXDOMAIN";
        default:
                return "SERVFAIL";
        }
}

static const char *type_text(uint16_t type, char buf[static 16])
{
        switch (type) {
        case DNS_TYPE_A:
                return "A";
        case DNS_TYPE_AAAA:
                return "AAAA";
        case DNS_TYPE_PTR:
                return "PTR";
        default:
                snprintf(buf, 16, "TYPE%u", type);
                return buf;
        }
}

#define ADDRESSES_MAX 16 /* as many as a record keeps */

static void note(void *userdata, const struct resolver_question *question)
{
        struct ip_prefix addresses[ADDRESSES_MAX];
        struct names *names = userdata;
        size_t n = MIN(question->n_pins, (size_t)ADDRESSES_MAX);
        char type[16];

        for (size_t i = 0; i < n; i++)
                addresses[i] = question->pins[i].address;
        bundle_question(names->sandbox->bundle, question->name, type_text(question->type, type),
                        answer_of(question->outcome), addresses, n, question->target ? question->reason : NULL);
        if (question->target)
                sandbox_denied(names->sandbox, question->target, question->reason ? question->reason : "policy", 0);
}

int names_serve(struct names *names, struct err *err)
{
        struct resolver_options options = {
                .loop = names->sandbox->loop,
                .policy = names->sandbox->policy,
                .sockdiag_fd = names->sockdiag_fd,
                .admit = admit,
                .note = note,
                .userdata = names,
        };
        int r;

        r = pins_new(PINS_MAX, &names->pins);
        if (r < 0)
                return err_set_nomem(err);
        options.pins = names->pins;
        bundle_observes(names->sandbox->bundle, BUNDLE_DNS);
        r = resolver_new(&options, &names->resolver, err);
        for (size_t i = 0; i < N_SOCKETS && r == 0; i++)
                if (names->fds[i] >= 0)
                        r = resolver_serve(names->resolver, TAKE_FD(names->fds[i]), err);
        return r;
}

const struct pins *names_pins(const struct names *names)
{
        return names->pins;
}
