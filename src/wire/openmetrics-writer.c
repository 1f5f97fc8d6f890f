/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "wire/openmetrics-internal.h"

bool openmetrics_name_is_valid(const char *name, bool is_label)
{
        size_t len = strlen(name);

        return len > 0 && len <= OPENMETRICS_NAME_MAX && (name[0] < '0' || name[0] > '9') &&
               !(is_label && name[0] == '_') && strspn(name, OPENMETRICS_NAME_CHARACTERS) == len;
}

bool openmetrics_unit_fits(const char *name, const char *unit)
{
        size_t name_len = strlen(name), unit_len = strlen(unit);

        return unit_len == 0 || (name_len > unit_len + 1 && name[name_len - unit_len - 1] == '_' &&
                                 streq(name + name_len - unit_len, unit));
}

static void fail(struct openmetrics_writer *w, const char *fault)
{
        if (!w->fault)
                w->fault = fault;
}

static void add_escaped(struct openmetrics_writer *w, const char *s)
{
        if (!text_is_utf8(s, strlen(s)))
                fail(w, "text that is not UTF-8");
        for (; *s; s++) {
                size_t plain = strcspn(s, "\\\"\n");

                text_add_bytes(w->out, s, plain);
                s += plain;
                if (!*s)
                        break;
                text_addf(w->out, "\\%c", *s == '\n' ? 'n' : *s);
        }
}

static bool ends_in_total(const char *name)
{
        return openmetrics_unit_fits(name, "total");
}

void openmetrics_family(struct openmetrics_writer *w, enum openmetrics_type type, const char *name, const char *unit,
                        const char *help)
{
        if (!openmetrics_name_is_valid(name, false) || ends_in_total(name))
                fail(w, "a name of a family");
        else if (!openmetrics_unit_fits(name, unit ? unit : ""))
                fail(w, "a name that does not end in its unit");
        snprintf(w->family, sizeof(w->family), "%s", name);
        w->type = type;
        text_addf(w->out, "# TYPE %s %s\n", name, type == OPENMETRICS_COUNTER ? "counter" : "gauge");
        if (unit)
                text_addf(w->out, "# UNIT %s %s\n", name, unit);
        text_addf(w->out, "# HELP %s ", name);
        add_escaped(w, help);
        text_add(w->out, "\n");
}

void openmetrics_sample(struct openmetrics_writer *w, const struct openmetrics_label *labels, size_t n_labels,
                        int64_t value)
{
        if (!w->family[0])
                fail(w, "a sample without a family");
        if (n_labels > OPENMETRICS_LABELS_MAX) {
                fail(w, "too many labels");
                return;
        }
        if (w->type == OPENMETRICS_COUNTER && value < 0)
                fail(w, "a counter below 0");
        text_addf(w->out, "%s%s", w->family, w->type == OPENMETRICS_COUNTER ? "_total" : "");
        for (size_t i = 0; i < n_labels; i++) {
                if (!openmetrics_name_is_valid(labels[i].name, true))
                        fail(w, "a name of a label");
                text_addf(w->out, "%s%s=\"", i == 0 ? "{" : ",", labels[i].name);
                add_escaped(w, labels[i].value);
                text_add(w->out, "\"");
        }
        text_addf(w->out, "%s %" PRId64 "\n", n_labels > 0 ? "}" : "", value);
}

int openmetrics_end(struct openmetrics_writer *w, struct err *err)
{
        text_add(w->out, "# EOF\n");
        if (w->fault)
                return err_set(err, ERR_BUG, EINVAL, "a scrape cannot hold %s (family %s)", w->fault, w->family);
        return w->out->failed ? err_set_nomem(err) : 0;
}
