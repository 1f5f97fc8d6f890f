/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/boundary-ordinary-proxy.h"

#include <arpa/inet.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "campaign/enclosure.h"

#define READY_NS (20 * NSEC_PER_SEC)
#define RETRY_MS 5
#define GRACE_NS (2 * NSEC_PER_SEC)

#define CONFIG_PATH "/dev/stdin"

/* Their configurations. Each does what it does by itself; only caches and logs are off, and haproxy is told not to hold
 * back the pieces of a stream, as its manual advises for one. */

static void configure_haproxy(struct text *out, const char *address)
{
        text_addf(out,
                  "global\n"
                  "  maxconn 4096\n"
                  "defaults\n"
                  "  mode http\n"
                  "  option http-no-delay\n"
                  "  timeout connect 5s\n"
                  "  timeout client 60s\n"
                  "  timeout server 60s\n"
                  "frontend in\n"
                  "  bind %s:%u\n"
                  "  default_backend out\n"
                  "backend out\n"
                  "  server origin %s:%u\n",
                  address, STAGE_PROXY_PORT, address, STAGE_ORIGIN_PORT);
}

static void configure_tinyproxy(struct text *out, const char *address)
{
        text_addf(out,
                  "Listen %s\n"
                  "Port %u\n"
                  "Timeout 60\n"
                  "MaxClients 1024\n"
                  "LogLevel Critical\n",
                  address, STAGE_PROXY_PORT);
}

static void configure_squid(struct text *out, const char *address)
{
        text_addf(out,
                  "http_port %s:%u\n"
                  "http_access allow all\n"
                  "cache deny all\n"
                  "access_log none\n"
                  "cache_log /dev/null\n"
                  "cache_store_log none\n"
                  "visible_hostname assay\n" /* else it is looked up, and nobody answers on a stage */
                  "pid_filename none\n"
                  "netdb_filename none\n"
                  "pinger_enable off\n"
                  "shutdown_lifetime 0 seconds\n",
                  address, STAGE_PROXY_PORT);
}

static const struct program {
        const char *name;
        const char *words[6]; /* after its name */
        bool is_forward;      /* goes where the request says */
        void (*configure)(struct text *out, const char *address);
} programs[] = {
        {.name = "haproxy", .words = {"-db", "-q", "-f", CONFIG_PATH}, .configure = configure_haproxy},
        {.name = "tinyproxy", .words = {"-d", "-c", CONFIG_PATH}, .is_forward = true, .configure = configure_tinyproxy},
        {.name = "squid", .words = {"-N", "-f", CONFIG_PATH}, .is_forward = true, .configure = configure_squid},
};

static const char *const program_names[] = {"haproxy", "tinyproxy", "squid", NULL};

struct keys {
        int program;
};

static const struct key keys[] = {
        {.name = "program",
         .type = KEY_CHOICE,
         .offset = offsetof(struct keys, program),
         .is_required = true,
         .choices = program_names,
         .help = "Which proxy; haproxy forwards to the origin, the others to where the request says."},
        {},
};

const struct key_table boundary_ordinary_proxy_table = {
        .name = "ordinary-proxy",
        .help = "An HTTP proxy of others between client and origin, as a peer; it enforces nothing.",
        .size = sizeof(struct keys),
        .has_kind = true,
        .keys = keys,
};

struct ordinary_proxy {
        struct enclosure base;
        const struct program *program;
        struct command command;
};

static struct ordinary_proxy *ordinary_proxy_of(struct boundary *b)
{
        return (struct ordinary_proxy *)b; /* the first member's first member */
}

static int find_program(const struct node *config, const struct program **ret, struct err *err)
{
        struct keys k = {0};
        int r = key_table_read(&boundary_ordinary_proxy_table, node_get(config, "boundary"), "boundary", &k, err);

        if (r >= 0)
                *ret = &programs[k.program];
        key_table_done(&boundary_ordinary_proxy_table, &k);
        return r;
}

static int prepare_proxy(struct ordinary_proxy *p, struct err *err)
{
        const struct stage *s = &p->base.stage;
        _cleanup_command_line_ struct command_line line = {0};
        _cleanup_text_ struct text config = {0};
        char address[INET_ADDRSTRLEN];
        int r;

        inet_ntop(AF_INET, &s->origin.v4.sin_addr, address, sizeof(address));
        p->program->configure(&config, address);
        if (config.failed)
                return err_set_nomem(err);
        command_line_add(&line, "%s", p->program->name);
        for (size_t i = 0; p->program->words[i]; i++)
                command_line_add(&line, "%s", p->program->words[i]);
        r = command_line_check(&line, err);
        if (r >= 0)
                r = command_input(&p->command, config.data, err);
        return r < 0 ? r : command_prepare(p->program->name, &s->netns, &line, &p->command, err);
}

static int proxy_ended(struct ordinary_proxy *p, struct err *err)
{
        char complaint[400];

        command_complaint(&p->command, complaint, sizeof(complaint));
        return err_set(err, ERR_ENVIRONMENT, EPIPE, "%s ended: %s", p->program->name,
                       complaint[0] ? complaint : "without a word");
}

/* Return: 1 where it takes connections, 0 where not yet, or a negative errno. */
static int is_listening(struct ordinary_proxy *p, struct err *err)
{
        const struct stage *s = &p->base.stage;
        _cleanup_close_ int fd = netns_socket(&s->netns, AF_INET, SOCK_STREAM, 0, err);

        if (fd < 0)
                return fd;
        return connect(fd, &s->proxy.any, address_len(&s->proxy)) == 0;
}

/* None of them tells when it is ready, but by taking connections. */
static int wait_ready(struct ordinary_proxy *p, struct err *err)
{
        int64_t end_ns = clock_now_ns(CLOCK_MONOTONIC) + READY_NS;
        struct pollfd pfd = {.fd = p->command.child.pidfd, .events = POLLIN};

        while (clock_now_ns(CLOCK_MONOTONIC) < end_ns) {
                int r = is_listening(p, err);

                if (r != 0)
                        return r;
                if (poll(&pfd, 1, RETRY_MS) > 0)
                        return proxy_ended(p, err);
        }
        return err_set(err, ERR_ENVIRONMENT, ETIMEDOUT, "%s does not take connections", p->program->name);
}

static void ordinary_proxy_down(struct boundary *b)
{
        struct ordinary_proxy *p = ordinary_proxy_of(b);

        if (!p)
                return;
        child_stop(&p->command.child, GRACE_NS, NULL);
        command_done(&p->command);
        stage_down(&p->base.stage);
        free(p);
}

static int ordinary_proxy_up(const struct node *config, int inputs_dirfd, struct boundary **ret, struct err *err)
{
        struct ordinary_proxy *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return err_set_nomem(err);
        p->base =
                (struct enclosure){.base.ops = &boundary_ordinary_proxy_ops, .stage = STAGE_INIT, .has_own_peer = true};
        p->command = (struct command)COMMAND_INIT;
        r = find_program(config, &p->program, err);
        if (r >= 0)
                r = enclosure_stage(&p->base, err);
        if (r >= 0)
                r = prepare_proxy(p, err);
        if (r >= 0)
                r = child_go(&p->command.child, 0, err);
        if (r >= 0)
                r = wait_ready(p, err);
        if (r < 0) {
                ordinary_proxy_down(&p->base.base);
                return r;
        }
        p->base.is_forward_proxy = p->program->is_forward;
        *ret = &p->base.base;
        return 0;
}

/* Clients are told the proxy's address and not the origin's, so what has the right body went through it, if it is the
 * proxy that answers there. */
static int ordinary_proxy_prove(struct boundary *b, struct proof *ret, struct err *err)
{
        struct ordinary_proxy *p = ordinary_proxy_of(b);
        int r;

        *ret = (struct proof){0};
        r = child_is_alive(&p->command.child) ? is_listening(p, err) : 0;
        if (r < 0)
                return r;
        ret->holds = r > 0;
        if (!ret->holds)
                snprintf(ret->reason, sizeof(ret->reason), "%s does not take connections", p->program->name);
        ret->evidence = json_pack("{s:s, s:b}", "program", p->program->name, "takes_connections", r > 0);
        return ret->evidence ? 0 : err_set_nomem(err);
}

static int ordinary_proxy_observe(struct boundary *b, struct text *out, struct err *err)
{
        text_add(out, "# EOF\n");
        return 0;
}

static json_t *ordinary_proxy_describe(const struct boundary *b)
{
        const struct ordinary_proxy *p = (const struct ordinary_proxy *)b;

        return json_pack("{s:s, s:s, s:s, s:[]}", "isolation", "none", "proxy", p->program->name, "form",
                         p->program->is_forward ? "forward" : "reverse", "weaker");
}

const struct boundary_ops boundary_ordinary_proxy_ops = {
        .up = ordinary_proxy_up,
        .prove = ordinary_proxy_prove,
        .observe = ordinary_proxy_observe,
        .describe = ordinary_proxy_describe,
        .down = ordinary_proxy_down,
};

int boundary_ordinary_proxy_missing(const struct node *config, struct err *err)
{
        const struct program *program;
        char path[PATH_MAX];
        int r = find_program(config, &program, err);

        return r < 0 ? r : command_find(program->name, path, sizeof(path), err);
}
