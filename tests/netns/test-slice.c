/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_vlan.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>

#include "base/span.h"
#include "sys/bpf.h"
#include "sys/qdisc.h"
#include "sys/sink.h"

#define PORT     9
#define PAYLOAD  32
#define FRAME4   (14 + 4 + 20 + 8 + PAYLOAD) /* Ethernet, tag, IPv4, UDP */
#define FRAME6   (14 + 4 + 40 + 8 + PAYLOAD)
#define RED      10
#define BLUE     20
#define MAX_TAGS 4

/* The pair with a filter at either end; red is 198.18.0.0/30 and 2001:2::/112, blue 198.18.1.0/30. */
struct sliced {
        struct pair pair;
        struct ip_prefix blue[2];
        struct slice_filter *filter[2];
};

static void make_config(struct slice_config *config, const char *red4)
{
        struct ip_prefix red, red6, blue;

        assert_int_equal(ip_prefix_parse(red4, &red), 0);
        assert_int_equal(ip_prefix_parse("2001:2::/112", &red6), 0);
        assert_int_equal(ip_prefix_parse("198.18.1.0/30", &blue), 0);
        *config = (struct slice_config){.n_leaving = 2, .n_entering = 2};
        slice_rule_init(&config->leaving[0], RED);
        slice_rule_init(&config->leaving[1], BLUE);
        assert_int_equal(slice_rule_allow(&config->leaving[0], &red, &red), 0);
        assert_int_equal(slice_rule_allow(&config->leaving[0], &red6, &red6), 0);
        assert_int_equal(slice_rule_allow(&config->leaving[1], &blue, &blue), 0);
        memcpy(config->entering, config->leaving, sizeof(config->entering));
}

static void sliced_up(struct sliced *s)
{
        const char *blue[] = {"198.18.1.1/30", "198.18.1.2/30"};
        struct slice_config config;
        struct err err = {0};

        *s = (struct sliced){0};
        pair_up(&s->pair, 1);
        make_config(&config, "198.18.0.0/30");
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(ip_prefix_parse(blue[i], &s->blue[i]), 0);
                assert_ok(netns_sysctl_write(&s->pair.ns[i], "ipv6/conf/all/router_solicitations", "0", &err));
                assert_ok(ip_address_add(s->pair.nl[i], s->pair.index[i], &s->blue[i], &err));
                assert_ok(slice_filter_attach(s->pair.nl[i], s->pair.index[i], &config, &s->filter[i], &err));
        }
        for (size_t i = 0; i < 2; i++)
                assert_ok(ip_neighbour_add(s->pair.nl[i], s->pair.index[i], &s->blue[1 - i], pair_mac[1 - i], &err));
}

static void sliced_down(struct sliced *s)
{
        for (size_t i = 0; i < 2; i++)
                slice_filter_free(s->filter[i]);
        pair_down(&s->pair);
}

static void send_some(struct sliced *s, const struct ip_prefix *from, const struct ip_prefix *to, size_t n)
{
        int sender = udp_socket(&s->pair.ns[0], from, PORT), receiver = udp_socket(&s->pair.ns[1], to, PORT);
        char buf[2 * PAYLOAD];

        for (size_t i = 0; i < n; i++) {
                udp_send(sender, to, PORT, PAYLOAD);
                assert_int_equal(recv(receiver, buf, sizeof(buf), 0), PAYLOAD);
        }
        close(sender);
        close(receiver);
}

#define assert_count(c, n, n_bytes)                                                                                    \
        do {                                                                                                           \
                assert_int_equal((c).packets, n);                                                                      \
                assert_int_equal((c).bytes, n_bytes);                                                                  \
        } while (0)

static void slices_are_told_apart_and_counted(void **state)
{
        struct slice_counters c[2];
        struct err err = {0};
        struct sliced s;

        sliced_up(&s);
        send_some(&s, &s.pair.v4[0], &s.pair.v4[1], 5);
        send_some(&s, &s.pair.v6[0], &s.pair.v6[1], 3);
        send_some(&s, &s.blue[0], &s.blue[1], 7);
        for (size_t i = 0; i < 2; i++)
                assert_ok(slice_filter_read(s.filter[i], &c[i], &err));
        assert_count(c[0].leaving[0], 8, 5 * FRAME4 + 3 * FRAME6);
        assert_count(c[0].leaving[1], 7, 7 * FRAME4);
        assert_count(c[1].entering[0], 8, 5 * FRAME4 + 3 * FRAME6);
        assert_count(c[1].entering[1], 7, 7 * FRAME4);
        assert_count(c[0].entering[0], 0, 0);
        assert_count(c[1].leaving[0], 0, 0);
        for (size_t i = 0; i < SLICE_DROP_MAX; i++)
                assert_count(c[1].drops[i], 0, 0);
        sliced_down(&s);
}

/* A packet socket at @end, of frames as they are on the link. */
static int open_tap(struct sliced *s, size_t end)
{
        struct sockaddr_ll where = {.sll_family = AF_PACKET,
                                    .sll_protocol = htons(ETH_P_ALL),
                                    .sll_ifindex = s->pair.index[end]};
        struct timeval patience = {.tv_sec = 20};
        struct err err = {0};
        int yes = 1, fd = netns_socket(&s->pair.ns[end], AF_PACKET, SOCK_RAW, 0, &err);

        assert_true(fd >= 0);
        assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &yes, sizeof(yes)), 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&where, sizeof(where)), 0);
        return fd;
}

/* The next UDP frame's tag: what the kernel kept beside the frame. */
static void read_tag(int tap, struct tpacket_auxdata *ret)
{
        uint8_t frame[256], control[CMSG_SPACE(sizeof(*ret))];

        for (;;) {
                struct iovec iov = {.iov_base = frame, .iov_len = sizeof(frame)};
                struct msghdr msg = {.msg_iov = &iov,
                                     .msg_iovlen = 1,
                                     .msg_control = control,
                                     .msg_controllen = sizeof(control)};
                struct cmsghdr *cmsg;
                ssize_t n = recvmsg(tap, &msg, 0);

                assert_true(n > 0);
                if (n < FRAME4 - 4 || get_be16(frame + 12) != ETH_P_IP || frame[23] != IPPROTO_UDP)
                        continue;
                cmsg = CMSG_FIRSTHDR(&msg);
                if (!cmsg || cmsg->cmsg_type != PACKET_AUXDATA)
                        fail_msg("the kernel says nothing about tags");
                memcpy(ret, CMSG_DATA(cmsg), sizeof(*ret));
                return;
        }
}

static void frames_on_the_link_are_8021q(void **state)
{
        struct tpacket_auxdata aux;
        struct sliced s;
        int tap;

        sliced_up(&s);
        tap = open_tap(&s, 1);
        send_some(&s, &s.pair.v4[0], &s.pair.v4[1], 1);
        read_tag(tap, &aux);
        assert_true(aux.tp_status & TP_STATUS_VLAN_VALID);
        assert_true(aux.tp_status & TP_STATUS_VLAN_TPID_VALID);
        assert_int_equal(aux.tp_vlan_tpid, ETH_P_8021Q);
        assert_int_equal(aux.tp_vlan_tci & 0xfff, RED);
        send_some(&s, &s.blue[0], &s.blue[1], 1);
        read_tag(tap, &aux);
        assert_int_equal(aux.tp_vlan_tci & 0xfff, BLUE);
        close(tap);
        sliced_down(&s);
}

struct frame {
        uint8_t data[256];
        size_t len;
};

/* A UDP datagram of IPv4 from the first to the second end, behind @n_tags tags. */
static struct frame make_frame(struct sliced *s, const uint16_t *tags, const uint16_t *tpids, size_t n_tags,
                               const struct ip_prefix *from, const struct ip_prefix *to)
{
        struct frame f = {0};
        struct iphdr ip = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP, .tot_len = htons(28 + PAYLOAD)};
        struct udphdr udp = {.source = htons(PORT), .dest = htons(PORT), .len = htons(8 + PAYLOAD)};
        uint32_t sum = 0;
        uint8_t *p = f.data;

        memcpy(p, pair_mac[1], LINK_ALEN);
        memcpy(p + LINK_ALEN, pair_mac[0], LINK_ALEN);
        p += 2 * (size_t)LINK_ALEN;
        for (size_t i = 0; i < n_tags; i++, p += 4) {
                put_be16(p, tpids ? tpids[i] : ETH_P_8021Q);
                put_be16(p + 2, tags[i]);
        }
        put_be16(p, ETH_P_IP);
        p += 2;
        memcpy(&ip.saddr, from->bytes, 4);
        memcpy(&ip.daddr, to->bytes, 4);
        for (size_t i = 0; i < sizeof(ip); i += 2)
                sum += get_be16((uint8_t *)&ip + i);
        ip.check = htons((uint16_t) ~(sum + (sum >> 16)));
        memcpy(p, &ip, sizeof(ip));
        memcpy(p + sizeof(ip), &udp, sizeof(udp));
        f.len = (size_t)(p - f.data) + 28 + PAYLOAD;
        return f;
}

/* Puts frames on the link past the sending end's filter, as somebody who owns that namespace could. */
static int open_injector(struct sliced *s)
{
        struct sockaddr_ll where = {.sll_family = AF_PACKET, .sll_ifindex = s->pair.index[0]};
        struct err err = {0};
        int yes = 1, fd = netns_socket(&s->pair.ns[0], AF_PACKET, SOCK_RAW, 0, &err);

        assert_true(fd >= 0);
        assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &yes, sizeof(yes)), 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&where, sizeof(where)), 0);
        return fd;
}

static void inject(int fd, struct frame f)
{
        assert_int_equal(send(fd, f.data, f.len, 0), f.len);
}

/* Each kind of frame that must not get in is dropped and counted under its reason, and only there. */
static void hostile_frames_are_dropped_by_reason(void **state)
{
        static const uint16_t red[] = {RED}, other[] = {30}, priority_only[] = {0xe000}, two[] = {RED, BLUE};
        static const uint16_t service[] = {ETH_P_8021AD}, stranger[] = {RED};
        struct slice_count expected[SLICE_DROP_MAX] = {0};
        struct slice_counters c;
        struct ip_prefix spoofed;
        struct err err = {0};
        struct sliced s;
        struct frame cut;
        char buf[64];
        int fd, receiver;

        sliced_up(&s);
        fd = open_injector(&s);
        receiver = udp_socket(&s.pair.ns[1], &s.pair.v4[1], PORT);
        assert_int_equal(ip_prefix_parse("198.18.7.7", &spoofed), 0);

        inject(fd, make_frame(&s, NULL, NULL, 0, &s.pair.v4[0], &s.pair.v4[1]));
        inject(fd, make_frame(&s, priority_only, NULL, 1, &s.pair.v4[0], &s.pair.v4[1]));
        expected[SLICE_DROP_UNTAGGED] = (struct slice_count){2, FRAME4 - 4 + FRAME4};
        inject(fd, make_frame(&s, other, NULL, 1, &s.pair.v4[0], &s.pair.v4[1]));
        inject(fd, make_frame(&s, red, service, 1, &s.pair.v4[0], &s.pair.v4[1]));
        expected[SLICE_DROP_UNKNOWN_TAG] = (struct slice_count){2, 2 * FRAME4};
        inject(fd, make_frame(&s, two, NULL, 2, &s.pair.v4[0], &s.pair.v4[1]));
        expected[SLICE_DROP_DOUBLE_TAG] = (struct slice_count){1, FRAME4 + 4};
        inject(fd, make_frame(&s, stranger, NULL, 1, &s.blue[0], &s.blue[1]));
        inject(fd, make_frame(&s, red, NULL, 1, &s.pair.v4[0], &s.blue[1]));
        inject(fd, make_frame(&s, red, NULL, 1, &spoofed, &s.pair.v4[1]));
        expected[SLICE_DROP_ADDRESS] = (struct slice_count){3, 3 * FRAME4};
        cut = make_frame(&s, red, NULL, 1, &s.pair.v4[0], &s.pair.v4[1]);
        cut.len = 14 + 4 + 19; /* one byte less than an IPv4 header */
        inject(fd, cut);
        put_be16(cut.data + 16, ETH_P_ARP);
        cut.len = 14 + 4 + 28;
        inject(fd, cut);
        expected[SLICE_DROP_NOT_IP] = (struct slice_count){2, 14 + 4 + 19 + 14 + 4 + 28};

        /* One that is in order arrives, and shows that what came before it has been decided. */
        inject(fd, make_frame(&s, red, NULL, 1, &s.pair.v4[0], &s.pair.v4[1]));
        assert_int_equal(recv(receiver, buf, sizeof(buf), 0), PAYLOAD);
        assert_int_equal(recv(receiver, buf, sizeof(buf), MSG_DONTWAIT), -1);

        assert_ok(slice_filter_read(s.filter[1], &c, &err));
        for (size_t i = 0; i < SLICE_DROP_MAX; i++) {
                print_message("%s: %llu\n", slice_drop_name((enum slice_drop)i),
                              (unsigned long long)c.drops[i].packets);
                assert_count(c.drops[i], expected[i].packets, expected[i].bytes);
        }
        assert_count(c.entering[0], 1, FRAME4);
        assert_count(c.entering[1], 0, 0);
        close(fd);
        close(receiver);
        sliced_down(&s);
}

static void nothing_leaves_without_a_slice(void **state)
{
        struct ip_prefix stray[2];
        struct slice_counters c;
        struct link_info before, after;
        struct err err = {0};
        struct sliced s;
        int fd;

        sliced_up(&s);
        assert_int_equal(ip_prefix_parse("198.18.9.1/30", &stray[0]), 0);
        assert_int_equal(ip_prefix_parse("198.18.9.2/30", &stray[1]), 0);
        assert_ok(ip_address_add(s.pair.nl[0], s.pair.index[0], &stray[0], &err));
        assert_ok(ip_neighbour_add(s.pair.nl[0], s.pair.index[0], &stray[1], pair_mac[1], &err));
        assert_ok(link_read(s.pair.nl[0], s.pair.index[0], &before, &err));
        fd = udp_socket(&s.pair.ns[0], &stray[0], PORT);
        for (size_t i = 0; i < 4; i++)
                udp_send(fd, &stray[1], PORT, PAYLOAD);
        assert_ok(link_read(s.pair.nl[0], s.pair.index[0], &after, &err));
        assert_ok(slice_filter_read(s.filter[0], &c, &err));
        assert_true(c.drops[SLICE_DROP_NO_SLICE].packets >= 4); /* the kernel's own multicast may be among them */
        assert_int_equal(after.counters.tx_packets, before.counters.tx_packets);
        close(fd);
        sliced_down(&s);
}

/* A mark chooses the slice over the addresses; and the other end then refuses what is not of that slice. */
static void mark_chooses_and_the_far_end_checks(void **state)
{
        struct slice_counters c[2];
        struct err err = {0};
        struct sliced s;
        int fd, mark = BLUE, unknown = 77;

        sliced_up(&s);
        fd = udp_socket(&s.pair.ns[0], &s.pair.v4[0], PORT);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)), 0);
        udp_send(fd, &s.pair.v4[1], PORT, PAYLOAD);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_MARK, &unknown, sizeof(unknown)), 0);
        assert_ok(slice_filter_read(s.filter[0], &c[0], &err));
        udp_send(fd, &s.pair.v4[1], PORT, PAYLOAD);
        send_some(&s, &s.blue[0], &s.blue[1], 1); /* behind it */
        for (size_t i = 0; i < 2; i++)
                assert_ok(slice_filter_read(s.filter[i], &c[i], &err));
        assert_count(c[0].leaving[0], 0, 0);
        assert_count(c[0].leaving[1], 2, 2 * FRAME4);
        assert_true(c[0].drops[SLICE_DROP_NO_SLICE].packets >= 1);
        assert_count(c[1].drops[SLICE_DROP_ADDRESS], 1, FRAME4);
        assert_count(c[1].entering[1], 1, FRAME4);
        close(fd);
        sliced_down(&s);
}

static void sink_counts_exactly_and_drops(void **state)
{
        static const uint16_t vlans[] = {BLUE, RED};
        struct sink_counters c;
        struct sink *sink, *second;
        struct err err = {0};
        struct sliced s;
        char buf[64];
        int red, red6, blue, other, receiver;

        sliced_up(&s);
        assert_ok(sink_attach(s.pair.nl[1], s.pair.index[1], SINK_ORDER_FIRST, PORT, vlans, 2, &sink, &err));
        assert_int_equal(sink_attach(s.pair.nl[1], s.pair.index[1], SINK_ORDER_FIRST, PORT, vlans, 2, &second, &err),
                         -EEXIST);
        receiver = udp_socket(&s.pair.ns[1], &s.pair.v4[1], PORT);
        red = udp_socket(&s.pair.ns[0], &s.pair.v4[0], PORT);
        red6 = udp_socket(&s.pair.ns[0], &s.pair.v6[0], PORT);
        blue = udp_socket(&s.pair.ns[0], &s.blue[0], PORT);
        for (size_t i = 0; i < 1000; i++)
                udp_send(red, &s.pair.v4[1], PORT, PAYLOAD);
        for (size_t i = 0; i < 10; i++)
                udp_send(red6, &s.pair.v6[1], PORT, PAYLOAD);
        for (size_t i = 0; i < 20; i++)
                udp_send(blue, &s.blue[1], PORT, 1400);
        other = udp_socket(&s.pair.ns[1], &s.blue[1], PORT + 1);
        for (size_t i = 0; i < 5; i++) {
                udp_send(blue, &s.blue[1], PORT + 1, PAYLOAD); /* another port is none of its business */
                assert_int_equal(recv(other, buf, sizeof(buf), 0), PAYLOAD);
        }
        assert_ok(sink_read(sink, &c, &err));
        assert_count(c.vlans[1], 1010, 1000 * FRAME4 + 10 * FRAME6);
        assert_count(c.vlans[0], 20, 20 * (14 + 4 + 28 + 1400));
        assert_count(c.vlans[2], 0, 0);
        assert_count(c.other, 0, 0);
        assert_int_equal(recv(receiver, buf, sizeof(buf), MSG_DONTWAIT), -1);
        sink_free(sink);
        close(red);
        close(red6);
        close(blue);
        close(other);
        close(receiver);
        sliced_down(&s);
}

/* Without tags it counts too; bundles of segments count as the frames that they stand for. */
static void sink_without_tags(void **state)
{
        const uint16_t segment = 100;
        static uint8_t payload[1050];
        struct sockaddr_storage to;
        struct sink_counters c;
        struct sink *sink;
        struct err err = {0};
        struct pair p;
        socklen_t len;
        int fd, other;

        pair_up(&p, 1);
        assert_ok(link_set_gso_max_segs(p.nl[0], p.index[0], 64, &err));
        assert_ok(sink_attach(p.nl[1], p.index[1], SINK_ORDER_FIRST, PORT, NULL, 0, &sink, &err));
        fd = udp_socket(&p.ns[0], &p.v4[0], PORT);
        other = udp_socket(&p.ns[1], &p.v4[1], PORT + 1);
        udp_send(fd, &p.v4[1], PORT, PAYLOAD);
        len = ip_prefix_sockaddr(&p.v4[1], PORT, &to);
        assert_int_equal(setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &(int){segment}, sizeof(int)), 0);
        assert_int_equal(sendto(fd, payload, sizeof(payload), 0, (struct sockaddr *)&to, len), sizeof(payload));
        udp_send(fd, &p.v4[1], PORT + 1, 50); /* behind it */
        assert_int_equal(recv(other, payload, sizeof(payload), 0), 50);
        assert_ok(sink_read(sink, &c, &err));
        assert_count(c.other, 1 + 11, FRAME4 - 4 + 11 * 42 + sizeof(payload));
        sink_free(sink);
        close(fd);
        close(other);
        pair_down(&p);
}

static void configurations_are_checked(void **state)
{
        struct slice_config config = {.n_leaving = SLICE_MAX + 1};
        struct slice_filter *filter = NULL;
        struct err err = {0};
        struct pair p;

        pair_up(&p, 1);
        assert_int_equal(slice_filter_attach(p.nl[0], p.index[0], &config, &filter, &err), -EINVAL);
        config = (struct slice_config){.n_leaving = 1};
        assert_int_equal(slice_filter_attach(p.nl[0], p.index[0], &config, &filter, &err), -EINVAL); /* VLAN 0 */
        config.leaving[0].vlan = 4095;
        assert_int_equal(slice_filter_attach(p.nl[0], p.index[0], &config, &filter, &err), -EINVAL);
        config = (struct slice_config){.n_entering = 2, .entering = {{.vlan = 5}, {.vlan = 5}}};
        assert_int_equal(slice_filter_attach(p.nl[0], p.index[0], &config, &filter, &err), -EINVAL);
        assert_non_null(strstr(err.text, "VLAN 5"));
        assert_null(filter);
        config = (struct slice_config){0};
        assert_int_equal(slice_filter_attach(p.nl[0], 999, &config, &filter, &err), -ENODEV);
        assert_null(filter);
        pair_down(&p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(slices_are_told_apart_and_counted),
                cmocka_unit_test(frames_on_the_link_are_8021q),
                cmocka_unit_test(hostile_frames_are_dropped_by_reason),
                cmocka_unit_test(nothing_leaves_without_a_slice),
                cmocka_unit_test(mark_chooses_and_the_far_end_checks),
                cmocka_unit_test(sink_counts_exactly_and_drops),
                cmocka_unit_test(sink_without_tags),
                cmocka_unit_test(configurations_are_checked),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        if (can_load_bpf(&err) < 0)
                return test_skip("bpf", err.text);
        stay_on_one_cpu();
        return cmocka_run_group_tests_name("slice", tests, NULL, NULL);
}
