/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "campaign/kinds.h"
#include "cli/verbs.h"
#include "config/key.h"
#include "evidence/manifest.h"
#include "sandbox/policy.h"

static int document_manifest(struct text *out)
{
        return manifest_document(kinds_all(), out);
}

static const char *const formats[] = {"manifest", "policy"};
static int (*const documents[])(struct text *out) = {document_manifest, policy_document};

static int run(const void *opts, int argc, char **argv, struct err *err)
{
        const char *format = argc > 0 ? argv[0] : formats[0];
        _cleanup_text_ struct text text = {0};
        size_t i = 0;

        while (i < ARRAY_SIZE(formats) && !streq(formats[i], format))
                i++;
        if (i == ARRAY_SIZE(formats))
                return key_unknown(NULL, "", "format", format, formats, ARRAY_SIZE(formats), err);
        if (documents[i](&text) < 0 || text.failed)
                return err_set_nomem(err);
        fputs(text.data, stdout);
        return 0;
}

const struct verb verb_reference = {
        .name = "reference",
        .arguments = "[FORMAT]",
        .summary = "every key of a manifest or a policy, with type, default and limits",
        .description =
                "Prints the reference of a format as Markdown, from the tables that read it: manifest (the default) "
                "or\npolicy.",
        .max_args = 1,
        .run = run,
};
