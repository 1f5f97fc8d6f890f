/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/json.h"
#include "sandbox/rules.h"
#include "sys/capability.h"
#include "sys/nft.h"

/* Namespace 0 is the command's, with the inner rules; namespace 1 the host's, with the outer ones. */
struct wall {
        struct pair pair;
        struct nft *nft[2];
        struct policy *policy;
        struct policy_range *ranges;
        struct rules rules;
};

static const char open_policy[] = "private-addresses: allow\nallow:\n"
                                  "  - {address: 198.18.0.2, port: [1000, 2000-2999], transport: any}\n"
                                  "  - {address: \"2001:2::2\", port: 1000, transport: udp}\n"
                                  "  - {host: pinned.example, port: [3000, 4000-4999], transport: any}\n";

/* A side without rules, to see what the other does alone, is left out by @sides (bit 0 inner, bit 1 outer). */
static void wall_up(struct wall *w, const char *policy, unsigned sides)
{
        struct err err = {0};
        size_t n;

        *w = (struct wall){0};
        pair_up(&w->pair, 1);
        assert_ok(policy_parse(span_of_text(policy), "test", &w->policy, &err));
        assert_int_equal(policy_ranges(w->policy, &w->ranges, &n), 0);
        w->rules = (struct rules){.ranges = w->ranges,
                                  .n_ranges = n,
                                  .has_names = true,
                                  .total = w->policy->total,
                                  .link = "b",
                                  .own_v4 = "198.18.0.1",
                                  .own_v6 = "2001:2::1"};
        for (unsigned side = 0; side < 2; side++) {
                _cleanup_text_ struct text text = {0};

                assert_ok(nft_open(&w->pair.ns[side], &w->nft[side], &err));
                if (!(sides & (1 << side)))
                        continue;
                if (side == 0)
                        rules_inner(&w->rules, &text);
                else
                        rules_outer(&w->rules, &text);
                assert_false(text.failed);
                assert_ok(nft_run(w->nft[side], text.data, &err));
        }
        if (sides & 1)
                assert_ok(nft_run(w->nft[0], "add element inet assay ways6 { 2001:2::2 }", &err));
}

static void wall_down(struct wall *w)
{
        for (size_t i = 0; i < 2; i++)
                nft_free(w->nft[i]);
        policy_free(w->policy);
        free(w->ranges);
        pair_down(&w->pair);
}

static void pin(struct wall *w, unsigned side, const struct ip_prefix *address, unsigned seconds)
{
        struct pin pin = {.name = "pinned.example",
                          .address = *address,
                          .expires_ns = clock_now_ns(CLOCK_MONOTONIC) + seconds * NSEC_PER_SEC};
        struct err err = {0};

        pin.address.length_bits = address->family == AF_INET ? 32 : 128;
        assert_ok(rules_admit(w->nft[side], side == 0 ? "inet assay" : "netdev b", w->policy, false, &pin, 1, &err));
}

/* Sends one datagram from @from to @to and says whether it arrived. A marker, by a port that is always open, orders. */
static bool arrives(struct wall *w, unsigned from, const struct ip_prefix *to, uint16_t port)
{
        const struct ip_prefix *mine = to->family == AF_INET ? w->pair.v4 : w->pair.v6;
        int listener = udp_socket(&w->pair.ns[1 - from], to, port),
            sender = udp_socket(&w->pair.ns[from], &mine[from], 1);
        struct sockaddr_storage where;
        socklen_t len = ip_prefix_sockaddr(to, port, &where);
        char buf[8];
        bool arrived;

        (void)!sendto(sender, "x", 1, 0, (struct sockaddr *)&where, len);
        arrived = recv(listener, buf, sizeof(buf), MSG_DONTWAIT) == 1;
        close(sender);
        close(listener);
        return arrived;
}

/* Return: 0, or the errno of a connection from inside. */
static int connects(struct wall *w, const struct ip_prefix *to, uint16_t port)
{
        struct sockaddr_storage where;
        socklen_t len = ip_prefix_sockaddr(to, port, &where);
        struct err err = {0};
        int listener = netns_socket(&w->pair.ns[1], to->family, SOCK_STREAM, 0, &err);
        int fd = netns_socket(&w->pair.ns[0], to->family, SOCK_STREAM, 0, &err), r, yes = 1;

        assert_true(listener >= 0 && fd >= 0);
        assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
        assert_int_equal(bind(listener, (struct sockaddr *)&where, len), 0);
        assert_int_equal(listen(listener, 1), 0);
        r = connect(fd, (struct sockaddr *)&where, len) < 0 ? errno : 0;
        close(fd);
        close(listener);
        return r;
}

static uint64_t counted(struct wall *w, unsigned side, const char *command)
{
        _cleanup_json_ json_t *items = NULL;
        struct err err = {0};
        json_t *item;
        size_t i;

        assert_ok(nft_list(w->nft[side], command, &items, &err));
        json_array_foreach(items, i, item)
        {
                json_t *counter = json_object_get(item, "counter");

                if (counter)
                        return (uint64_t)json_integer_value(json_object_get(counter, "packets"));
        }
        fail_msg("%s gives no counter", command);
        return 0;
}

static void ranges_are_open_and_nothing_else(void **state)
{
        struct ip_prefix other;
        struct wall w;

        wall_up(&w, open_policy, 3);
        for (unsigned i = 0; i < 2; i++) /* as the first and as the second of a flow */
                assert_true(arrives(&w, 0, &w.pair.v4[1], 1000));
        assert_true(arrives(&w, 0, &w.pair.v4[1], 2000));
        assert_true(arrives(&w, 0, &w.pair.v4[1], 2999));
        assert_true(arrives(&w, 0, &w.pair.v6[1], 1000));
        assert_int_equal(connects(&w, &w.pair.v4[1], 1000), 0);
        assert_int_equal(connects(&w, &w.pair.v4[1], 2500), 0);

        assert_false(arrives(&w, 0, &w.pair.v4[1], 999));
        assert_false(arrives(&w, 0, &w.pair.v4[1], 3000));
        assert_false(arrives(&w, 0, &w.pair.v6[1], 2000));
        assert_int_equal(connects(&w, &w.pair.v4[1], 1001), ECONNREFUSED);
        assert_int_equal(connects(&w, &w.pair.v6[1], 1000), ECONNREFUSED);
        assert_int_equal(ip_prefix_parse("198.18.0.3", &other), 0);
        assert_int_equal(connects(&w, &w.pair.v4[1], 853), ECONNREFUSED);
        assert_true(counted(&w, 0, "list counter inet assay refused") >= 5);
        assert_int_equal(counted(&w, 1, "list counter netdev b stopped"), 0);
        wall_down(&w);
}

static void nothing_comes_in_by_itself(void **state)
{
        struct sockaddr_storage where;
        struct err err = {0};
        socklen_t len;
        struct wall w;
        int fd;

        wall_up(&w, open_policy, 3);
        assert_false(arrives(&w, 1, &w.pair.v4[0], 1000));
        assert_false(arrives(&w, 1, &w.pair.v6[0], 1000));
        len = ip_prefix_sockaddr(&w.pair.v4[0], 1000, &where);
        fd = netns_socket(&w.pair.ns[1], AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0, &err);
        assert_int_equal(connect(fd, (struct sockaddr *)&where, len), -1);
        assert_true(counted(&w, 1, "list counter netdev b strangers") >= 3);
        assert_int_equal(counted(&w, 1, "list counter netdev b stopped"), 0);
        close(fd);
        wall_down(&w);
        wall_up(&w, open_policy, 0);
        assert_true(arrives(&w, 1, &w.pair.v4[0], 1000));
        wall_down(&w);
}

static void pins_open_until_their_time(void **state)
{
        struct wall w;

        wall_up(&w, open_policy, 3);
        assert_false(arrives(&w, 0, &w.pair.v4[1], 3000));
        for (unsigned side = 0; side < 2; side++)
                pin(&w, side, &w.pair.v4[1], 1);
        assert_true(arrives(&w, 0, &w.pair.v4[1], 3000));
        assert_true(arrives(&w, 0, &w.pair.v4[1], 4000));
        assert_true(arrives(&w, 0, &w.pair.v4[1], 4999));
        assert_false(arrives(&w, 0, &w.pair.v4[1], 5000));
        assert_false(arrives(&w, 0, &w.pair.v6[1], 3000));
        assert_int_equal(connects(&w, &w.pair.v4[1], 3000), 0);
        for (int64_t end = clock_now_ns(CLOCK_MONOTONIC) + LONG_NS;
             arrives(&w, 0, &w.pair.v4[1], 3000) || arrives(&w, 0, &w.pair.v4[1], 4000);)
                assert_true(clock_now_ns(CLOCK_MONOTONIC) < end);
        for (unsigned side = 0; side < 2; side++)
                pin(&w, side, &w.pair.v4[1], 1);
        for (unsigned side = 0; side < 2; side++)
                pin(&w, side, &w.pair.v4[1], 3600); /* the later time counts */
        clock_sleep_until_ns(CLOCK_MONOTONIC, clock_now_ns(CLOCK_MONOTONIC) + 1500 * NSEC_PER_MSEC, NULL);
        assert_true(arrives(&w, 0, &w.pair.v4[1], 3000));
        assert_true(arrives(&w, 0, &w.pair.v4[1], 4000));
        wall_down(&w);
}

static void the_outer_side_stops_what_the_inner_one_lets_through(void **state)
{
        struct wall w;

        wall_up(&w, open_policy, 2);
        assert_true(arrives(&w, 0, &w.pair.v4[1], 1000));
        assert_false(arrives(&w, 0, &w.pair.v4[1], 999));
        assert_false(arrives(&w, 0, &w.pair.v6[1], 2000));
        assert_false(arrives(&w, 1, &w.pair.v4[0], 1000));
        assert_true(counted(&w, 1, "list counter netdev b stopped") >= 2);
        wall_down(&w);
}

static void limits_hold(void **state)
{
        unsigned n = 0;
        struct wall w;

        wall_up(&w,
                "allow: [{address: 198.18.0.2, port: 1000, transport: any}]\n"
                "limits: {total: {bytes: 290B}}\n",
                3);
        for (unsigned i = 0; i < 20; i++)
                n += arrives(&w, 0, &w.pair.v4[1], 1000);
        assert_int_equal(n, 10); /* of 29 bytes each */
        wall_down(&w);
}

/* A byte a second, and far more than all of it. */
static void rates_hold(void **state)
{
        static const char *const rates[] = {"8bit", "1gbit"};

        for (unsigned i = 0; i < 2; i++) {
                _cleanup_text_ struct text policy = {0};
                unsigned n = 0;
                struct wall w;

                text_addf(&policy,
                          "allow: [{address: 198.18.0.2, port: 1000, transport: any}]\nlimits: {total: {rate: %s}}\n",
                          rates[i]);
                wall_up(&w, policy.data, 3);
                for (unsigned k = 0; k < 20; k++)
                        n += arrives(&w, 0, &w.pair.v4[1], 1000);
                if (i == 0)
                        assert_true(n < 10);
                else
                        assert_int_equal(n, 20);
                wall_down(&w);
        }
}

/* As on a host where protocols have no names (Debian's package netbase is not there). An ordinary user may not hide it.
 */
static void hide_protocol_names(void)
{
        if (access("/etc/protocols", F_OK) < 0 || unshare(CLONE_NEWNS) < 0)
                return;
        assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
        assert_int_equal(mount("/dev/null", "/etc/protocols", NULL, MS_BIND, NULL), 0);
        assert_null(getprotobyname("tcp"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ranges_are_open_and_nothing_else),
                cmocka_unit_test(nothing_comes_in_by_itself),
                cmocka_unit_test(pins_open_until_their_time),
                cmocka_unit_test(the_outer_side_stops_what_the_inner_one_lets_through),
                cmocka_unit_test(limits_hold),
                cmocka_unit_test(rates_hold),
        };
        struct capability nft;
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        assert_int_equal(capability_detect("nft", &nft), 0);
        if (!nft.is_present)
                return test_skip("nft", nft.detail);
        hide_protocol_names();
        return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
