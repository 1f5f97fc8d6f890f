/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <poll.h>
#include <unistd.h>

#include "base/json.h"
#include "base/span.h"
#include "sys/capability.h"
#include "sys/nflog.h"
#include "sys/nft.h"

#define GROUP 7
#define PORT  99

static const char rules[] = "table inet test { chain out { type filter hook output priority filter; "
                            "udp dport 99 log group 7 counter reject; }\n}\n";

static void wait_readable(struct nflog *log)
{
        struct pollfd pollfd = {.fd = nflog_fd(log), .events = POLLIN};

        assert_int_equal(poll(&pollfd, 1, LONG_NS / NSEC_PER_MSEC), 1);
}

static void start(struct netns *ns, struct nft **nft, struct nflog **log)
{
        _cleanup_netlink_ struct netlink *nl = NULL;
        struct err err = {0};

        assert_ok(netns_new(ns, &err));
        assert_ok(netlink_open(ns, &nl, &err));
        assert_ok(link_set_up_loopback(nl, &err));
        assert_ok(nft_open(ns, nft, &err));
        assert_ok(nft_run(*nft, rules, &err));
        assert_ok(nflog_open(ns, GROUP, 64, log, &err));
}

/* What a rule refuses, the sender is told of. */
static void send_refused(int fd, const struct ip_prefix *to, size_t len)
{
        static const uint8_t zeros[100];
        struct sockaddr_storage where;
        socklen_t where_len = ip_prefix_sockaddr(to, PORT, &where);

        assert_int_equal(sendto(fd, zeros, len, 0, (struct sockaddr *)&where, where_len), -1);
}

static void a_packet_is_reported_with_its_sender(void **state)
{
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        _cleanup_nflog_ struct nflog *log = NULL;
        _cleanup_nft_ struct nft *nft = NULL;
        struct ip_prefix here, to;
        struct nflog_packet packet;
        struct err err = {0};
        int fd;

        start(&ns, &nft, &log);
        assert_int_equal(nflog_read(log, &packet), 0);
        assert_int_equal(ip_prefix_parse("127.0.0.1", &here), 0);
        assert_int_equal(ip_prefix_parse("127.0.0.2", &to), 0);
        fd = udp_socket(&ns, &here, 1234);
        send_refused(fd, &to, 100);
        wait_readable(log);
        assert_int_equal(nflog_read(log, &packet), 1);
        assert_int_equal(packet.bytes.len, 64);
        assert_int_equal(packet.bytes.data[0], 0x45);           /* version and header length, RFC 791 */
        assert_int_equal(get_be16(packet.bytes.data + 2), 128); /* 20 + 8 + 100 */
        assert_int_equal(get_be32(packet.bytes.data + 16), 0x7f000002);
        assert_int_equal(get_be16(packet.bytes.data + 22), PORT);
        assert_true(packet.has_uid);
        assert_int_equal(packet.uid, getuid());
        assert_int_equal(nflog_read(log, &packet), 0);
        close(fd);
        assert_int_equal(nflog_open(&ns, GROUP, 64, &(struct nflog *){NULL}, &err), -EPERM);
}

static void lost_reports_are_said(void **state)
{
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        _cleanup_nflog_ struct nflog *log = NULL;
        _cleanup_nft_ struct nft *nft = NULL;
        struct ip_prefix here, to;
        struct nflog_packet packet;
        unsigned n = 0, n_lost = 0;
        int fd, r;

        start(&ns, &nft, &log);
        assert_int_equal(ip_prefix_parse("127.0.0.1", &here), 0);
        assert_int_equal(ip_prefix_parse("127.0.0.2", &to), 0);
        fd = udp_socket(&ns, &here, 1234);
        for (unsigned i = 0; i < 20000; i++)
                send_refused(fd, &to, 1);
        while ((r = nflog_read(log, &packet)) != 0) {
                assert_true(r == 1 || r == -ENOBUFS);
                if (r == 1)
                        n++;
                else
                        n_lost++;
        }
        assert_true(n > 100);
        assert_true(n_lost > 0);
        close(fd);
}

static void a_command_that_is_refused_says_why(void **state)
{
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        _cleanup_json_ json_t *items = NULL;
        _cleanup_nft_ struct nft *nft = NULL;
        struct err err = {0};

        assert_ok(netns_new(&ns, &err));
        assert_ok(nft_open(&ns, &nft, &err));
        assert_int_equal(nft_run(nft, "add table inet t; add chain inet u c", &err), -EOPNOTSUPP);
        assert_non_null(strstr(err.text, "nftables refuses: "));
        assert_ok(nft_list(nft, "list tables", &items, &err));
        assert_int_equal(json_array_size(items), 1); /* what describes the format; the table was not made either */
        json_decref(items);
        items = NULL;
        assert_ok(nft_run(nft, "add table inet t", &err));
        assert_ok(nft_list(nft, "list tables", &items, &err));
        assert_int_equal(json_array_size(items), 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_packet_is_reported_with_its_sender),
                cmocka_unit_test(lost_reports_are_said),
                cmocka_unit_test(a_command_that_is_refused_says_why),
        };

        struct capability nft;
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        assert_int_equal(capability_detect("nft", &nft), 0);
        if (!nft.is_present)
                return test_skip("nft", nft.detail);
        return cmocka_run_group_tests_name("nflog", tests, NULL, NULL);
}
