/* SPDX-License-Identifier: Apache-2.0 */
#include <libfyaml.h>
#include <stdio.h>

#include "base/macro.h"
#include "base/text.h"
#include "config/node.h"

/* YAML as events from libfyaml. Its document tree is not used: events let everything that is refused be refused when it
 * is met, before a deep or large input has cost anything. What libfyaml does badly with (directives: time grows with
 * the square of a line of "%") is refused before it sees the bytes. */

const struct node_limits node_limits_default = {.bytes = 1 << 20, .depth = 32, .nodes = 20000, .keys = 1000};

/* ---- the bytes, before they are parsed ---- */

/* Length of a control character at @p that has no place in a configuration, else 0: C0 but for tab and line ends, DEL,
 * C1, the Unicode line and paragraph separators (line ends to some readers), and a byte order mark inside. */
static size_t control_length(const uint8_t *p, size_t left)
{
        if (p[0] == '\t' || p[0] == '\n')
                return 0;
        if (p[0] < 0x20 || p[0] == 0x7f)
                return p[0] == '\r' && left > 1 && p[1] == '\n' ? 0 : 1;
        if (p[0] == 0xc2 && left > 1 && p[1] >= 0x80 && p[1] <= 0x9f)
                return 2;
        if (left > 2 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
                return 3;
        if (left > 2 && p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf)
                return 3;
        return 0;
}

/* The number that Unicode gives the well-formed character of 1 to 3 bytes at @p. */
static unsigned code_point(const uint8_t *p, size_t len)
{
        if (len == 1)
                return p[0];
        if (len == 2)
                return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
        return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
}

/* Line and column (in characters) of byte @offset, all before it being UTF-8. */
static void position_advance(struct position *at, const uint8_t *p, size_t offset)
{
        at->line = at->column = 1;
        for (size_t i = 0; i < offset; i++) {
                if (p[i] == '\n') {
                        at->line++;
                        at->column = 1;
                } else if ((p[i] & 0xc0) != 0x80) {
                        at->column++;
                }
        }
}

static int bytes_check(struct span text, struct position *at, struct err *err)
{
        size_t good = text_utf8_prefix(text.data, text.len);

        for (size_t i = 0; i < good; i++) {
                size_t control = control_length(text.data + i, good - i);

                if (control > 0) {
                        position_advance(at, text.data, i);
                        return err_set_at(err, ERR_USAGE, at, "control character U+%04X, which is not allowed here",
                                          code_point(text.data + i, control));
                }
                if (text.data[i] == '%' && (i == 0 || text.data[i - 1] == '\n')) {
                        position_advance(at, text.data, i);
                        return err_set_at(err, ERR_USAGE, at,
                                          "a line that begins with \"%%\": directives are not read");
                }
        }
        if (good < text.len) {
                position_advance(at, text.data, good);
                return err_set_at(err, ERR_USAGE, at, "byte 0x%02X is not UTF-8; the whole input has to be",
                                  text.data[good]);
        }
        return 0;
}

/* ---- the events ---- */

/* A mapping or sequence that has begun and not ended. */
struct level {
        struct node *node; /* belongs to the level above, or is the root */
        char *key;         /* of a mapping: the key whose value comes next */
        struct position key_position;
};

struct reader {
        struct fy_diag *diag;
        struct fy_parser *parser;
        const struct node_limits *limits;
        struct span text;
        struct position at; /* where the event at hand stands */
        struct node *root;
        bool is_ended; /* the document; a second one is refused */
        size_t n_nodes;
        size_t depth;
        struct level *levels; /* @limits->depth of them */
        struct err *err;
};

static void reader_done(struct reader *r)
{
        for (size_t i = 0; i < r->depth; i++)
                free(r->levels[i].key);
        free(r->levels);
        node_free(r->root);
        if (r->parser)
                fy_parser_destroy(r->parser);
        if (r->diag)
                fy_diag_destroy(r->diag);
}

static void diag_drop(struct fy_diag *diag, void *user, const char *buf, size_t len)
{
}

static int reader_init(struct reader *r)
{
        struct fy_diag_cfg diag = {.output_fn = diag_drop, .level = FYET_ERROR, .module_mask = ~0u};
        struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET | FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE};

        r->levels = calloc(r->limits->depth, sizeof(*r->levels));
        r->diag = fy_diag_create(&diag);
        if (!r->levels || !r->diag)
                return -ENOMEM;
        fy_diag_set_collect_errors(r->diag, true);
        cfg.diag = r->diag;
        r->parser = fy_parser_create(&cfg);
        if (!r->parser || fy_parser_set_string(r->parser, (const char *)r->text.data, r->text.len) < 0)
                return -ENOMEM;
        return 0;
}

/* Puts what libfyaml said first into the error. */
static int reader_fail(struct reader *r)
{
        struct fy_diag_error *e;
        void *previous = NULL;

        while ((e = fy_diag_errors_iterate(r->diag, &previous)))
                if (e->type >= FYET_ERROR && e->msg) {
                        r->at.line = e->line > 0 ? (unsigned)e->line : 1;
                        r->at.column = e->column > 0 ? (unsigned)e->column : 1;
                        return err_set_at(r->err, ERR_USAGE, &r->at, "not valid YAML: %s", e->msg);
                }
        return err_set_at(r->err, ERR_USAGE, &r->at, "not valid YAML");
}

/* The mapping or sequence that is being read; NULL outside of any. */
static struct level *reader_level(struct reader *r)
{
        struct level *level = r->depth > 0 ? &r->levels[r->depth - 1] : NULL;

        return level && level->node ? level : NULL;
}

/* Hangs @node into the tree below the current level. It is the tree's from then on. */
static int reader_attach(struct reader *r, struct node *node)
{
        struct level *level = reader_level(r);
        int k;

        if (!level) {
                r->root = node;
                return 0;
        }
        if (level->node->kind == NODE_SEQUENCE)
                return node_append(level->node, node) < 0 ? err_set_nomem(r->err) : 0;

        k = node_put(level->node, level->key, &level->key_position, node);
        free(TAKE_PTR(level->key));
        return k < 0 ? err_set_nomem(r->err) : 0;
}

/* Where @mark stands; libfyaml puts it after the sign (a quote, "&", "*") of @sign characters that a token starts with.
 */
static void position_take(struct position *at, const struct fy_mark *mark, unsigned sign)
{
        if (!mark)
                return;
        at->line = (unsigned)mark->line + 1;
        at->column = (unsigned)mark->column + 1;
        if (at->column > sign)
                at->column -= sign;
}

static int reader_check_event(struct reader *r, struct fy_event *event)
{
        const struct level *level = reader_level(r);
        struct fy_token *anchor = fy_event_get_anchor_token(event), *tag = fy_event_get_tag_token(event);
        bool is_key = level && level->node->kind == NODE_MAPPING && !level->key;

        if (event->type == FYET_ALIAS)
                return err_set_at(r->err, ERR_USAGE, &r->at,
                                  "an alias (\"*name\"): aliases are not read; write it out, or quote a text");
        if (anchor || tag) {
                position_take(&r->at, fy_token_start_mark(anchor ? anchor : tag), anchor ? 1 : 0);
                return err_set_at(r->err, ERR_USAGE, &r->at,
                                  anchor ? "an anchor (\"&name\"): anchors are not read"
                                         : "a tag (\"!name\"): tags are not read");
        }
        if (is_key && event->type != FYET_SCALAR)
                return err_set_at(r->err, ERR_USAGE, &r->at, "a key that is not a plain text");
        if (++r->n_nodes > r->limits->nodes)
                return err_set_at(r->err, ERR_USAGE, &r->at, "more than %zu keys and values", r->limits->nodes);
        return 0;
}

static int reader_begin(struct reader *r, enum node_kind kind)
{
        struct node *node;
        int k;

        if (r->depth == r->limits->depth)
                return err_set_at(r->err, ERR_USAGE, &r->at, "nested deeper than %zu levels", r->limits->depth);
        node = node_new_mapping();
        if (!node)
                return err_set_nomem(r->err);
        node->kind = kind;
        node->position = r->at;
        k = reader_attach(r, node);
        if (k < 0) {
                node_free(node);
                return k;
        }
        r->levels[r->depth++] = (struct level){.node = node};
        return 0;
}

/* A key: its value follows. */
static int reader_key(struct reader *r, char *key)
{
        struct level *level = &r->levels[r->depth - 1];

        if (key[0] == '\0')
                return err_set_at(r->err, ERR_USAGE, &r->at, "an empty key");
        if (node_get(level->node, key))
                return err_set_at(r->err, ERR_USAGE, &r->at, "key \"%.64s\" stands here twice", key);
        if (level->node->n_items == r->limits->keys)
                return err_set_at(r->err, ERR_USAGE, &r->at, "a mapping of more than %zu keys", r->limits->keys);
        level->key = strdup(key);
        if (!level->key)
                return err_set_nomem(r->err);
        level->key_position = r->at;
        return 0;
}

/* libfyaml 0.7.12 reads '''' in a single-quoted text, two quotes that are meant, as three, and loses memory over it. */
static int quotes_check(struct reader *r, struct fy_token *token)
{
        const struct fy_mark *start = fy_token_start_mark(token), *end = fy_token_end_mark(token);
        struct span raw;

        if (start && end && end->input_pos >= start->input_pos &&
            span_sub(r->text, start->input_pos, end->input_pos - start->input_pos, &raw) &&
            !memmem(raw.data, raw.len, "''''", 4))
                return 0;
        return err_set_at(r->err, ERR_USAGE, &r->at,
                          "two single quotes side by side in a single-quoted text; put it in double quotes");
}

/* The text of a scalar. Escapes in double quotes can make what bytes_check() refused. */
static int scalar_text(struct reader *r, struct fy_token *token, char **ret)
{
        size_t len = 0;
        const char *text = token ? fy_token_get_text(token, &len) : "";
        const uint8_t *p = (const uint8_t *)text;

        if (!text)
                return err_negative(reader_fail(r));
        if (!text_is_utf8(text, len))
                return err_set_at(r->err, ERR_USAGE, &r->at, "an escape that is not a Unicode character");
        for (size_t i = 0; i < len; i++) {
                size_t control = p[i] == '\t' || p[i] == '\n' || p[i] == '\r' ? 1 : control_length(p + i, len - i);

                if (control > 0)
                        return err_set_at(r->err, ERR_USAGE, &r->at, "control character U+%04X in a text%s",
                                          code_point(p + i, control),
                                          p[i] == '\n' ? "; a text over several lines is folded with \">-\"" : "");
        }
        *ret = strndup(text, len);
        return *ret ? 0 : err_set_nomem(r->err);
}

static int reader_scalar(struct reader *r, struct fy_token *token)
{
        struct level *level = reader_level(r);
        enum fy_scalar_style style = fy_token_scalar_style(token);
        _cleanup_node_ struct node *node = NULL;
        _cleanup_free_ char *text = NULL;
        int k;

        k = style == FYSS_SINGLE_QUOTED ? quotes_check(r, token) : 0;
        if (k >= 0)
                k = scalar_text(r, token, &text);
        if (k < 0)
                return k;
        if (level && level->node->kind == NODE_MAPPING && !level->key)
                return reader_key(r, text);

        node = node_new_scalar(text, token || !level || !level->key ? &r->at : &level->key_position);
        if (!node)
                return err_set_nomem(r->err);
        node->is_quoted = style != FYSS_PLAIN;
        k = reader_attach(r, node);
        if (k == 0)
                TAKE_PTR(node);
        return k;
}

static void reader_move(struct reader *r, struct fy_event *event)
{
        enum fy_scalar_style style = FYSS_PLAIN;
        bool has_sign = event->type == FYET_ALIAS;

        if (event->type == FYET_SCALAR)
                style = fy_token_scalar_style(fy_event_get_token(event));
        has_sign |= style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
        position_take(&r->at, fy_event_start_mark(event), has_sign ? 1 : 0);
}

static int reader_event(struct reader *r, struct fy_event *event)
{
        int k = 0;

        reader_move(r, event);
        switch (event->type) {
        case FYET_DOCUMENT_START:
                if (r->is_ended)
                        k = err_set_at(r->err, ERR_USAGE, &r->at, "a second document; only one is read");
                break;
        case FYET_DOCUMENT_END:
                r->is_ended = true;
                break;
        case FYET_MAPPING_END:
        case FYET_SEQUENCE_END:
                r->depth--;
                break;
        case FYET_ALIAS:
        case FYET_SCALAR:
        case FYET_MAPPING_START:
        case FYET_SEQUENCE_START:
                k = reader_check_event(r, event);
                if (k < 0)
                        break;
                if (event->type == FYET_SCALAR)
                        k = reader_scalar(r, fy_event_get_token(event));
                else
                        k = reader_begin(r, event->type == FYET_MAPPING_START ? NODE_MAPPING : NODE_SEQUENCE);
                break;
        default:
                break;
        }
        return k;
}

/* Makes an empty mapping of an input that holds nothing. */
static int reader_empty(struct reader *r)
{
        if (r->root && (r->root->kind != NODE_SCALAR || r->root->scalar[0] != '\0' || r->root->is_quoted))
                return 0;
        node_free(r->root);
        r->root = node_new_mapping();
        if (!r->root)
                return err_set_nomem(r->err);
        r->at.line = r->at.column = 1;
        r->root->position = r->at;
        return 0;
}

int node_parse(struct span text, const char *name, const struct node_limits *limits, struct node **ret, struct err *err)
{
        _cleanup_(reader_done) struct reader r = {.limits = limits ? limits : &node_limits_default, .err = err};
        struct fy_event *event;
        int k;

        snprintf(r.at.file, sizeof(r.at.file), "%s", name);
        r.at.line = r.at.column = 1;
        if (text.len > r.limits->bytes)
                return err_set_at(err, ERR_USAGE, &r.at, "%zu bytes; at most %zu are read", text.len, r.limits->bytes);
        if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
                text = span_of(text.data + 3, text.len - 3);
        k = bytes_check(text, &r.at, err);
        if (k < 0)
                return k;
        r.text = text;
        if (reader_init(&r) < 0)
                return err_set_nomem(err);

        while ((event = fy_parser_parse(r.parser))) {
                k = reader_event(&r, event);
                fy_parser_event_free(r.parser, event);
                if (k < 0)
                        return k;
        }
        if (fy_parser_get_stream_error(r.parser))
                return reader_fail(&r);
        k = reader_empty(&r);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(r.root);
        return 0;
}
