/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/classifier.h"

#include <stdio.h>

#include "base/json.h"
#include "base/text.h"
#include "sys/nft.h"
#include "sys/qdisc.h"

#define TABLE     "inet assay"
#define CHAIN     "slices"
#define CHAIN_MAX 32

static int add_chain(const struct netns *ns, struct text *text, struct err *err)
{
        _cleanup_nft_ struct nft *nft = NULL;
        int r;

        if (text->failed)
                return err_set_nomem(err);
        r = nft_open(ns, &nft, err);
        return r < 0 ? r : nft_run(nft, text->data, err);
}

/* The condition that source and destination lie in @network. */
static void add_match(struct text *text, const struct ip_prefix *network)
{
        const char *family = network->family == AF_INET ? "ip" : "ip6";
        char buf[IP_TEXT_MAX];

        ip_prefix_format(network, buf);
        text_addf(text, "%s saddr %s %s daddr %s ", family, buf, family, buf);
}

int classifier_add(const struct netns *ns, const struct classifier_rule *rules, size_t n, struct err *err)
{
        _cleanup_text_ struct text text = {0};

        text_add(&text,
                 "table " TABLE " { chain " CHAIN " { type filter hook postrouting priority mangle; policy drop; ");
        for (size_t i = 0; i < n; i++) {
                add_match(&text, &rules[i].network);
                text_addf(&text, "meta priority set %x:%x counter accept; ", QDISC_MAJOR(rules[i].classid),
                          QDISC_MINOR(rules[i].classid));
        }
        text_add(&text, "oifname lo accept; }\n}\n");
        return add_chain(ns, &text, err);
}

int classifier_sink_add(const struct netns *ns, uint16_t port, const struct ip_prefix *networks, size_t n,
                        struct err *err)
{
        _cleanup_text_ struct text text = {0};

        text_addf(&text, "table " TABLE " { chain sink-%u { type filter hook prerouting priority raw; ", port);
        for (size_t i = 0; i < n; i++) {
                add_match(&text, &networks[i]);
                text_addf(&text, "udp dport %u counter drop; ", port);
        }
        text_add(&text, "}\n}\n");
        return add_chain(ns, &text, err);
}

/* The counter among the parts of a rule. */
static int read_rule(const json_t *rule, struct classifier_count *ret, struct err *err)
{
        json_t *parts, *part;
        int64_t packets, bytes;
        size_t i;
        int r;

        r = json_get_array(rule, "a rule of nftables", "expr", &parts, err);
        if (r < 0)
                return r;
        json_array_foreach(parts, i, part)
        {
                json_t *counter = json_object_get(part, "counter");

                if (!counter)
                        continue;
                r = json_get_i64(counter, "a counter of nftables", "packets", &packets, err);
                if (r == 0)
                        r = json_get_i64(counter, "a counter of nftables", "bytes", &bytes, err);
                if (r < 0)
                        return r;
                *ret = (struct classifier_count){.packets = (uint64_t)packets, .bytes = (uint64_t)bytes};
                return 0;
        }
        return err_set(err, ERR_ENVIRONMENT, ENOENT, "a rule of nftables has lost its counter");
}

static int read_chain(const struct netns *ns, const char *chain, struct classifier_count *ret, size_t n,
                      struct err *err)
{
        _cleanup_json_ json_t *items = NULL;
        _cleanup_nft_ struct nft *nft = NULL;
        size_t i, found = 0;
        json_t *item;
        char text[64];
        int r;

        snprintf(text, sizeof(text), "list chain " TABLE " %s", chain);
        r = nft_open(ns, &nft, err);
        if (r == 0)
                r = nft_list(nft, text, &items, err);
        if (r < 0)
                return r;
        json_array_foreach(items, i, item)
        {
                json_t *rule = json_object_get(item, "rule");

                if (!rule || found >= n)
                        continue;
                r = read_rule(rule, &ret[found++], err);
                if (r < 0)
                        return r;
        }
        if (found < n)
                return err_set(err, ERR_ENVIRONMENT, ENOENT, "nftables has %zu rules where %zu were made", found, n);
        return 0;
}

int classifier_read(const struct netns *ns, struct classifier_count *ret, size_t n, struct err *err)
{
        return read_chain(ns, CHAIN, ret, n, err);
}

int classifier_sink_read(const struct netns *ns, uint16_t port, struct classifier_count *ret, size_t n, struct err *err)
{
        char chain[CHAIN_MAX];

        snprintf(chain, sizeof(chain), "sink-%u", port);
        return read_chain(ns, chain, ret, n, err);
}
