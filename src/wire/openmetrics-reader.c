/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "wire/openmetrics-internal.h"

/* A walk over a copy of the scrape: names are cut out of it and texts unescaped in place, so that they need no memory
 * of their own. */
struct parser {
        struct openmetrics_set *set;
        const char *name;
        char *line; /* where the current line starts */
        unsigned number;
        char *at;
        struct err *err;
};

static int refuse(const struct parser *p, const char *what)
{
        struct position at = {.line = p->number, .column = (unsigned)(p->at - p->line) + 1};

        snprintf(at.file, sizeof(at.file), "%s", p->name);
        return err_set_at(p->err, ERR_DATA, &at, "%s", what);
}

/* Makes room for one more element of an array. Return: whether there is. */
static bool reserve(void **array, size_t n, size_t *allocated, size_t size)
{
        size_t more = *allocated ? 2 * *allocated : 16;
        void *bigger;

        if (n < *allocated)
                return true;
        bigger = realloc(*array, more * size);
        if (!bigger)
                return false;
        *array = bigger;
        *allocated = more;
        return true;
}

/* Takes characters of a name off the line, and the character @end behind it, in whose place the name is ended. */
static int take_name(struct parser *p, char end, char **ret)
{
        char *start = p->at;

        p->at += strspn(p->at, OPENMETRICS_NAME_CHARACTERS);
        if (*p->at != end)
                return refuse(p, "expected a name");
        *p->at++ = '\0';
        *ret = start;
        return 0;
}

/* Takes text up to the unescaped character @end, undoing its escapes, and @end. */
static int take_escaped(struct parser *p, char end, char **ret)
{
        char *start = p->at, *out = p->at;

        while (*p->at != end) {
                char c = *p->at;

                if (c == '\n' || c == '\0' || c == '"')
                        return refuse(p, "expected escaped text and its end");
                if (c == '\\') {
                        c = *++p->at;
                        if (c != 'n' && c != '"' && c != '\\')
                                return refuse(p, "expected \\n, \\\" or \\\\");
                        if (c == 'n')
                                c = '\n';
                }
                p->at++;
                *out++ = c;
        }
        p->at++;
        *out = '\0';
        *ret = start;
        return 0;
}

/* The family that a line of metadata is of: the current one, or a new one. */
static int metadata_family(struct parser *p, const char *name, struct openmetrics_metadata **ret)
{
        struct openmetrics_set *set = p->set;

        if (!openmetrics_name_is_valid(name, false))
                return refuse(p, "expected the name of a family");
        if (set->n_families > 0 && streq(set->families[set->n_families - 1].name, name)) {
                *ret = &set->families[set->n_families - 1];
                return (*ret)->n_samples > 0 ? refuse(p, "metadata of a family after its samples") : 0;
        }
        for (size_t i = 0; i < set->n_families; i++)
                if (streq(set->families[i].name, name))
                        return refuse(p, "the family was there before, and others since");
        if (set->n_families == OPENMETRICS_SAMPLES_MAX)
                return refuse(p, "too many families");
        if (!reserve((void **)&set->families, set->n_families, &set->families_allocated, sizeof(*set->families)))
                return err_set_nomem(p->err);
        *ret = &set->families[set->n_families++];
        **ret = (struct openmetrics_metadata){.name = name, .unit = "", .help = "", .first_sample = set->n_samples};
        return 0;
}

static int parse_type(struct parser *p, struct openmetrics_metadata *family)
{
        char *type = p->at;
        int r;

        r = take_name(p, '\n', &type);
        if (r < 0)
                return r;
        if (!streq(type, "gauge") && !streq(type, "counter"))
                return refuse(p, "only gauges and counters are read");
        family->type = streq(type, "counter") ? OPENMETRICS_COUNTER : OPENMETRICS_GAUGE;
        family->has_type = true;
        return 0;
}

static int parse_unit(struct parser *p, struct openmetrics_metadata *family)
{
        char *unit = NULL;
        int r;

        r = take_name(p, '\n', &unit);
        if (r < 0)
                return r;
        if (!openmetrics_unit_fits(family->name, unit))
                return refuse(p, "the family's name does not end in its unit");
        family->unit = unit;
        family->has_unit = true;
        return 0;
}

static int parse_help(struct parser *p, struct openmetrics_metadata *family)
{
        char *help = NULL;
        int r;

        r = take_escaped(p, '\n', &help);
        if (r < 0)
                return r;
        family->help = help;
        family->has_help = true;
        return 0;
}

/* A line that starts with "# ", @p being behind that. */
static int parse_metadata(struct parser *p)
{
        struct openmetrics_metadata *family = NULL;
        char *keyword = NULL, *name = NULL;
        int r;

        r = take_name(p, ' ', &keyword);
        if (r == 0)
                r = take_name(p, ' ', &name);
        if (r == 0)
                r = metadata_family(p, name, &family);
        if (r < 0)
                return r;
        if (streq(keyword, "TYPE") && !family->has_type)
                return parse_type(p, family);
        if (streq(keyword, "UNIT") && !family->has_unit)
                return parse_unit(p, family);
        if (streq(keyword, "HELP") && !family->has_help)
                return parse_help(p, family);
        return refuse(p, "expected TYPE, UNIT or HELP, once for a family");
}

static int parse_label(struct parser *p, struct openmetrics_label *ret)
{
        char *name = NULL, *value = NULL;
        int r;

        r = take_name(p, '=', &name);
        if (r < 0)
                return r;
        if (!openmetrics_name_is_valid(name, true))
                return refuse(p, "expected the name of a label");
        if (*p->at != '"')
                return refuse(p, "expected a quoted value");
        p->at++;
        r = take_escaped(p, '"', &value);
        if (r < 0)
                return r;
        *ret = (struct openmetrics_label){.name = name, .value = value};
        return 0;
}

static int compare_labels(const void *a, const void *b)
{
        return strcmp(((const struct openmetrics_label *)a)->name, ((const struct openmetrics_label *)b)->name);
}

/* The labels between braces, @p being behind the first, sorted by name. */
static int parse_labels(struct parser *p, struct openmetrics_point *sample)
{
        for (;;) {
                int r;

                if (sample->n_labels == OPENMETRICS_LABELS_MAX)
                        return refuse(p, "too many labels");
                r = parse_label(p, &sample->labels[sample->n_labels++]);
                if (r < 0)
                        return r;
                if (*p->at == '}')
                        break;
                if (*p->at != ',')
                        return refuse(p, "expected \",\" or \"}\"");
                p->at++;
        }
        p->at++;
        qsort(sample->labels, sample->n_labels, sizeof(*sample->labels), compare_labels);
        for (size_t i = 1; i < sample->n_labels; i++)
                if (streq(sample->labels[i - 1].name, sample->labels[i].name))
                        return refuse(p, "a label twice");
        return 0;
}

static bool labels_equal(const struct openmetrics_point *a, const struct openmetrics_point *b)
{
        if (a->n_labels != b->n_labels)
                return false;
        for (size_t i = 0; i < a->n_labels; i++)
                if (!streq(a->labels[i].name, b->labels[i].name) || !streq(a->labels[i].value, b->labels[i].value))
                        return false;
        return true;
}

/* The value and the line's end, @p being behind the name and the labels. */
static int parse_value(struct parser *p, const struct openmetrics_metadata *family, int64_t *ret)
{
        char *end;

        if (*p->at != ' ')
                return refuse(p, "expected a space and a value");
        p->at++;
        end = p->at + strcspn(p->at, "\n");
        if (*end != '\n' || number_parse_i64(span_of(p->at, (size_t)(end - p->at)), ret) < 0)
                return refuse(p, "expected an integer and the end of the line; scrapes hold no timestamps");
        if (family->type == OPENMETRICS_COUNTER && *ret < 0)
                return refuse(p, "a counter below 0");
        p->at = end + 1;
        return 0;
}

/* Whether the @len characters at @name are what samples of @family are named. */
static bool is_sample_name(const struct openmetrics_metadata *family, const char *name, size_t len)
{
        const char *suffix = family->type == OPENMETRICS_COUNTER ? "_total" : "";
        size_t family_len = strlen(family->name);

        return len == family_len + strlen(suffix) && memcmp(name, family->name, family_len) == 0 &&
               memcmp(name + family_len, suffix, strlen(suffix)) == 0;
}

static int parse_sample(struct parser *p)
{
        struct openmetrics_set *set = p->set;
        struct openmetrics_metadata *family = set->n_families > 0 ? &set->families[set->n_families - 1] : NULL;
        struct openmetrics_point sample = {0};
        size_t len = strspn(p->at, OPENMETRICS_NAME_CHARACTERS);
        int r;

        if (!family || !family->has_type || !is_sample_name(family, p->at, len))
                return refuse(p, "expected a sample of the family whose # TYPE came last");
        p->at += len;
        if (*p->at == '{') {
                p->at++;
                r = parse_labels(p, &sample);
                if (r < 0)
                        return r;
        }
        r = parse_value(p, family, &sample.value);
        if (r < 0)
                return r;
        for (size_t i = family->first_sample; i < set->n_samples; i++)
                if (labels_equal(&set->samples[i], &sample))
                        return refuse(p, "a sample with the same labels was there before");
        if (set->n_samples == OPENMETRICS_SAMPLES_MAX)
                return refuse(p, "too many samples");
        if (!reserve((void **)&set->samples, set->n_samples, &set->samples_allocated, sizeof(*set->samples)))
                return err_set_nomem(p->err);
        set->samples[set->n_samples++] = sample;
        family->n_samples++;
        return 0;
}

static int parse_lines(struct parser *p, const char *end)
{
        for (;; p->number++) {
                int r;

                p->line = p->at;
                if (p->at == end)
                        return refuse(p, "expected \"# EOF\": the scrape was cut off");
                if (streq(p->at, "# EOF") || streq(p->at, "# EOF\n"))
                        return 0;
                if (strncmp(p->at, "# ", 2) == 0) {
                        p->at += 2;
                        r = parse_metadata(p);
                } else {
                        r = parse_sample(p);
                }
                if (r < 0)
                        return r;
        }
}

int openmetrics_parse(struct span s, const char *name, struct openmetrics_set *ret, struct err *err)
{
        _cleanup_openmetrics_ struct openmetrics_set set = {0};
        struct parser p = {.set = &set, .name = name, .number = 1, .err = err};
        int r;

        set.data = malloc(s.len + 1);
        if (!set.data)
                return err_set_nomem(err);
        if (s.len > 0)
                memcpy(set.data, s.data, s.len);
        set.data[s.len] = '\0';
        p.line = p.at = set.data;
        if (s.len > OPENMETRICS_BYTES_MAX)
                return refuse(&p, "larger than any scrape");
        if (!text_is_utf8(set.data, s.len) || strlen(set.data) != s.len)
                return refuse(&p, "is not UTF-8 text");
        r = parse_lines(&p, set.data + s.len);
        if (r < 0)
                return r;
        *ret = set;
        set = (struct openmetrics_set){0};
        return 0;
}

void openmetrics_done(struct openmetrics_set *set)
{
        free(set->data);
        free(set->families);
        free(set->samples);
        *set = (struct openmetrics_set){0};
}

int openmetrics_value(const struct openmetrics_set *set, const char *family, const struct openmetrics_label *labels,
                      size_t n_labels, int64_t *ret)
{
        struct openmetrics_point wanted = {.n_labels = n_labels};

        if (n_labels > OPENMETRICS_LABELS_MAX)
                return -ENOENT;
        for (size_t i = 0; i < n_labels; i++)
                wanted.labels[i] = labels[i];
        qsort(wanted.labels, n_labels, sizeof(*wanted.labels), compare_labels);
        for (size_t f = 0; f < set->n_families; f++) {
                const struct openmetrics_metadata *found = &set->families[f];

                if (!streq(found->name, family))
                        continue;
                for (size_t i = 0; i < found->n_samples; i++)
                        if (labels_equal(&set->samples[found->first_sample + i], &wanted)) {
                                *ret = set->samples[found->first_sample + i].value;
                                return 0;
                        }
        }
        return -ENOENT;
}
