/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs.h"

const struct verb *const verbs[] = {
        &verb_doctor,
        &verb_show,
        NULL,
};
