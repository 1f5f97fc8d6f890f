/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/enclosure.h"

int enclosure_stage(struct enclosure *e, struct err *err)
{
        return e->stage.netns.fd >= 0 ? 0 : stage_up(&e->stage, err);
}

int enclosure_wrap(struct enclosure *e, struct command_line *line, struct err *err)
{
        int r = command_line_check(line, err);

        if (r >= 0 && e->wrap)
                r = e->wrap(e, line, err);
        return r < 0 ? r : command_line_check(line, err);
}
