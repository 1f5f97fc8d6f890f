/* SPDX-License-Identifier: Apache-2.0 */

/* Somebody else's program: built against an installed libassay-bpf, with its header alone, as C and as C++. Given an
 * object with the program `count` (see test_library.py), it goes through maps, certificates and refusals. Prints what
 * is not as it should be. */

#include <assay-bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void expect(int is_so, const char *what)
{
        if (is_so)
                return;
        printf("not so: %s\n", what);
        failures++;
}

#define EXPECT(condition) expect(condition, #condition)

struct event {
        uint32_t kind, value;
};

static void use_maps(struct assay_bpf_machine *machine)
{
        int totals = assay_bpf_machine_map(machine, "totals"), out = assay_bpf_machine_map(machine, "out");
        uint32_t key = 2, past = 8;
        uint64_t total = 0, start = 100, result = 0;
        struct event event = {2, 5}, record = {0, 0};
        size_t size = 0;

        EXPECT(totals >= 0 && out >= 0);
        EXPECT(assay_bpf_machine_map(machine, "nothing") == -ENOENT);
        EXPECT(assay_bpf_machine_write(machine, (unsigned)totals, &key, sizeof(key), &start, sizeof(start)) == 0);
        EXPECT(assay_bpf_machine_run(machine, &event, sizeof(event), &result) == 0 && result == 105);
        EXPECT(assay_bpf_machine_run(machine, &event, sizeof(event), &result) == 0 && result == 110);
        EXPECT(assay_bpf_machine_read(machine, (unsigned)totals, &key, sizeof(key), &total, sizeof(total)) == 0);
        EXPECT(total == 110);
        EXPECT(assay_bpf_machine_read(machine, (unsigned)totals, &past, sizeof(past), &total, sizeof(total)) ==
               -ENOENT);
        EXPECT(assay_bpf_machine_write(machine, (unsigned)totals, &past, sizeof(past), &total, sizeof(total)) ==
               -E2BIG);
        EXPECT(assay_bpf_machine_read(machine, (unsigned)totals, &key, sizeof(key), &total, 4) == -EINVAL);
        EXPECT(assay_bpf_machine_read(machine, (unsigned)out, &key, sizeof(key), &total, sizeof(total)) == -EINVAL);
        EXPECT(assay_bpf_machine_read(machine, 1000, &key, sizeof(key), &total, sizeof(total)) == -EINVAL);

        EXPECT(assay_bpf_machine_take(machine, (unsigned)totals, &record, sizeof(record), &size) == -EINVAL);
        EXPECT(assay_bpf_machine_take(machine, (unsigned)out, &record, 4, &size) == -EMSGSIZE &&
               size == sizeof(record));
        for (int i = 0; i < 2; i++)
                EXPECT(assay_bpf_machine_take(machine, (unsigned)out, &record, sizeof(record), &size) == 1 &&
                       size == sizeof(record) && record.kind == 2 && record.value == 5);
        EXPECT(assay_bpf_machine_take(machine, (unsigned)out, &record, sizeof(record), &size) == 0);
}

/* A map of constants may not be changed: the program was checked with them. */
static void use_constants(struct assay_bpf_machine *machine)
{
        uint32_t key = 0;
        char value[32];
        int map = assay_bpf_machine_map(machine, ".rodata");

        EXPECT(map >= 0);
        EXPECT(assay_bpf_machine_read(machine, (unsigned)map, &key, sizeof(key), value, 32) == 0);
        EXPECT(assay_bpf_machine_write(machine, (unsigned)map, &key, sizeof(key), value, 32) == -EACCES);
}

static void use_certificate(const struct assay_bpf_program *program)
{
        char *certificate = NULL;
        size_t size = 0;

        EXPECT(assay_bpf_certify(program, NULL, &certificate, &size, NULL, NULL, 0) == 0);
        EXPECT(assay_bpf_audit(program, NULL, certificate, size, NULL, NULL, 0) == 0);
        free(certificate);
}

static void use_refusal(const struct assay_bpf_program *program)
{
        struct assay_bpf_options options = ASSAY_BPF_OPTIONS_INIT;
        struct assay_bpf_report *report = NULL;
        size_t size = 0;

        options.counterexample_ms = 1000;
        EXPECT(assay_bpf_check(program, &options, &report, NULL, 0) == 1);
        if (!report)
                return;
        EXPECT(strcmp(assay_bpf_report_kind(report), "bounds") == 0);
        EXPECT(strstr(assay_bpf_report_file(report), "count.c") != NULL);
        EXPECT(strstr(assay_bpf_report_source(report), "wild[event->kind]") != NULL);
        EXPECT(assay_bpf_report_line(report) > 0 && assay_bpf_report_slot(report) >= 0);
        EXPECT(assay_bpf_report_counterexample(report, &size) != NULL && size == sizeof(struct event));
        assay_bpf_report_free(report);
}

static size_t read_file(const char *path, char *bytes, size_t size)
{
        FILE *file = fopen(path, "rb");
        size_t n = file ? fread(bytes, 1, size, file) : 0;

        if (file)
                fclose(file);
        return n;
}

int main(int argc, char **argv)
{
        static char bytes[1 << 16];
        char why[ASSAY_BPF_WHY_SIZE] = "";
        struct assay_bpf_object *object = NULL;
        struct assay_bpf_machine *machine = NULL;
        struct assay_bpf_program *count;
        size_t size = argc == 2 ? read_file(argv[1], bytes, sizeof(bytes)) : 0;

        if (assay_bpf_object_load(bytes, size, "count.o", &object, why, sizeof(why)) < 0) {
                printf("%s\n", why);
                return 1;
        }
        count = assay_bpf_object_find(object, "count");
        EXPECT(count != NULL && assay_bpf_program_context_size(count) == sizeof(struct event));
        EXPECT(assay_bpf_machine_new(count, NULL, NULL, &machine, NULL, why, sizeof(why)) == 0);
        if (machine) {
                use_maps(machine);
                use_constants(machine);
        }
        use_certificate(count);
        use_refusal(assay_bpf_object_find(object, "broken"));
        assay_bpf_machine_free(machine);
        assay_bpf_object_free(object);
        return failures > 0;
}
