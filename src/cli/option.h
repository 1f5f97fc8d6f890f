/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "config/unit.h"

/* One table of options makes the parsing, the help text and (through a test) the man page of a verb agree. */

enum option_type {
        OPTION_FLAG,     /* bool */
        OPTION_STRING,   /* const char *, borrowed from argv */
        OPTION_STRINGS,  /* struct option_strings: may be given several times */
        OPTION_QUANTITY, /* int64_t in the base unit of @unit, within @min and @max */
        OPTION_CHOICE,   /* int: index into @choices */
};

#define OPTION_STRINGS_MAX 64

struct option_strings {
        size_t n;
        const char *items[OPTION_STRINGS_MAX];
};

struct option {
        const char *name; /* long, without "--" */
        char letter;      /* short; 0: none */
        enum option_type type;
        size_t offset;        /* of the field in the verb's options */
        const char *argument; /* "RATE"; NULL for a flag */
        const char *fallback; /* as it would be typed; NULL: zero */
        enum unit unit;
        int64_t min, max;           /* of a quantity; both 0: any value of 0 or more */
        const char *const *choices; /* ended by NULL */
        const char *help;           /* one line, without full stop; the default is added from @fallback */
        const char *excludes;       /* long name of the option that may not be given together with it; NULL: none */
};

/* option_parse - read the options out of an argument list
 * @options:    ended by one without name
 * @stop_early: the first argument that is no option ends them (a command follows)
 * @argc, @argv: the arguments after the verb; those that are no options are moved to the front, and @argc is their
 * number
 * @out:        the verb's options struct, zeroed by the caller; fallbacks are filled in
 *
 * "--name VALUE", "--name=VALUE", "-x VALUE", "-xVALUE" and grouped flags are understood; "--" ends the options. Two
 * that exclude each other are refused.
 * Return: 0; 1 if --help or -h was given; -EINVAL with the reason (kind usage) in @err.
 */
int option_parse(const struct option *options, bool stop_early, int *argc, char **argv, void *out, struct err *err);

/* option_help - add one line an option to @out, aligned, "--help" last */
void option_help(const struct option *options, struct text *out);
