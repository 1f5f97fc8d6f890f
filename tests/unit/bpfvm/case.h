/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The data files in tests/cases/bpf/ and bpf-verify/: sections that begin with a line "-- NAME".
 *
 *   asm     the program (assemble.h)
 *   hex     the program as hexadecimal bytes, instead
 *   times   how often the program's first slot is to be there
 *   mem     hexadecimal bytes that r1 points to; without it there is no context
 *   maps    one a line: kind name key_size value_size max_entries [ro]
 *   result  r0 at the end, a number
 *   fault   kind of the fault, and the slot unless it has none: what decoder, graph or checking interpreter must say
 *   profile what the verifier is to check for; "full" without it
 *   needs   words that the harness understands; "loops": the program has some
 *   bytes   that the verifier's states may take
 *   attach  one a line: how often in a second the accepted program may run there, each beside those before
 *   certificate  what the auditor is to judge (bpf-certificate.md); without "digests" it is for this program
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hex.h"
#include "bpfvm/assemble.h"
#include "bpfvm/program.h"

enum {
        CASE_ASM,
        CASE_HEX,
        CASE_TIMES,
        CASE_MEM,
        CASE_MAPS,
        CASE_RESULT,
        CASE_FAULT,
        CASE_NEEDS,
        CASE_PROFILE,
        CASE_BYTES,
        CASE_ATTACH,
        CASE_CERTIFICATE,
        CASE_SECTIONS
};

static const char *const case_sections[CASE_SECTIONS] = {"asm",   "hex",   "times",   "mem",   "maps",   "result",
                                                         "fault", "needs", "profile", "bytes", "attach", "certificate"};

struct case_file {
        char path[512];
        char *text;
        char *sections[CASE_SECTIONS]; /* into text; NULL where absent */
        uint8_t *mem;
        size_t mem_len;
        struct object *object;
};

static void case_split(struct case_file *c)
{
        char **current = NULL;

        for (char *line = c->text; line && *line;) {
                char *next = strchr(line, '\n');
                int found = -1;

                if (next)
                        *next = 0;
                for (int i = 0; strncmp(line, "-- ", 3) == 0 && i < CASE_SECTIONS; i++)
                        if (streq(line + 3, case_sections[i]))
                                found = i;
                if (found >= 0) {
                        /* end the section before, begin this one behind its line */
                        line[0] = 0;
                        current = &c->sections[found];
                        *current = next ? next + 1 : line;
                } else {
                        assert_false(strncmp(line, "--", 2) == 0);
                        if (next)
                                *next = '\n';
                }
                line = next ? next + 1 : NULL;
        }
        assert_non_null(current);
}

static uint32_t case_maps(struct case_file *c, struct map_def *maps, uint32_t max)
{
        char *save = NULL;
        uint32_t n = 0;

        if (!c->sections[CASE_MAPS])
                return 0;
        for (char *line = strtok_r(c->sections[CASE_MAPS], "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                char kind[16] = "", ro[8] = "";
                struct map_def *map = &maps[n++];

                assert_true(n <= max);
                *map = (struct map_def){0};
                assert_true(sscanf(line, "%15s %63s %u %u %u %7s", kind, map->name, &map->key_size, &map->value_size,
                                   &map->max_entries, ro) >= 5);
                while (map->kind < MAP_KINDS && !streq(kind, map_kind_name(map->kind)))
                        map->kind++;
                map->is_read_only = streq(ro, "ro");
        }
        return n;
}

/* The program's bytes, which the caller frees. */
static uint8_t *case_slots(struct case_file *c, size_t *ret_len)
{
        uint8_t *slots = NULL;
        struct err err = {0};
        size_t offset, times;
        char text[1024];

        if (c->sections[CASE_HEX]) {
                assert_int_equal(hex_decode(span_of_text(c->sections[CASE_HEX]), &slots, ret_len, &offset), 0);
                return slots;
        }
        if (assemble_text(span_of_text(c->sections[CASE_ASM]), c->path, &slots, ret_len, &err) < 0) {
                err_format(&err, text, sizeof(text));
                fail_msg("%s", text);
        }
        times = c->sections[CASE_TIMES] ? strtoul(c->sections[CASE_TIMES], NULL, 10) : 1;
        assert_in_range(times, 1, 200000);
        slots = realloc(slots, *ret_len + (times - 1) * INSN_SLOT_BYTES);
        assert_non_null(slots);
        memmove(slots + (times - 1) * INSN_SLOT_BYTES, slots, *ret_len);
        for (size_t i = 0; i + 1 < times; i++)
                memcpy(slots + i * INSN_SLOT_BYTES, slots + (times - 1) * INSN_SLOT_BYTES, INSN_SLOT_BYTES);
        *ret_len += (times - 1) * INSN_SLOT_BYTES;
        return slots;
}

static void case_load(struct case_file *c, const char *path)
{
        struct map_def maps[32];
        _cleanup_free_ uint8_t *slots = NULL;
        struct err err = {0};
        struct fault fault = {0};
        uint32_t n_maps;
        size_t len, offset;

        *c = (struct case_file){0};
        snprintf(c->path, sizeof(c->path), "%s", path);
        if (file_read(AT_FDCWD, path, 1 << 20, &c->text, &len, &err) < 0)
                fail_msg("%s", err.text);
        case_split(c);
        n_maps = case_maps(c, maps, ARRAY_SIZE(maps));
        if (c->sections[CASE_MEM])
                assert_int_equal(hex_decode(span_of_text(c->sections[CASE_MEM]), &c->mem, &c->mem_len, &offset), 0);
        slots = case_slots(c, &len);
        if (object_of_slots(span_of(slots, len), "case", maps, n_maps, &c->object, &fault, &err) != 0)
                fail_msg("%s: %s%s", path, fault.text, err.text);
        if (c->mem_len > 0)
                context_flat(&c->object->programs[0]->context, (uint32_t)c->mem_len, true);
}

static void case_done(struct case_file *c)
{
        object_free(c->object);
        free(c->mem);
        free(c->text);
}

/* What the file says under "fault": its kind, FAULT_NONE without the section. */
static inline enum fault_kind case_fault(const struct case_file *c, uint32_t *ret_slot)
{
        char name[64] = "";
        unsigned slot = FAULT_NO_SLOT;
        enum fault_kind kind;

        *ret_slot = FAULT_NO_SLOT;
        if (!c->sections[CASE_FAULT])
                return FAULT_NONE;
        assert_true(sscanf(c->sections[CASE_FAULT], "%63s %u", name, &slot) >= 1);
        kind = fault_find(name);
        if (kind == FAULT_KINDS)
                fail_msg("%s: no fault is named %s", c->path, name);
        *ret_slot = slot;
        return kind;
}

/* Calls @fn for every *.data file in a folder of the cases; at least @at_least of them have to be there. */
static void case_each(const char *folder, size_t at_least, void (*fn)(struct case_file *c))
{
        _cleanup_free_ char *path = NULL;
        struct dirent **entries;
        size_t n = 0;
        int n_entries;

        assert_true(asprintf(&path, "%s/%s", getenv("ASSAY_TEST_CASES"), folder) > 0);
        n_entries = scandir(path, &entries, NULL, alphasort);
        assert_true(n_entries >= 0);
        for (int i = 0; i < n_entries; i++) {
                const char *dot = strrchr(entries[i]->d_name, '.');
                char file[1024];

                if (dot && streq(dot, ".data")) {
                        struct case_file c;

                        snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
                        case_load(&c, file);
                        fn(&c);
                        case_done(&c);
                        n++;
                }
                free(entries[i]);
        }
        free(entries);
        assert_true(n >= at_least);
}
