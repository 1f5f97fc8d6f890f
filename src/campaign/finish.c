/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/finish.h"

#include <time.h>

#include "archive/bag.h"
#include "base/json.h"
#include "evidence/summary.h"
#include "evidence/verdict.h"

static int seal(struct archive *archive, const struct manifest *manifest, struct err *err)
{
        char date[16];
        time_t now = time(NULL);
        struct tm utc;
        const struct bag_info info[] = {
                {"Bagging-Date", date},
                {"External-Identifier", manifest->id},
                {"External-Description", manifest->title},
                {"Assay-Manifest-SHA256", manifest->sha256},
        };

        gmtime_r(&now, &utc);
        strftime(date, sizeof(date), "%Y-%m-%d", &utc);
        return bag_seal(archive, info, ARRAY_SIZE(info), err);
}

int finish_archive(struct archive *archive, const struct manifest *manifest, const struct plan *plan,
                   int *ret_exit_code, struct err *err)
{
        _cleanup_json_ json_t *summary = NULL, *verdict = NULL;
        int r;

        r = summary_make(archive, plan, &summary, err);
        if (r >= 0)
                r = archive_write_json(archive, ARCHIVE_SUMMARY, summary, err);
        if (r >= 0)
                r = verdict_make(manifest, summary, &verdict, err);
        if (r >= 0)
                r = archive_write_json(archive, ARCHIVE_VERDICT, verdict, err);
        if (r >= 0)
                r = seal(archive, manifest, err);
        if (r < 0)
                return r;
        *ret_exit_code = verdict_exit_code(verdict);
        return 0;
}
