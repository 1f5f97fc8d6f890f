/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* Faults in the program under test, one at a time: the n-th allocation or system call fails, or the process is killed
 * there. A test that is linked with it (`fault_tests` of its folder's meson.build) loops over n until nothing strikes:
 *
 *         for (unsigned n = 1;; n++) {
 *                 fault_arm(FAULT_ALLOCATION, n);
 *                 r = thing_new(&thing, &err);
 *                 if (!fault_disarm())
 *                         break;
 *                 assert_int_equal(r, -ENOMEM);
 *         }
 *
 * Only calls out of the statically linked code are seen, not those inside shared libraries; jansson allocates through
 * base/json.c, so that it is seen. One thread only. */

enum fault_call {
        FAULT_ALLOCATION, /* malloc, calloc, realloc, reallocarray, strdup, strndup, opendir: fail with ENOMEM */
        FAULT_IO,   /* openat, mkdirat, read, write, fsync, ftruncate, renameat, unlinkat: fail with EIO; a write of
                     * more than one byte first writes half */
        FAULT_FULL, /* as FAULT_IO for what takes up space, with ENOSPC, and all later ones fail too */
        FAULT_KILL, /* SIGKILL in place of a call that FAULT_IO fails; a write first writes half */
};

/* fault_arm - let the @n-th call of @kind from now on (from 1) strike */
void fault_arm(enum fault_call kind, unsigned n);

/* fault_disarm - stop. Return: whether it struck. */
bool fault_disarm(void);

/* fault_trace - the system calls that were seen since fault_arm(), a letter each, for the order of syncs: "o"penat for
 * writing, "m"kdirat, "w"rite, fsync of a "f"ile or a "d"irectory, "t"runcate, "r"enameat, "u"nlinkat. Only the first
 * 4095 are kept. */
const char *fault_trace(void);
