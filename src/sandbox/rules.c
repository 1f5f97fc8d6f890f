/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"

#define ANY_PORT_FIRST 1 /* "every port" begins here or at 0 */

static const char *const families[] = {"ip", "ip6"};
static const char *const address_types[] = {"ipv4_addr", "ipv6_addr"};
static const char *const protocols[] = {"ip protocol", "ip6 nexthdr"};
/* Protocols stand as numbers in the rules: nftables looks names up in /etc/protocols, which not every host has. */
#define ICMP   "1"
#define IGMP   "2"
#define TCP    "6"
#define UDP    "17"
#define ICMPV6 "58"
static const char *const protocol_numbers[N_TRANSPORTS] = {[TRANSPORT_TCP] = TCP, [TRANSPORT_UDP] = UDP};
static const char version_digits[] = "46";

/* Only such packets are looked up where they leave: version 4 without options, which could name a further destination.
 * Extension headers of IPv6 fail to match, and so do fragments but for the first, without whose rest nothing comes of
 * it: nftables finds no ports in them. */
static const char *const clear[] = {"@nh,0,8 0x45 ", ""};

/* An exact set costs less to look up, and is all that most policies need. */
enum set { SET_EXACT, SET_PIN, SET_PIN_ANY, SET_PIN_RANGE, SET_RANGE, N_SETS };

static const struct {
        const char *name, *flags;
        bool has_port, is_pinned;
} sets[N_SETS] = {
        [SET_EXACT] = {"exact", "", true, false},
        [SET_PIN] = {"pin", "flags timeout;", true, true},
        [SET_PIN_ANY] = {"pin-any", "flags timeout;", false, true},
        [SET_PIN_RANGE] = {"pin-range", "flags interval,timeout;", true, true},
        [SET_RANGE] = {"range", "flags interval;", true, false},
};

static size_t family_index(int family)
{
        return family == AF_INET ? 0 : 1;
}

/* Names are not asked where we cannot see them: @ports without that one. Return: how many ranges that makes. */
static size_t without_dns_tls(const struct port_range *ports, struct port_range ret[static 2])
{
        size_t n = 0;

        if (ports->first < RULES_DNS_TLS_PORT)
                ret[n++] = (struct port_range){ports->first, MIN(ports->last, (uint16_t)(RULES_DNS_TLS_PORT - 1))};
        if (ports->last > RULES_DNS_TLS_PORT)
                ret[n++] = (struct port_range){MAX(ports->first, (uint16_t)(RULES_DNS_TLS_PORT + 1)), ports->last};
        return n;
}

static bool is_exact(const struct policy_range *range, const struct port_range *ports)
{
        return ports->first == ports->last && memcmp(range->first, range->last, range->family == AF_INET ? 4 : 16) == 0;
}

/* Calls @fn for each element of a family that SET_EXACT or SET_RANGE has. Return: how many these are. */
static size_t each_element(const struct rules *rules, enum set set, int family,
                           void (*fn)(const struct policy_range *range, const struct port_range *ports, size_t i,
                                      struct text *out),
                           struct text *out)
{
        size_t count = 0;

        for (size_t i = 0; i < rules->n_ranges; i++) {
                const struct policy_range *range = &rules->ranges[i];
                struct port_range ports[2];
                size_t n = without_dns_tls(&range->ports, ports);

                if (range->family != family || (range->is_pending && rules->proxy_port == 0))
                        continue;
                for (size_t j = 0; j < n; j++)
                        if (is_exact(range, &ports[j]) == (set == SET_EXACT)) {
                                if (fn)
                                        fn(range, &ports[j], count, out);
                                count++;
                        }
        }
        return count;
}

static void add_element_of(const struct policy_range *range, const struct port_range *ports, size_t i, struct text *out)
{
        char first[INET6_ADDRSTRLEN], last[INET6_ADDRSTRLEN];
        const char *protocol = protocol_numbers[range->transport];

        inet_ntop(range->family, range->first, first, sizeof(first));
        inet_ntop(range->family, range->last, last, sizeof(last));
        text_add(out, i == 0 ? " elements = { " : ", ");
        if (is_exact(range, ports))
                text_addf(out, "%s . %s . %u", first, protocol, ports->first);
        else
                text_addf(out, "%s-%s . %s . %u-%u", first, last, protocol, ports->first, ports->last);
}

/* The exact ones are always there, since rules_expose() adds to them. */
static bool has_set(const struct rules *rules, enum set set, int family)
{
        if (set == SET_EXACT)
                return true;
        return sets[set].is_pinned ? rules->has_names : each_element(rules, set, family, NULL, NULL) > 0;
}

static void add_sets(const struct rules *rules, const char *counter, struct text *out)
{
        static const int numbers[] = {AF_INET, AF_INET6};

        for (size_t i = 0; i < ARRAY_SIZE(families); i++)
                for (enum set set = 0; set < N_SETS; set++) {
                        if (!has_set(rules, set, numbers[i]))
                                continue;
                        text_addf(out, "set %s%c { type %s . inet_proto%s; %s%s", sets[set].name, version_digits[i],
                                  address_types[i], sets[set].has_port ? " . inet_service" : "", sets[set].flags,
                                  counter);
                        if (!sets[set].is_pinned && each_element(rules, set, numbers[i], add_element_of, out) > 0)
                                text_add(out, " }");
                        text_add(out, " }\n");
                }
}

/* Accept what a set holds, by the far end: "d"estination of what leaves, "s"ource of what enters.
 * @accepts: of each family
 */
static void add_accepts(const struct rules *rules, char end, const char *const accepts[2], struct text *out)
{
        static const int numbers[] = {AF_INET, AF_INET6};

        for (size_t i = 0; i < ARRAY_SIZE(families); i++)
                for (enum set set = 0; set < N_SETS; set++) {
                        if (!has_set(rules, set, numbers[i]))
                                continue;
                        text_addf(out, "%s%s %caddr . %s", end == 'd' ? clear[i] : "", families[i], end, protocols[i]);
                        if (sets[set].has_port)
                                text_addf(out, " . th %cport @%s%c %s\n", end, sets[set].name, version_digits[i],
                                          accepts[i]);
                        else
                                text_addf(out, " @%s%c th %cport != %d %s\n", sets[set].name, version_digits[i], end,
                                          RULES_DNS_TLS_PORT, accepts[i]);
                }
}

/* What a set lets through is then counted against the limits, so that nothing else uses them up. */
static const char *add_limits(const struct rules *rules, struct text *out)
{
        if (rules->total.bytes == 0 && rules->total.rate_bps == 0)
                return "accept";
        if (rules->total.bytes > 0)
                text_addf(out, "quota all-bytes { over %" PRIu64 " bytes; }\n", rules->total.bytes);
        if (rules->total.rate_bps > 0)
                text_addf(out, "limit all-rate { rate over %" PRIu64 " bytes/second; }\n",
                          MAX(rules->total.rate_bps / 8, (uint64_t)1));
        text_add(out, "chain within-limits {\n");
        if (rules->total.bytes > 0)
                text_add(out, "quota name all-bytes jump refuse\n");
        if (rules->total.rate_bps > 0)
                text_add(out, "limit name all-rate drop\n");
        text_add(out, "accept\n}\n");
        return "goto within-limits";
}

/* N's own addresses, to which whatever is for others in it belongs: every address is one of loopback's where a proxy
 * is. */
static const char own_v4[] = "ip daddr { 127.0.0.0/8, " RULES_OWN_V4 " }",
                  own_v6[] = "ip6 daddr { ::1, " RULES_OWN_V6 " }";
static const char not_own_v4[] = "ip daddr != { 127.0.0.0/8, " RULES_OWN_V4 " }",
                  not_own_v6[] = "ip6 daddr != { ::1, " RULES_OWN_V6 " }";

/* See rules_open_ways(). Over IPv6 a program may take any address for its own (IPV6_FREEBIND), to which the answer
 * would go, and loopback's for what leaves by another link; IPv4 has no way for either. Where a proxy is, every address
 * is N's own, but lo has not each of them. */
static void add_ways(const struct rules *rules, const char *accept, struct text *out)
{
        const char *true_source = rules->proxy_port > 0 ? "fib saddr type != local jump refuse\n"
                                                        : "fib saddr . oif type != local jump refuse\n";

        for (size_t i = 0; i < ARRAY_SIZE(families); i++)
                text_addf(out,
                          "set ways%c { type %s; flags interval; }\n"
                          "chain way%c {\n%s%s daddr @ways%c %s\n"
                          "meta l4proto " TCP " reject with tcp reset\nreject with icmpx no-route\n}\n",
                          version_digits[i], address_types[i], version_digits[i], i == 1 ? true_source : "",
                          families[i], version_digits[i], accept);
}

/* A segment that opens no connection comes from one whose opening was looked up, since the command cannot write
 * segments itself; the outer side looks each of them up again. Resets come without a connection, too: for who asks from
 * another's address (IPv6), or for what is left of an earlier run. Where bytes are limited, each segment is counted. */
static bool trusts_connections(const struct rules *rules)
{
        return rules->proxy_port == 0 && rules->total.bytes == 0 && rules->total.rate_bps == 0;
}

/* What the kernel itself says (ICMP, IGMP, neighbour discovery) stays here without a word: the command has no socket
 * that could send it. */
static void add_inner_out(const struct rules *rules, const char *accept, struct text *out)
{
        const char *const accepts[] = {rules->proxy_port > 0 ? "goto way4" : accept, "goto way6"};

        add_ways(rules, accept, out);
        text_add(out, "chain out { type filter hook output priority filter; policy drop;\n");
        if (trusts_connections(rules))
                text_addf(out,
                          "%sip protocol " TCP " tcp flags & (syn | rst) == 0 accept\n"
                          "ip6 nexthdr " TCP " tcp flags & (syn | rst) == 0 accept\n",
                          clear[0]);
        if (rules->has_resolver) /* what is bound to the link takes no other way */
                text_addf(out,
                          "meta l4proto { " TCP ", " UDP " } th dport %d oifname lo accept\n"
                          "meta l4proto { " TCP ", " UDP " } th dport %d jump refuse\n",
                          RULES_DNS_PORT, RULES_DNS_PORT);
        add_accepts(rules, 'd', accepts, out);
        if (rules->proxy_port > 0)
                text_addf(out, "%s accept\n%s accept\n", own_v4, own_v6);
        else
                text_add(out, "oifname lo accept\n");
        if (trusts_connections(rules))
                text_add(out, "tcp flags & rst == rst drop\n");
        text_add(out, "meta l4proto { " ICMP ", " ICMPV6 ", " IGMP " } drop\njump refuse\n}\n");
}

/* What was let out comes back in over loopback, for the listener. */
static void add_proxy(const struct rules *rules, struct text *out)
{
        unsigned port = rules->proxy_port;

        text_add(out, "set localhost { type inet_proto . inet_service; flags interval;");
        for (size_t i = 0; i < rules->localhost.n; i++)
                text_addf(out, "%s" TCP " . %u-%u", i == 0 ? " elements = { " : ", ", rules->localhost.ranges[i].first,
                          rules->localhost.ranges[i].last);
        text_addf(out,
                  "%s }\nchain to-proxy { type filter hook prerouting priority mangle;\n"
                  "ip daddr 127.0.0.1 ip protocol { " TCP ", " UDP
                  " } ip protocol . th dport @localhost tproxy ip to :%u "
                  "accept\n",
                  rules->localhost.n > 0 ? " }" : "", port);
        if (rules->has_resolver)
                text_addf(out, "meta l4proto { " TCP ", " UDP " } th dport %d accept\n", RULES_DNS_PORT);
        text_addf(out, "%s meta l4proto { " TCP ", " UDP " } tproxy ip to :%u accept\n", not_own_v4, port);
        text_addf(out, "%s meta l4proto { " TCP ", " UDP " } tproxy ip6 to :%u accept\n}\n", not_own_v6, port);
}

/* Errors of the path are let in, as a few a second: the kernel takes them only where they belong to a socket. */
static void add_inner_in(const struct rules *rules, const char *accept, struct text *out)
{
        const char *const accepts[] = {accept, accept};

        text_add(out, "chain in { type filter hook input priority filter; policy drop;\n");
        if (trusts_connections(rules))
                text_add(out, "tcp flags & (syn | ack) != syn accept\n");
        /* The resolver is there for the command alone. */
        text_addf(out,
                  "iifname != lo tcp flags & (syn | ack) == syn drop\n"
                  "iifname != lo meta l4proto " UDP " th dport %d drop\n",
                  RULES_DNS_PORT);
        add_accepts(rules, 's', accepts, out);
        text_add(
                out,
                "iifname lo accept\nicmp type { destination-unreachable, time-exceeded } limit rate 100/second accept\n"
                "icmpv6 type { destination-unreachable, packet-too-big, time-exceeded } limit rate 100/second "
                "accept\n}\n");
}

void rules_inner(const struct rules *rules, struct text *out)
{
        const char *accept;

        text_add(out, "table inet assay {\n");
        add_sets(rules, "", out);
        text_add(out, "counter refused { }\n");
        text_add(out, "chain refuse {\ncounter name refused\n");
        if (rules->holds)
                text_addf(out,
                          "tcp flags & (fin | syn | rst | ack) == syn limit rate 200/second burst 200 packets "
                          "log group %d snaplen %d drop\n",
                          RULES_LOG_GROUP, RULES_LOG_BYTES);
        text_addf(out,
                  "limit rate 1000/second burst 1000 packets log group %d snaplen %d\n"
                  "meta l4proto " TCP " reject with tcp reset\nreject with icmpx admin-prohibited\n}\n",
                  RULES_LOG_GROUP, RULES_LOG_BYTES);
        accept = add_limits(rules, out);
        add_inner_out(rules, accept, out);
        add_inner_in(rules, accept, out);
        if (rules->proxy_port > 0)
                add_proxy(rules, out);
        text_add(out, "chain through { type filter hook forward priority filter; policy drop; }\n}\n");
}

/* One direction on the host's end of the link. */
static void add_outer_chain(const struct rules *rules, const char *name, const char *hook, char far_end,
                            struct text *out)
{
        static const char *const accepts[] = {"accept", "accept"};

        text_addf(out, "chain %s { type filter hook %s device \"%s\" priority 0; policy drop;\n", name, hook,
                  rules->link);
        if (far_end == 's')
                text_add(out, "tcp flags & (syn | ack) == syn counter name strangers drop\n");
        else /* a datagram with another's address would be answered to that one */
                text_addf(out, "ip saddr != %s counter name stopped drop\nip6 saddr != %s counter name stopped drop\n",
                          rules->own_v4, rules->own_v6);
        text_addf(out, "counter name %s\n", name);
        add_accepts(rules, far_end, accepts, out);
        if (far_end == 's')
                text_add(out, "meta l4proto { " ICMP ", " ICMPV6 " } accept\n");
        text_addf(out, "counter name %s\n}\n", far_end == 'd' ? "stopped" : "strangers");
}

/* What enters by other links is not forwarded unless the whole host forwards: so an answer to the command is handed to
 * its link before that is asked. The copy is sent as if by this host, and goes through its output hooks. */
static void add_handing_over(const struct rules *rules, size_t family, const char *own, struct text *out)
{
        text_addf(
                out,
                "table %s %s {\nflags owner\n"
                "chain back { type filter hook prerouting priority dstnat + 10;\n"
                "iifname != \"%s\" %s daddr %s ct state { established, related } dup to %s device \"%s\" drop\n}\n}\n",
                families[family], rules->link, rules->link, families[family], own, own, rules->link);
}

/* Where the way leads beyond the host: its own address for the command's, and segments that fit the path. Nothing of
 * other links is touched, and what stays on the host is not tracked. */
void rules_forward(const struct rules *rules, struct text *out)
{
        const char *link = rules->link;

        text_addf(out,
                  "table inet %s {\nflags owner\n"
                  "chain untracked-in { type filter hook prerouting priority raw;\n"
                  "iifname \"%s\" fib daddr type local notrack\n}\n"
                  "chain untracked-out { type filter hook output priority raw;\noifname \"%s\" notrack\n}\n",
                  link, link, link);
        text_addf(out,
                  "chain leaving { type nat hook postrouting priority srcnat;\niifname \"%s\" masquerade\n}\n"
                  "chain segments { type filter hook postrouting priority mangle;\n"
                  "iifname \"%s\" tcp flags syn tcp option maxseg size set rt mtu\n"
                  "oifname \"%s\" tcp flags syn tcp option maxseg size set rt mtu\n}\n"
                  "chain strangers { type filter hook forward priority mangle;\n"
                  "oifname \"%s\" ct state new drop\n}\n}\n",
                  link, link, link, link);
        if (rules->hands_over_v4)
                add_handing_over(rules, 0, rules->own_v4, out);
        if (rules->hands_over_v6)
                add_handing_over(rules, 1, rules->own_v6, out);
}

/* Asked by a table that nothing leads to, and which goes with its connection. */
bool rules_can_hand_over(int family)
{
        static const char *const examples[] = {"198.19.0.2", "fd5a:a57a::2"};
        _cleanup_nft_ struct nft *nft = NULL;
        size_t i = family_index(family);
        char commands[160];

        snprintf(commands, sizeof(commands),
                 "table %s assay-probe-%ld { flags owner; chain back { dup to %s device \"lo\" drop; }; }", families[i],
                 (long)getpid(), examples[i]);
        return nft_open(NULL, &nft, NULL) == 0 && nft_run(nft, commands, NULL) == 0;
}

void rules_outer(const struct rules *rules, struct text *out)
{
        text_addf(out, "table netdev %s {\nflags owner\n", rules->link);
        add_sets(rules, " counter;", out);
        text_add(out, "counter from { }\ncounter to { }\ncounter stopped { }\ncounter strangers { }\n");
        add_outer_chain(rules, "from", "ingress", 'd', out);
        add_outer_chain(rules, "to", "egress", 's', out);
        text_add(out, "}\n");
}

/* Writes the addresses of this host that are not for itself, one link or a sandbox only, with commas between; @out may
 * be NULL.
 * Return: how many there are. */
static size_t each_own(const struct ifaddrs *own, int family, struct text *out)
{
        size_t n = 0;

        for (; own; own = own->ifa_next) {
                struct sockaddr_storage there;
                char text[INET6_ADDRSTRLEN];
                const void *address;

                if (!own->ifa_addr || own->ifa_addr->sa_family != family || own->ifa_flags & IFF_LOOPBACK ||
                    strncmp(own->ifa_name, RULES_LINK, strlen(RULES_LINK)) == 0)
                        continue;
                memcpy(&there, own->ifa_addr,
                       family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
                address = family == AF_INET ? (void *)&((struct sockaddr_in *)&there)->sin_addr
                                            : (void *)&((struct sockaddr_in6 *)&there)->sin6_addr;
                if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)address))
                        continue;
                if (out)
                        text_addf(out, "%s%s", n > 0 ? ", " : "", inet_ntop(family, address, text, sizeof(text)));
                n++;
        }
        return n;
}

int rules_open_ways(struct nft *nft, bool forwards_v6, struct err *err)
{
        static const char opening[] = "add element inet assay ways%d { %s }\n";
        _cleanup_text_ struct text text = {0};
        struct ifaddrs *own = NULL;
        size_t n_v4, n_v6;
        int r;

        if (getifaddrs(&own) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot read this host's addresses");
        n_v4 = each_own(own, AF_INET, NULL);
        n_v6 = each_own(own, AF_INET6, NULL);
        if (n_v4 > 0 || n_v6 == 0)
                text_addf(&text, opening, 4, "0.0.0.0/1, 128.0.0.0/1");
        if (forwards_v6 && (n_v6 > 0 || n_v4 == 0)) {
                text_addf(&text, opening, 6, "::/1, 8000::/1");
        } else if (n_v6 > 0) {
                text_add(&text, "add element inet assay ways6 { ");
                each_own(own, AF_INET6, &text);
                text_add(&text, " }\n");
        }
        freeifaddrs(own);
        if (text.failed)
                return err_set_nomem(err);
        r = text.len > 0 ? nft_run(nft, text.data, err) : 0;
        return r < 0 ? r : n_v6 > 0 && !forwards_v6;
}

static bool is_every_port(const struct port_range *ports)
{
        return ports->first <= ANY_PORT_FIRST && ports->last == UINT16_MAX;
}

int rules_expose(struct nft *nft, const char *table, const struct ip_prefix *address, uint16_t port, bool is_open,
                 struct err *err)
{
        char text[INET6_ADDRSTRLEN], commands[512];

        inet_ntop(address->family, address->bytes, text, sizeof(text));
        snprintf(commands, sizeof(commands), "%s element %s exact%c { %s . " TCP " . %u, %s . " UDP " . %u }",
                 is_open ? "add" : "delete", table, version_digits[family_index(address->family)], text, port, text,
                 port);
        return nft_run(nft, commands, err);
}

int rules_expose_localhost(struct nft *nft, uint16_t port, bool is_open, struct err *err)
{
        char commands[128];

        snprintf(commands, sizeof(commands), "%s element inet assay localhost { " TCP " . %u, " UDP " . %u }",
                 is_open ? "add" : "delete", port, port);
        return nft_run(nft, commands, err);
}

bool rules_has_names(const struct policy *policy)
{
        for (size_t i = 0; i < policy->n_layers; i++) {
                const struct policy_layer *layer = policy->layers[i];

                for (size_t j = 0; j < layer->n_rules; j++)
                        if (!layer->rules[j].is_deny && layer->rules[j].match != POLICY_MATCH_ADDRESS)
                                return true;
        }
        return false;
}

/* Elements of the pinned sets that go in by one command each, and with them their times. */
struct admission {
        const char *table;
        struct text plain[N_SETS][2], timed[N_SETS][2]; /* by family */
};

static void admission_done(struct admission *a)
{
        for (size_t i = 0; i < N_SETS; i++)
                for (size_t j = 0; j < 2; j++) {
                        text_done(&a->plain[i][j]);
                        text_done(&a->timed[i][j]);
                }
}

/* An element that is there keeps its old time: so it is made anew, in the same transaction. */
static void admission_flush(struct admission *a, struct text *out)
{
        for (size_t i = 0; i < N_SETS; i++)
                for (size_t j = 0; j < 2; j++) {
                        struct text *plain = &a->plain[i][j], *timed = &a->timed[i][j];

                        out->failed |= plain->failed || timed->failed;
                        if (plain->len == 0)
                                continue;
                        text_addf(out,
                                  "add element %s %s%c { %s }\ndelete element %s %s%c { %s }\n"
                                  "add element %s %s%c { %s }\n",
                                  a->table, sets[i].name, version_digits[j], plain->data, a->table, sets[i].name,
                                  version_digits[j], plain->data, a->table, sets[i].name, version_digits[j],
                                  timed->failed ? "" : timed->data);
                        text_done(plain);
                        text_done(timed);
                        *plain = *timed = (struct text){0};
                }
}

static void add_timed(struct admission *a, const struct ip_prefix *address, enum transport transport,
                      const struct port_range *ports, unsigned seconds)
{
        size_t family = family_index(address->family);
        char address_text[INET6_ADDRSTRLEN], element[96];
        const char *protocol = protocol_numbers[transport], *comma;
        enum set set = SET_PIN_RANGE;

        inet_ntop(address->family, address->bytes, address_text, sizeof(address_text));
        if (is_every_port(ports)) {
                set = SET_PIN_ANY;
                snprintf(element, sizeof(element), "%s . %s", address_text, protocol);
        } else if (ports->first == ports->last) {
                set = SET_PIN;
                snprintf(element, sizeof(element), "%s . %s . %u", address_text, protocol, ports->first);
        } else {
                snprintf(element, sizeof(element), "%s . %s . %u-%u", address_text, protocol, ports->first,
                         ports->last);
        }
        comma = a->plain[set][family].len > 0 ? ", " : "";
        text_addf(&a->plain[set][family], "%s%s", comma, element);
        text_addf(&a->timed[set][family], "%s%s timeout %us", comma, element, seconds);
}

static void add_opening(struct admission *a, const struct ip_prefix *address, enum transport transport,
                        const struct port_range *opening, unsigned seconds)
{
        struct port_range ports[2];
        size_t n = without_dns_tls(opening, ports);

        if (is_every_port(opening)) {
                add_timed(a, address, transport, opening, seconds);
                return;
        }
        for (size_t i = 0; i < n; i++)
                add_timed(a, address, transport, &ports[i], seconds);
}

static int add_pin(struct admission *a, const struct policy *policy, bool with_pending, const struct pin *pin)
{
        int64_t left_ns = pin->expires_ns - clock_now_ns(CLOCK_MONOTONIC);
        unsigned seconds = (unsigned)MAX((left_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC, INT64_C(1));
        struct target target = {.name = pin->name, .address = pin->address};

        for (target.transport = 0; target.transport < N_TRANSPORTS; target.transport++) {
                _cleanup_free_ struct policy_opening *openings = NULL;
                size_t n;

                if (policy_openings(policy, &target, &openings, &n) < 0)
                        return -ENOMEM;
                for (size_t i = 0; i < n; i++)
                        if (with_pending || !openings[i].is_pending)
                                add_opening(a, &pin->address, target.transport, &openings[i].ports, seconds);
        }
        return 0;
}

/* Whether @pins has the address of the last of @n already: no command may have an element twice. */
static bool is_repeated(const struct pin *pins, size_t n)
{
        for (size_t i = 0; i + 1 < n; i++)
                if (pins[i].address.family == pins[n - 1].address.family &&
                    memcmp(pins[i].address.bytes, pins[n - 1].address.bytes, sizeof(pins[i].address.bytes)) == 0)
                        return true;
        return false;
}

int rules_admit(struct nft *nft, const char *table, const struct policy *policy, bool with_pending,
                const struct pin *pins, size_t n, struct err *err)
{
        struct admission admission = {.table = table};
        _cleanup_text_ struct text text = {0};
        size_t first = 0; /* of those that are not in @text yet */
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                if (is_repeated(pins + first, i + 1 - first)) {
                        admission_flush(&admission, &text);
                        first = i;
                }
                r = add_pin(&admission, policy, with_pending, &pins[i]);
        }
        admission_flush(&admission, &text);
        admission_done(&admission);
        if (r < 0 || text.failed)
                return err_set_nomem(err);
        return text.len > 0 ? nft_run(nft, text.data, err) : 0;
}
