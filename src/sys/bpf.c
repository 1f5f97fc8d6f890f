/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <netlink/attr.h>
#include <stdio.h>

#include "base/log.h"
#include "sys/netlink-internal.h"

#define VERIFIER_LOG_BYTES 65536
#define RODATA_SUFFIX      ".rodata"

/* Attach types that the headers of Debian 12 do not have yet. */
#define TCX_INGRESS 46
#define TCX_EGRESS  47

struct bpf_image {
        struct bpf_object *object;
        char *name;
        char *verifier_log;
};

/* What libbpf would print, without how it reads objects. Its reasons are read from errno and the verifier's log. */
static _printf_(2, 0) int log_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
        char text[512];

        if (level == LIBBPF_DEBUG)
                return 0;
        vsnprintf(text, sizeof(text), format, args);
        text[strcspn(text, "\n")] = '\0';
        log_debug("%s", text);
        return 0;
}

int bpf_image_open(struct span object, const char *name, struct bpf_image **ret, struct err *err)
{
        _cleanup_bpf_image_ struct bpf_image *image = calloc(1, sizeof(*image));
        LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = name, .kernel_log_size = VERIFIER_LOG_BYTES);
        struct bpf_program *program;

        if (!image)
                return err_set_nomem(err);
        image->name = strdup(name);
        image->verifier_log = calloc(1, VERIFIER_LOG_BYTES);
        if (!image->name || !image->verifier_log)
                return err_set_nomem(err);
        options.kernel_log_buf = image->verifier_log;

        libbpf_set_print(log_libbpf);
        image->object = bpf_object__open_mem(object.data, object.len, &options);
        if (!image->object)
                return err_set_errno(err, ERR_BUG, errno, "the BPF object %s cannot be read", name);
        /* Those whose section says nothing that the library knows are for links. */
        bpf_object__for_each_program(program, image->object) if (bpf_program__type(program) == BPF_PROG_TYPE_UNSPEC)
                bpf_program__set_type(program, BPF_PROG_TYPE_SCHED_CLS);
        *ret = TAKE_PTR(image);
        return 0;
}

void bpf_image_free(struct bpf_image *image)
{
        if (!image)
                return;
        bpf_object__close(image->object);
        free(image->verifier_log);
        free(image->name);
        free(image);
}

static struct bpf_map *find_constants(const struct bpf_image *image)
{
        struct bpf_map *map;

        bpf_object__for_each_map(map, image->object)
        {
                const char *suffix = strrchr(bpf_map__name(map), '.');

                if (suffix && streq(suffix, RODATA_SUFFIX))
                        return map;
        }
        return NULL;
}

int bpf_image_set_constants(struct bpf_image *image, const void *data, size_t size, struct err *err)
{
        struct bpf_map *map = find_constants(image);

        if (!map || bpf_map__value_size(map) != size || bpf_map__set_initial_value(map, data, size) < 0)
                return err_set(err, ERR_BUG, EINVAL, "the BPF object %s does not have %zu bytes of constants",
                               image->name, size);
        return 0;
}

int bpf_image_set_entries(struct bpf_image *image, const char *name, uint32_t n, struct err *err)
{
        struct bpf_map *map = bpf_object__find_map_by_name(image->object, name);

        if (!map || bpf_map__set_max_entries(map, n) < 0)
                return err_set(err, ERR_BUG, EINVAL, "the BPF object %s has no map %s of another size", image->name,
                               name);
        return 0;
}

/* The line of the verifier's log that says what is wrong: the last but for its statistics. */
static const char *last_reason(char *text)
{
        char *reason = text + strlen(text), *line, *saved = NULL;

        for (line = strtok_r(text, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved))
                if (strncmp(line, "processed ", strlen("processed ")) != 0)
                        reason = line;
        return reason;
}

int bpf_image_load(struct bpf_image *image, struct err *err)
{
        int r = bpf_object__load(image->object);
        const char *reason;

        if (r == 0)
                return 0;
        reason = last_reason(image->verifier_log);
        if ((r == -EPERM || r == -EACCES) && !reason[0])
                return err_set(err, ERR_UNSUPPORTED, -r,
                               "loading BPF programs needs CAP_BPF and CAP_NET_ADMIN in the initial user namespace: "
                               "run as root");
        if (r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EAGAIN)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot load the BPF program %s", image->name);
        return err_set_errno(err, ERR_UNSUPPORTED, -r, "this kernel refuses the BPF program %s%s%s", image->name,
                             reason[0] ? ": " : "", reason);
}

/* The attributes of cls_bpf: the program's verdict is what becomes of the frame ("direct action"). */
static int add_options(struct nl_msg *msg, int fd, const char *program)
{
        struct nlattr *nest;

        if (nla_put_string(msg, TCA_KIND, "bpf") < 0)
                return -ENOMEM;
        nest = nla_nest_start(msg, TCA_OPTIONS);
        if (!nest || nla_put_u32(msg, TCA_BPF_FD, (uint32_t)fd) < 0 || nla_put_string(msg, TCA_BPF_NAME, program) < 0 ||
            nla_put_u32(msg, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT) < 0)
                return -ENOMEM;
        nla_nest_end(msg, nest);
        return 0;
}

/* Return: a loaded program of the image, or NULL with the reason. */
static struct bpf_program *find_program(const struct bpf_image *image, const char *name, struct err *err)
{
        struct bpf_program *found = bpf_object__find_program_by_name(image->object, name);

        if (found && bpf_program__fd(found) >= 0)
                return found;
        err_set(err, ERR_BUG, ENOENT, "the BPF object %s has no loaded program %s", image->name, name);
        return NULL;
}

int bpf_image_attach(struct bpf_image *image, const char *program, struct netlink *nl, int index,
                     enum bpf_direction direction, uint16_t order, struct err *err)
{
        uint32_t where = direction == BPF_ENTERING ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS;
        struct bpf_program *found = find_program(image, program, err);
        struct tcmsg header = {
                .tcm_family = AF_UNSPEC,
                .tcm_ifindex = index,
                .tcm_handle = 1, /* given, so that a second one of the same order is refused */
                .tcm_parent = TC_H_MAKE(TC_H_CLSACT, where),
                .tcm_info = TC_H_MAKE((uint32_t)order << 16, htons(ETH_P_ALL)),
        };
        _cleanup_nlmsg_ struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL);
        char what[128];

        if (!found)
                return -ENOENT;
        if (!msg || nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO) < 0 ||
            add_options(msg, bpf_program__fd(found), program) < 0)
                return err_set_nomem(err);
        snprintf(what, sizeof(what), "cannot attach the BPF program %s to link %d", program, index);
        return netlink_request(nl, msg, what, err);
}

int bpf_image_hold(struct bpf_image *image, const char *program, int index, enum bpf_direction direction,
                   struct err *err)
{
        struct bpf_program *found = find_program(image, program, err);
        int type = direction == BPF_ENTERING ? TCX_INGRESS : TCX_EGRESS, fd;

        if (!found)
                return -ENOENT;
        fd = bpf_link_create(bpf_program__fd(found), index, (enum bpf_attach_type)type, NULL);
        if (fd == -EINVAL)
                return err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP,
                               "this kernel cannot hold a BPF program at a link (tcx, since Linux 6.6)");
        if (fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -fd, "cannot attach the BPF program %s to link %d", program,
                                     index);
        return fd;
}

int bpf_image_hold_group(struct bpf_image *image, const char *program, int cgroup_fd, struct err *err)
{
        struct bpf_program *found = find_program(image, program, err);
        int fd;

        if (!found)
                return -ENOENT;
        fd = bpf_link_create(bpf_program__fd(found), cgroup_fd, bpf_program__expected_attach_type(found), NULL);
        if (fd < 0)
                return err_set_errno(err, ERR_UNSUPPORTED, -fd, "cannot attach the BPF program %s to a control group",
                                     program);
        return fd;
}

int bpf_image_map(const struct bpf_image *image, const char *name, struct err *err)
{
        struct bpf_map *map = bpf_object__find_map_by_name(image->object, name);

        return map ? bpf_map__fd(map)
                   : err_set(err, ERR_BUG, ENOENT, "the BPF object %s has no map %s", image->name, name);
}

int bpf_image_put(struct bpf_image *image, const char *map, const void *key, const void *value, struct err *err)
{
        int fd = bpf_image_map(image, map, err);

        if (fd < 0)
                return fd;
        if (bpf_map_update_elem(fd, key, value, BPF_ANY) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot write to the BPF map %s", map);
        return 0;
}

int bpf_image_remove(struct bpf_image *image, const char *map, const void *key, struct err *err)
{
        int fd = bpf_image_map(image, map, err);

        if (fd < 0)
                return fd;
        if (bpf_map_delete_elem(fd, key) < 0 && errno != ENOENT)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot remove from the BPF map %s", map);
        return 0;
}

int bpf_image_sum_counters(const struct bpf_image *image, const char *map, uint32_t first, uint32_t n, size_t n_words,
                           uint64_t *ret, struct err *err)
{
        struct bpf_map *found = bpf_object__find_map_by_name(image->object, map);
        int n_cpus = libbpf_num_possible_cpus();
        _cleanup_free_ uint64_t *values = NULL;

        if (n_cpus < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -n_cpus, "cannot count the CPUs");
        if (!found || bpf_map__type(found) != BPF_MAP_TYPE_PERCPU_ARRAY ||
            bpf_map__value_size(found) != n_words * sizeof(*values) || first + n > bpf_map__max_entries(found))
                return err_set(err, ERR_BUG, ENOENT, "the BPF object %s has no such counters as %s", image->name, map);
        values = calloc((size_t)n_cpus * n_words, sizeof(*values));
        if (!values)
                return err_set_nomem(err);

        for (uint32_t key = first; key < first + n; key++, ret += n_words) {
                if (bpf_map_lookup_elem(bpf_map__fd(found), &key, values) < 0)
                        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot read the BPF map %s", map);
                for (size_t word = 0; word < n_words; word++) {
                        ret[word] = 0;
                        for (size_t cpu = 0; cpu < (size_t)n_cpus; cpu++)
                                ret[word] += values[cpu * n_words + word];
                }
        }
        return 0;
}
