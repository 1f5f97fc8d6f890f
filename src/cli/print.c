/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print.h"

#include <stdio.h>
#include <string.h>

int print_json(json_t *json, struct err *err)
{
        _cleanup_free_ char *text = json ? json_format(json) : NULL;

        json_decref(json);
        if (!text)
                return err_set_nomem(err);
        fputs(text, stdout);
        return 0;
}

int print_text(const struct text *text, struct err *err)
{
        if (text->failed)
                return err_set_nomem(err);
        if (text->data)
                fputs(text->data, stdout);
        return 0;
}

void print_visible(struct text *out, const char *outside)
{
        if (outside)
                text_add_visible(out, outside, strlen(outside));
}
