/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stdbool.h>

#include "base/file.h"
#include "base/text.h"

#define JSON_NESTING_MAX 64

/* jansson 2.14 loses a character of a string where its parser runs out of memory, and a whole key where its writer
 * does, and says nothing. So its allocations come through here, and what was made while one failed is not believed. */
static _Thread_local bool allocation_failed;

static void *allocate(size_t size)
{
        void *p = malloc(size);

        if (!p)
                allocation_failed = true;
        return p;
}

__attribute__((constructor)) static void json_set_up(void)
{
        json_set_alloc_funcs(allocate, free);
}

/* jansson allows 2048 levels; nothing of ours has more than a few. Counts brackets outside strings. */
static bool nests_too_deep(struct span s)
{
        size_t depth = 0;
        bool in_string = false;

        for (size_t i = 0; i < s.len; i++) {
                uint8_t c = s.data[i];

                if (in_string) {
                        if (c == '\\')
                                i++;
                        else if (c == '"')
                                in_string = false;
                } else if (c == '"') {
                        in_string = true;
                } else if (c == '{' || c == '[') {
                        if (++depth > JSON_NESTING_MAX)
                                return true;
                } else if ((c == '}' || c == ']') && depth > 0) {
                        depth--;
                }
        }
        return false;
}

static bool has_real(const json_t *value)
{
        const char *key;
        json_t *item;
        size_t i;

        if (json_is_real(value))
                return true;
        json_array_foreach(value, i, item) if (has_real(item)) return true;
        json_object_foreach((json_t *)value, key, item) if (has_real(item)) return true;
        return false;
}

int json_parse(struct span s, const char *name, json_t **ret, struct err *err)
{
        struct position at = {0};
        json_error_t reason;
        _cleanup_json_ json_t *value = NULL;

        snprintf(at.file, sizeof(at.file), "%s", name);
        if (nests_too_deep(s))
                return err_set_at(err, ERR_DATA, &at, "JSON nested deeper than %d levels", JSON_NESTING_MAX);

        allocation_failed = false;
        value = json_loadb(s.len > 0 ? (const char *)s.data : "", s.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
                           &reason);
        if (allocation_failed)
                return err_set_nomem(err);
        if (!value) {
                at.line = reason.line > 0 ? (unsigned)reason.line : 1;
                at.column = reason.column > 0 ? (unsigned)reason.column : 1;
                return err_set_at(err, ERR_DATA, &at, "not valid JSON: %s", reason.text);
        }
        if (has_real(value))
                return err_set_at(err, ERR_DATA, &at,
                                  "holds a number with a fraction or exponent; only integers are used");
        *ret = TAKE_PTR(value);
        return 0;
}

int json_load(int dirfd, const char *path, size_t limit_bytes, json_t **ret, struct err *err)
{
        _cleanup_free_ char *data = NULL;
        size_t len;
        int r;

        r = file_read_beneath(dirfd, path, limit_bytes, &data, &len, err);
        if (r < 0)
                return r;
        return json_parse(span_of(data, len), path, ret, err);
}

/* As json_dumps(), for values without reals. */
static char *dump(const json_t *value, size_t flags)
{
        _cleanup_free_ char *text = NULL;

        if (has_real(value))
                return NULL;
        allocation_failed = false;
        text = json_dumps(value, flags | JSON_SORT_KEYS | JSON_ENCODE_ANY);
        return allocation_failed ? NULL : TAKE_PTR(text);
}

char *json_format(const json_t *value)
{
        _cleanup_free_ char *text = dump(value, JSON_INDENT(2));

        return text ? text_format("%s\n", text) : NULL;
}

char *json_format_line(const json_t *value)
{
        return dump(value, JSON_COMPACT);
}

int json_save(int dirfd, const char *path, const json_t *value, struct err *err)
{
        _cleanup_free_ char *text = NULL;

        if (has_real(value))
                return err_set(err, ERR_BUG, EINVAL, "%s: a floating-point number may not be stored", path);
        text = json_format(value);
        if (!text)
                return err_set_nomem(err);
        return file_write_atomic(dirfd, path, 0644, span_of_text(text), err);
}

static int json_get(const json_t *object, const char *where, const char *key, json_type type, const char *expected,
                    json_t **ret, struct err *err)
{
        json_t *value = json_object_get(object, key);

        if (!value)
                return err_set(err, ERR_DATA, EINVAL, "%s: \"%s\" is missing, expected %s", where, key, expected);
        if (json_typeof(value) != type)
                return err_set(err, ERR_DATA, EINVAL, "%s: \"%s\" is not %s", where, key, expected);
        *ret = value;
        return 0;
}

int json_get_string(const json_t *object, const char *where, const char *key, const char **ret, struct err *err)
{
        json_t *value = NULL;
        int r = json_get(object, where, key, JSON_STRING, "a string", &value, err);

        if (r == 0)
                *ret = json_string_value(value);
        return r;
}

int json_get_i64(const json_t *object, const char *where, const char *key, int64_t *ret, struct err *err)
{
        json_t *value = NULL;
        int r = json_get(object, where, key, JSON_INTEGER, "an integer", &value, err);

        if (r == 0)
                *ret = json_integer_value(value);
        return r;
}

int json_get_bool(const json_t *object, const char *where, const char *key, bool *ret, struct err *err)
{
        json_t *value = json_object_get(object, key);

        if (!value || !json_is_boolean(value))
                return err_set(err, ERR_DATA, EINVAL, "%s: \"%s\" is %s, expected true or false", where, key,
                               value ? "not a boolean" : "missing");
        *ret = json_is_true(value);
        return 0;
}

int json_get_array(const json_t *object, const char *where, const char *key, json_t **ret, struct err *err)
{
        return json_get(object, where, key, JSON_ARRAY, "an array", ret, err);
}

int json_get_object(const json_t *object, const char *where, const char *key, json_t **ret, struct err *err)
{
        return json_get(object, where, key, JSON_OBJECT, "an object", ret, err);
}
