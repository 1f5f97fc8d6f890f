/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/privilege.h"

#include "sys/capability.h"
#include "sys/userns.h"

int privilege_obtain(struct err *err)
{
        struct capability netns;
        int r;

        r = capability_detect("netns", &netns);
        if (r < 0)
                return err_set_errno(err, ERR_BUG, -r, "cannot look for the right to make network namespaces");
        if (netns.is_present)
                return 0;
        r = userns_enter(err);
        if (r < 0) {
                err_prefix(err, "network namespaces cannot be made (%s), nor a user namespace", netns.detail);
                return r;
        }
        return 1;
}
