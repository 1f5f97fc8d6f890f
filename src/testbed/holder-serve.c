/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/macro.h"
#include "testbed/holder-internal.h"

#define CLIENT_PATIENCE_S 1

bool holder_is_trusted(int fd)
{
        struct ucred peer;
        socklen_t len = sizeof(peer);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
                return false;
        return peer.uid == geteuid() || peer.uid == 0;
}

struct server {
        struct testbed *tb;
        const char *identity;
        bool is_ending;
};

static json_t *describe_nodes(const struct layout *l)
{
        json_t *nodes = json_array();

        for (size_t i = 0; i < l->n_nodes; i++)
                json_array_append_new(nodes, json_pack("{s:s, s:b}", "name", l->nodes[i].name, "forwards",
                                                       (int)l->nodes[i].is_forwarder));
        return nodes;
}

static json_t *describe_links(const struct layout *l)
{
        json_t *links = json_array();

        for (size_t i = 0; i < l->n_links; i++)
                json_array_append_new(links, json_pack("{s:s, s:s, s:s}", "name", l->links[i].name, "lower",
                                                       l->nodes[l->links[i].ends[LAYOUT_LOWER].node].name, "upper",
                                                       l->nodes[l->links[i].ends[LAYOUT_UPPER].node].name));
        return links;
}

static json_t *describe_addresses(const struct testbed *tb)
{
        const struct topology *t = testbed_layout(tb)->topology;
        json_t *addresses = json_array();

        for (size_t i = 0; i < t->n_zones * t->n_slices * 2; i++) {
                const char *zone = t->zones[i / 2 / t->n_slices].name, *slice = t->slices[i / 2 % t->n_slices].name;
                struct ip_prefix address;
                char text[IP_TEXT_MAX];

                if (testbed_address(tb, zone, slice, i % 2 ? AF_INET6 : AF_INET, &address, NULL) < 0)
                        continue;
                ip_prefix_format(&address, text);
                text[strcspn(text, "/")] = '\0';
                json_array_append_new(addresses,
                                      json_pack("{s:s, s:s, s:s}", "zone", zone, "slice", slice, "address", text));
        }
        return addresses;
}

static json_t *do_status(struct server *s)
{
        const struct layout *l = testbed_layout(s->tb);
        struct testbed_mechanism mechanism = testbed_mechanism(s->tb);
        _cleanup_text_ struct text faults = {0};
        struct err err = {0};
        int n;

        n = testbed_check(s->tb, &faults, &err);
        if (n < 0)
                text_addf(&faults, "%s\n", err.text);
        return json_pack("{s:i, s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:b, s:o, s:o, s:o}", "assay", 1, "state",
                         n == 0 ? "up" : "degraded", "detail", faults.data ? faults.data : "", "process", (int)getpid(),
                         "identity", s->identity, "topology", topology_shape_name(l->topology->shape), "scheduler",
                         topology_scheduler_name(l->topology->scheduler), "tagger",
                         testbed_tagger_name(mechanism.tagger), "classifier",
                         testbed_classifier_name(mechanism.classifier), "htb_hysteresis", mechanism.has_hysteresis,
                         "nodes", describe_nodes(l), "links", describe_links(l), "addresses",
                         describe_addresses(s->tb));
}

/* That nothing has the name, and which names there are. */
static json_t *refuse_name(const struct layout *l, const char *what, const char *name)
{
        bool is_node = streq(what, "node");
        _cleanup_text_ struct text text = {0};

        text_addf(&text, "the testbed has no %s named %s; expected ", what, name);
        for (size_t i = 0; i < (is_node ? l->n_nodes : l->n_links); i++)
                text_addf(&text, "%s%s", i > 0 ? ", " : "", is_node ? l->nodes[i].name : l->links[i].name);
        return text.failed ? NULL : json_pack("{s:s}", "error", text.data);
}

static json_t *do_netns(struct server *s, const char *name, int *ret_fd)
{
        const struct layout *l = testbed_layout(s->tb);
        size_t node;

        if (!layout_node_find(l, name, &node))
                return refuse_name(l, "node", name);
        *ret_fd = testbed_netns(s->tb, node)->fd;
        return json_pack("{s:s}", "device", "");
}

static json_t *do_link(struct server *s, const char *name, int *ret_fd)
{
        const struct layout *l = testbed_layout(s->tb);
        const struct layout_end *end;
        size_t link;

        if (!layout_link_find(l, name, &link))
                return refuse_name(l, "link", name);
        end = &l->links[link].ends[LAYOUT_LOWER];
        if (!l->nodes[end->node].is_forwarder)
                end = &l->links[link].ends[LAYOUT_UPPER];
        *ret_fd = testbed_netns(s->tb, end->node)->fd;
        return json_pack("{s:s}", "device", end->device);
}

/* What to answer to a request; a descriptor in *@ret_fd, borrowed, goes with it. */
static json_t *answer(struct server *s, const char *bytes, size_t len, int *ret_fd)
{
        _cleanup_json_ json_t *request = NULL;
        const char *op, *name = "";
        struct err err = {0};

        if (json_parse(span_of(bytes, len), "request", &request, &err) < 0 ||
            json_get_string(request, "request", "op", &op, &err) < 0)
                return json_pack("{s:s}", "error", err.text);
        if (streq(op, "status"))
                return do_status(s);
        if (streq(op, "down")) {
                s->is_ending = true;
                return json_object();
        }
        if (json_get_string(request, "request", "name", &name, &err) < 0)
                return json_pack("{s:s}", "error", err.text);
        if (streq(op, "netns"))
                return do_netns(s, name, ret_fd);
        if (streq(op, "link"))
                return do_link(s, name, ret_fd);
        return json_pack("{s:s}", "error", "unknown request");
}

static void send_reply(int fd, const char *text, int passed_fd)
{
        struct iovec iov = {.iov_base = (char *)text, .iov_len = strlen(text)};
        union {
                char buf[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control = {0};
        struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

        if (passed_fd >= 0) {
                struct cmsghdr *c;

                msg.msg_control = control.buf;
                msg.msg_controllen = sizeof(control.buf);
                c = CMSG_FIRSTHDR(&msg);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(c), &passed_fd, sizeof(int));
        }
        (void)!sendmsg(fd, &msg, MSG_NOSIGNAL); /* a client that has gone away has no use for it */
}

/* One request. A client that says nothing costs at most its patience. */
static void serve_client(struct server *s, int fd)
{
        const struct timeval patience = {.tv_sec = CLIENT_PATIENCE_S};
        _cleanup_json_ json_t *reply = NULL;
        _cleanup_free_ char *text = NULL;
        char request[HOLDER_REQUEST_MAX];
        int passed_fd = -1;
        ssize_t n;

        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        n = recv(fd, request, sizeof(request), MSG_TRUNC);
        if (n <= 0)
                return;
        if (!holder_is_trusted(fd))
                reply = json_pack("{s:s}", "error", "the testbed belongs to another user");
        else if ((size_t)n > sizeof(request))
                reply = json_pack("{s:s}", "error", "the request is too long");
        else
                reply = answer(s, request, (size_t)n, &passed_fd);
        text = reply ? json_format_line(reply) : NULL;
        send_reply(fd, text ? text : "{\"error\":\"out of memory\"}", passed_fd);
}

static int open_signals(void)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
        sigprocmask(SIG_BLOCK, &set, NULL);
        return signalfd(-1, &set, SFD_CLOEXEC);
}

int holder_serve(struct testbed *tb, const char *identity, int listen_fd)
{
        struct server s = {.tb = tb, .identity = identity};
        _cleanup_close_ int signals = open_signals();

        if (signals < 0)
                return -errno;
        for (;;) {
                struct pollfd fds[] = {{.fd = listen_fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
                _cleanup_close_ int client = -1;

                if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
                        return -errno;
                if (fds[1].revents)
                        return 0;
                if (!fds[0].revents)
                        continue;
                client = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
                if (client < 0)
                        continue;
                serve_client(&s, client);
                if (s.is_ending)
                        return 0;
        }
}
