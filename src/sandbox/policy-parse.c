/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/number.h"
#include "sandbox/policy-internal.h"

/* Reading a policy: the key tables give its parts, each of which is then brought into the form that decisions need. */

#define WHERE_MAX 64

static const struct node_limits limits_of_policy = {.bytes = POLICY_BYTES_MAX, .depth = 8, .nodes = 100000, .keys = 64};

struct reader {
        const struct node *root;
        struct policy_keys keys;
        struct policy_layer *layer;
        struct err *err;
};

/* ---- layers and policies ---- */

static void rule_done(struct policy_rule *rule)
{
        free(rule->name);
        free(rule->ports.ranges);
        free(rule->sni);
        free(rule->http_host);
}

static void layer_free(struct policy_layer *layer)
{
        if (!layer)
                return;
        for (size_t i = 0; i < layer->n_rules; i++)
                rule_done(&layer->rules[i]);
        free(layer->rules);
        free(layer->localhost.ranges);
        free(layer->path);
        policy_index_free(layer->index);
        free(layer);
}

void policy_free(struct policy *policy)
{
        if (!policy)
                return;
        for (size_t i = 0; i < policy->n_layers; i++)
                layer_free(policy->layers[i]);
        free(policy->layers);
        free(policy);
}

/* A policy of one layer, which it takes over; NULL, and the layer still the caller's, if memory ran out. */
static struct policy *policy_of_layer(struct policy_layer *layer)
{
        struct policy *policy = calloc(1, sizeof(*policy));

        if (policy)
                policy->layers = calloc(1, sizeof(struct policy_layer *));
        if (!policy || !policy->layers) {
                free(policy);
                return NULL;
        }
        policy->layers[policy->n_layers++] = layer;
        policy->total = layer->total;
        policy->per_target = layer->per_target;
        return policy;
}

struct policy *policy_new_deny_all(void)
{
        struct policy_layer *layer = calloc(1, sizeof(*layer));
        struct policy *policy = NULL;

        if (layer)
                layer->path = strdup("built in");
        if (layer && layer->path) {
                layer->is_deny_all = true;
                policy = policy_index_build(layer) == 0 ? policy_of_layer(layer) : NULL;
        }
        if (!policy)
                layer_free(layer);
        return policy;
}

static uint64_t smaller_limit(uint64_t a, uint64_t b)
{
        return a == 0 ? b : b == 0 ? a : MIN(a, b);
}

static void limits_narrow(struct policy_limits *into, const struct policy_limits *by)
{
        into->rate_bps = smaller_limit(into->rate_bps, by->rate_bps);
        into->bytes = smaller_limit(into->bytes, by->bytes);
        into->connections = smaller_limit(into->connections, by->connections);
        into->new_connections_hz = smaller_limit(into->new_connections_hz, by->new_connections_hz);
}

int policy_combine(struct policy *into, struct policy **other, struct err *err)
{
        struct policy *by = *other;
        struct policy_layer **layers =
                reallocarray(into->layers, into->n_layers + by->n_layers, sizeof(struct policy_layer *));

        if (!layers)
                return err_set_nomem(err);
        into->layers = layers;
        for (size_t i = 0; i < by->n_layers; i++)
                layers[into->n_layers++] = by->layers[i];
        limits_narrow(&into->total, &by->total);
        limits_narrow(&into->per_target, &by->per_target);
        by->n_layers = 0;
        policy_free(TAKE_PTR(*other));
        return 0;
}

/* ---- rules ---- */

/* The value of @key in the @i-th entry of the list @list, for the position of an error. */
static const struct node *entry_value(const struct node *root, const char *list, size_t i, const char *key)
{
        const struct node *entries = node_get(root, list);

        return node_get(entries->kind == NODE_SEQUENCE ? entries->items[i] : entries, key);
}

static char *name_suffix_form(enum policy_match match, const char *name)
{
        return match == POLICY_MATCH_SUFFIX ? text_format(*name ? "*.%s" : "*%s", name) : strdup(name);
}

/* Reads "example.org", "*.example.org" or "*". Return: 0; -EINVAL where @text is none; -ENOTUNIQ where it is an
 * address. */
static int parse_pattern(const char *text, enum policy_match *ret_match, struct host_name *ret)
{
        bool is_suffix = strncmp(text, "*.", 2) == 0;

        *ret_match = is_suffix || streq(text, "*") ? POLICY_MATCH_SUFFIX : POLICY_MATCH_NAME;
        if (streq(text, "*")) {
                *ret = (struct host_name){.kind = HOST_NAME_IS_NAME};
                return 0;
        }
        if (host_name_parse_bare(span_of_text(is_suffix ? text + 2 : text), ret) < 0)
                return -EINVAL;
        if (ret->kind == HOST_NAME_IS_NAME)
                return 0;
        return is_suffix ? -EINVAL : -ENOTUNIQ;
}

static int read_host(struct reader *r, const struct node *node, const char *where, struct policy_rule *rule)
{
        struct host_name host;
        int k = parse_pattern(node->scalar, &rule->match, &host);

        if (k == -ENOTUNIQ)
                return err_set_at(r->err, ERR_USAGE, &node->position,
                                  "%s.host: \"%.64s\" is an address; expected a name, or the key \"address\" instead",
                                  where, node->scalar);
        if (k < 0)
                return err_set_at(r->err, ERR_USAGE, &node->position,
                                  "%s.host: \"%.64s\" is not a name such as example.org or \"*.example.org\" (letters, "
                                  "digits, \"-\" and \"_\"; names of other scripts as xn--...)",
                                  where, node->scalar);
        if (!rule->is_deny && policy_name_is_local(host.text))
                return err_set_at(r->err, ERR_USAGE, &node->position,
                                  "%s.host: \"%.64s\" is the command's own loopback; what it may use of the host's "
                                  "stands under \"localhost\", such as localhost: [5432]",
                                  where, node->scalar);
        rule->name = strdup(host.text);
        return rule->name ? 0 : err_set_nomem(r->err);
}

/* Whether all of @range is the loopback, or what the kernel takes for it. */
static bool is_loopback_range(const struct ip_prefix *range)
{
        const struct special *special;

        for (size_t i = 0; (special = special_at(i)); i++)
                if (special->kind == SPECIAL_LOOPBACK && range->length_bits >= special->prefix.length_bits &&
                    ip_prefix_contains(&special->prefix, range))
                        return true;
        return false;
}

static int read_address(struct reader *r, const struct node *node, const char *where, struct policy_rule *rule)
{
        struct ip_prefix range;
        char text[IP_TEXT_MAX];

        if (ip_prefix_parse(node->scalar, &range) < 0)
                return err_set_at(r->err, ERR_USAGE, &node->position,
                                  "%s.address: \"%.64s\" is not an address or range such as 192.0.2.1, 192.0.2.0/24 or "
                                  "2001:db8::/32%s",
                                  where, node->scalar,
                                  node->scalar[strspn(node->scalar, "0123456789./:%")]
                                          ? "; a name stands under \"host\""
                                          : "");
        if (ip_prefix_mask(&range))
                return err_set_at(r->err, ERR_USAGE, &node->position,
                                  "%s.address: %.64s has bits set behind the length of its range; expected %s", where,
                                  node->scalar, ip_prefix_format(&range, text));
        target_address_normalise(&range);
        if (!rule->is_deny && is_loopback_range(&range))
                return err_set_at(
                        r->err, ERR_USAGE, &node->position,
                        "%s.address: %.64s is the command's own loopback; what it may use of the host's stands "
                        "under \"localhost\", such as localhost: [5432]",
                        where, node->scalar);
        rule->match = POLICY_MATCH_ADDRESS;
        rule->prefix = range;
        return 0;
}

/* `sni` and `http-host`: what a flow says of itself. */
static int read_requirement(struct reader *r, const struct node *node, const char *where, const char *key,
                            bool may_be_address, const struct policy_rule *rule, char **ret)
{
        enum policy_match match;
        struct host_name host;
        int k = parse_pattern(node->scalar, &match, &host);

        if (k < 0 && !(k == -ENOTUNIQ && may_be_address))
                return err_set_at(r->err, ERR_USAGE, &node->position,
                                  "%s.%s: \"%.64s\" is not a name such as example.org or \"*.example.org\"", where, key,
                                  node->scalar);
        if (rule->transports != 1u << TRANSPORT_TCP)
                return err_set_at(r->err, ERR_USAGE, &node->position,
                                  "%s.%s: flows of UDP are not looked into; expected transport: tcp", where, key);
        *ret = name_suffix_form(match, host.text);
        return *ret ? 0 : err_set_nomem(r->err);
}

static int read_rule(struct reader *r, const char *list, size_t i, const struct policy_rule_keys *keys,
                     const struct position *at, struct policy_rule *rule)
{
        const struct node *host = entry_value(r->root, list, i, "host"), *sni = entry_value(r->root, list, i, "sni");
        const struct node *address = entry_value(r->root, list, i, "address");
        const struct node *http_host = entry_value(r->root, list, i, "http-host");
        char where[WHERE_MAX], port[WHERE_MAX + 8];
        int k;

        snprintf(where, sizeof(where), "%s[%zu]", list, i + 1);
        snprintf(port, sizeof(port), "%s.port", where);
        rule->number = (unsigned)i + 1;
        rule->at = (struct policy_place){at->line, at->column};
        rule->transports = keys->transport == N_TRANSPORTS ? (1u << N_TRANSPORTS) - 1 : 1u << keys->transport;
        if (!host == !address)
                return err_set_at(r->err, ERR_USAGE, at,
                                  "%s: expected either the key \"host\" or the key \"address\"%s", where,
                                  host ? ", not both" : "");
        if (sni && http_host)
                return err_set_at(
                        r->err, ERR_USAGE, at,
                        "%s: expected \"sni\" or \"http-host\", not both: the Host of a TLS flow is encrypted", where);
        k = host ? read_host(r, host, where, rule) : read_address(r, address, where, rule);
        if (k == 0 && keys->port)
                k = port_set_read(keys->port, port, &rule->ports, r->err);
        else if (k == 0)
                k = port_set_any(&rule->ports) < 0 ? err_set_nomem(r->err) : 0;
        if (k == 0 && sni)
                k = read_requirement(r, sni, where, "sni", false, rule, &rule->sni);
        if (k == 0 && http_host)
                k = read_requirement(r, http_host, where, "http-host", true, rule, &rule->http_host);
        return k;
}

static int read_rules(struct reader *r)
{
        const struct key_tables *const lists[] = {&r->keys.deny, &r->keys.allow};
        static const char *const names[] = {"deny", "allow"};
        size_t n = r->keys.deny.n + r->keys.allow.n;

        if (n > POLICY_RULES_MAX)
                return err_set_at(r->err, ERR_USAGE, &r->root->position, "%zu rules; at most %d are allowed", n,
                                  POLICY_RULES_MAX);
        r->layer->rules = calloc(MAX(n, (size_t)1), sizeof(*r->layer->rules));
        if (!r->layer->rules)
                return err_set_nomem(r->err);
        for (size_t l = 0; l < ARRAY_SIZE(lists); l++)
                for (size_t i = 0; i < lists[l]->n; i++) {
                        const struct policy_rule_keys *keys = lists[l]->entries;
                        struct policy_rule *rule = &r->layer->rules[r->layer->n_rules++];
                        int k;

                        rule->is_deny = l == 0;
                        k = read_rule(r, names[l], i, &keys[i], &lists[l]->positions[i], rule);
                        if (k < 0)
                                return k;
                }
        return 0;
}

/* ---- the top ---- */

static struct policy_place place_of(const struct reader *r, const char *key)
{
        const struct node *node = node_get(r->root, key);

        return node ? (struct policy_place){node->position.line, node->position.column} : (struct policy_place){0};
}

static struct policy_limits limits_of(const struct policy_limit_keys *keys)
{
        return (struct policy_limits){(uint64_t)keys->rate_bps, (uint64_t)keys->bytes, (uint64_t)keys->connections,
                                      (uint64_t)keys->new_connections_hz};
}

static int read_localhost(struct reader *r)
{
        const struct node *node = r->keys.localhost;
        char found[64];

        if (!node)
                return 0;
        if (node->kind == NODE_MAPPING || (node->kind == NODE_SCALAR && streq(node->scalar, "any")))
                return err_set_at(r->err, ERR_USAGE, &node->position,
                                  "localhost: %s is not a list of ports such as [5432]", node_kind_text(node, found));
        return port_set_read(node, "localhost", &r->layer->localhost, r->err);
}

static int read_top(struct reader *r)
{
        struct policy_layer *layer = r->layer;
        int k = key_table_read(&policy_table, r->root, "", &r->keys, r->err);

        if (k == 0)
                k = read_localhost(r);
        if (k < 0)
                return k;
        layer->default_at = place_of(r, "default");
        layer->deny_all_at = place_of(r, "deny-all");
        layer->private_at = place_of(r, "private-addresses");
        layer->localhost_at = place_of(r, "localhost");
        layer->is_deny_all = r->keys.is_deny_all;
        layer->allows_private = r->keys.private_addresses == 1;
        layer->total = limits_of(&r->keys.limits.total);
        layer->per_target = limits_of(&r->keys.limits.per_target);
        if (layer->is_deny_all && (r->keys.allow.n > 0 || layer->localhost.n > 0))
                return err_set_at(r->err, ERR_USAGE, &node_get(r->root, "deny-all")->position,
                                  "deny-all: nothing may be reached, but \"%s\" says what may; leave one of them out",
                                  r->keys.allow.n > 0 ? "allow" : "localhost");
        return read_rules(r);
}

static int take_identity(struct policy_layer *layer, struct span text, const char *name, struct err *err)
{
        layer->path = strdup(name);
        if (!layer->path)
                return err_set_nomem(err);
        return digest_of_bytes(text, &layer->digest, err);
}

static void reader_done(struct reader *r)
{
        key_table_done(&policy_table, &r->keys);
        node_free((struct node *)r->root);
        layer_free(r->layer);
}

int policy_parse(struct span text, const char *name, struct policy **ret, struct err *err)
{
        _cleanup_(reader_done) struct reader r = {.layer = calloc(1, sizeof(*r.layer)), .err = err};
        struct node *root = NULL;
        struct policy *policy;
        int k;

        if (!r.layer)
                return err_set_nomem(err);
        k = node_parse(text, name, &limits_of_policy, &root, err);
        r.root = root;
        if (k == 0)
                k = take_identity(r.layer, text, name, err);
        if (k == 0)
                k = read_top(&r);
        if (k == 0)
                k = policy_index_build(r.layer) < 0 ? err_set_nomem(err) : 0;
        if (k < 0)
                return k;
        policy = policy_of_layer(r.layer);
        if (!policy)
                return err_set_nomem(err);
        r.layer = NULL;
        *ret = policy;
        return 0;
}

/* ---- files ---- */

/* Whether @owner is one who commands this process anyway: its user, root, or as root the user that sudo is run for. */
static bool is_trusted(uid_t owner)
{
        const char *sudo = geteuid() == 0 ? secure_getenv("SUDO_UID") : NULL;
        uint64_t caller;

        if (owner == geteuid() || owner == 0)
                return true;
        return sudo && number_parse_u64(span_of_text(sudo), &caller) == 0 && caller == owner;
}

static int check_writers(int fd, const char *path, struct err *err)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return err_set_errno(err, ERR_IO, errno, "cannot examine %s", path);
        if (!S_ISREG(st.st_mode))
                return err_set(err, ERR_USAGE, EINVAL, "%s: a policy has to be a regular file", path);
        if (!is_trusted(st.st_uid))
                return err_set(
                        err, ERR_USAGE, EPERM,
                        "%s belongs to user %u, who could change it; a policy has to belong to who runs it, or to "
                        "root",
                        path, st.st_uid);
        if (st.st_mode & (S_IWGRP | S_IWOTH))
                return err_set(err, ERR_USAGE, EPERM,
                               "%s can be written by %s; a policy may be written by its owner only: chmod go-w %s",
                               path, st.st_mode & S_IWOTH ? "everybody" : "its group", path);
        return 0;
}

int policy_load(int dirfd, const char *path, struct policy **ret, struct err *err)
{
        _cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
        _cleanup_free_ char *bytes = NULL;
        size_t len;
        int r;

        if (fd < 0 && errno == ELOOP)
                return err_set(
                        err, ERR_USAGE, ELOOP,
                        "%s is a symbolic link, which somebody could point elsewhere; name the policy's file itself",
                        path);
        if (fd < 0)
                return file_open_failed(err, errno, path);
        r = check_writers(fd, path, err);
        if (r == 0)
                r = file_read_fd(fd, path, POLICY_BYTES_MAX, &bytes, &len, err);
        return r < 0 ? r : policy_parse(span_of(bytes, len), path, ret, err);
}
