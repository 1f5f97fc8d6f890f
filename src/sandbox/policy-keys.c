/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/policy-internal.h"

/* The keys of a policy, and the reference page made of them. */

#define OFFSET(field) offsetof(struct STRUCT, field)

#define STRUCT policy_rule_keys
#define WHERE_KEYS                                                                                                     \
        {.name = "host",                                                                                               \
         .type = KEY_STRING,                                                                                           \
         .offset = OFFSET(host),                                                                                       \
         .expected = "a name such as example.org, or \"*.example.org\" (in quotes)",                                   \
         .help = "A name; with `*.` every name below it and not the name itself; `\"*\"` is every name. Names of "     \
                 "other "                                                                                              \
                 "scripts are written as they are looked up (`xn--...`)."},                                            \
        {                                                                                                              \
                .name = "address", .type = KEY_STRING, .offset = OFFSET(address),                                      \
                .expected = "an address or range such as 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32",                    \
                .help = "An address or a range, of IPv4 or IPv6. A rule has either `host` or `address`."               \
        }

static const char *const transport_choices[] = {
        [TRANSPORT_TCP] = "tcp", [TRANSPORT_UDP] = "udp", [N_TRANSPORTS] = "any", NULL};

static const struct key allow_keys[] = {
        WHERE_KEYS,
        {.name = "port",
         .type = KEY_NODE,
         .offset = OFFSET(port),
         .is_required = true,
         .expected = port_set_expected,
         .help = "On which ports."},
        {.name = "transport",
         .type = KEY_CHOICE,
         .offset = OFFSET(transport),
         .choices = transport_choices,
         .fallback = "tcp",
         .help = "Over what."},
        {.name = "sni",
         .type = KEY_STRING,
         .offset = OFFSET(sni),
         .expected = "a name such as example.org, or \"*.example.org\" (in quotes)",
         .help = "The flow has to begin with a TLS ClientHello for this name. Not every enforcer can see it."},
        {.name = "http-host",
         .type = KEY_STRING,
         .offset = OFFSET(http_host),
         .expected = "a name such as example.org, or \"*.example.org\" (in quotes), or an address",
         .help = "The flow has to be HTTP/1 for this host. Not every enforcer can see it."},
        {0},
};

static const struct key deny_keys[] = {
        WHERE_KEYS,
        {.name = "port",
         .type = KEY_NODE,
         .offset = OFFSET(port),
         .expected = port_set_expected,
         .help = "On which ports; all without this key."},
        {.name = "transport",
         .type = KEY_CHOICE,
         .offset = OFFSET(transport),
         .choices = transport_choices,
         .fallback = "any",
         .help = "Over what."},
        {0},
};
#undef STRUCT

const struct key_table policy_allow_table = {
        .name = "allow",
        .help = "A destination that may be reached.",
        .size = sizeof(struct policy_rule_keys),
        .keys = allow_keys,
};

const struct key_table policy_deny_table = {
        .name = "deny",
        .help = "A destination that may not be reached, whatever `allow` says.",
        .size = sizeof(struct policy_rule_keys),
        .keys = deny_keys,
};

#define STRUCT policy_limit_keys
static const struct key limit_keys[] = {
        {.name = "rate",
         .type = KEY_QUANTITY,
         .offset = OFFSET(rate_bps),
         .unit = UNIT_RATE,
         .min = 8,
         .max = INT64_C(1000000000000),
         .help = "Bits a second, both directions together."},
        {.name = "bytes",
         .type = KEY_QUANTITY,
         .offset = OFFSET(bytes),
         .unit = UNIT_BYTES,
         .min = 1,
         .max = INT64_C(1) << 60,
         .help = "Bytes in the whole run, both directions together."},
        {.name = "connections",
         .type = KEY_QUANTITY,
         .offset = OFFSET(connections),
         .unit = UNIT_COUNT,
         .min = 1,
         .max = 1000000,
         .help = "Connections, and flows of UDP, that are open at once."},
        {.name = "new-connections",
         .type = KEY_QUANTITY,
         .offset = OFFSET(new_connections_hz),
         .unit = UNIT_FREQUENCY,
         .min = 1,
         .max = 1000000,
         .help = "Connections, and flows of UDP, that are opened a second."},
        {0},
};
#undef STRUCT

static const struct key_table limit_table = {
        .name = "limit",
        .help = "What is not exceeded. A key that is absent limits nothing.",
        .size = sizeof(struct policy_limit_keys),
        .keys = limit_keys,
};

#define STRUCT policy_limits_keys
static const struct key limits_keys[] = {
        {.name = "total",
         .type = KEY_TABLE,
         .offset = OFFSET(total),
         .table = &limit_table,
         .help = "Of the whole run."},
        {.name = "per-target",
         .type = KEY_TABLE,
         .offset = OFFSET(per_target),
         .table = &limit_table,
         .help = "Of each destination: a name (an address where there is none), transport and port."},
        {0},
};
#undef STRUCT

static const struct key_table limits_table = {
        .name = "limits",
        .help = "How much of what is allowed.",
        .size = sizeof(struct policy_limits_keys),
        .keys = limits_keys,
};

#define STRUCT policy_keys
static const char *const versions[] = {"1", NULL};
static const char *const fallbacks[] = {"deny", NULL};
static const char *const private_choices[] = {"deny", "allow", NULL};

static const struct key keys[] = {
        {.name = "assay",
         .type = KEY_CHOICE,
         .offset = OFFSET(version),
         .choices = versions,
         .fallback = "1",
         .help = "Version of this format."},
        {.name = "default",
         .type = KEY_CHOICE,
         .offset = OFFSET(fallback),
         .choices = fallbacks,
         .fallback = "deny",
         .help = "What happens to a destination that no rule speaks of. There is no other value."},
        {.name = "deny-all",
         .type = KEY_BOOL,
         .offset = OFFSET(is_deny_all),
         .fallback = "false",
         .help = "Nothing may be reached, and nothing else in this policy or another one changes that."},
        {.name = "allow",
         .type = KEY_LIST,
         .offset = OFFSET(allow),
         .table = &policy_allow_table,
         .help = "What may be reached."},
        {.name = "deny",
         .type = KEY_LIST,
         .offset = OFFSET(deny),
         .table = &policy_deny_table,
         .help = "What may not, even where a rule under `allow` fits."},
        {.name = "private-addresses",
         .type = KEY_CHOICE,
         .offset = OFFSET(private_addresses),
         .choices = private_choices,
         .fallback = "deny",
         .help = "Whether names may resolve to private addresses, and ranges wider than those of private addresses "
                 "hold "
                 "them."},
        {.name = "localhost",
         .type = KEY_NODE,
         .offset = OFFSET(localhost),
         .expected = "a list of ports",
         .help = "TCP ports of the host's loopback that the command finds at its own 127.0.0.1."},
        {.name = "limits",
         .type = KEY_TABLE,
         .offset = OFFSET(limits),
         .table = &limits_table,
         .help = "How much of what is allowed."},
        {0},
};
#undef STRUCT

const struct key_table policy_table = {
        .name = "policy",
        .help = "The top of the file.",
        .size = sizeof(struct policy_keys),
        .keys = keys,
};

int policy_document(struct text *out)
{
        text_add(out, "## Policy\n\n");
        key_table_document(&policy_table, out);
        return out->failed ? -ENOMEM : 0;
}
