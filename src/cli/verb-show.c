/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print-archive.h"
#include "cli/verbs.h"

struct show_options {
        bool json;
        const char *series;
};

static const struct option options[] = {
        {"series", 0, OPTION_STRING, offsetof(struct show_options, series), "NAME",
         .help = "durations to show: rtt, rtt_user, response, lateness, or what else the workload has"},
        {"json", 0, OPTION_FLAG, offsetof(struct show_options, json),
         .help = "print summary, verdict and class as JSON"},
        {0},
};

static int run(const void *opts, int argc, char **argv, struct err *err)
{
        const struct show_options *o = opts;

        return print_archive(argv[0], o->series, o->json, err);
}

const struct verb verb_show = {
        .name = "show",
        .arguments = "ARCHIVE",
        .summary = "print the result of an archive",
        .description = "Prints what an archive has frozen: cells, loads, controls, hypotheses, and the class of the\n"
                       "evidence. Nothing is checked; `assay verify` does that.",
        .min_args = 1,
        .max_args = 1,
        .options = options,
        .options_size = sizeof(struct show_options),
        .run = run,
};
