/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "base/text.h"
#include "evidence/class.h"

/* print_class_text - add the class of an archive and all reasons for it (class_derive()) to @out */
void print_class_text(struct text *out, enum evidence_class class, const json_t *reasons);
