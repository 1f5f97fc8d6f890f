/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bpf/kernel.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"
#include "bpfvm/insn.h"

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
        long r = syscall(SYS_bpf, command, attr, sizeof(*attr));

        return r < 0 ? -errno : (int)r;
}

static uint64_t address(const void *p)
{
        return (uintptr_t)p;
}

const char *kernel_limit(void)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {0};

        data[CAP_TO_INDEX(CAP_BPF)].permitted = CAP_TO_MASK(CAP_BPF);
        data[CAP_TO_INDEX(CAP_BPF)].effective = CAP_TO_MASK(CAP_BPF);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &header, data) < 0)
                return "capset to CAP_BPF alone was refused";
        return NULL;
}

static int create_map(const struct map_def *def)
{
        union bpf_attr attr = {.map_type = def->kind == MAP_HASH ? BPF_MAP_TYPE_HASH : BPF_MAP_TYPE_ARRAY,
                               .key_size = def->key_size,
                               .value_size = def->value_size,
                               .max_entries = def->max_entries,
                               .map_flags = def->is_read_only ? BPF_F_RDONLY_PROG : 0};

        return bpf(BPF_MAP_CREATE, &attr);
}

static int update(int map, const void *key, const void *value)
{
        union bpf_attr attr = {.map_fd = (uint32_t)map, .key = address(key), .value = address(value)};

        return bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

/* A map that programs may only read gets its values once. */
static int freeze(int map, const struct map_def *def)
{
        union bpf_attr attr = {.map_fd = (uint32_t)map};
        uint8_t value[256] = {0};
        uint32_t key = 0;
        int r;

        if (def->value_size > sizeof(value))
                return -EINVAL;
        if (def->initial.len > 0)
                memcpy(value, def->initial.data, def->initial.len);
        r = update(map, &key, value);
        return r < 0 ? r : bpf(BPF_MAP_FREEZE, &attr);
}

int kernel_open(struct kernel *kernel, const struct map_def *defs, uint32_t n_maps)
{
        *kernel = (struct kernel){.defs = defs, .program = -1};
        for (uint32_t i = 0; i < n_maps && i < KERNEL_MAPS_MAX; i++) {
                int fd = create_map(&defs[i]);
                int r = fd < 0 ? fd : defs[i].is_read_only ? freeze(fd, &defs[i]) : 0;

                if (r < 0) {
                        if (fd >= 0)
                                close(fd);
                        kernel_close(kernel);
                        return r;
                }
                kernel->maps[kernel->n_maps++] = fd;
        }
        return 0;
}

static void unload(struct kernel *kernel)
{
        if (kernel->program >= 0)
                close(kernel->program);
        kernel->program = -1;
}

void kernel_close(struct kernel *kernel)
{
        unload(kernel);
        while (kernel->n_maps > 0)
                close(kernel->maps[--kernel->n_maps]);
}

int kernel_load(struct kernel *kernel, const uint8_t *slots, size_t len, uint32_t level, char *log, size_t log_size)
{
        union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
                               .insns = address(slots),
                               .insn_cnt = (uint32_t)(len / INSN_SLOT_BYTES),
                               .license = address("Apache-2.0"),
                               .log_level = level,
                               .log_buf = address(log),
                               .log_size = (uint32_t)log_size,
                               .fd_array = address(kernel->maps)};
        int fd;

        unload(kernel);
        if (log_size > 0)
                log[0] = 0;
        fd = bpf(BPF_PROG_LOAD, &attr);
        if (fd < 0)
                return fd;
        kernel->program = fd;
        return 0;
}

static int reset_map(int map, const struct map_def *def)
{
        uint8_t value[256] = {0};

        if (def->is_read_only)
                return 0;
        if (def->value_size > sizeof(value))
                return -EINVAL;
        if (def->initial.len > 0)
                memcpy(value, def->initial.data, def->initial.len);
        for (uint64_t key = 0; key < (def->kind == MAP_HASH ? 8 : def->max_entries); key++) {
                union bpf_attr attr = {.map_fd = (uint32_t)map, .key = address(&key)};
                int r = def->kind == MAP_HASH ? bpf(BPF_MAP_DELETE_ELEM, &attr) : update(map, &key, value);

                if (r < 0 && r != -ENOENT)
                        return r;
        }
        return 0;
}

int kernel_reset(struct kernel *kernel)
{
        for (uint32_t i = 0; i < kernel->n_maps; i++) {
                int r = reset_map(kernel->maps[i], &kernel->defs[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

int kernel_run(struct kernel *kernel, const void *packet, size_t packet_len, void *context, size_t context_len,
               uint32_t *ret)
{
        union bpf_attr attr = {0};
        int r;

        attr.test.prog_fd = (uint32_t)kernel->program;
        attr.test.data_in = address(packet);
        attr.test.data_size_in = (uint32_t)packet_len;
        attr.test.ctx_in = address(context);
        attr.test.ctx_size_in = (uint32_t)context_len;
        attr.test.ctx_out = address(context);
        attr.test.ctx_size_out = (uint32_t)context_len;
        r = bpf(BPF_PROG_TEST_RUN, &attr);
        if (r < 0)
                return r;
        *ret = attr.test.retval;
        return 0;
}

int kernel_time(struct kernel *kernel, uint32_t repeat, uint32_t *ret_ns)
{
        static const uint8_t packet[64];
        union bpf_attr attr = {0};
        int r;

        attr.test.prog_fd = (uint32_t)kernel->program;
        attr.test.data_in = address(packet);
        attr.test.data_size_in = sizeof(packet);
        attr.test.repeat = repeat;
        r = bpf(BPF_PROG_TEST_RUN, &attr);
        if (r < 0)
                return r;
        *ret_ns = attr.test.duration;
        return 0;
}

int kernel_lookup(struct kernel *kernel, uint32_t map, const void *key, void *value)
{
        union bpf_attr attr = {.map_fd = (uint32_t)kernel->maps[map], .key = address(key), .value = address(value)};

        return bpf(BPF_MAP_LOOKUP_ELEM, &attr);
}
