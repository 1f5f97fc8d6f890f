/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sockdiag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/netns/support.h"

/* How often each family's loopback address is the far end of a socket. */
struct seen {
        size_t v4, v6, other;
        int fails_after;
};

static int note(const struct ip_prefix *remote, void *userdata)
{
        struct seen *seen = userdata;
        char text[IP_TEXT_MAX];

        ip_prefix_format(remote, text);
        if (streq(text, "127.0.0.1/32"))
                seen->v4++;
        else if (streq(text, "::1/128"))
                seen->v6++;
        else
                seen->other++;
        return seen->fails_after > 0 && --seen->fails_after == 0 ? -EIO : 0;
}

static int open_diag(void *userdata, struct err *err)
{
        return sockdiag_open(err);
}

static struct seen look(int fd)
{
        struct seen seen = {0};
        struct err err = {0};

        assert_ok(sockdiag_remotes(fd, note, &seen, &err));
        return seen;
}

static socklen_t loopback(int family, struct sockaddr_storage *ret)
{
        struct ip_prefix address;

        assert_int_equal(ip_prefix_parse(family == AF_INET ? "127.0.0.1" : "::1", &address), 0);
        return ip_prefix_sockaddr(&address, 0, ret);
}

/* A socket that waits for others at a loopback address. */
static int listener(const struct netns *ns, int family, int type, struct sockaddr_storage *ret, socklen_t *ret_len)
{
        struct err err = {0};
        int fd = netns_socket(ns, family, type, 0, &err);

        assert_true(fd >= 0);
        *ret_len = loopback(family, ret);
        assert_int_equal(bind(fd, (struct sockaddr *)ret, *ret_len), 0);
        if (type == SOCK_STREAM)
                assert_int_equal(listen(fd, 8), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)ret, ret_len), 0);
        return fd;
}

static int connected(const struct netns *ns, int family, int type, const struct sockaddr_storage *to, socklen_t len)
{
        struct err err = {0};
        int fd = netns_socket(ns, family, type, 0, &err);

        assert_true(fd >= 0);
        assert_int_equal(connect(fd, (const struct sockaddr *)to, len), 0);
        return fd;
}

static void test_remotes(void **state)
{
        static const int families[] = {AF_INET, AF_INET6};
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        _cleanup_netlink_ struct netlink *nl = NULL;
        _cleanup_close_ int diag = -1;
        struct err err = {0};

        assert_ok(netns_new(&ns, &err));
        assert_ok(netlink_open(&ns, &nl, &err));
        assert_ok(link_set_up_loopback(nl, &err));
        diag = netns_run(&ns, open_diag, NULL, &err);
        assert_true(diag >= 0);
        assert_int_equal(look(diag).v4 + look(diag).v6 + look(diag).other, 0);

        for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
                _cleanup_close_ int tcp = -1, udp = -1;
                struct sockaddr_storage to, to_udp;
                socklen_t len, len_udp;
                int ends[3];
                struct seen seen;

                tcp = listener(&ns, families[i], SOCK_STREAM, &to, &len);
                udp = listener(&ns, families[i], SOCK_DGRAM, &to_udp, &len_udp);
                assert_int_equal(look(diag).v4 + look(diag).v6 + look(diag).other, 0);

                /* A connection has two ends here; accepted or not, each has the other as its far end. */
                ends[0] = connected(&ns, families[i], SOCK_STREAM, &to, len);
                seen = look(diag);
                assert_int_equal(families[i] == AF_INET ? seen.v4 : seen.v6, 2);
                ends[1] = connected(&ns, families[i], SOCK_DGRAM, &to_udp, len_udp);
                seen = look(diag);
                assert_int_equal(families[i] == AF_INET ? seen.v4 : seen.v6, 3);
                assert_int_equal(seen.other + (families[i] == AF_INET ? seen.v6 : seen.v4), 0);

                /* No process holds it any more, but the far end has not closed it. */
                ends[2] = accept(tcp, NULL, NULL);
                assert_true(ends[2] >= 0);
                close(ends[0]);
                seen = look(diag);
                assert_int_equal(families[i] == AF_INET ? seen.v4 : seen.v6, 3);
                close(ends[2]);
                close(ends[1]);
                assert_int_equal(look(diag).v4 + look(diag).v6 + look(diag).other, 0);
        }
}

/* An IPv6 socket that speaks IPv4 is at an IPv4 address. */
static void test_mapped(void **state)
{
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        _cleanup_netlink_ struct netlink *nl = NULL;
        _cleanup_close_ int diag = -1, tcp = -1, fd = -1;
        struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
        struct sockaddr_storage to;
        struct err err = {0};
        struct seen seen;
        socklen_t len;

        assert_ok(netns_new(&ns, &err));
        assert_ok(netlink_open(&ns, &nl, &err));
        assert_ok(link_set_up_loopback(nl, &err));
        diag = netns_run(&ns, open_diag, NULL, &err);
        tcp = listener(&ns, AF_INET, SOCK_STREAM, &to, &len);
        mapped.sin6_port = ((struct sockaddr_in *)&to)->sin_port;
        assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr), 1);
        memcpy(&to, &mapped, sizeof(mapped));
        fd = connected(&ns, AF_INET6, SOCK_STREAM, &to, sizeof(mapped));
        seen = look(diag);
        assert_int_equal(seen.v4, 2);
        assert_int_equal(seen.v6 + seen.other, 0);
}

static uint32_t inode_of(int fd)
{
        struct stat st;

        assert_int_equal(fstat(fd, &st), 0);
        return (uint32_t)st.st_ino;
}

/* The socket of a flow, also where it is one of IPv6 that speaks IPv4, and of datagrams that is not connected. */
static void test_inode(void **state)
{
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        _cleanup_netlink_ struct netlink *nl = NULL;
        _cleanup_close_ int diag = -1, tcp = -1, udp = -1, fd = -1;
        struct sockaddr_in6 mapped = {.sin6_family = AF_INET6}, own;
        struct ip_prefix here, elsewhere;
        struct sockaddr_storage to, at;
        struct err err = {0};
        socklen_t len, own_len = sizeof(own);
        uint32_t inode;
        uint16_t port;

        assert_int_equal(ip_prefix_parse("127.0.0.1", &here), 0);
        assert_int_equal(ip_prefix_parse("192.0.2.1", &elsewhere), 0);
        assert_ok(netns_new(&ns, &err));
        assert_ok(netlink_open(&ns, &nl, &err));
        assert_ok(link_set_up_loopback(nl, &err));
        diag = netns_run(&ns, open_diag, NULL, &err);
        udp = listener(&ns, AF_INET, SOCK_DGRAM, &at, &len);
        tcp = listener(&ns, AF_INET, SOCK_STREAM, &to, &len);
        port = ntohs(((struct sockaddr_in *)&to)->sin_port);
        mapped.sin6_port = htons(port);
        assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr), 1);
        memcpy(&to, &mapped, sizeof(mapped));
        fd = connected(&ns, AF_INET6, SOCK_STREAM, &to, sizeof(mapped));
        assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &own_len), 0);

        assert_int_equal(sockdiag_inode(diag, IPPROTO_TCP, &here, ntohs(own.sin6_port), &here, port, &inode), 0);
        assert_int_equal(inode, inode_of(fd));
        assert_int_equal(sockdiag_inode(diag, IPPROTO_UDP, &here, ntohs(((struct sockaddr_in *)&at)->sin_port),
                                        &elsewhere, 7, &inode),
                         0);
        assert_int_equal(inode, inode_of(udp));
        assert_int_equal(sockdiag_inode(diag, IPPROTO_TCP, &here, 1, &elsewhere, 7, &inode), -ENOENT);
}

/* Who stops in the middle of an answer gets a whole one next time. */
static void test_stop(void **state)
{
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        _cleanup_netlink_ struct netlink *nl = NULL;
        struct seen seen = {.fails_after = 1};
        _cleanup_close_ int diag = -1, tcp = -1;
        struct sockaddr_storage to;
        struct err err = {0};
        int ends[300];
        socklen_t len;

        assert_ok(netns_new(&ns, &err));
        assert_ok(netlink_open(&ns, &nl, &err));
        assert_ok(link_set_up_loopback(nl, &err));
        diag = netns_run(&ns, open_diag, NULL, &err);
        tcp = listener(&ns, AF_INET, SOCK_DGRAM, &to, &len);
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
                ends[i] = connected(&ns, AF_INET, SOCK_DGRAM, &to, len);
        assert_int_equal(sockdiag_remotes(diag, note, &seen, &err), -EIO);
        assert_int_equal(seen.v4, 1);
        assert_int_equal(look(diag).v4, ARRAY_SIZE(ends));
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
                close(ends[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_remotes),
                cmocka_unit_test(test_mapped),
                cmocka_unit_test(test_inode),
                cmocka_unit_test(test_stop),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
