/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <assay-bpf.h>

#include "base/err.h"
#include "bpfvm/counterexample.h"
#include "bpfvm/verifier.h"

/* What stands behind the handles of the public library. Its functions are thin: they turn sized structs, reasons and
 * outcomes of the folders below into those that the public header promises. */

struct assay_bpf_program {
        struct program *program;
};

struct assay_bpf_object {
        struct object *object;
        struct assay_bpf_program *programs;
};

struct assay_bpf_report {
        const struct program *program;
        struct verdict verdict; /* fault kind FAULT_NONE: accepted */
        struct counterexample *example;
};

/* What is exported; everything else is hidden by the linker. */
#define API __attribute__((visibility("default")))

/* api_options - the caller's options, in the verifier's form
 * @given:                 NULL for the defaults
 * @ret_counterexample_ms: may be NULL
 *
 * Return: 0; -EINVAL with the reason in @err.
 */
int api_options(const struct assay_bpf_options *given, struct verifier_options *ret, unsigned *ret_counterexample_ms,
                struct err *err);

/* api_copy_sized - the first members of a struct that may be older or newer than ours
 * @to: @to_size bytes, whatever is not in @from is zeroed
 *
 * Return: 0; -EINVAL if @from is newer and uses what is not known here.
 */
int api_copy_sized(void *to, size_t to_size, const void *from, size_t from_size);

/* api_result - pass on an outcome, with its reason where it is a failure */
int api_result(int r, const struct err *err, char *why, size_t why_size);

/* api_report - a report of a verdict, which it takes over, on failure too
 * @ret: may be NULL
 *
 * Return: 0 or -ENOMEM.
 */
int api_report(const struct program *program, struct verdict *verdict, struct counterexample *example,
               struct assay_bpf_report **ret, struct err *err);
