/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "campaign/privilege.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "sys/capability.h"
#include "sys/sched.h"
#include "testbed/testbed.h"

struct doctor_options {
        bool json;
};

static const struct option options[] = {
        {"json", 0, OPTION_FLAG, offsetof(struct doctor_options, json), .help = "print the list as JSON"},
        {0},
};

/* What the parts that ship cannot do without. Everything else has a weaker substitute, which the evidence names; what
 * is missing outside may be there inside a user namespace. */
static const char *const essential[] = {"netns", "veth", "htb", "mq"};

#define PROCESSORS_WANTED 2

static bool is_essential(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(essential); i++)
                if (streq(essential[i], name))
                        return true;
        return false;
}

static json_t *to_json(const struct capability *c)
{
        return json_pack("{s:s, s:s, s:b, s:b, s:s, s:s}", "name", c->name, "purpose", c->purpose, "essential",
                         is_essential(c->name), "present", c->is_present, "detail", c->detail, "remedy", c->remedy);
}

static void print_one(const struct capability *c)
{
        printf("  %-12s %-8s %s\n", c->name,
               c->is_present           ? "yes"
               : is_essential(c->name) ? "MISSING"
                                       : "no",
               c->purpose);
        if (!c->is_present)
                printf("  %-21s %s\n  %-21s to get it: %s\n", "", c->detail, "", c->remedy);
}

static void print_conclusion(int processors, bool can_run, bool is_full)
{
        printf("  %-12s %-8d what measures and what loads the path have one each, from 2 on\n\n", "processors",
               processors);
        if (!can_run)
                printf("The experiments that ship cannot run here as this user.\n");
        else if (is_full)
                printf("The experiments that ship run here with the mechanisms that they ask for.\n");
        else
                printf("The experiments that ship run here, with weaker mechanisms where something is missing; the "
                       "evidence says which.\n");
}

static int run(const void *opts, int argc, char **argv, struct err *err)
{
        const struct doctor_options *o = opts;
        _cleanup_json_ json_t *list = json_array();
        bool has_essential = true, is_full = true, can_run;
        int processors = sched_cpus(NULL, 0), r;

        r = privilege_obtain(err);
        if (r < 0)
                return r;
        testbed_sweep();
        if (r > 0 && !o->json)
                printf("As an ordinary user, inside a user namespace:\n\n");

        for (size_t i = 0; i < capability_count(); i++) {
                struct capability c;

                r = capability_detect(capability_name(i), &c);
                if (r < 0)
                        return err_set_errno(err, ERR_BUG, -r, "cannot look for %s", capability_name(i));
                if (o->json)
                        json_array_append_new(list, to_json(&c));
                else
                        print_one(&c);
                /* the kernel's VLAN devices and BPF tags do the same job */
                is_full = is_full && (c.is_present || streq(c.name, "vlan") || streq(c.name, "nft"));
                has_essential = has_essential && (c.is_present || !is_essential(c.name));
        }
        can_run = has_essential && processors >= PROCESSORS_WANTED;
        if (o->json)
                r = print_json(json_pack("{s:i, s:b, s:i, s:O}", "assay", 1, "can_run", can_run, "processors",
                                         processors, "capabilities", list),
                               err);
        else
                print_conclusion(processors, can_run, is_full);
        if (r < 0)
                return r;
        return can_run ? 0 : 6;
}

const struct verb verb_doctor = {
        .name = "doctor",
        .summary = "what this host can do, what is missing, and how to get it",
        .options = options,
        .options_size = sizeof(struct doctor_options),
        .run = run,
};
