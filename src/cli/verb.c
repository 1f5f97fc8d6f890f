/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verb.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/version.h"

#define PROGRAM "assay"

static const struct verb *verb_find(const struct verb *const *list, const char *name)
{
        for (; *list; list++)
                if (streq((*list)->name, name))
                        return *list;
        return NULL;
}

/* That all of a result has arrived. Of what failed before the last piece only that is known; trying again tells why.
 * Return: @r if it has, else 1 after a message. */
static int finish_output(const char *path, int r)
{
        int reason = fflush(stdout) == 0 ? 0 : errno;

        if (reason == 0 && !ferror(stdout))
                return r;
        if (reason == 0 && (fputc('\n', stdout) == EOF || fflush(stdout) != 0))
                reason = errno;
        fprintf(stderr, "%s: cannot write to standard output: %s\n", path, reason ? strerror(reason) : "it failed");
        return 1;
}

static int print_help(const char *path, const struct text *t)
{
        if (t->failed) {
                fprintf(stderr, "%s: out of memory\n", path);
                return 1;
        }
        fputs(t->data, stdout);
        return finish_output(path, 0);
}

static void list_verbs(const struct verb *const *list, struct text *out)
{
        for (; *list; list++)
                text_addf(out, "  %-12s %s\n", (*list)->name, (*list)->summary);
}

static int help_program(const struct verb *const *list)
{
        _cleanup_text_ struct text t = {0};

        text_add(&t,
                 "usage: " PROGRAM " VERB [OPTION...] [ARGUMENT...]\n\n"
                 "Builds isolation boundaries, drives them with load, and freezes what it measured as evidence.\n\n");
        list_verbs(list, &t);
        text_add(&t, "\n`" PROGRAM " VERB --help` describes one; `man " PROGRAM "-VERB` tells more.\n"
                     "`" PROGRAM " --version` prints the version.\n");
        return print_help(PROGRAM, &t);
}

static int help_verb(const char *path, const struct verb *v)
{
        _cleanup_text_ struct text t = {0};

        if (v->verbs) {
                text_addf(&t, "usage: %s VERB [OPTION...] [ARGUMENT...]\n\n%s\n\n", path,
                          v->description ? v->description : v->summary);
                list_verbs(v->verbs, &t);
                text_addf(&t, "\n`%s VERB --help` describes one.\n", path);
        } else {
                text_addf(&t, "usage: %s [OPTION...]%s%s\n\n%s\n\n", path, v->arguments ? " " : "",
                          v->arguments ? v->arguments : "", v->description ? v->description : v->summary);
                option_help(v->options, &t);
        }
        return print_help(path, &t);
}

static int complain(const char *path, const struct verb *v, const struct err *err)
{
        char message[1400];

        err_format(err, message, sizeof(message));
        fprintf(stderr, "%s: %s\n", path, message);
        return v->failure_code ? v->failure_code : err_exit_code(err->kind == ERR_NONE ? ERR_BUG : err->kind);
}

static int unknown_verb(const char *path, const struct verb *const *list, const char *name)
{
        const char *names[64], *nearest;
        size_t n = 0;

        for (; *list && n < ARRAY_SIZE(names); list++)
                names[n++] = (*list)->name;
        nearest = text_nearest(name, names, n);
        if (nearest)
                fprintf(stderr, "%s: there is no verb %s; did you mean `%s %s`?\n", path, name, path, nearest);
        else
                fprintf(stderr, "%s: there is no verb %s; `%s --help` lists them\n", path, name, path);
        return 2;
}

static int verb_run(const char *path, const struct verb *v, int argc, char **argv)
{
        _cleanup_free_ void *options = calloc(1, v->options_size ? v->options_size : 1);
        struct err err = {0};
        int r;

        if (!options)
                return 1;
        r = option_parse(v->options, v->is_command, &argc, argv, options, &err);
        if (r == 1)
                return help_verb(path, v);
        if (r == 0 && argc < v->min_args)
                r = err_set(&err, ERR_USAGE, EINVAL, "expected %s; `%s --help` tells more",
                            v->arguments ? v->arguments : "arguments", path);
        if (r == 0 && v->max_args >= 0 && argc > v->max_args)
                r = err_set(&err, ERR_USAGE, EINVAL, "too many arguments, the first of them is \"%s\"",
                            argv[v->max_args]);
        if (r == 0)
                r = v->run(options, argc, argv, &err);
        if (r < 0)
                return complain(path, v, &err);
        return finish_output(path, r);
}

/* Descends from the list of verbs to the one that runs; @path collects the words for messages. */
static int verb_dispatch(const char *path, const struct verb *v, int argc, char **argv)
{
        _cleanup_free_ char *longer = NULL;
        const struct verb *sub;

        if (v->run)
                return verb_run(path, v, argc, argv);
        if (argc == 0) {
                fprintf(stderr, "%s: expected a verb; `%s --help` lists them\n", path, path);
                return 2;
        }
        if (streq(argv[0], "--help") || streq(argv[0], "-h"))
                return help_verb(path, v);
        sub = verb_find(v->verbs, argv[0]);
        if (!sub)
                return unknown_verb(path, v->verbs, argv[0]);
        longer = text_format("%s %s", path, sub->name);
        return longer ? verb_dispatch(longer, sub, argc - 1, argv + 1) : 1;
}

int verb_main(const struct verb *const *list, int argc, char **argv)
{
        struct verb program = {.name = PROGRAM, .verbs = list};

        if (argc >= 2 && (streq(argv[1], "--help") || streq(argv[1], "-h") || streq(argv[1], "help")))
                return help_program(list);
        if (argc >= 2 && streq(argv[1], "--version")) {
                printf("%s %s (%s%s)\n", PROGRAM, version_number(), version_commit(),
                       version_is_modified() ? ", modified" : "");
                return finish_output(PROGRAM, 0);
        }
        return verb_dispatch(PROGRAM, &program, argc > 0 ? argc - 1 : 0, argv + 1);
}
