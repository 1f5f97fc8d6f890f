/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sys/host.h"

/* host_describe_at - host_describe() with the files of /proc, /sys and /etc below the folder @root */
int host_describe_at(int root, json_t **ret_stable, json_t **ret_volatile, struct err *err);

/* Where facts are put. Running out of memory is remembered in @failed. */
struct facts {
        int root;
        json_t *object;
        bool failed;
};

/* facts_put - set @key to @value, whose reference is taken; NULL means that memory ran out */
void facts_put(struct facts *facts, const char *key, json_t *value);

/* facts_section - a new object under @key, for facts_put(), from the same root. It shares nothing else with @facts:
 * hand it back by facts_close(). */
struct facts facts_section(struct facts *facts, const char *key);
void facts_close(struct facts *facts, const struct facts *section);

/* fact_string - the file's text without blanks at its ends; null where it cannot be read or is empty */
json_t *fact_string(int root, const char *path);

/* fact_integer - the integer that is the file's whole text; null where it is not one */
json_t *fact_integer(int root, const char *path);

/* One of the two above. */
typedef json_t *(*fact_read_fn)(int root, const char *path);

struct fact_file {
        const char *key, *path;
};

/* facts_put_files - what @read makes of each of @n files */
void facts_put_files(struct facts *facts, const struct fact_file *files, size_t n, fact_read_fn read);

/* Where sysfs has a folder for each processor. */
#define FACTS_CPU_FOLDER "sys/devices/system/cpu"

/* facts_put_cpus - what @read makes of @file in each processor's folder (cpu0, ...) below @folder, as an object by the
 * processors' numbers; null where none has it */
void facts_put_cpus(struct facts *facts, const char *key, const char *folder, const char *file, fact_read_fn read);

/* fact_text - the file's bytes, NUL-terminated, which the caller frees; NULL where it cannot be read */
char *fact_text(int root, const char *path);

/* fact_field - what follows "@name", blanks and ":" on a line of @text, up to its end; null if there is no such line */
json_t *fact_field(const char *text, const char *name);

/* fact_kilobytes - the field @name of /proc/meminfo's text, which has "kB" behind its number, in bytes; or null */
json_t *fact_kilobytes(const char *meminfo, const char *name);

/* host_processor_facts - the section "cpu" of the stable part */
void host_processor_facts(struct facts *facts);

/* host_scheduler_facts - the section "scheduler" of the stable part */
void host_scheduler_facts(struct facts *facts);

/* host_volatile_facts - all of the volatile part */
void host_volatile_facts(struct facts *facts);
