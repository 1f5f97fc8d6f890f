/* SPDX-License-Identifier: Apache-2.0 */
#include "load/window.h"

#include "tests/test.h"

static void note_all(struct window *w, const uint64_t *sequences, size_t n)
{
        for (size_t i = 0; i < n; i++)
                window_note(w, sequences[i]);
}

static void test_in_order(void **state)
{
        struct window w = {0};

        for (uint64_t i = 0; i < 3 * WINDOW_SIZE; i++)
                assert_int_equal(window_note(&w, i), WINDOW_NEW);
        assert_int_equal(w.arrived, 3 * WINDOW_SIZE);
        assert_int_equal(window_lost(&w), 0);
        assert_int_equal(w.duplicates + w.reordered + w.stale, 0);
}

/* Replies 1, 3, 2, 4 of measurement tools' bug reports, from 0. */
static void test_reordered(void **state)
{
        const uint64_t sequences[] = {0, 2, 1, 3};
        struct window w = {0};

        note_all(&w, sequences, 4);
        assert_int_equal(w.arrived, 4);
        assert_int_equal(w.reordered, 1);
        assert_int_equal(window_lost(&w), 0);
}

static void test_duplicates_are_no_gain(void **state)
{
        const uint64_t sequences[] = {0, 1, 1, 1, 2, 0, 4};
        struct window w = {0};

        note_all(&w, sequences, 7);
        assert_int_equal(w.arrived, 4);
        assert_int_equal(w.duplicates, 3);
        assert_int_equal(w.reordered, 0);
        assert_int_equal(window_lost(&w), 1);
}

static void test_first_is_not_zero(void **state)
{
        struct window w = {0};

        assert_int_equal(window_note(&w, 5), WINDOW_NEW);
        assert_int_equal(window_lost(&w), 5);
        assert_int_equal(window_note(&w, 0), WINDOW_REORDERED);
        assert_int_equal(window_lost(&w), 4);
}

/* The places of a window are used again: what was seen one round before is not seen now. */
static void test_places_are_cleared(void **state)
{
        struct window w = {0};

        for (uint64_t i = 0; i < 100; i++)
                window_note(&w, i);
        window_note(&w, WINDOW_SIZE + 50); /* a gap from 100 on */
        assert_int_equal(window_lost(&w), WINDOW_SIZE - 50);
        assert_int_equal(window_note(&w, WINDOW_SIZE + 20), WINDOW_REORDERED); /* the place of 20 */
        assert_int_equal(window_note(&w, 99), WINDOW_DUPLICATE);               /* still within */
        assert_int_equal(window_note(&w, 100), WINDOW_REORDERED);
        assert_int_equal(window_note(&w, 50), WINDOW_STALE); /* just outside */
        assert_int_equal(w.stale, 1);

        window_note(&w, 10 * WINDOW_SIZE); /* further than a whole window */
        assert_int_equal(window_note(&w, 10 * WINDOW_SIZE - 1), WINDOW_REORDERED);
        assert_int_equal(window_note(&w, 9 * WINDOW_SIZE + 1), WINDOW_REORDERED);
        assert_int_equal(window_note(&w, 9 * WINDOW_SIZE), WINDOW_STALE);
}

static void test_largest_numbers(void **state)
{
        struct window w = {0};

        assert_int_equal(window_note(&w, UINT64_MAX), WINDOW_STALE);
        assert_int_equal(window_note(&w, UINT64_MAX - 1), WINDOW_NEW);
        assert_int_equal(window_note(&w, UINT64_MAX - 1), WINDOW_DUPLICATE);
        assert_int_equal(window_note(&w, UINT64_MAX - WINDOW_SIZE), WINDOW_REORDERED);
        assert_int_equal(window_note(&w, 0), WINDOW_STALE);
        assert_int_equal(window_lost(&w), UINT64_MAX - 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_in_order),
                cmocka_unit_test(test_reordered),
                cmocka_unit_test(test_duplicates_are_no_gain),
                cmocka_unit_test(test_first_is_not_zero),
                cmocka_unit_test(test_places_are_cleared),
                cmocka_unit_test(test_largest_numbers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
