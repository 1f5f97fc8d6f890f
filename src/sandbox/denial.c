/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/denial.h"

#include <stdint.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "sandbox/askers.h"
#include "sandbox/bundle.h"

#define PLACES         1024 /* one target pushes out another of the same place, which is then told again */
#define LINES_A_SECOND 100
#define SILENCE_NS     NSEC_PER_SEC

struct denials {
        int64_t second_ns; /* when the second began in which */
        unsigned n_lines;  /* so many lines were written */
        struct {
                uint64_t hash;
                int64_t told_ns;
        } told[PLACES];
};

int denials_new(struct denials **ret, struct err *err)
{
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : err_set_nomem(err);
}

void denials_free(struct denials *denials)
{
        free(denials);
}

/* 0 stands for an empty place. */
static uint64_t hash_of(const char *text)
{
        uint64_t hash = hash_bytes(HASH_START, text, strlen(text));

        return hash ? hash : 1;
}

bool denials_admit(struct denials *denials, const char *target, int64_t now_ns)
{
        uint64_t hash = hash_of(target);
        size_t place = hash % PLACES;

        if (denials->told[place].hash == hash && now_ns - denials->told[place].told_ns < SILENCE_NS)
                return false;
        if (now_ns - denials->second_ns >= NSEC_PER_SEC) {
                denials->second_ns = now_ns;
                denials->n_lines = 0;
        }
        if (denials->n_lines == LINES_A_SECOND)
                return false;
        denials->n_lines++;
        denials->told[place].hash = hash;
        denials->told[place].told_ns = now_ns;
        return true;
}

static void record(struct bundle *bundle, const char *target, const char *rule, bool is_allowed,
                   const struct asker *who)
{
        struct bundle_attempt attempt = {.target = target,
                                         .rule = rule,
                                         .is_allowed = is_allowed,
                                         .pid = who ? who->pid : 0};

        if (who && who->executable[0])
                attempt.executable = who->executable;
        bundle_attempt(bundle, &attempt, 1);
}

void sandbox_watched(struct sandbox *sandbox, const char *target, const struct asker *who)
{
        record(sandbox->bundle, target, NULL, true, who);
}

void sandbox_denied(struct sandbox *sandbox, const char *target, const char *rule, const struct asker *who)
{
        _cleanup_text_ struct text line = {0};
        /* of a terminal that is relayed: a line feed alone would not return to the first column */
        const char *start = sandbox->is_raw ? "\r" : "";

        if (sandbox->is_proving)
                return;
        record(sandbox->bundle, target, rule, false, who);
        if (!denials_admit(sandbox->denials, target, clock_now_ns(CLOCK_MONOTONIC)))
                return;
        text_add_visible(&line, target, strlen(target));
        text_addf(&line, " (rule: %s)", rule);
        if (!line.failed)
                log_info("%sassay: denied %s%s", start, line.data, start);
}
