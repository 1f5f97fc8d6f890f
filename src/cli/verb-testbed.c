/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "campaign/kinds.h"
#include "campaign/privilege.h"
#include "cli/experiment.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "evidence/manifest.h"
#include "sys/userns.h"
#include "testbed/capture.h"
#include "testbed/holder.h"
#include "wire/vlan.h"

/* ---- up ---- */

struct up_options {
        const char *cell;
        struct option_strings set;
};

static const struct option up_options[] = {
        {"cell", 'c', OPTION_STRING, offsetof(struct up_options, cell), "ARM/POINT",
         .help = "the cell whose boundary is built; the first one if not given"},
        {"set", 0, OPTION_STRINGS, offsetof(struct up_options, set), "PATH=VALUE",
         .help = "override a key, such as boundary.topology=direct"},
        {0},
};

static const struct manifest_cell *find_cell(const struct manifest *manifest, const char *name)
{
        for (size_t i = 0; i < manifest->n_cells; i++)
                if (!name || streq(manifest->cells[i].name, name))
                        return &manifest->cells[i];
        return NULL;
}

/* The boundary of a cell, and the text that tells it from other ones. */
static int read_boundary(const struct up_options *o, const char *experiment, struct topology **ret, char **ret_identity,
                         struct err *err)
{
        const struct manifest_options options = {.n_overrides = o->set.n, .overrides = o->set.items};
        _cleanup_manifest_ struct manifest *manifest = NULL;
        _cleanup_free_ char *path = NULL;
        _cleanup_json_ json_t *json = NULL;
        const struct manifest_cell *cell;
        const struct node *boundary;
        const char *kind;
        int r;

        r = experiment_find(experiment, &path, err);
        if (r >= 0)
                r = manifest_load(AT_FDCWD, path, kinds_all(), &options, &manifest, err);
        if (r < 0)
                return r;
        cell = find_cell(manifest, o->cell);
        if (!cell)
                return err_set(err, ERR_USAGE, ENOENT, "%s has no cell %s; `assay run --dry-run` lists them",
                               manifest->path, o->cell ? o->cell : "at all");
        boundary = node_get(cell->config, "boundary");
        kind = node_scalar_at(boundary, "kind");
        if (!kind || !streq(kind, "zones"))
                return err_set(err, ERR_USAGE, EINVAL,
                               "the boundary of cell %s is of kind %s, and a testbed is of kind zones", cell->name,
                               kind ? kind : "none");
        json = node_to_json(boundary);
        *ret_identity = json ? json_format_line(json) : NULL;
        if (!*ret_identity)
                return err_set_nomem(err);
        return topology_read(boundary, ret, err);
}

static int run_up(const void *opts, int argc, char **argv, struct err *err)
{
        _cleanup_topology_ struct topology *topology = NULL;
        _cleanup_free_ char *identity = NULL;
        int r;

        r = read_boundary(opts, argv[0], &topology, &identity, err);
        if (r >= 0)
                r = privilege_obtain(err);
        if (r >= 0)
                r = holder_up(topology, identity, err);
        if (r < 0)
                return r;
        puts(r == 1 ? "It stands already." : "It stands.");
        return 0;
}

static const struct verb verb_up = {
        .name = "up",
        .arguments = "EXPERIMENT",
        .summary = "build the testbed of an experiment and keep it standing",
        .description = "Builds the zones, gateway and links of an experiment, and keeps them standing until `down`.",
        .min_args = 1,
        .max_args = 1,
        .options = up_options,
        .options_size = sizeof(struct up_options),
        .run = run_up,
};

/* ---- down ---- */

static const struct option no_options[] = {{0}};

static int run_down(const void *opts, int argc, char **argv, struct err *err)
{
        int r = holder_down(err);

        if (r < 0)
                return r;
        puts(r == 1 ? "Nothing stood." : "It is down.");
        return 0;
}

static const struct verb verb_down = {
        .name = "down",
        .summary = "take the standing testbed down",
        .options = no_options,
        .run = run_down,
};

/* ---- status ---- */

struct status_options {
        bool json;
};

static const struct option status_options[] = {
        {"json", 0, OPTION_FLAG, offsetof(struct status_options, json), .help = "print the state as JSON"},
        {0},
};

static const char *member(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

static void print_details(const struct holder_status *s)
{
        json_t *addresses = json_object_get(s->json, "addresses"), *address;
        size_t i;

        printf("topology %s, scheduler %s, tags by %s, slices told apart by %s, held by process %lld\n",
               member(s->json, "topology"), member(s->json, "scheduler"), member(s->json, "tagger"),
               member(s->json, "classifier"), (long long)json_integer_value(json_object_get(s->json, "process")));
        json_array_foreach(addresses, i, address)
        {
                printf("  %-20s %-20s %s\n", member(address, "zone"), member(address, "slice"),
                       member(address, "address"));
        }
}

static int run_status(const void *opts, int argc, char **argv, struct err *err)
{
        static const char *const words[] = {
                [HOLDER_DOWN] = "DOWN",
                [HOLDER_UP] = "UP",
                [HOLDER_DEGRADED] = "DEGRADED",
                [HOLDER_FAILED] = "FAILED",
        };
        const struct status_options *o = opts;
        _cleanup_holder_status_ struct holder_status s = {0};
        int r;

        r = holder_status(&s, err);
        if (r < 0)
                return r;
        if (o->json) {
                r = print_json(json_incref(s.json), err);
                if (r < 0)
                        return r;
        } else {
                printf("%s\n", words[s.state]);
                if (s.detail[0])
                        printf("%s%s", s.detail, s.detail[strlen(s.detail) - 1] == '\n' ? "" : "\n");
                if (s.state == HOLDER_UP || s.state == HOLDER_DEGRADED)
                        print_details(&s);
        }
        return s.state == HOLDER_DEGRADED || s.state == HOLDER_FAILED ? 1 : 0;
}

static const struct verb verb_status = {
        .name = "status",
        .summary = "DOWN, UP, DEGRADED and with what, or FAILED and why",
        .options = status_options,
        .options_size = sizeof(struct status_options),
        .run = run_status,
};

/* ---- shell ---- */

static int enter(const struct netns *ns, struct err *err)
{
        int r = userns_join_owner(ns, err);

        return r < 0 ? r : netns_enter(ns, err);
}

static int run_shell(const void *opts, int argc, char **argv, struct err *err)
{
        const char *shell = getenv("SHELL");
        char *own[] = {(char *)(shell && shell[0] == '/' ? shell : "/bin/sh"), NULL};
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        char **command = argv + 1;
        int r;

        if (*command && streq(*command, "--"))
                command++;
        if (!*command)
                command = own;

        r = holder_netns(argv[0], &ns, err);
        if (r >= 0)
                r = enter(&ns, err);
        if (r < 0)
                return r;
        setenv("ASSAY_ZONE", argv[0], 1);
        execvp(command[0], command);
        r = errno;
        err_set_errno(err, ERR_ENVIRONMENT, r, "cannot start %s", command[0]);
        return -r;
}

static const struct verb verb_shell = {
        .name = "shell",
        .arguments = "ZONE [COMMAND...]",
        .summary = "a shell, or a command, in a zone of the standing testbed",
        .description = "Runs a shell, or COMMAND, in the network of ZONE; \"gateway\" and \"relay-1\" are zones, too.",
        .min_args = 1,
        .max_args = -1,
        .is_command = true,
        .options = no_options,
        .run = run_shell,
};

/* ---- capture ---- */

struct capture_options {
        const char *pcap;
        int64_t count;
};

static const struct option capture_options[] = {
        {"pcap", 'w', OPTION_STRING, offsetof(struct capture_options, pcap), "FILE",
         .help = "write a pcap file; - is standard output"},
        {"count", 'n', OPTION_QUANTITY, offsetof(struct capture_options, count), "N", NULL, UNIT_COUNT, 1, INT64_MAX,
         .help = "stop after N frames"},
        {0},
};

static volatile int stop;

static void on_signal(int number)
{
        stop = number;
}

/* "198.18.0.1 > 198.18.0.10", or what else it is. */
static void format_ends(const struct vlan_frame *frame, char *buf, size_t size)
{
        bool is_v4 = frame->ether_type == ETH_P_IP;
        size_t at = is_v4 ? 12 : 8, len = is_v4 ? 4 : 16;
        char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
        struct span addresses;

        snprintf(buf, size, "type %04x", frame->ether_type);
        if ((!is_v4 && frame->ether_type != ETH_P_IPV6) || !span_sub(frame->payload, at, 2 * len, &addresses))
                return;
        inet_ntop(is_v4 ? AF_INET : AF_INET6, addresses.data, from, sizeof(from));
        inet_ntop(is_v4 ? AF_INET : AF_INET6, addresses.data + len, to, sizeof(to));
        snprintf(buf, size, "%s > %s", from, to);
}

static void print_frame(int64_t when_ns, struct span bytes, size_t wire_bytes, void *userdata)
{
        time_t seconds = (time_t)(when_ns / NSEC_PER_SEC);
        struct vlan_frame frame;
        char clock[16], ends[128], vlan[16] = "no VLAN";
        struct tm tm;

        if (vlan_parse(bytes, &frame) < 0)
                return;
        if (frame.n_tags > 0)
                snprintf(vlan, sizeof(vlan), "VLAN %u", frame.outer.id);
        format_ends(&frame, ends, sizeof(ends));
        localtime_r(&seconds, &tm);
        strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
        printf("%s.%06lld  %-9s %s  %zu B\n", clock, (long long)(when_ns % NSEC_PER_SEC / 1000), vlan, ends,
               wire_bytes);
        fflush(stdout);
}

static int open_output(const char *name, FILE **ret, struct err *err)
{
        if (streq(name, "-") && isatty(STDOUT_FILENO))
                return err_set(err, ERR_USAGE, EINVAL,
                               "--pcap - writes a binary file: pipe it somewhere, for example "
                               "into `tshark -r -`");
        *ret = streq(name, "-") ? stdout : fopen(name, "we");
        return *ret ? 0 : err_set_errno(err, ERR_IO, errno, "cannot write %s", name);
}

static int run_capture(const void *opts, int argc, char **argv, struct err *err)
{
        const struct capture_options *o = opts;
        const struct sigaction action = {.sa_handler = on_signal};
        _cleanup_capture_ struct capture *capture = NULL;
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        FILE *file = NULL;
        char device[16];
        int r;

        r = holder_link(argv[0], &ns, device, err);
        if (r >= 0 && o->pcap)
                r = open_output(o->pcap, &file, err);
        if (r >= 0)
                r = enter(&ns, err); /* for good: an ordinary user may not come back */
        if (r >= 0)
                r = capture_open(&ns, device, &capture, err);
        if (r >= 0) {
                sigaction(SIGINT, &action, NULL);
                sigaction(SIGTERM, &action, NULL);
                r = capture_run(capture, file, o->pcap ? NULL : print_frame, NULL, (uint64_t)o->count, &stop, err);
        }
        if (file && file != stdout && fclose(file) != 0 && r >= 0)
                r = err_set_errno(err, ERR_IO, errno, "cannot write %s", o->pcap);
        return r < 0 ? r : 0;
}

static const struct verb verb_capture = {
        .name = "capture",
        .arguments = "LINK",
        .summary = "what crosses a link of the standing testbed, with its VLAN tags",
        .description =
                "Shows, or writes to a file, the frames that cross LINK: \"uplink\", or the name of the zone or\n"
                "relay below it. Ends with ^C.",
        .min_args = 1,
        .max_args = 1,
        .options = capture_options,
        .options_size = sizeof(struct capture_options),
        .run = run_capture,
};

static const struct verb *const testbed_verbs[] = {
        &verb_up, &verb_down, &verb_status, &verb_shell, &verb_capture, NULL,
};

const struct verb verb_testbed = {
        .name = "testbed",
        .summary = "zones, gateway and links of an experiment, to look at and play with",
        .verbs = testbed_verbs,
};
