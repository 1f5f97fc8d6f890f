/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/learn.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "base/macro.h"

#define PORTS_OF_RULE 200 /* at most; further ones get a rule of their own */

/* One port of one host, as it will be allowed. */
struct wish {
        char *host; /* a name or an address */
        bool is_address;
        enum transport transport;
        uint16_t port;
};

struct wishes {
        size_t n, allocated;
        struct wish *wishes;
};

static const char everything[] = "private-addresses: allow\n"
                                 "allow:\n"
                                 "  - {host: \"*\", port: any, transport: any}\n"
                                 "  - {address: 0.0.0.0/0, port: any, transport: any}\n"
                                 "  - {address: \"::/0\", port: any, transport: any}\n";

struct policy *learn_policy_new(void)
{
        struct policy *policy = NULL;

        return policy_parse(span_of_text(everything), "learn", &policy, NULL) < 0 ? NULL : policy;
}

static void wishes_done(struct wishes *wishes)
{
        for (size_t i = 0; i < wishes->n; i++)
                free(wishes->wishes[i].host);
        free(wishes->wishes);
}

static int wishes_add(struct wishes *wishes, const char *host, bool is_address, enum transport transport, uint16_t port)
{
        char *copy = strdup(host);

        if (!copy)
                return -ENOMEM;
        if (wishes->n == wishes->allocated) {
                size_t more = 2 * wishes->allocated + 32;
                struct wish *bigger = reallocarray(wishes->wishes, more, sizeof(*bigger));

                if (!bigger) {
                        free(copy);
                        return -ENOMEM;
                }
                wishes->wishes = bigger;
                wishes->allocated = more;
        }
        wishes->wishes[wishes->n++] = (struct wish){copy, is_address, transport, port};
        return 0;
}

/* ---- reading the record ---- */

/* A list of the record's network; NULL where it was not observed. */
static const json_t *list_of(const json_t *record, const char *name)
{
        const json_t *list = json_object_get(json_object_get(record, "network"), name);

        return json_is_array(list) ? list : NULL;
}

static const char *text_of(const json_t *entry, const char *key)
{
        const char *text = json_string_value(json_object_get(entry, key));

        return text ? text : "";
}

static bool has_address(const json_t *question, const char *address)
{
        const json_t *there;
        size_t i;

        json_array_foreach(json_object_get(question, "addresses"), i,
                           there) if (streq(json_string_value(there), address)) return true;
        return false;
}

static bool share_an_address(const json_t *a, const json_t *b)
{
        const json_t *address;
        size_t i;

        json_array_foreach(json_object_get(a, "addresses"), i,
                           address) if (has_address(b, json_string_value(address))) return true;
        return false;
}

/* An address that a name does not allow by itself. */
static bool is_special(const char *address)
{
        struct ip_prefix prefix;
        struct special special;

        return ip_prefix_parse(address, &prefix) == 0 && special_find(&prefix, &special) &&
               special.kind != SPECIAL_LOOPBACK; /* no rule allows those */
}

/* Wishes for a name, and for those of its addresses that need a rule of their own. */
static int wish_name(const struct target *target, const json_t *question, struct wishes *wishes)
{
        const char *name = text_of(question, "name");
        const json_t *address;
        struct host_name host;
        size_t i;
        int r;

        if (host_name_parse_bare(span_of_text(name), &host) < 0 || host.kind != HOST_NAME_IS_NAME)
                return 0;
        r = wishes_add(wishes, host.text, false, target->transport, target->port);
        json_array_foreach(json_object_get(question, "addresses"), i,
                           address) if (r == 0 && is_special(json_string_value(address))) r =
                wishes_add(wishes, json_string_value(address), true, target->transport, target->port);
        return r;
}

static int wish_target(const struct target *target, const json_t *dns, struct wishes *wishes)
{
        char address[INET6_ADDRSTRLEN];
        const json_t *question, *other;
        size_t i, k;
        int r = 0;

        if (!target->name) {
                inet_ntop(target->address.family, target->address.bytes, address, sizeof(address));
                return wishes_add(wishes, address, true, target->transport, target->port);
        }
        json_array_foreach(dns, i, question)
        {
                if (!streq(text_of(question, "name"), target->name))
                        continue;
                json_array_foreach(dns, k, other) if (r == 0 && (k == i || share_an_address(question, other))) r =
                        wish_name(target, other, wishes);
        }
        return r == 0 ? wishes_add(wishes, target->name, false, target->transport, target->port) : r;
}

/* A target as target_format() writes it. Return: 0 or -EINVAL. */
static int read_target(const char *text, struct host_name *host, struct target *ret)
{
        _cleanup_free_ char *url = NULL;
        const char *blank = strchr(text, ' ');

        if (!blank)
                return -EINVAL;
        url = text_format("%.*s://%s", (int)(blank - text), text, blank + 1);
        return url ? target_parse(url, host, ret, NULL) : -ENOMEM;
}

static int read_allowed(const json_t *record, struct wishes *wishes, struct err *err)
{
        const json_t *entry, *allowed = list_of(record, "allowed");
        size_t i;

        if (!allowed)
                return err_set(err, ERR_BUG, EINVAL, "what was allowed has not been observed");
        json_array_foreach(allowed, i, entry)
        {
                struct host_name host;
                struct target target;
                int r = read_target(text_of(entry, "target"), &host, &target);

                if (r == -EINVAL)
                        continue; /* the name of something else than a destination */
                if (r == 0)
                        r = wish_target(&target, list_of(record, "dns"), wishes);
                if (r < 0)
                        return err_set_nomem(err);
        }
        return 0;
}

/* ---- writing ---- */

static int compare_wishes(const void *a, const void *b)
{
        const struct wish *left = a, *right = b;
        int order = (left->is_address > right->is_address) - (left->is_address < right->is_address);

        if (order == 0)
                order = strcmp(left->host, right->host);
        if (order == 0)
                order = (left->transport > right->transport) - (left->transport < right->transport);
        return order ? order : (left->port > right->port) - (left->port < right->port);
}

/* Writes the rule of all wishes from @first on that differ in their port only. Return: how many there are. */
static size_t write_rule(const struct wishes *wishes, size_t first, struct text *out)
{
        const struct wish *wish = &wishes->wishes[first];
        bool is_v6 = wish->is_address && strchr(wish->host, ':');
        _cleanup_text_ struct text ports = {0};
        size_t n = 0, n_ports = 0;
        uint16_t last = 0;

        for (; first + n < wishes->n; n++) {
                const struct wish *next = wish + n;

                if (!streq(next->host, wish->host) || next->transport != wish->transport || n_ports == PORTS_OF_RULE)
                        break;
                if (next->port != last)
                        text_addf(&ports, "%s%u", n_ports++ > 0 ? ", " : "", next->port);
                last = next->port;
        }
        text_addf(out, "  - {%s: %s%s%s, port: %s%s%s", wish->is_address ? "address" : "host", is_v6 ? "\"" : "",
                  wish->host, is_v6 ? "\"" : "", n_ports > 1 ? "[" : "", ports.data, n_ports > 1 ? "]" : "");
        text_add(out, wish->transport == TRANSPORT_UDP ? ", transport: udp}\n" : "}\n");
        out->failed |= ports.failed;
        return n;
}

static bool is_wished(const struct wishes *wishes, const char *name)
{
        for (size_t i = 0; i < wishes->n; i++)
                if (!wishes->wishes[i].is_address && streq(wishes->wishes[i].host, name))
                        return true;
        return false;
}

static void write_comments(const json_t *record, const struct wishes *wishes, struct text *out, struct learned *learned)
{
        const json_t *entry;
        const char *before = "";
        size_t i;

        json_array_foreach(list_of(record, "dns"), i, entry)
        {
                const char *name = text_of(entry, "name");

                if (!streq(name, before) && json_array_size(json_object_get(entry, "addresses")) > 0 &&
                    !is_wished(wishes, name))
                        text_addf(out, "# looked up, but not connected to: %s\n", name);
                before = name;
        }
        json_array_foreach(list_of(record, "denied"), i, entry)
        {
                text_addf(out, "# denied even while it was only watched: %s\n", text_of(entry, "target"));
                learned->n_denied++;
        }
}

int learn_policy_write(const json_t *record, struct text *out, struct learned *ret, struct err *err)
{
        _cleanup_(wishes_done) struct wishes wishes = {0};
        struct learned learned = {0};
        int r = read_allowed(record, &wishes, err);

        if (r < 0)
                return r;
        if (wishes.n > 0)
                qsort(wishes.wishes, wishes.n, sizeof(wishes.wishes[0]), compare_wishes);
        text_add(out, "assay: 1\ndefault: deny\n");
        text_add(out, wishes.n > 0 ? "allow:\n" : "");
        for (size_t i = 0; i < wishes.n; learned.n_rules++)
                i += write_rule(&wishes, i, out);
        write_comments(record, &wishes, out, &learned);
        if (out->failed)
                return err_set_nomem(err);
        *ret = learned;
        return 0;
}
