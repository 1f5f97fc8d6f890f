/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASSAY_BPF_H
#define ASSAY_BPF_H

#include <stddef.h>
#include <stdint.h>

/* libassay-bpf: check BPF programs before they run, re-check what was found out elsewhere, and run what was accepted.
 *
 *         struct assay_bpf_options options = ASSAY_BPF_OPTIONS_INIT;
 *         char why[ASSAY_BPF_WHY_SIZE];
 *
 *         r = assay_bpf_object_load(bytes, size, "controller.o", &object, why, sizeof(why));
 *         r = assay_bpf_machine_new(assay_bpf_object_program(object, 0), &options, NULL, &machine, &report, why, ...);
 *         r = assay_bpf_machine_run(machine, &event, sizeof(event), &result);
 *
 * Functions that return int give 0, a negative errno, or the positive outcome that their comment names. Where something
 * could not be done and @why is not NULL, a sentence for a person is left there: of at most @why_size bytes, always
 * terminated. Outputs are set on the outcomes that name them, and else left alone.
 *
 * A handle may be used by one thread at a time; different handles by different threads. A program belongs to its
 * object, and a machine needs its object until it is freed. All that frees accepts NULL. Bytes that are passed in may
 * be any bytes. Nothing is printed and no signal handler, environment variable or file is touched. */

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_BPF_WHY_SIZE 1024 /* room for every reason */

/* assay_bpf_version - the release of the library that runs, such as "0.1.0" */
const char *assay_bpf_version(void);

/* ---- objects and programs ---- */

struct assay_bpf_object;
struct assay_bpf_program;

/* assay_bpf_object_load - read an object file that clang made for BPF, or raw instructions of 8 bytes each
 * @bytes: @size of them, copied
 * @name:  what to call it in reasons, and the name of a raw program
 * @ret:   assay_bpf_object_free() releases it
 *
 * Return: 0; -EINVAL for bytes that are no object; -ENOMEM.
 */
int assay_bpf_object_load(const void *bytes, size_t size, const char *name, struct assay_bpf_object **ret, char *why,
                          size_t why_size);

void assay_bpf_object_free(struct assay_bpf_object *object);

/* assay_bpf_object_programs - how many programs there are */
size_t assay_bpf_object_programs(const struct assay_bpf_object *object);

/* assay_bpf_object_program - number @index, from 0 in the order of the file; NULL where there is none */
struct assay_bpf_program *assay_bpf_object_program(const struct assay_bpf_object *object, size_t index);

/* assay_bpf_object_find - the program with that name, or NULL */
struct assay_bpf_program *assay_bpf_object_find(const struct assay_bpf_object *object, const char *name);

/* assay_bpf_program_name - its function's name; belongs to the object */
const char *assay_bpf_program_name(const struct assay_bpf_program *program);

/* assay_bpf_program_context_size - bytes that r1 points to, 0 for none: what the object says, or what was set */
size_t assay_bpf_program_context_size(const struct assay_bpf_program *program);

/* assay_bpf_program_set_context - say that r1 points to @size bytes that may be read and, if @is_writable, written
 *
 * Before machines are made of it. Return: 0; -E2BIG for more than 1 GiB.
 */
int assay_bpf_program_set_context(struct assay_bpf_program *program, size_t size, int is_writable);

/* ---- checking ---- */

enum assay_bpf_profile {
        ASSAY_BPF_EMBEDDED, /* no loops, caps on stack, maps and cost, few helpers */
        ASSAY_BPF_FULL      /* loops that provably end */
};

/* Grows at its end; @size says which members the caller knows. */
struct assay_bpf_options {
        size_t size;
        enum assay_bpf_profile profile;
        int may_actuate;            /* whether it may call helpers that move something */
        unsigned disjuncts;         /* states kept where paths meet; 0: the default */
        unsigned counterexample_ms; /* how long to search for an input that shows a refusal; 0: not at all */
};

#define ASSAY_BPF_OPTIONS_INIT                                                                                         \
        {                                                                                                              \
                sizeof(struct assay_bpf_options), ASSAY_BPF_EMBEDDED, 0, 0, 0                                          \
        }

struct assay_bpf_report;

/* assay_bpf_check - whether a program is safe on every input, ends, and stays within the profile's limits
 * @options: NULL for ASSAY_BPF_OPTIONS_INIT
 * @ret:     what was found out, for 0 and 1; assay_bpf_report_free() releases it. May be NULL.
 *
 * Return: 0 accepted; 1 refused; -EINVAL for options that make no sense; -ENOMEM.
 */
int assay_bpf_check(const struct assay_bpf_program *program, const struct assay_bpf_options *options,
                    struct assay_bpf_report **ret, char *why, size_t why_size);

/* assay_bpf_certify - as assay_bpf_check(), and leave a certificate of it
 * @ret_certificate: JSON text of @ret_size bytes (and a terminating NUL) for 0; free() releases it
 */
int assay_bpf_certify(const struct assay_bpf_program *program, const struct assay_bpf_options *options,
                      char **ret_certificate, size_t *ret_size, struct assay_bpf_report **ret, char *why,
                      size_t why_size);

/* assay_bpf_audit - whether a certificate, of whatever origin, shows that a program is safe: in one pass, by rules of
 * its own that share nothing with those of the check
 * @certificate: @size bytes
 * @ret:         as of assay_bpf_check(); kind "certificate" where it is for another program, profile or right, or lacks
 * a claim
 *
 * Return: 0 it does; 1 it does not; -EINVAL for bytes that are no certificate, or options that make no sense; -ENOMEM.
 */
int assay_bpf_audit(const struct assay_bpf_program *program, const struct assay_bpf_options *options,
                    const void *certificate, size_t size, struct assay_bpf_report **ret, char *why, size_t why_size);

/* What a report says; the strings belong to it, and are "" where there is nothing to say. */

/* Stable name of why it was refused, such as "bounds"; "none" where it was accepted. */
const char *assay_bpf_report_kind(const struct assay_bpf_report *report);

/* The reason in words; what is known there; what to try. */
const char *assay_bpf_report_text(const struct assay_bpf_report *report);
const char *assay_bpf_report_known(const struct assay_bpf_report *report);
const char *assay_bpf_report_suggestion(const struct assay_bpf_report *report);

/* The instruction, counted from 0 in slots of 8 bytes; -1 where it is not about one. */
long assay_bpf_report_slot(const struct assay_bpf_report *report);

/* Where that is in the source: line 0 and "" where the object does not say. */
unsigned assay_bpf_report_line(const struct assay_bpf_report *report);
const char *assay_bpf_report_file(const struct assay_bpf_report *report);
const char *assay_bpf_report_source(const struct assay_bpf_report *report);

/* The context, *@ret_size bytes, of an input on which the program does what it was refused for; NULL where none was
 * searched for or found. */
const void *assay_bpf_report_counterexample(const struct assay_bpf_report *report, size_t *ret_size);

/* Of an accepted program: its worst case by the assumed table of costs, and the deepest stack. 0 from an audit. */
uint64_t assay_bpf_report_cost_ns(const struct assay_bpf_report *report);
size_t assay_bpf_report_stack_bytes(const struct assay_bpf_report *report);

void assay_bpf_report_free(struct assay_bpf_report *report);

/* ---- running ---- */

/* What stands behind the helpers that reach outside. A member that is NULL has a default: the monotonic clock, bits of
 * the clock, lines dropped, -ENOSYS. Grows at its end. */
struct assay_bpf_hooks {
        size_t size;
        void *userdata;
        uint64_t (*time_ns)(void *userdata);
        uint32_t (*random_u32)(void *userdata);
        void (*trace)(void *userdata, const char *text, size_t len);

        /* gpio_set, gpio_get, pwm_write, motor_pair, by number; @args are r1 and r2. Return: the helper's result. */
        int64_t (*actuate)(void *userdata, uint32_t helper, const uint64_t *args);
};

#define ASSAY_BPF_HOOKS_INIT                                                                                           \
        {                                                                                                              \
                sizeof(struct assay_bpf_hooks), NULL, NULL, NULL, NULL, NULL                                           \
        }

struct assay_bpf_machine;

/* assay_bpf_machine_new - check a program and, where it is accepted, prepare it with maps of its own: nothing that was
 * not accepted can be run
 * @hooks:      copied; NULL for the defaults
 * @ret:        for 0; assay_bpf_machine_free() releases it, before its object
 * @ret_report: as of assay_bpf_check(); may be NULL
 *
 * Return: 0; 1 refused; as assay_bpf_check(); -E2BIG where its maps take more than 1 GiB.
 */
int assay_bpf_machine_new(const struct assay_bpf_program *program, const struct assay_bpf_options *options,
                          const struct assay_bpf_hooks *hooks, struct assay_bpf_machine **ret,
                          struct assay_bpf_report **ret_report, char *why, size_t why_size);

/* assay_bpf_machine_run - run it once; allocates nothing
 * @context: what r1 points to, @size bytes, of which there must be as many as the program's context has
 * @ret:     r0
 *
 * Return: 0; -EINVAL for another size.
 */
int assay_bpf_machine_run(struct assay_bpf_machine *machine, void *context, size_t size, uint64_t *ret);

/* assay_bpf_machine_map - number of the map with that name. Return: that; -ENOENT. */
int assay_bpf_machine_map(const struct assay_bpf_machine *machine, const char *name);

/* assay_bpf_machine_read - copy the value under @key out of an array or hash
 * @key, @value: of exactly the sizes that the map has
 *
 * Return: 0; -ENOENT for a key that is not there; -EINVAL for another map or other sizes.
 */
int assay_bpf_machine_read(struct assay_bpf_machine *machine, unsigned map, const void *key, size_t key_size,
                           void *value, size_t value_size);

/* assay_bpf_machine_write - copy a value under @key
 *
 * Return: 0; -E2BIG for an array's key past its end, or a full hash; -EACCES for constants (.rodata); -EINVAL as above.
 */
int assay_bpf_machine_write(struct assay_bpf_machine *machine, unsigned map, const void *key, size_t key_size,
                            const void *value, size_t value_size);

/* assay_bpf_machine_take - take the oldest record out of a ring
 * @buffer:   room for @size bytes
 * @ret_size: bytes of the record, for 1 and -EMSGSIZE
 *
 * Return: 1; 0 if the ring is empty; -EMSGSIZE, and it stays, if there is not enough room; -EINVAL for another map.
 */
int assay_bpf_machine_take(struct assay_bpf_machine *machine, unsigned map, void *buffer, size_t size,
                           size_t *ret_size);

void assay_bpf_machine_free(struct assay_bpf_machine *machine);

#ifdef __cplusplus
}
#endif

#endif
