/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"

/* privilege_obtain - be able to make network namespaces: as we are, else as an ordinary user inside a user namespace
 *
 * To be called once, before anything else and while there is one thread.
 * Return: 0 as we are; 1 inside a user namespace from now on; a negative errno (kind unsupported) where neither is
 * possible.
 */
int privilege_obtain(struct err *err);
