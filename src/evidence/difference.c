/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/difference.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

#define VALUE_CHARACTERS_MAX 160

static void difference_done(struct difference *d)
{
        free(d->file);
        free(d->path);
        free(d->frozen);
        free(d->again);
}

void differences_done(struct differences *differences)
{
        for (size_t i = 0; i < differences->n; i++)
                difference_done(&differences->items[i]);
        *differences = (struct differences){0};
}

int differences_add(struct differences *differences, const char *file, const char *path, const char *frozen,
                    const char *again)
{
        struct difference *d = &differences->items[differences->n];

        differences->n_all++;
        if (differences->n == DIFFERENCES_MAX)
                return 0;
        *d = (struct difference){.file = strdup(file),
                                 .path = strdup(path),
                                 .frozen = strdup(frozen),
                                 .again = strdup(again)};
        if (!d->file || !d->path || !d->frozen || !d->again) {
                difference_done(d);
                return -ENOMEM;
        }
        differences->n++;
        return 0;
}

/* A value on one line, cut where it is long. NULL if memory ran out. */
static char *value_text(const json_t *value)
{
        _cleanup_free_ char *line = NULL;

        if (!value)
                return strdup("nothing");
        line = json_format_line(value);
        if (!line)
                return NULL;
        if (strlen(line) <= VALUE_CHARACTERS_MAX)
                return TAKE_PTR(line);
        return text_format("%.*s...", VALUE_CHARACTERS_MAX, line);
}

struct walk {
        struct differences *differences;
        const char *file;
};

static int compare(const struct walk *walk, const char *path, const json_t *frozen, const json_t *again);

static int compare_arrays(const struct walk *walk, const char *path, const json_t *frozen, const json_t *again)
{
        size_t n = MAX(json_array_size(frozen), json_array_size(again));

        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *below = text_format("%s[%zu]", path, i);
                int r;

                r = below ? compare(walk, below, json_array_get(frozen, i), json_array_get(again, i)) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int compare_member(const struct walk *walk, const char *path, const char *key, const json_t *frozen,
                          const json_t *again)
{
        _cleanup_free_ char *below = text_format("%s%s%s", path, *path ? "." : "", key);

        return below ? compare(walk, below, json_object_get(frozen, key), json_object_get(again, key)) : -ENOMEM;
}

static int compare_objects(const struct walk *walk, const char *path, const json_t *frozen, const json_t *again)
{
        const char *key;
        json_t *value;
        int r = 0;

        json_object_foreach((json_t *)again, key, value)
        {
                if (r == 0)
                        r = compare_member(walk, path, key, frozen, again);
        }
        json_object_foreach((json_t *)frozen, key, value)
        {
                if (r == 0 && !json_object_get(again, key))
                        r = compare_member(walk, path, key, frozen, again);
        }
        return r;
}

static int compare(const struct walk *walk, const char *path, const json_t *frozen, const json_t *again)
{
        _cleanup_free_ char *was = NULL, *is = NULL;

        if (frozen && again && json_equal(frozen, again))
                return 0;
        if (json_is_array(frozen) && json_is_array(again))
                return compare_arrays(walk, path, frozen, again);
        if (json_is_object(frozen) && json_is_object(again))
                return compare_objects(walk, path, frozen, again);
        was = value_text(frozen);
        is = value_text(again);
        if (!was || !is)
                return -ENOMEM;
        return differences_add(walk->differences, walk->file, path, was, is);
}

int differences_of_json(struct differences *differences, const char *file, const json_t *frozen, const json_t *again)
{
        const struct walk walk = {differences, file};

        return compare(&walk, "", frozen, again);
}
