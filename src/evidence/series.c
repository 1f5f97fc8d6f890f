/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/series.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/samples.h"
#include "base/macro.h"
#include "stats/quantile.h"
#include "stats/sort.h"

#define NO_COLUMN (-ENOENT)

/* Which columns make a series. */
struct source {
        int plus[2], minus;
        bool is_answer; /* there is a value only where there was an answer */
};

struct layout {
        int slot;     /* NO_COLUMN: rows are counted instead */
        int lateness; /* empty: the slot was missed. NO_COLUMN: every row was sent */
        int answer;   /* empty: it was lost */
        struct source sources[SAMPLE_COLUMNS_MAX];
};

/* Rows of a block that count, by their place in it. */
struct rows {
        size_t n_sent, n_answered;
        uint16_t sent[SAMPLES_BLOCK_ROWS], answered[SAMPLES_BLOCK_ROWS];
};

static void add_series(struct series_set *set, struct layout *layout, const char *name, size_t len,
                       struct source source)
{
        struct series *series = &set->series[set->n];

        if (len >= sizeof(series->name))
                return;
        memcpy(series->name, name, len);
        series->name[len] = '\0';
        layout->sources[set->n++] = source;
}

static void add_probe(struct series_set *set, struct layout *l, const struct samples_reader *reader)
{
        int krtt = samples_column(reader, "krtt_ns"), residence = samples_column(reader, "residence_ns");

        if (krtt >= 0 && residence >= 0)
                add_series(set, l, "rtt", 3, (struct source){{krtt, NO_COLUMN}, residence, true});
        add_series(set, l, "rtt_user", 8, (struct source){{l->answer, NO_COLUMN}, NO_COLUMN, true});
        add_series(set, l, "response", 8, (struct source){{l->lateness, l->answer}, NO_COLUMN, true});
        add_series(set, l, "lateness", 8, (struct source){{l->lateness, NO_COLUMN}, NO_COLUMN, false});
}

static void add_columns(struct series_set *set, struct layout *l, const struct samples_reader *reader)
{
        for (size_t c = 0; c < samples_n_columns(reader); c++) {
                const char *name = samples_column_name(reader, c);
                size_t len = strlen(name);

                if (len <= 3 || !streq(name + len - 3, "_ns"))
                        continue;
                if (l->answer < 0 && (int)c != l->lateness)
                        l->answer = (int)c;
                add_series(set, l, name, len - 3,
                           (struct source){{(int)c, NO_COLUMN}, NO_COLUMN, (int)c != l->lateness});
        }
}

static void layout_init(struct layout *l, struct series_set *set, const struct samples_reader *reader)
{
        *l = (struct layout){
                .slot = samples_column(reader, "slot"),
                .lateness = samples_column(reader, "lateness_ns"),
                .answer = samples_column(reader, "urtt_ns"),
        };
        if (l->lateness >= 0 && l->answer >= 0) {
                add_probe(set, l, reader);
        } else {
                l->answer = NO_COLUMN;
                add_columns(set, l, reader);
        }
}

/* Picks the rows of a block that are not warm-up and not missed. @last is the slot of the row before. */
static int pick_rows(const struct layout *l, const struct trial *trial, const int64_t *const *columns, size_t n,
                     int64_t *last, struct rows *rows, struct err *err)
{
        rows->n_sent = rows->n_answered = 0;
        for (size_t i = 0; i < n; i++) {
                int64_t slot = l->slot >= 0 ? columns[l->slot][i] : *last + 1;

                if (slot <= *last || (trial->slots > 0 && slot >= trial->slots))
                        return err_set(err, ERR_DATA, EINVAL,
                                       "samples.csv.zst: slot %" PRId64 " after slot %" PRId64 " of %" PRId64 " slots",
                                       slot, *last, trial->slots);
                *last = slot;
                if (slot < trial->warmup_slots || (l->lateness >= 0 && columns[l->lateness][i] == SAMPLE_MISSING))
                        continue;
                rows->sent[rows->n_sent++] = (uint16_t)i;
                if (l->answer >= 0 && columns[l->answer][i] != SAMPLE_MISSING)
                        rows->answered[rows->n_answered++] = (uint16_t)i;
        }
        return 0;
}

static int reserve(uint64_t **values, size_t *allocated, size_t n)
{
        size_t wanted = MAX(n, *allocated * 2);
        uint64_t *grown;

        if (n <= *allocated)
                return 0;
        grown = reallocarray(*values, wanted, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        *values = grown;
        *allocated = wanted;
        return 0;
}

/* Takes the values of @n rows, for which there is room. Return: how many were negative. */
static int64_t take_values(struct series *series, const struct source *source, const int64_t *const *columns,
                           const uint16_t *rows, size_t n)
{
        const int64_t *a = columns[source->plus[0]];
        const int64_t *b = source->plus[1] >= 0 ? columns[source->plus[1]] : NULL;
        const int64_t *minus = source->minus >= 0 ? columns[source->minus] : NULL;
        int64_t negative = 0;

        for (size_t i = 0; i < n; i++) {
                int64_t value = a[rows[i]], more = b ? b[rows[i]] : 0, less = minus ? minus[rows[i]] : 0;

                if (value == SAMPLE_MISSING || more == SAMPLE_MISSING || less == SAMPLE_MISSING)
                        series->unstamped++;
                else if (value < 0 || more < 0 || less < 0 || less > value ||
                         __builtin_add_overflow(value - less, more, &value))
                        negative++;
                else
                        series->values[series->n++] = (uint64_t)value;
        }
        return negative;
}

static int take_block(struct series_set *set, const struct layout *l, const int64_t *const *columns,
                      const struct rows *rows)
{
        for (size_t s = 0; s < set->n; s++) {
                struct series *series = &set->series[s];
                const struct source *source = &l->sources[s];
                int r = reserve(&series->values, &series->allocated, series->n + rows->n_sent);

                if (r < 0)
                        return r;
                if (source->is_answer) {
                        set->negative += take_values(series, source, columns, rows->answered, rows->n_answered);
                        series->lost += rows->n_sent - rows->n_answered;
                } else {
                        set->negative += take_values(series, source, columns, rows->sent, rows->n_sent);
                }
        }
        set->sent += (int64_t)rows->n_sent;
        set->received += (int64_t)rows->n_answered;
        return 0;
}

static int read_blocks(struct samples_reader *reader, const struct layout *l, const struct trial *trial,
                       struct series_set *set, struct err *err)
{
        const int64_t *const *columns;
        int64_t last = -1;
        struct rows rows;
        int n, r;

        while ((n = samples_read(reader, &columns, err)) > 0) {
                r = pick_rows(l, trial, columns, (size_t)n, &last, &rows, err);
                if (r < 0)
                        return r;
                if (take_block(set, l, columns, &rows) < 0)
                        return err_set_nomem(err);
        }
        return n;
}

static int sort_all(struct series_set *set)
{
        for (size_t s = 0; s < set->n; s++) {
                struct series *series = &set->series[s];

                if (reserve(&set->scratch, &set->scratch_allocated, series->n) < 0)
                        return -ENOMEM;
                sort_u64(series->values, set->scratch, series->n);
        }
        return 0;
}

static void set_reset(struct series_set *set)
{
        for (size_t s = 0; s < ARRAY_SIZE(set->series); s++) {
                set->series[s].n = 0;
                set->series[s].lost = set->series[s].unstamped = 0;
        }
        set->n = 0;
        set->sent = set->received = set->lost = set->missed = set->negative = 0;
}

int series_read(int trial_dirfd, const struct trial *trial, struct series_set *set, struct err *err)
{
        _cleanup_samples_reader_ struct samples_reader *reader = NULL;
        struct layout layout;
        int r;

        set_reset(set);
        r = samples_open(trial_dirfd, "samples.csv.zst", &reader, err);
        if (r == -ENOENT) {
                if (err)
                        *err = (struct err){0};
        } else if (r >= 0) {
                layout_init(&layout, set, reader);
                r = read_blocks(reader, &layout, trial, set, err);
        }
        if (r < 0 && r != -ENOENT) {
                err_prefix(err, "trial %s", trial->name);
                return r;
        }
        set->lost = set->sent - set->received;
        set->missed = MAX(trial->slots - trial->warmup_slots - set->sent, INT64_C(0));
        return sort_all(set) < 0 ? err_set_nomem(err) : 0;
}

void series_set_done(struct series_set *set)
{
        for (size_t s = 0; s < ARRAY_SIZE(set->series); s++)
                free(set->series[s].values);
        free(set->scratch);
        *set = (struct series_set){0};
}

int series_quantile(const struct series *series, uint32_t ppm, uint64_t *ret)
{
        unsigned __int128 answered = series->n + series->unstamped;

        if (!quantile_publishable(series->n + series->lost, ppm) ||
            series->unstamped * (unsigned __int128)1000000 > answered * SERIES_UNSTAMPED_MAX_PPM)
                return 1;
        return quantile_at(series->values, series->n, series->lost, ppm, ret);
}
