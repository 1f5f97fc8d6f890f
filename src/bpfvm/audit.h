/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bpfvm/certificate.h"
#include "bpfvm/fault.h"

/* audit_check - whether a certificate shows that a program is safe
 * @options: what the program is to be allowed; the observers are not called
 *
 * Goes through the certificate once. Each claimed state is carried through its block by the auditor's own rules and
 * arithmetic; where it goes on, what comes out has to be one of the states claimed there. So the claims together hold
 * of every run that starts as programs start. A jump against the order of the graph has to move a loop's counter that
 * is bounded: every endless run would make such jumps to one block without end.
 *
 * Return: 0 it does; 1 it does not, with the first reason in @fault: FAULT_CERTIFICATE where the certificate is for
 * something else or lacks a claim, the kind that the program would be refused for where a claimed state allows it;
 * -ENOMEM.
 */
int audit_check(const struct program *program, const struct certificate *certificate,
                const struct verifier_options *options, struct fault *fault, struct err *err);
