/* SPDX-License-Identifier: Apache-2.0 */

/* Stands before the C library in a program under test, and says of the host's clock what the environment says: no test
 * may set a host's own. */

#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>

int adjtimex(struct timex *t);

int adjtimex(struct timex *t)
{
        const char *is = getenv("KERNEL_CLOCK");

        memset(t, 0, sizeof(*t));
        t->maxerror = 500; /* us */
        if (is && strcmp(is, "synchronised") == 0)
                return TIME_OK;
        t->status = STA_UNSYNC;
        return TIME_ERROR;
}
