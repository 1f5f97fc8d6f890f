/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/option.h"

#define HELP_COLUMN 30

static const struct option *option_by_name(const struct option *options, const char *name, size_t len)
{
        for (const struct option *o = options; o && o->name; o++)
                if (strlen(o->name) == len && strncmp(o->name, name, len) == 0)
                        return o;
        return NULL;
}

static const struct option *option_by_letter(const struct option *options, char letter)
{
        for (const struct option *o = options; o && o->name; o++)
                if (o->letter && o->letter == letter)
                        return o;
        return NULL;
}

static int option_unknown(const struct option *options, const char *name, size_t len, struct err *err)
{
        const char *names[64], *nearest;
        size_t n = 0;
        char word[64];

        for (const struct option *o = options; o && o->name && n < ARRAY_SIZE(names) - 1; o++)
                names[n++] = o->name;
        names[n++] = "help";
        snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), name);
        nearest = text_nearest(word, names, n);
        if (nearest)
                return err_set(err, ERR_USAGE, EINVAL, "unknown option --%s; did you mean --%s?", word, nearest);
        return err_set(err, ERR_USAGE, EINVAL, "unknown option --%s; --help lists them", word);
}

static int set_quantity(const struct option *o, const char *value, int64_t *field, struct err *err)
{
        char low[48], high[48];
        int64_t parsed;
        int r;

        r = unit_parse(o->unit, value, &parsed, err);
        if (r < 0) {
                err_prefix(err, "--%s", o->name);
                return r;
        }
        if ((o->min || o->max) && (parsed < o->min || parsed > o->max))
                return err_set(err, ERR_USAGE, EINVAL, "--%s %s is out of range, expected %s to %s", o->name, value,
                               unit_format(o->unit, o->min, low), unit_format(o->unit, o->max, high));
        *field = parsed;
        return 0;
}

static int set_choice(const struct option *o, const char *value, int *field, struct err *err)
{
        _cleanup_text_ struct text list = {0};

        for (int i = 0; o->choices[i]; i++) {
                if (streq(o->choices[i], value)) {
                        *field = i;
                        return 0;
                }
                text_addf(&list, "%s%s", i ? ", " : "", o->choices[i]);
        }
        return err_set(err, ERR_USAGE, EINVAL, "--%s %s is not known, expected one of: %s", o->name, value,
                       list.failed ? "" : list.data);
}

static int option_set(const struct option *o, const char *value, void *out, struct err *err)
{
        void *field = (char *)out + o->offset;
        struct option_strings *strings;

        switch (o->type) {
        case OPTION_FLAG:
                *(bool *)field = true;
                return 0;
        case OPTION_STRING:
                *(const char **)field = value;
                return 0;
        case OPTION_STRINGS:
                strings = field;
                if (strings->n >= OPTION_STRINGS_MAX)
                        return err_set(err, ERR_USAGE, EINVAL, "--%s may be given %d times at most", o->name,
                                       OPTION_STRINGS_MAX);
                strings->items[strings->n++] = value;
                return 0;
        case OPTION_QUANTITY:
                return set_quantity(o, value, field, err);
        case OPTION_CHOICE:
                return set_choice(o, value, field, err);
        }
        return err_set(err, ERR_BUG, EINVAL, "option --%s has no type", o->name);
}

#define OPTIONS_MAX 64

/* The arguments that are left to look at, and the options that were given. */
struct cursor {
        int argc;
        char **argv;
        int at;
        size_t n_given;
        const struct option *given[OPTIONS_MAX];
};

static bool was_given(const struct cursor *c, const char *name)
{
        for (size_t i = 0; i < c->n_given; i++)
                if (streq(c->given[i]->name, name))
                        return true;
        return false;
}

static int note_given(const struct option *o, struct cursor *c, struct err *err)
{
        if (was_given(c, o->name))
                return 0;
        if (c->n_given == ARRAY_SIZE(c->given))
                return err_set(err, ERR_BUG, ENOSPC, "a verb has more than %d options", OPTIONS_MAX);
        c->given[c->n_given++] = o;
        return 0;
}

static int check_exclusions(const struct cursor *c, struct err *err)
{
        for (size_t i = 0; i < c->n_given; i++) {
                const struct option *o = c->given[i];

                if (o->excludes && was_given(c, o->excludes))
                        return err_set(err, ERR_USAGE, EINVAL, "--%s and --%s exclude each other", o->excludes,
                                       o->name);
        }
        return 0;
}

static int take_value(const struct option *o, const char *attached, struct cursor *c, const char **ret, struct err *err)
{
        if (attached)
                *ret = attached;
        else if (c->at < c->argc)
                *ret = c->argv[c->at++];
        else
                return err_set(err, ERR_USAGE, EINVAL, "--%s needs a value: --%s %s", o->name, o->name, o->argument);
        return 0;
}

static int parse_long(const struct option *options, const char *arg, struct cursor *c, void *out, struct err *err)
{
        size_t len = strcspn(arg, "=");
        const char *attached = arg[len] == '=' ? arg + len + 1 : NULL, *value = NULL;
        const struct option *o = option_by_name(options, arg, len);
        int r;

        if (!o && len == 4 && strncmp(arg, "help", 4) == 0 && !attached)
                return 1;
        if (!o)
                return option_unknown(options, arg, len, err);
        r = note_given(o, c, err);
        if (r < 0)
                return r;
        if (o->type == OPTION_FLAG && attached)
                return err_set(err, ERR_USAGE, EINVAL, "--%s takes no value", o->name);
        if (o->type != OPTION_FLAG) {
                r = take_value(o, attached, c, &value, err);
                if (r < 0)
                        return r;
        }
        return option_set(o, value, out, err);
}

static int parse_short(const struct option *options, const char *letters, struct cursor *c, void *out, struct err *err)
{
        for (; *letters; letters++) {
                const struct option *o = option_by_letter(options, *letters);
                const char *value = NULL;
                int r;

                if (!o && *letters == 'h')
                        return 1;
                if (!o)
                        return err_set(err, ERR_USAGE, EINVAL, "unknown option -%c; --help lists them", *letters);
                r = note_given(o, c, err);
                if (r < 0)
                        return r;
                if (o->type == OPTION_FLAG) {
                        option_set(o, NULL, out, err);
                        continue;
                }
                r = take_value(o, letters[1] ? letters + 1 : NULL, c, &value, err);
                return r < 0 ? r : option_set(o, value, out, err);
        }
        return 0;
}

static int set_fallbacks(const struct option *options, void *out, struct err *err)
{
        for (const struct option *o = options; o && o->name; o++) {
                int r = o->fallback ? option_set(o, o->fallback, out, err) : 0;

                if (r < 0) {
                        err->kind = ERR_BUG;
                        return r;
                }
        }
        return 0;
}

int option_parse(const struct option *options, bool stop_early, int *argc, char **argv, void *out, struct err *err)
{
        struct cursor c = {.argc = *argc, .argv = argv};
        int kept = 0, r;

        r = set_fallbacks(options, out, err);
        if (r < 0)
                return r;

        while (c.at < c.argc) {
                char *arg = argv[c.at++];

                if (streq(arg, "--"))
                        break;
                if (arg[0] != '-' || arg[1] == '\0') {
                        argv[kept++] = arg;
                        if (stop_early)
                                break;
                        continue;
                }
                r = arg[1] == '-' ? parse_long(options, arg + 2, &c, out, err)
                                  : parse_short(options, arg + 1, &c, out, err);
                if (r != 0)
                        return r;
        }
        r = check_exclusions(&c, err);
        if (r < 0)
                return r;
        while (c.at < c.argc)
                argv[kept++] = argv[c.at++];
        *argc = kept;
        return 0;
}

static void help_line(struct text *out, char letter, const char *name, const char *argument, const char *help,
                      const char *fallback)
{
        size_t start = out->len, width;

        if (letter)
                text_addf(out, "  -%c, --%s", letter, name);
        else
                text_addf(out, "      --%s", name);
        if (argument)
                text_addf(out, " %s", argument);
        width = out->len - start;
        text_addf(out, "%*s%s", (int)(width + 2 > HELP_COLUMN ? 2 : HELP_COLUMN - width), "", help);
        if (fallback)
                text_addf(out, " (default: %s)", fallback);
        text_add(out, "\n");
}

void option_help(const struct option *options, struct text *out)
{
        for (const struct option *o = options; o && o->name; o++)
                help_line(out, o->letter, o->name, o->argument, o->help, o->fallback);
        help_line(out, 'h', "help", NULL, "show this text", NULL);
}
