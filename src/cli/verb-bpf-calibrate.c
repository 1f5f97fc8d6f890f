/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/number.h"
#include "bpfvm/calibrate.h"
#include "cli/bpf-cost.h"
#include "cli/verb-bpf.h"

struct calibrate_options {
        const char *output;
        int64_t margin_ppm;
        bool json;
};

static const struct option options[] = {
        {"output", 'o', OPTION_STRING, offsetof(struct calibrate_options, output), "FILE",
         .help = "write the table to a file, for check --costs"},
        {"margin", 0, OPTION_QUANTITY, offsetof(struct calibrate_options, margin_ppm), "RATIO", "1.5", UNIT_RATIO,
         1000000, 100000000, .help = "what is measured, times this, goes into the table"},
        {"json", 0, OPTION_FLAG, offsetof(struct calibrate_options, json), .help = "print the table as JSON"},
        {0},
};

static void print_row(const char *name, uint32_t measured_ps, uint32_t assumed_ps)
{
        char measured[48], assumed[48];

        printf("%-18s %12s %12s\n", name, number_format_scaled(measured_ps, 1000, 2, measured),
               number_format_scaled(assumed_ps, 1000, 2, assumed));
}

static void print_table(const struct calibration *c)
{
        const struct cost_table *assumed = cost_default();
        const struct helper *list;
        char predicted[48], measured[48];
        size_t n;

        printf("%-18s %12s %12s\n", "ns", "measured", "assumed");
        for (enum cost_class k = 0; k < COST_CLASSES; k++)
                print_row(cost_class_name(k), c->table.class_ps[k], assumed->class_ps[k]);
        list = helper_table(&n);
        for (size_t i = 0; i < n; i++)
                print_row(list[i].name, c->table.helper_ps[i], assumed->helper_ps[i]);
        printf("a mixed program: the table says %s, measured %s\n",
               number_format_ns((int64_t)(c->predicted_ps / 1000), predicted),
               number_format_ns((int64_t)(c->measured_ps / 1000), measured));
}

static int run(const void *opts, int argc, char **argv, struct err *err)
{
        const struct calibrate_options *o = opts;
        _cleanup_json_ json_t *json = NULL;
        struct calibration calibration;
        int r;

        r = calibrate_run((uint32_t)o->margin_ppm, &calibration, err);
        if (r < 0)
                return r;
        json = bpf_cost_to_json(&calibration.table);
        if (!json)
                return err_set_nomem(err);
        if (o->output)
                r = json_save(AT_FDCWD, o->output, json, err);
        if (r == 0 && o->json) {
                _cleanup_free_ char *text = json_format(json);

                if (!text)
                        return err_set_nomem(err);
                fputs(text, stdout);
        } else if (r == 0) {
                print_table(&calibration);
        }
        return r;
}

const struct verb verb_bpf_calibrate = {
        .name = "calibrate",
        .summary = "measure what instructions and helpers cost here",
        .description =
                "Measures each class of instructions and each helper in the interpreter on this machine, and prints "
                "them\n"
                "beside the costs that are assumed without a table. Helpers that reach outside keep those. Caches and\n"
                "predictors are warm while it measures; the margin has to cover a cold start.",
        .options = options,
        .options_size = sizeof(struct calibrate_options),
        .run = run,
};
