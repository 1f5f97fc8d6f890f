/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "campaign/kinds.h"
#include "cli/verbs.h"
#include "evidence/manifest.h"

static int run(const void *opts, int argc, char **argv, struct err *err)
{
        _cleanup_text_ struct text text = {0};
        int r;

        r = manifest_document(kinds_all(), &text);
        if (r < 0 || text.failed)
                return err_set_nomem(err);
        fputs(text.data, stdout);
        return 0;
}

const struct verb verb_reference = {
        .name = "reference",
        .summary = "every key of a manifest, with type, default and limits",
        .description = "Prints the reference of the manifest as Markdown, from the tables that read it.",
        .run = run,
};
