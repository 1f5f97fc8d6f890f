/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "archive/archive.h"
#include "evidence/difference.h"
#include "evidence/plan.h"

/* Compares what each trial.json says of its place in the campaign with the plan, and with its line of the journal; adds
 * what differs. What cannot be read is passed over. Return: 0, or a negative errno. */
int verify_trials(struct archive *archive, const struct plan *plan, struct differences *differences, struct err *err);
