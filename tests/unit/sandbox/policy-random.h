/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Random policies and targets over few names, addresses and ports, so that they meet often. */

#include "base/rng.h"
#include "tests/unit/sandbox/policy-support.h"

static const char *const random_names[] = {"a.example",   "b.a.example", "c.b.a.example", "x.example",
                                           "a.x.example", "example",     "other.test",    "localhost"};
static const char *const random_patterns[] = {"a.example",     "b.a.example", "*.a.example", "*.example",
                                              "*.b.a.example", "*",           "other.test",  "*.x.example"};
static const char *const random_ranges[] = {"192.0.2.0/24",    "192.0.2.1",
                                            "192.0.2.0/31",    "0.0.0.0/0",
                                            "10.0.0.0/8",      "10.1.0.0/16",
                                            "169.254.169.254", "::/0",
                                            "2001:db8::/32",   "2001:db8::1",
                                            "64:ff9b::/96",    "fd00::/8",
                                            "224.0.0.0/4",     "64:ff9b::10.0.0.0/104",
                                            "128.0.0.0/1",     "198.51.100.0/24"};
static const char *const random_addresses[] = {"192.0.2.0",         "192.0.2.1",    "192.0.2.255",
                                               "10.1.2.3",          "10.2.3.4",     "127.0.0.1",
                                               "169.254.169.254",   "::1",          "2001:db8::1",
                                               "2001:db8::2",       "2002::1",      "64:ff9b::a01:203",
                                               "64:ff9b::c000:201", "fd00::1",      "::ffff:192.0.2.1",
                                               "224.0.0.1",         "198.51.100.7", "::ffff:10.1.2.3",
                                               "255.255.255.255",   "9.9.9.9"};
static const char *const random_ports[] = {
        "any", "443", "80", "[80, 443]", "79-81", "1-1000", "[1-79, 81-442, 444-65535]"};
static const uint16_t random_port_numbers[] = {1, 79, 80, 81, 442, 443, 444, 1000, 65535};

#define RANDOM_OF(rng, array) ((array)[rng_below(rng, ARRAY_SIZE(array))])

static inline void random_rule(struct rng *rng, bool is_deny, struct text *out)
{
        if (rng_below(rng, 2))
                text_addf(out, "  - {host: \"%s\"", RANDOM_OF(rng, random_patterns));
        else
                text_addf(out, "  - {address: \"%s\"", RANDOM_OF(rng, random_ranges));
        if (!is_deny || rng_below(rng, 2))
                text_addf(out, ", port: %s", RANDOM_OF(rng, random_ports));
        switch (rng_below(rng, 6)) {
        case 0:
                text_add(out, ", transport: udp");
                break;
        case 1:
                text_add(out, ", transport: any");
                break;
        case 2:
                if (!is_deny)
                        text_addf(out, ", sni: \"%s\"", RANDOM_OF(rng, random_patterns));
                break;
        case 3:
                if (!is_deny)
                        text_addf(out, ", http-host: \"%s\"", RANDOM_OF(rng, random_patterns));
                break;
        default:
                break;
        }
        text_add(out, "}\n");
}

static inline struct policy *random_policy(struct rng *rng)
{
        _cleanup_text_ struct text text = {0};
        uint64_t n_allow = rng_below(rng, 20), n_deny = rng_below(rng, 3);

        if (rng_below(rng, 20) == 0)
                return policy_new_deny_all();
        text_add(&text, "default: deny\n");
        text_add(&text, n_allow ? "allow:\n" : "");
        for (uint64_t i = 0; i < n_allow; i++)
                random_rule(rng, false, &text);
        text_add(&text, n_deny ? "deny:\n" : "");
        for (uint64_t i = 0; i < n_deny; i++)
                random_rule(rng, true, &text);
        if (rng_below(rng, 3) == 0)
                text_add(&text, "private-addresses: allow\n");
        if (rng_below(rng, 2) == 0)
                text_addf(&text, "localhost: %s\n", rng_below(rng, 2) ? "[80, 443]" : "[79-81]");
        if (rng_below(rng, 2) == 0)
                text_addf(&text, "limits: {total: {connections: %u, rate: %ukbit}, per-target: {bytes: %uB}}\n",
                          (unsigned)rng_below(rng, 3) + 1, (unsigned)rng_below(rng, 3) + 1,
                          (unsigned)rng_below(rng, 3) + 1);
        return policy_of(text.data, "random");
}

static inline struct target random_target(struct rng *rng)
{
        struct target target = {.transport = rng_below(rng, 2) ? TRANSPORT_TCP : TRANSPORT_UDP,
                                .port = RANDOM_OF(rng, random_port_numbers)};
        uint64_t what = rng_below(rng, 4);

        if (what > 0)
                assert_int_equal(ip_prefix_parse(RANDOM_OF(rng, random_addresses), &target.address), 0);
        if (what != 1)
                target.name = RANDOM_OF(rng, random_names);
        target.sni = rng_below(rng, 2) ? NULL : rng_below(rng, 4) ? RANDOM_OF(rng, random_names) : "";
        target.http_host = rng_below(rng, 2) ? NULL : rng_below(rng, 4) ? RANDOM_OF(rng, random_names) : "";
        return target;
}
