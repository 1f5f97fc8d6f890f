/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/client.h"

#include <limits.h>

#include "base/clock.h"
#include "base/sample.h"

#define EXIT_NS      (2 * NSEC_PER_SEC)
#define RESULT_BYTES ((size_t)64 << 20)

static const char whose[] = "the client's result";

int client_line(const char *verb, const char *subverb, struct command_line *line, struct err *err)
{
        char self[PATH_MAX];
        int r = command_self(self, sizeof(self), err);

        if (r < 0)
                return r;
        command_line_add(line, "%s", self);
        command_line_add(line, "%s", verb);
        command_line_add(line, "%s", subverb);
        command_line_add(line, "--quiet");
        command_line_add(line, "--json");
        command_line_add(line, "--samples");
        return 0;
}

void client_add_quantity(struct command_line *line, const char *option, int64_t value, const char *unit)
{
        command_line_add(line, "%s", option);
        command_line_add(line, "%lld%s", (long long)value, unit);
}

int client_wait(struct command *client, struct err *err)
{
        char complaint[400];
        int code = 0, r = command_wait(client, EXIT_NS, &code, err);

        if (r < 0 || code == 0 || code == 1)
                return r;
        command_complaint(client, complaint, sizeof(complaint));
        return err_set(err, ERR_ENVIRONMENT, EIO, "the client exited with status %d: %s", code, complaint);
}

void client_result_done(struct client_result *result)
{
        json_decref(result->root);
        *result = (struct client_result){0};
}

static int check_result(struct client_result *result, size_t n, struct err *err)
{
        int r = json_get_object(result->root, whose, "counts", &result->counts, err);

        if (r >= 0)
                r = json_get_object(result->root, whose, "notes", &result->notes, err);
        if (r >= 0)
                r = json_get_array(result->root, whose, "failures", &result->failures, err);
        if (r >= 0)
                r = json_get_array(result->root, whose, "samples", &result->samples, err);
        if (r >= 0 && json_array_size(result->samples) != n)
                return err_set(err, ERR_ENVIRONMENT, ENODATA, "the client made %zu of %zu requests",
                               json_array_size(result->samples), n);
        return r;
}

int client_read(struct command *client, size_t n, struct client_result *ret, struct err *err)
{
        _cleanup_client_result_ struct client_result result = {0};
        _cleanup_free_ char *text = NULL;
        size_t len;
        int r;

        r = command_output(client, RESULT_BYTES, &text, &len, err);
        if (r >= 0)
                r = json_parse(span_of(text, len), whose, &result.root, err);
        if (r >= 0)
                r = check_result(&result, n, err);
        if (r < 0)
                return r;
        *ret = result;
        result.root = NULL;
        return 0;
}

int client_sample_ns(const json_t *value, int64_t *ret)
{
        if (json_is_null(value)) {
                *ret = SAMPLE_MISSING;
                return 0;
        }
        *ret = json_integer_value(value);
        return json_is_integer(value) && *ret >= 0 ? 0 : -EINVAL;
}

json_t *client_counts(const struct client_result *result, int64_t requests, int64_t warmup)
{
        json_t *counts =
                json_pack("{s:I, s:I}", "slots", (json_int_t)warmup + requests, "warmup_slots", (json_int_t)warmup);

        if (counts && json_object_update_missing(counts, result->counts) < 0) {
                json_decref(counts);
                return NULL;
        }
        return counts;
}
