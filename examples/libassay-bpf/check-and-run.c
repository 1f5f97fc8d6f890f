/* SPDX-License-Identifier: Apache-2.0 */

/* Checks the programs of a BPF object, says of a refused one what is wrong, and runs an accepted one once on a context
 * of zeros.
 *
 *         cc check-and-run.c -o check-and-run $(pkg-config --cflags --libs assay-bpf)
 *         ./check-and-run controller.o
 */

#include <assay-bpf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_SIZE_MAX (1 << 20)

static void print_trace(void *userdata, const char *text, size_t len)
{
        (void)userdata;
        printf("  trace: %.*s\n", (int)len, text);
}

static void print_refusal(const char *name, const struct assay_bpf_report *report)
{
        printf("%s: refused: %s: %s\n", name, assay_bpf_report_kind(report), assay_bpf_report_text(report));
        if (assay_bpf_report_line(report) > 0)
                printf("  %s:%u: %s\n", assay_bpf_report_file(report), assay_bpf_report_line(report),
                       assay_bpf_report_source(report));
        if (assay_bpf_report_suggestion(report)[0])
                printf("  try: %s\n", assay_bpf_report_suggestion(report));
}

static int run(struct assay_bpf_machine *machine, const struct assay_bpf_program *program)
{
        size_t size = assay_bpf_program_context_size(program);
        void *context = calloc(1, size + 1);
        uint64_t result;
        int r = context ? assay_bpf_machine_run(machine, context, size, &result) : -1;

        if (r == 0)
                printf("  returned %" PRIu64 "\n", result);
        free(context);
        return r;
}

/* Return: 0; 1 refused; a negative errno. */
static int check_and_run(const struct assay_bpf_program *program, char *why)
{
        struct assay_bpf_options options = ASSAY_BPF_OPTIONS_INIT;
        struct assay_bpf_hooks hooks = ASSAY_BPF_HOOKS_INIT;
        struct assay_bpf_machine *machine = NULL;
        struct assay_bpf_report *report = NULL;
        const char *name = assay_bpf_program_name(program);
        int r;

        options.profile = ASSAY_BPF_FULL;
        hooks.trace = print_trace;
        r = assay_bpf_machine_new(program, &options, &hooks, &machine, &report, why, ASSAY_BPF_WHY_SIZE);
        if (r == 1)
                print_refusal(name, report);
        if (r == 0) {
                printf("%s: accepted, at most %" PRIu64 " ns and %zu bytes of stack\n", name,
                       assay_bpf_report_cost_ns(report), assay_bpf_report_stack_bytes(report));
                r = run(machine, program);
        }
        assay_bpf_machine_free(machine);
        assay_bpf_report_free(report);
        return r;
}

int main(int argc, char **argv)
{
        static char bytes[FILE_SIZE_MAX];
        char why[ASSAY_BPF_WHY_SIZE] = "";
        struct assay_bpf_object *object = NULL;
        FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
        size_t size;
        int worst = 0, r;

        if (!file) {
                fprintf(stderr, "usage: check-and-run OBJECT\n");
                return 2;
        }
        size = fread(bytes, 1, sizeof(bytes), file);
        fclose(file);
        r = assay_bpf_object_load(bytes, size, argv[1], &object, why, sizeof(why));
        for (size_t i = 0; r >= 0 && i < assay_bpf_object_programs(object); i++) {
                r = check_and_run(assay_bpf_object_program(object, i), why);
                worst = r > worst ? r : worst;
        }
        assay_bpf_object_free(object);
        if (r < 0) {
                fprintf(stderr, "%s\n", why);
                return 2;
        }
        return worst;
}
