/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/span.h"
#include "testbed/testbed-internal.h"
#include "wire/vlan.h"

#define BURST       4 /* packets of each flow and family */
#define N_FAMILIES  2
#define PATIENCE_NS (NSEC_PER_SEC / 2)
#define NONCE_LEN   16

/* Payload of a proof's packet; the nonce tells it from all others, and from those of an earlier proof. */
struct proof_packet {
        uint8_t nonce[NONCE_LEN];
        uint32_t flow; /* in host byte order: it never leaves this host */
};

/* A zone's socket in one slice and family. */
struct proof_socket {
        int fd; /* -1: none */
        struct sockaddr_storage address;
        socklen_t address_len;
};

/* A packet socket that sees all links of a node. */
struct proof_tap {
        int fd;
        size_t node;
};

struct prover {
        struct testbed *tb;
        uint8_t nonce[NONCE_LEN];
        size_t n_sockets, n_taps, n_flows;
        struct proof_socket *sockets; /* [zone * n_slices + slice][family] */
        struct proof_tap *taps;
        struct path_flow *flows;
        uint64_t n_arrived, n_seen; /* packets, and crossings of links that a tap watches */
        uint64_t n_sent, n_to_see;
        bool is_missing; /* something did not come: further packets are not waited for */
};

static void prover_done(struct prover *p)
{
        for (size_t i = 0; i < p->n_sockets; i++)
                close_cleanup(&p->sockets[i].fd);
        for (size_t i = 0; i < p->n_taps; i++)
                close_cleanup(&p->taps[i].fd);
        free(p->sockets);
        free(p->taps);
        free(p->flows);
}

static struct proof_socket *socket_at(struct prover *p, size_t zone, size_t slice, unsigned family)
{
        return &p->sockets[(zone * p->tb->topology->n_slices + slice) * N_FAMILIES + family];
}

static int set_options(int fd, int family)
{
        const int on = 1, ttl = 255;

        if (family == AF_INET) {
                if (setsockopt(fd, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl)) < 0 ||
                    setsockopt(fd, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on)) < 0)
                        return -errno;
                return 0;
        }
        if (setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &ttl, sizeof(ttl)) < 0 ||
            setsockopt(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof(on)) < 0)
                return -errno;
        return 0;
}

static int open_socket(struct prover *p, size_t zone, size_t slice, int family, struct proof_socket *s, struct err *err)
{
        const struct topology *t = p->tb->topology;
        struct ip_prefix address;
        int r;

        r = testbed_address(p->tb, t->zones[zone].name, t->slices[slice].name, family, &address, err);
        if (r < 0)
                return r;
        s->fd = netns_socket(&p->tb->nodes[zone].ns, family, SOCK_DGRAM | SOCK_NONBLOCK, 0, err);
        if (s->fd < 0)
                return s->fd;
        s->address_len = ip_prefix_sockaddr(&address, 0, &s->address);
        if (set_options(s->fd, family) < 0 || bind(s->fd, (struct sockaddr *)&s->address, s->address_len) < 0 ||
            getsockname(s->fd, (struct sockaddr *)&s->address, &s->address_len) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot prepare a socket in zone %s",
                                     t->zones[zone].name);
        return 0;
}

static int open_sockets(struct prover *p, struct err *err)
{
        const struct topology *t = p->tb->topology;
        int r;

        p->n_sockets = t->n_zones * t->n_slices * N_FAMILIES;
        p->sockets = calloc(p->n_sockets, sizeof(*p->sockets));
        if (!p->sockets) {
                p->n_sockets = 0;
                return err_set_nomem(err);
        }
        for (size_t i = 0; i < p->n_sockets; i++)
                p->sockets[i].fd = -1;
        for (size_t zone = 0; zone < t->n_zones; zone++)
                for (size_t slice = 0; slice < t->n_slices; slice++)
                        for (unsigned f = 0; f < N_FAMILIES && t->zones[zone].slices >> slice & 1; f++) {
                                r = open_socket(p, zone, slice, f == 0 ? AF_INET : AF_INET6,
                                                socket_at(p, zone, slice, f), err);
                                if (r < 0)
                                        return r;
                        }
        return 0;
}

/* One tap sees every link of the star, and of each further node that forwards; without any, those of uplink.to. */
static int open_taps(struct prover *p, struct err *err)
{
        const struct layout *l = p->tb->layout;
        const int on = 1;

        p->taps = calloc(l->n_nodes, sizeof(*p->taps));
        if (!p->taps)
                return err_set_nomem(err);
        for (size_t node = 0; node < l->n_nodes; node++) {
                struct proof_tap *tap = &p->taps[p->n_taps];

                if (p->tb->topology->hops > 0 ? !l->nodes[node].is_forwarder : node != p->tb->topology->uplink_to)
                        continue;
                tap->node = node;
                tap->fd = netns_socket(&p->tb->nodes[node].ns, AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL),
                                       err);
                if (tap->fd < 0)
                        return tap->fd;
                p->n_taps++;
                if (setsockopt(tap->fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) < 0)
                        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot watch the links of %s",
                                             l->nodes[node].name);
        }
        return 0;
}

static unsigned n_tapped_ends(const struct prover *p, size_t link)
{
        unsigned n = 0;

        for (size_t i = 0; i < p->n_taps; i++)
                for (unsigned end = 0; end < 2; end++)
                        n += p->tb->layout->links[link].ends[end].node == p->taps[i].node;
        return n;
}

/* Both ways between uplink.to and every other zone, in every slice that the zone carries; slice by slice. */
static int list_flows(struct prover *p, struct err *err)
{
        const struct topology *t = p->tb->topology;

        p->flows = calloc(t->n_zones * t->n_slices * 2, sizeof(*p->flows));
        if (!p->flows)
                return err_set_nomem(err);
        for (size_t slice = 0; slice < t->n_slices; slice++)
                for (size_t zone = 0; zone < t->n_zones; zone++)
                        for (unsigned back = 0; back < 2; back++) {
                                if (zone == t->uplink_to || !(t->zones[zone].slices >> slice & 1))
                                        continue;
                                p->flows[p->n_flows++] = (struct path_flow){
                                        .from = back ? t->uplink_to : zone,
                                        .to = back ? zone : t->uplink_to,
                                        .slice = slice,
                                        .must_arrive = true,
                                        .has_ttl = true,
                                        .has_tags = true,
                                };
                        }
        return 0;
}

/* The flow that a payload belongs to; NULL where it is not of this proof. */
static struct path_flow *flow_of(struct prover *p, struct span payload)
{
        struct proof_packet packet;

        if (payload.len < sizeof(packet))
                return NULL;
        memcpy(&packet, payload.data, sizeof(packet));
        if (memcmp(packet.nonce, p->nonce, NONCE_LEN) != 0 || packet.flow >= p->n_flows)
                return NULL;
        return &p->flows[packet.flow];
}

static void note_arrival(struct prover *p, size_t node, struct msghdr *msg, struct span payload)
{
        struct path_flow *flow = flow_of(p, payload);
        int ttl = 0;

        if (!flow)
                return;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
                if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
                    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT))
                        memcpy(&ttl, CMSG_DATA(c), sizeof(ttl));
        flow->ttl_min = flow->arrived_packets == 0 ? (uint8_t)ttl : MIN(flow->ttl_min, (uint8_t)ttl);
        flow->ttl_max = MAX(flow->ttl_max, (uint8_t)ttl);
        flow->arrived_packets++;
        p->n_arrived++;
}

/* UDP payload of an IPv4 or IPv6 packet without options or extension headers; empty for everything else. */
static struct span udp_payload(uint16_t ether_type, struct span packet)
{
        size_t ip_len = ether_type == ETH_P_IP ? 20 : 40;
        struct span rest;

        if (ether_type != ETH_P_IP && ether_type != ETH_P_IPV6)
                return span_of(NULL, 0);
        if (!span_sub(packet, 0, ip_len + 8, &rest) || rest.data[ether_type == ETH_P_IP ? 9 : 6] != IPPROTO_UDP)
                return span_of(NULL, 0);
        return span_of(packet.data + ip_len + 8, packet.len - ip_len - 8);
}

/* The VLAN of a frame that a packet socket got: beside it, where the kernel keeps tags, or in it. 0: none. */
static uint16_t vlan_of(struct msghdr *msg, const struct vlan_frame *frame)
{
        for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
                if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
                        struct tpacket_auxdata aux;

                        memcpy(&aux, CMSG_DATA(c), sizeof(aux));
                        if (aux.tp_status & TP_STATUS_VLAN_VALID)
                                return aux.tp_vlan_tci & 0x0fff;
                }
        return frame->n_tags > 0 ? frame->outer.id : 0;
}

/* A tap sees the VLAN devices above a link, too: what counts is what is on the wire. */
static bool is_on_link(const struct prover *p, size_t node, const struct msghdr *msg)
{
        const struct sockaddr_ll *from = msg->msg_name;

        for (size_t i = 0; i < p->tb->layout->n_links; i++)
                for (unsigned end = 0; end < 2; end++) {
                        const struct layout_end *at = &p->tb->layout->links[i].ends[end];

                        if (at->node == node && at->ifindex == from->sll_ifindex)
                                return true;
                }
        return false;
}

static void note_frame(struct prover *p, size_t node, struct msghdr *msg, struct span bytes)
{
        struct vlan_frame frame;
        struct path_flow *flow;

        if (!is_on_link(p, node, msg) || vlan_parse(bytes, &frame) < 0)
                return;
        flow = flow_of(p, udp_payload(frame.ether_type, frame.payload));
        if (!flow)
                return;
        p->n_seen++;
        if (vlan_of(msg, &frame) == p->tb->topology->slices[flow->slice].vlan)
                flow->tagged_packets++;
        else
                flow->untagged_packets++;
}

/* Take what has come in at @fd, of @node. */
static void drain(struct prover *p, int fd, size_t node,
                  void (*note)(struct prover *, size_t, struct msghdr *, struct span))
{
        struct sockaddr_storage from;
        uint8_t buf[256], control[256];

        for (;;) {
                struct iovec iov = {.iov_base = buf, .iov_len = sizeof(buf)};
                struct msghdr msg = {
                        .msg_name = &from,
                        .msg_namelen = sizeof(from),
                        .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control,
                        .msg_controllen = sizeof(control),
                };
                ssize_t n = recvmsg(fd, &msg, 0);

                if (n < 0)
                        return;
                note(p, node, &msg, span_of(buf, (size_t)n));
        }
}

/* Until all that was sent has arrived and been seen at @receiver, or time is up. */
static void await(struct prover *p, const struct proof_socket *receiver, int64_t end_ns)
{
        struct pollfd fds[LAYOUT_NODES_MAX + 1];
        int64_t left_ns;

        for (;;) {
                drain(p, receiver->fd, 0, note_arrival);
                for (size_t i = 0; i < p->n_taps; i++)
                        drain(p, p->taps[i].fd, p->taps[i].node, note_frame);
                left_ns = end_ns - clock_now_ns(CLOCK_MONOTONIC);
                if ((p->n_arrived >= p->n_sent && p->n_seen >= p->n_to_see) || left_ns <= 0)
                        return;
                fds[0] = (struct pollfd){.fd = receiver->fd, .events = POLLIN};
                for (size_t i = 0; i < p->n_taps; i++)
                        fds[i + 1] = (struct pollfd){.fd = p->taps[i].fd, .events = POLLIN};
                poll(fds, p->n_taps + 1, (int)(left_ns / NSEC_PER_MSEC) + 1);
        }
}

/* One packet, which has to be there before the next is sent: so no queue is too short for the proof. What cannot be
 * sent counts as sent, too: then it is missing on the links. */
static void send_one(struct prover *p, size_t index, unsigned family)
{
        struct path_flow *flow = &p->flows[index];
        const struct proof_socket *from = socket_at(p, flow->from, flow->slice, family);
        const struct proof_socket *to = socket_at(p, flow->to, flow->slice, family);
        struct proof_packet packet = {.flow = (uint32_t)index};
        struct layout_step steps[LAYOUT_PATH_MAX];
        size_t n_steps = layout_path(p->tb->layout, flow->from, flow->to, steps);

        memcpy(packet.nonce, p->nonce, NONCE_LEN);
        (void)!sendto(from->fd, &packet, sizeof(packet), 0, (const struct sockaddr *)&to->address, to->address_len);
        flow->sent_packets++;
        p->n_sent++;
        for (size_t i = 0; i < n_steps; i++)
                p->n_to_see += n_tapped_ends(p, steps[i].link);
        await(p, to, clock_now_ns(CLOCK_MONOTONIC) + (p->is_missing ? 0 : PATIENCE_NS));
        p->is_missing |= p->n_arrived < p->n_sent || p->n_seen < p->n_to_see;
}

static void keep(struct scrape *into, struct scrape *from)
{
        scrape_done(into);
        *into = *from;
        *from = (struct scrape){0};
}

/* One slice's flows, from @first on, judged by themselves: what another slice's class or port counts then shows. */
static int prove_slice(struct prover *p, size_t first, size_t n, struct testbed_proof *ret, struct err *err)
{
        _cleanup_scrape_ struct scrape before = {0}, after = {0};
        int r;

        r = testbed_observe(p->tb, &before, err);
        if (r < 0)
                return r;
        for (unsigned i = 0; i < BURST; i++)
                for (size_t flow = first; flow < first + n; flow++)
                        for (unsigned family = 0; family < N_FAMILIES; family++)
                                send_one(p, flow, family);
        r = testbed_observe(p->tb, &after, err);
        if (r < 0)
                return r;
        r = path_judge(p->tb->layout, p->tb->mechanism.tagger != TESTBED_TAGGER_NONE, &before, &after, &p->flows[first],
                       n, &ret->path, err);
        if (r < 0)
                return r;
        if (first == 0)
                keep(&ret->before, &before);
        keep(&ret->after, &after);
        return 0;
}

static int prove_slices(struct prover *p, struct testbed_proof *ret, struct err *err)
{
        size_t n;

        for (size_t first = 0; first < p->n_flows && ret->path.holds; first += n) {
                int r;

                for (n = 1; first + n < p->n_flows && p->flows[first + n].slice == p->flows[first].slice;)
                        n++;
                r = prove_slice(p, first, n, ret, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Packets that never leave a stack pass nothing: two nodes in one namespace prove nothing whatever they count. */
static int check_apart(struct testbed *tb, struct path_proof *proof, struct err *err)
{
        uint64_t inodes[LAYOUT_NODES_MAX];

        for (size_t i = 0; i < tb->n_nodes; i++) {
                int r = netns_inode(&tb->nodes[i].ns, &inodes[i]);

                if (r < 0)
                        return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot examine the namespace of %s",
                                             tb->layout->nodes[i].name);
                for (size_t j = 0; j < i; j++)
                        if (inodes[i] == inodes[j]) {
                                proof->holds = false;
                                snprintf(proof->reason, sizeof(proof->reason), "%s and %s are one network namespace",
                                         tb->layout->nodes[j].name, tb->layout->nodes[i].name);
                                return 0;
                        }
        }
        proof->holds = true;
        return 0;
}

/* What can be seen without sending: links that are down, a scheduler that is gone. */
static int check_standing(struct prover *p, struct testbed_proof *ret, struct err *err)
{
        int r;

        r = testbed_observe(p->tb, &ret->before, err);
        if (r >= 0)
                r = path_judge(p->tb->layout, false, &ret->before, &ret->before, NULL, 0, &ret->path, err);
        return r;
}

static int prove(struct prover *p, struct testbed_proof *ret, struct err *err)
{
        int r;

        r = check_apart(p->tb, &ret->path, err);
        if (r >= 0 && ret->path.holds)
                r = check_standing(p, ret, err);
        if (r < 0 || !ret->path.holds)
                return r;
        r = list_flows(p, err);
        if (r >= 0)
                r = open_sockets(p, err);
        if (r >= 0)
                r = open_taps(p, err);
        if (r >= 0)
                r = prove_slices(p, ret, err);
        if (r < 0)
                return r;
        ret->n_flows = p->n_flows;
        ret->flows = TAKE_PTR(p->flows);
        return 0;
}

int testbed_prove(struct testbed *tb, struct testbed_proof *ret, struct err *err)
{
        struct prover p = {.tb = tb};
        struct testbed_proof proof = {0};
        int r;

        if (getrandom(p.nonce, sizeof(p.nonce), 0) != sizeof(p.nonce))
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "no random numbers");
        r = prove(&p, &proof, err);
        prover_done(&p);
        if (r < 0) {
                testbed_proof_done(&proof);
                return r;
        }
        *ret = proof;
        return 0;
}

void testbed_proof_done(struct testbed_proof *proof)
{
        scrape_done(&proof->before);
        scrape_done(&proof->after);
        free(proof->flows);
        *proof = (struct testbed_proof){0};
}
