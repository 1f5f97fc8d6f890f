/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

#define BAR_WIDTH 24

/* "1:02:03" or "2:03"; rounded up, so that it does not say 0:00 while something is left */
static const char *format_left(int64_t ns, char buf[static 32])
{
        int64_t s = ns > 0 ? (ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC : 0;

        if (s >= 3600)
                snprintf(buf, 32, "%" PRId64 ":%02" PRId64 ":%02" PRId64, s / 3600, s / 60 % 60, s % 60);
        else
                snprintf(buf, 32, "%" PRId64 ":%02" PRId64, s / 60, s % 60);
        return buf;
}

static unsigned terminal_columns(void)
{
        struct winsize size;

        return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void progress_clear(struct progress *p)
{
        if (p->is_drawn)
                fputs("\r\033[K", stderr);
        p->is_drawn = false;
}

static void draw(struct progress *p, uint32_t done_ppm)
{
        char bar[BAR_WIDTH + 1], left[32], line[256];
        uint64_t all = (uint64_t)p->total * 1000000;
        uint64_t done = ((uint64_t)(p->number - 1) * 1000000 + done_ppm) * BAR_WIDTH / (all ? all : 1);
        int64_t remaining = p->left_ns - (clock_now_ns(CLOCK_MONOTONIC) - p->began_ns);
        unsigned columns = terminal_columns();

        for (unsigned i = 0; i < BAR_WIDTH; i++)
                bar[i] = i < done ? '#' : '.';
        bar[BAR_WIDTH] = '\0';
        snprintf(line, sizeof(line), "[%s] %zu/%zu %s, %s left", bar, p->number, p->total, p->trial->name,
                 format_left(remaining, left));
        fprintf(stderr, "\r%.*s\033[K", (int)columns - 1, line);
        p->is_drawn = true;
}

static void on_planned(void *userdata, const struct plan *plan, const char *archive, size_t done)
{
        size_t cells = plan->manifest->n_cells - plan->n_skipped;
        char left[32];

        fprintf(stderr, "%s: %s\n", plan->manifest->id, plan->manifest->title);
        fprintf(stderr, "%zu trials of %zu cell%s, about %s; the archive is %s\n", plan->n_trials, cells,
                text_plural(cells), format_left(plan->expected_duration_ns, left), archive);
        if (done > 0)
                fprintf(stderr, "%zu of them %s done before\n", done, done == 1 ? "was" : "were");
}

static void on_began(void *userdata, const struct plan_trial *trial, size_t number, size_t total, int64_t left_ns)
{
        struct progress *p = userdata;

        p->trial = trial;
        p->number = number;
        p->total = total;
        p->left_ns = left_ns;
        p->began_ns = clock_now_ns(CLOCK_MONOTONIC);
        if (p->is_terminal)
                draw(p, 0);
}

static void on_progress(void *userdata, uint32_t done_ppm)
{
        struct progress *p = userdata;

        if (p->is_terminal)
                draw(p, done_ppm);
}

static void on_ended(void *userdata, const struct plan_trial *trial, const struct trial_outcome *outcome)
{
        struct progress *p = userdata;
        char left[32];

        progress_clear(p);
        if (!outcome->is_valid)
                fprintf(stderr, "%zu/%zu %s: INVALID: %s\n", p->number, p->total, trial->name, outcome->reason);
        else if (!p->is_terminal)
                fprintf(stderr, "%zu/%zu %s, %s left\n", p->number, p->total, trial->name,
                        format_left(p->left_ns - (clock_now_ns(CLOCK_MONOTONIC) - p->began_ns), left));
}

void progress_init(struct progress *p)
{
        const char *term = getenv("TERM");

        *p = (struct progress){.watcher = {.userdata = p,
                                           .planned = on_planned,
                                           .began = on_began,
                                           .progress = on_progress,
                                           .ended = on_ended},
                               .is_terminal = isatty(STDERR_FILENO) && term && !streq(term, "dumb")};
}
