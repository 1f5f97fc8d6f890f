/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/gate.h"

#include <arpa/inet.h>

#include "base/macro.h"
#include "bpf/gate-bpf.h"
#include "sys/bpf.h"
#include "sys/qdisc.h"

#define COUNT_WORDS (sizeof(struct gate_count) / sizeof(uint64_t))

struct gate {
        struct bpf_image *image;
};

int gate_attach(struct netlink *nl, int index, const struct ip_prefix own[2], uint32_t entries, struct gate **ret,
                struct err *err)
{
        _cleanup_gate_ struct gate *gate = calloc(1, sizeof(*gate));
        struct gate_own constants;
        int r;

        if (!gate)
                return err_set_nomem(err);
        r = bpf_image_open(span_of(gate_bpf, sizeof(gate_bpf)), "gate", &gate->image, err);
        memcpy(&constants.v4, own[0].bytes, sizeof(constants.v4));
        memcpy(constants.v6, own[1].bytes, sizeof(constants.v6));
        if (r == 0)
                r = bpf_image_set_constants(gate->image, &constants, sizeof(constants), err);
        if (r == 0)
                r = bpf_image_set_entries(gate->image, "open", MIN(entries, (uint32_t)GATE_ENTRIES_MAX), err);
        if (r == 0)
                r = bpf_image_load(gate->image, err);
        if (r == 0)
                r = qdisc_add_clsact(nl, index, err);
        if (r == 0)
                r = bpf_image_attach(gate->image, "gate_out", nl, index, BPF_ENTERING, 1, err);
        if (r == 0)
                r = bpf_image_attach(gate->image, "gate_in", nl, index, BPF_LEAVING, 1, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(gate);
        return 0;
}

void gate_free(struct gate *gate)
{
        if (!gate)
                return;
        bpf_image_free(gate->image);
        free(gate);
}

static struct gate_key key_of(const struct ip_prefix *address, int protocol, uint16_t port)
{
        struct gate_key key = {.port = htons(port), .protocol = (uint8_t)protocol};

        key.version = address->family == AF_INET ? 4 : 6;
        memcpy(key.address, address->bytes, address->family == AF_INET ? 4 : 16);
        return key;
}

int gate_open(struct gate *gate, const struct ip_prefix *address, int protocol, uint16_t port, int64_t expires_ns,
              struct err *err)
{
        struct gate_key key = key_of(address, protocol, port);
        struct gate_entry entry = {.expires_ns = (uint64_t)expires_ns};

        return bpf_image_put(gate->image, "open", &key, &entry, err);
}

int gate_close(struct gate *gate, const struct ip_prefix *address, int protocol, uint16_t port, struct err *err)
{
        struct gate_key key = key_of(address, protocol, port);

        return bpf_image_remove(gate->image, "open", &key, err);
}

int gate_read(const struct gate *gate, struct gate_count ret[static GATE_COUNTERS], struct err *err)
{
        return bpf_image_sum_counters(gate->image, "counts", 0, GATE_COUNTERS, COUNT_WORDS, (uint64_t *)ret, err);
}
