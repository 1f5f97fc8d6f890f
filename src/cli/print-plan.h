/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "evidence/plan.h"

/* print_plan - what a campaign would do, for a person: cells, order, time, disk */
int print_plan(const struct plan *plan, struct err *err);

/* print_plan_json - the content of plan.json */
int print_plan_json(const struct plan *plan, struct err *err);
