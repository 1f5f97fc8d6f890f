/* SPDX-License-Identifier: Apache-2.0 */

/* A resolver by itself, for test_resolver.py:
 *
 *   resolver-host POLICY SERVERS PORT ADDRESS...
 *
 * Answers at each ADDRESS and PORT over UDP and TCP. Standard output: "ready"; "admit NAME ADDRESS SECONDS" for each
 * address that is let in; "note RCODE OUTCOME TYPE NAME; TARGET; REASON" for each question. Standard input: "keep"
 * looks for open flows, "refuse" lets no address in from then on, its end ends it. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/number.h"
#include "sandbox/resolver.h"
#include "sys/sockdiag.h"

struct host {
        struct loop_io commands;
        struct loop *loop;
        struct resolver *resolver;
        bool refuses;
};

static int admit(void *userdata, const struct pin *pins, size_t n, struct err *err)
{
        const struct host *host = userdata;
        char text[IP_TEXT_MAX];

        if (host->refuses)
                return err_set(err, ERR_ENVIRONMENT, EIO, "the set is closed");
        for (size_t i = 0; i < n; i++)
                printf("admit %s %s %lld\n", pins[i].name, ip_prefix_format(&pins[i].address, text),
                       (long long)((pins[i].expires_ns - loop_now_ns(host->loop)) / NSEC_PER_SEC));
        return 0;
}

static void note(void *userdata, const struct resolver_question *q)
{
        printf("note %s %s %u %s; %s; %s\n", dns_rcode_name(q->rcode), resolver_outcome_name(q->outcome), q->type,
               q->name, q->target ? q->target : "", q->reason ? q->reason : "");
}

static int on_command(struct loop_io *io, uint32_t events)
{
        struct host *host = CONTAINER_OF(io, struct host, commands);
        char line[64] = {0};
        ssize_t n = read(io->fd, line, sizeof(line) - 1);

        if (n <= 0)
                loop_stop(io->loop);
        else if (streq(line, "keep\n"))
                resolver_keep(host->resolver);
        else if (streq(line, "refuse\n"))
                host->refuses = true;
        if (n > 0)
                printf("done %s", line);
        return 0;
}

static int serve(struct host *host, const char *address, uint16_t port, struct err *err)
{
        static const int types[] = {SOCK_DGRAM, SOCK_STREAM}, on = 1;
        struct sockaddr_storage where;
        struct ip_prefix prefix;
        socklen_t len;
        int r = 0;

        if (ip_prefix_parse(address, &prefix) < 0)
                return err_set(err, ERR_USAGE, EINVAL, "%s is no address", address);
        len = ip_prefix_sockaddr(&prefix, port, &where);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(types); i++) {
                int fd = socket(prefix.family, types[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

                if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
                    (prefix.family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
                    bind(fd, (struct sockaddr *)&where, len) < 0 || (types[i] == SOCK_STREAM && listen(fd, 128) < 0)) {
                        close_cleanup(&fd);
                        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot listen");
                }
                r = resolver_serve(host->resolver, fd, err);
        }
        return r;
}

static int run(char **argv, struct err *err)
{
        _cleanup_policy_ struct policy *policy = NULL;
        _cleanup_pins_ struct pins *pins = NULL;
        _cleanup_loop_ struct loop *loop = NULL;
        _cleanup_resolver_ struct resolver *resolver = NULL;
        _cleanup_close_ int diag = -1;
        struct resolver_options options = {.servers = argv[2], .admit = admit, .note = note};
        struct host host = {0};
        uint64_t port;
        int r = policy_load(AT_FDCWD, argv[1], &policy, err);

        if (r == 0)
                r = pins_new(PINS_MAX, &pins);
        if (r == 0)
                r = loop_new(&loop, err);
        diag = sockdiag_open(err);
        if (r < 0 || diag < 0)
                return -1;
        options.loop = host.loop = loop;
        options.policy = policy;
        options.pins = pins;
        options.sockdiag_fd = diag;
        options.userdata = &host;
        if (resolver_new(&options, &resolver, err) < 0)
                return -1;
        host.resolver = resolver;
        if (number_parse_u64(span_of_text(argv[3]), &port) < 0 ||
            loop_io_add(loop, &host.commands, STDIN_FILENO, EPOLLIN, on_command) < 0)
                return -1;
        for (char **address = argv + 4; *address; address++)
                if (serve(&host, *address, (uint16_t)port, err) < 0)
                        return -1;
        puts("ready");
        return loop_run(loop);
}

int main(int argc, char **argv)
{
        struct err err = {0};

        setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc < 5 || run(argv, &err) < 0) {
                fprintf(stderr, "resolver-host: %s\n", err.text);
                return 1;
        }
        return 0;
}
