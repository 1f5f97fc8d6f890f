/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/netns/load-support.h"

/* A sink in the kernel. */

/* Counted and dropped where they enter; and gone with the process: the next one finds the way free. */
static void test_bpf(void **state)
{
        struct pair *p = *state;
        union address where = address_of(&p->v4[1], LOAD_PORT);
        _cleanup_receiver_ struct receiver *by_socket = make_receiver(&where, RECEIVER_SOCKET);
        _cleanup_generator_ struct generator *last =
                make_generator(&where, (struct generator_config){.rate_bps = BITS_OF(PACKETS_RATE)});

        for (int i = 0; i < 2; i++) {
                _cleanup_receiver_ struct receiver *in_kernel = make_receiver(&where, RECEIVER_BPF);
                _cleanup_generator_ struct generator *generator =
                        make_generator(&where, (struct generator_config){.rate_bps = BITS_OF(PACKETS_RATE)});
                struct generator_counts sent;

                run_load(p, generator, in_kernel);
                generator_counts(generator, &sent);
                check_load(&sent, PACKETS_RATE * DURATION_NS / NSEC_PER_SEC);
                assert_int_equal(receiver_counts(in_kernel)->packets, sent.sent_packets);
                assert_int_equal(receiver_counts(in_kernel)->bytes, sent.sent_bytes);
        }
        run_load(p, last, by_socket);
        assert_true(receiver_counts(by_socket)->packets > 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_bpf, pair_set_up, pair_tear_down),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        if (can_load_bpf(&err) < 0)
                return test_skip("bpf", err.text);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
