/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "evidence/series.h"
#include "stats/quantile.h"
#include "tests/unit/evidence/synthetic.h"

#define SLOTS  100
#define WARMUP 20

/* A trial of SLOTS slots, of which WARMUP are warm-up; slot i is answered in 1000 * i ns. */
struct fixture {
        struct scratch scratch;
        struct synthetic_row rows[SLOTS];
        struct trial trial;
        struct series_set set;
};

static int setup(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));

        if (!f)
                return -1;
        f->scratch = scratch_make();
        f->trial = (struct trial){.name = "t", .slots = SLOTS, .warmup_slots = WARMUP};
        for (int64_t i = 0; i < SLOTS; i++)
                f->rows[i] = synthetic_answer(i, 1000 * i);
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        scratch_remove(&f->scratch);
        series_set_done(&f->set);
        free(f);
        return 0;
}

static void read_rows(struct fixture *f)
{
        struct err err = {0};

        synthetic_samples(f->scratch.fd, f->rows, SLOTS);
        if (series_read(f->scratch.fd, &f->trial, &f->set, &err) < 0)
                fail_msg("%s", err.text);
}

static bool has_series(const struct fixture *f, const char *name)
{
        for (size_t i = 0; i < f->set.n; i++)
                if (streq(f->set.series[i].name, name))
                        return true;
        return false;
}

static const struct series *find(const struct fixture *f, const char *name)
{
        size_t i = 0;

        assert_true(has_series(f, name));
        while (!streq(f->set.series[i].name, name))
                i++;
        return &f->set.series[i];
}

static void test_series_of_a_probe(void **state)
{
        struct fixture *f = *state;

        read_rows(f);
        assert_int_equal(f->set.n, 4);
        assert_int_equal(find(f, "rtt")->values[0], 20000); /* warm-up is gone */
        assert_int_equal(find(f, "rtt")->values[79], 99000);
        assert_int_equal(find(f, "rtt_user")->values[0], 35000);
        assert_int_equal(find(f, "response")->values[0], 35050);
        assert_int_equal(find(f, "lateness")->values[0], 50);
        assert_false(has_series(f, "krtt"));
        assert_int_equal(f->set.sent, 80);
        assert_int_equal(f->set.received, 80);
        assert_int_equal(f->set.missed, 0);
}

static void test_lost_and_missed(void **state)
{
        struct fixture *f = *state;
        uint64_t value;

        f->rows[0] = synthetic_lost(0); /* in the warm-up */
        f->rows[1] = synthetic_missed(1);
        f->rows[30] = synthetic_lost(30);
        f->rows[40] = synthetic_lost(40);
        for (int64_t i = 50; i < 59; i++) /* the sender was stalled */
                f->rows[i] = synthetic_missed(i);
        read_rows(f);
        assert_int_equal(f->set.missed, 9);
        assert_int_equal(f->set.sent, 71);
        assert_int_equal(f->set.lost, 2);
        assert_int_equal(f->set.received, 69);
        assert_int_equal(find(f, "rtt")->n, 69);
        assert_int_equal(find(f, "rtt")->lost, 2);
        assert_int_equal(find(f, "response")->lost, 2);
        assert_int_equal(find(f, "lateness")->n, 71); /* a lost packet was sent on time all the same */
        assert_int_equal(find(f, "lateness")->lost, 0);
        assert_int_equal(series_quantile(find(f, "rtt"), 950000, &value), 0);
        assert_int_equal(value, 98000);                                       /* rank 68 of 71, not of 69 */
        assert_int_equal(series_quantile(find(f, "rtt"), 500000, &value), 0); /* rank 36 */
        assert_int_equal(value, 66000);
}

static void test_rows_that_are_not_there_are_missed(void **state)
{
        struct fixture *f = *state;
        struct err err = {0};

        synthetic_samples(f->scratch.fd, f->rows, 90); /* the trial ended before its schedule */
        assert_int_equal(series_read(f->scratch.fd, &f->trial, &f->set, &err), 0);
        assert_int_equal(f->set.missed, 10);
        assert_int_equal(f->set.sent, 70);
}

static void test_quantile_in_the_lost_is_infinite(void **state)
{
        struct fixture *f = *state;
        uint64_t value;

        for (int64_t i = 90; i < SLOTS; i++)
                f->rows[i] = synthetic_lost(i);
        read_rows(f);
        assert_int_equal(series_quantile(find(f, "rtt"), 950000, &value), 0);
        assert_true(value == QUANTILE_LOST);
}

static void test_too_few_are_not_published(void **state)
{
        struct fixture *f = *state;
        uint64_t value = 7;

        read_rows(f);
        assert_int_equal(series_quantile(find(f, "rtt"), 950000, &value), 0); /* 80 of 59 needed */
        assert_int_equal(series_quantile(find(f, "rtt"), 990000, &value), 1); /* 299 needed */
        f->trial.warmup_slots = SLOTS - 58;
        assert_int_equal(series_read(f->scratch.fd, &f->trial, &f->set, NULL), 0);
        assert_int_equal(series_quantile(find(f, "rtt"), 950000, &value), 1);
}

/* A packet without a kernel stamp is neither lost nor a value; one of 80 is more than 0.1%. */
static void test_unstamped(void **state)
{
        struct fixture *f = *state;
        uint64_t value;

        f->rows[30].values[KRTT] = SAMPLE_MISSING;
        read_rows(f);
        assert_int_equal(f->set.lost, 0);
        assert_int_equal(find(f, "rtt")->unstamped, 1);
        assert_int_equal(find(f, "rtt")->n, 79);
        assert_int_equal(find(f, "rtt_user")->n, 80);
        assert_int_equal(series_quantile(find(f, "rtt"), 500000, &value), 1);
        assert_int_equal(series_quantile(find(f, "rtt_user"), 500000, &value), 0);
}

static void test_a_small_share_unstamped(void **state)
{
        uint64_t values[1000] = {0}, value;
        struct series series = {.values = values, .n = 999, .unstamped = 1};

        assert_int_equal(series_quantile(&series, 500000, &value), 0);
        series.unstamped = 2; /* of 1001 */
        assert_int_equal(series_quantile(&series, 500000, &value), 1);
}

static void test_negative_is_counted_and_no_value(void **state)
{
        struct fixture *f = *state;

        f->rows[30].values[KRTT] = 4999;      /* less than the residence of 5000 */
        f->rows[31].values[RESIDENCE] = -1;   /* would make the round trip longer */
        f->rows[32].values[URTT] = -1;        /* rtt_user and response */
        f->rows[33].values[LATENESS] = -1;    /* response and lateness */
        f->rows[34].values[URTT] = INT64_MAX; /* the sum does not fit: response */
        f->rows[34].values[KRTT] = INT64_MAX;
        f->rows[34].values[RESIDENCE] = INT64_MAX;
        read_rows(f);
        assert_int_equal(f->set.negative, 7);
        assert_int_equal(find(f, "rtt")->n, 78);
        assert_int_equal(find(f, "rtt_user")->n, 79);
        assert_int_equal(find(f, "response")->n, 77);
        assert_int_equal(find(f, "lateness")->n, 79);
}

/* Fresh or read again: the memory of another trial must not show through. */
static void test_read_again(void **state)
{
        struct fixture *f = *state;
        uint64_t sum = 0;

        f->rows[30] = synthetic_lost(30);
        f->rows[31].values[KRTT] = SAMPLE_MISSING;
        read_rows(f);
        assert_int_equal(series_read(f->scratch.fd, &f->trial, &f->set, NULL), 0);
        assert_int_equal(f->set.sent, 80);
        assert_int_equal(f->set.lost, 1);
        assert_int_equal(find(f, "rtt")->n, 78);
        assert_int_equal(find(f, "rtt")->unstamped, 1);
        for (size_t i = 0; i < 78; i++)
                sum += find(f, "rtt")->values[i];
        assert_int_equal(sum, 1000 * (20 + 99) * 80 / 2 - 61000);
}

static void test_slots_out_of_order(void **state)
{
        struct fixture *f = *state;
        struct err err = {0};

        f->rows[50].values[SLOT] = 49;
        synthetic_samples(f->scratch.fd, f->rows, SLOTS);
        assert_int_equal(series_read(f->scratch.fd, &f->trial, &f->set, &err), -EINVAL);
        assert_int_equal(err.kind, ERR_DATA);
        assert_non_null(strstr(err.text, "slot 49 after slot 49"));
}

static void test_slots_past_the_schedule(void **state)
{
        struct fixture *f = *state;
        struct err err = {0};

        f->rows[99].values[SLOT] = SLOTS;
        synthetic_samples(f->scratch.fd, f->rows, SLOTS);
        assert_int_equal(series_read(f->scratch.fd, &f->trial, &f->set, &err), -EINVAL);
        assert_non_null(strstr(err.text, "slot 100 after slot 98 of 100 slots"));
        f->rows[99].values[SLOT] = INT64_MIN + 1;
        assert_int_equal(unlinkat(f->scratch.fd, "samples.csv.zst", 0), 0);
        synthetic_samples(f->scratch.fd, f->rows, SLOTS);
        assert_int_equal(series_read(f->scratch.fd, &f->trial, &f->set, NULL), -EINVAL);
}

/* Sequence numbers wrap at 2^32; slots do not. */
static void test_slots_past_32_bits(void **state)
{
        struct fixture *f = *state;
        const int64_t first = (INT64_C(1) << 32) - 50;

        for (int64_t i = 0; i < SLOTS; i++)
                f->rows[i].values[SLOT] = first + i;
        f->trial.slots = first + SLOTS;
        f->trial.warmup_slots = first;
        read_rows(f);
        assert_int_equal(f->set.sent, SLOTS);
        assert_int_equal(f->set.missed, 0);
        assert_int_equal(f->set.lost, 0);
}

static void test_no_samples(void **state)
{
        struct fixture *f = *state;
        struct err err = {0};

        assert_int_equal(series_read(f->scratch.fd, &f->trial, &f->set, &err), 0);
        assert_int_equal(err.kind, ERR_NONE);
        assert_int_equal(f->set.n, 0);
        assert_int_equal(f->set.missed, 80);
        scratch_write(&f->scratch, "samples.csv.zst", "not compressed");
        assert_true(series_read(f->scratch.fd, &f->trial, &f->set, &err) < 0);
        assert_int_equal(err.kind, ERR_DATA);
}

/* A workload without schedule: each row is a request, and one without an answer is lost. */
static void test_other_workloads(void **state)
{
        static const struct column columns[] = {{"request_ns", "ns", SAMPLE_CLOCK_MONOTONIC, ""},
                                                {"bytes", "bytes", SAMPLE_CLOCK_NONE, ""}};
        const int64_t values[] = {900, 1, 300, 1, SAMPLE_MISSING, 0, 600, 1};
        struct fixture *f = *state;

        synthetic_write(f->scratch.fd, columns, 2, values, 4);
        f->trial.slots = 0;
        f->trial.warmup_slots = 0;
        assert_int_equal(series_read(f->scratch.fd, &f->trial, &f->set, NULL), 0);
        assert_int_equal(f->set.n, 1);
        assert_int_equal(f->set.sent, 4);
        assert_int_equal(f->set.lost, 1);
        assert_int_equal(f->set.missed, 0);
        assert_int_equal(find(f, "request")->n, 3);
        assert_int_equal(find(f, "request")->values[0], 300);
        assert_int_equal(find(f, "request")->lost, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_series_of_a_probe),
                TEST(test_lost_and_missed),
                TEST(test_rows_that_are_not_there_are_missed),
                TEST(test_quantile_in_the_lost_is_infinite),
                TEST(test_too_few_are_not_published),
                TEST(test_unstamped),
                TEST(test_a_small_share_unstamped),
                TEST(test_negative_is_counted_and_no_value),
                TEST(test_read_again),
                TEST(test_slots_out_of_order),
                TEST(test_slots_past_the_schedule),
                TEST(test_slots_past_32_bits),
                TEST(test_no_samples),
                TEST(test_other_workloads),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
