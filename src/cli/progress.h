/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "campaign/runner.h"

/* How a running campaign shows itself on stderr: on a terminal one line that is redrawn, elsewhere a line a trial. */
struct progress {
        struct campaign_watcher watcher;
        bool is_terminal;
        bool is_drawn;
        const struct plan_trial *trial;
        size_t number, total;
        int64_t left_ns, began_ns;
};

/* progress_init - begin; hand &@progress->watcher to the campaign */
void progress_init(struct progress *progress);

/* progress_clear - take the drawn line away, before something else is printed */
void progress_clear(struct progress *progress);
