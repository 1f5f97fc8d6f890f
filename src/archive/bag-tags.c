/* SPDX-License-Identifier: Apache-2.0 */

/* Reading a bag's tag files: declaration, information, manifests. */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "archive/bag-internal.h"
#include "base/file.h"
#include "base/number.h"

bool bag_next_line(struct span *s, struct span *ret)
{
        size_t len = 0, end;

        if (s->len == 0)
                return false;
        while (len < s->len && s->data[len] != '\n' && s->data[len] != '\r')
                len++;
        end = len;
        if (end < s->len)
                end += s->data[end] == '\r' && end + 1 < s->len && s->data[end + 1] == '\n' ? 2 : 1;
        *ret = span_of(s->data, len);
        *s = span_of(s->data + end, s->len - end);
        return true;
}

char *bag_encode_path(const char *path)
{
        _cleanup_text_ struct text out = {0};

        for (; *path; path++) {
                size_t plain = strcspn(path, "%\r\n");

                text_add_bytes(&out, path, plain);
                path += plain;
                if (!*path)
                        break;
                text_addf(&out, "%%%02X", (unsigned char)*path);
        }
        return text_take(&out);
}

/* Length of the encoded character at @s, its value in @ret; 0 if there is none that RFC 8493 allows. */
static size_t decode_character(struct span s, char *ret)
{
        static const struct {
                const char *code;
                char character;
        } codes[] = {{"%25", '%'}, {"%0D", '\r'}, {"%0A", '\n'}};

        for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
                if (s.len >= 3 && strncasecmp((const char *)s.data, codes[i].code, 3) == 0) {
                        *ret = codes[i].character;
                        return 3;
                }
        return 0;
}

int bag_decode_path(struct span encoded, char **ret)
{
        _cleanup_free_ char *path = malloc(encoded.len + 1);
        size_t len = 0;

        if (!path)
                return -ENOMEM;
        for (size_t i = 0; i < encoded.len; len++) {
                size_t n = 1;

                path[len] = (char)encoded.data[i];
                if (path[len] == '\0')
                        return -EINVAL;
                if (path[len] == '%') {
                        n = decode_character(span_of(encoded.data + i, encoded.len - i), &path[len]);
                        if (n == 0)
                                return -EINVAL;
                }
                i += n;
        }
        path[len] = '\0';
        *ret = TAKE_PTR(path);
        return 0;
}

static bool is_blank(uint8_t c)
{
        return c == ' ' || c == '\t';
}

/* Takes a manifest's line apart: hexadecimal digits, spaces or tabs, perhaps the "*" of a binary file, a path. A
 * leading
 * "./" is what `find` and `sha256sum` make of a path in the same folder. Return: 0, -EINVAL or -ENOMEM. */
static int parse_line(struct span line, struct bag_entry *ret)
{
        size_t at = 0, digits;

        while (at < line.len && !is_blank(line.data[at]))
                at++;
        digits = at;
        while (at < line.len && is_blank(line.data[at]))
                at++;
        if (at == digits || digest_parse(span_of(line.data, digits), &ret->digest) < 0)
                return -EINVAL;
        if (at < line.len && line.data[at] == '*')
                at++;
        if (line.len - at > 2 && memcmp(line.data + at, "./", 2) == 0)
                at += 2;
        return bag_decode_path(span_of(line.data + at, line.len - at), &ret->path);
}

/* Why @path cannot stand in the manifest; NULL if it can. */
static const char *path_fault(const char *path, bool is_payload)
{
        if (!text_is_utf8(path, strlen(path)))
                return "is not UTF-8";
        if (!file_is_beneath(path))
                return "leads out of the archive";
        if ((strncmp(path, "data/", 5) == 0) != is_payload)
                return is_payload ? "is not below data/, in a manifest of the payload"
                                  : "is below data/, in a manifest of tag files";
        if (!is_payload && strncmp(path, "tagmanifest-", 12) == 0)
                return "is a tag manifest, which no manifest lists";
        return NULL;
}

static int manifest_add(struct bag_manifest *manifest, struct bag_entry entry)
{
        if (manifest->n == manifest->allocated) {
                size_t more = manifest->allocated ? 2 * manifest->allocated : 64;
                struct bag_entry *entries = realloc(manifest->entries, more * sizeof(*entries));

                if (!entries)
                        return -ENOMEM;
                manifest->entries = entries;
                manifest->allocated = more;
        }
        manifest->entries[manifest->n++] = entry;
        return 0;
}

static int compare_entries(const void *a, const void *b)
{
        return strcmp(((const struct bag_entry *)a)->path, ((const struct bag_entry *)b)->path);
}

/* Sorts, and keeps one of each path; a path that is listed twice is a fault, even with the same digest. */
static int manifest_sort(struct bag_manifest *manifest, const char *name, struct bag_report *report)
{
        size_t kept = 0;

        if (manifest->n > 0)
                qsort(manifest->entries, manifest->n, sizeof(*manifest->entries), compare_entries);
        for (size_t i = 0; i < manifest->n; i++) {
                struct bag_entry *entry = &manifest->entries[i];

                if (kept > 0 && streq(manifest->entries[kept - 1].path, entry->path)) {
                        if (bag_report_add(report, BAG_MALFORMED, entry->path, "listed twice in %s", name) < 0)
                                return -ENOMEM;
                        free(TAKE_PTR(entry->path));
                } else if (kept++ != i) {
                        manifest->entries[kept - 1] = *entry;
                        entry->path = NULL;
                }
        }
        manifest->n = kept;
        return 0;
}

int bag_manifest_parse(struct span s, const char *name, bool is_payload, struct bag_manifest *ret,
                       struct bag_report *report)
{
        _cleanup_bag_manifest_ struct bag_manifest manifest = {0};
        struct span line;
        int r;

        for (unsigned number = 1; bag_next_line(&s, &line); number++) {
                struct bag_entry entry = {0};
                const char *fault;

                r = parse_line(line, &entry);
                if (r == -EINVAL)
                        r = bag_report_add(report, BAG_MALFORMED, name,
                                           "line %u is not a SHA-256 digest, a space and a path", number);
                if (r < 0)
                        return r;
                if (!entry.path)
                        continue;
                fault = path_fault(entry.path, is_payload);
                if (fault)
                        r = bag_report_add(report, BAG_MALFORMED, entry.path, "%s (%s, line %u)", fault, name, number);
                else
                        r = manifest_add(&manifest, entry);
                if (fault || r < 0)
                        free(entry.path);
                if (r < 0)
                        return r;
        }
        r = manifest_sort(&manifest, name, report);
        if (r < 0)
                return r;
        *ret = manifest;
        manifest = (struct bag_manifest){0};
        return 0;
}

void bag_manifest_done(struct bag_manifest *manifest)
{
        for (size_t i = 0; i < manifest->n; i++)
                free(manifest->entries[i].path);
        free(manifest->entries);
        *manifest = (struct bag_manifest){0};
}

/* The value of a line "@label: value", blanks around it taken off. Return: whether it is such a line. */
static bool value_of(struct span line, const char *label, struct span *ret)
{
        size_t start = strlen(label), end = line.len;

        if (line.len <= start || memcmp(line.data, label, start) != 0 || line.data[start] != ':')
                return false;
        start++;
        while (start < end && is_blank(line.data[start]))
                start++;
        while (end > start && is_blank(line.data[end - 1]))
                end--;
        *ret = span_of(line.data + start, end - start);
        return true;
}

/* Whether @s is a version of BagIt that reads like 1.0: a 0.x draft of it, or 1.x. */
static bool is_known_version(struct span s)
{
        uint64_t minor;

        return s.len >= 3 && (s.data[0] == '0' || s.data[0] == '1') && s.data[1] == '.' &&
               number_parse_u64(span_of(s.data + 2, s.len - 2), &minor) == 0;
}

int bag_declaration_parse(struct span s, struct bag_report *report)
{
        struct span line, value;

        if (!bag_next_line(&s, &line) || !value_of(line, "BagIt-Version", &value) || !is_known_version(value))
                return bag_report_add(report, BAG_MALFORMED, BAG_DECLARATION,
                                      "line 1 is not \"BagIt-Version: 1.0\" or an earlier version");
        if (!bag_next_line(&s, &line) || !value_of(line, "Tag-File-Character-Encoding", &value) ||
            !(value.len == 5 && strncasecmp((const char *)value.data, "UTF-8", 5) == 0))
                return bag_report_add(report, BAG_MALFORMED, BAG_DECLARATION,
                                      "line 2 is not \"Tag-File-Character-Encoding: UTF-8\"");
        if (s.len > 0)
                return bag_report_add(report, BAG_MALFORMED, BAG_DECLARATION, "has more than two lines");
        return 0;
}

/* "BYTES.FILES" */
static bool parse_oxum(struct span s, struct bag_oxum *ret)
{
        const uint8_t *dot = s.len > 0 ? memchr(s.data, '.', s.len) : NULL;
        size_t len = dot ? (size_t)(dot - s.data) : 0;

        return dot && number_parse_u64(span_of(s.data, len), &ret->bytes) == 0 &&
               number_parse_u64(span_of(dot + 1, s.len - len - 1), &ret->files) == 0;
}

int bag_info_parse(struct span s, struct bag_oxum *ret, struct bag_report *report)
{
        struct span line, value;
        bool is_first = true;

        *ret = (struct bag_oxum){0};
        if (!text_is_utf8(s.data, s.len))
                return bag_report_add(report, BAG_MALFORMED, BAG_INFO, "is not UTF-8");
        for (unsigned number = 1; bag_next_line(&s, &line); number++, is_first = false) {
                if (line.len > 0 && is_blank(line.data[0]) && !is_first)
                        continue; /* goes on with the value of the line before */
                if (line.len == 0 || is_blank(line.data[0]) || line.data[0] == ':' || !memchr(line.data, ':', line.len))
                        return bag_report_add(report, BAG_MALFORMED, BAG_INFO, "line %u is not \"Label: value\"",
                                              number);
                if (!value_of(line, "Payload-Oxum", &value))
                        continue;
                if (ret->is_present || !parse_oxum(value, ret))
                        return bag_report_add(report, BAG_MALFORMED, BAG_INFO,
                                              "line %u: expected one Payload-Oxum, as bytes, a point, and files",
                                              number);
                ret->is_present = true;
        }
        return 0;
}
