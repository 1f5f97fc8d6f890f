/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sink.h"

#include <arpa/inet.h>

#include "base/span.h"
#include "bpf/sink-bpf.h"
#include "sys/bpf.h"
#include "sys/qdisc.h"

#define COUNT_WORDS (sizeof(struct slice_count) / sizeof(uint64_t))

struct sink {
        struct bpf_image *image;
        int held_fd; /* -1: the link holds the program */
};

static int load(const struct sink_config *config, struct sink **ret, struct err *err)
{
        _cleanup_sink_ struct sink *sink = calloc(1, sizeof(*sink));
        int r;

        if (!sink)
                return err_set_nomem(err);
        sink->held_fd = -1;
        r = bpf_image_open(span_of(sink_bpf, sizeof(sink_bpf)), "sink", &sink->image, err);
        if (r >= 0)
                r = bpf_image_set_constants(sink->image, config, sizeof(*config), err);
        if (r >= 0)
                r = bpf_image_load(sink->image, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(sink);
        return 0;
}

int sink_attach(struct netlink *nl, int index, uint16_t order, uint16_t port, const uint16_t *vlans, size_t n_vlans,
                struct sink **ret, struct err *err)
{
        struct sink_config config = {.port = htons(port), .n_vlans = (uint16_t)n_vlans};
        _cleanup_sink_ struct sink *sink = NULL;
        int r;

        if (n_vlans > SLICE_MAX)
                return err_set(err, ERR_BUG, EINVAL, "a sink counts at most %d slices", SLICE_MAX);
        if (n_vlans > 0)
                memcpy(config.vlans, vlans, n_vlans * sizeof(*vlans));
        r = load(&config, &sink, err);
        if (r >= 0)
                r = qdisc_add_clsact(nl, index, err);
        if (r >= 0)
                r = bpf_image_attach(sink->image, "sink", nl, index, BPF_ENTERING, order, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(sink);
        return 0;
}

int sink_hold(int index, uint16_t port, struct sink **ret, struct err *err)
{
        struct sink_config config = {.port = htons(port)};
        _cleanup_sink_ struct sink *sink = NULL;
        int r;

        r = load(&config, &sink, err);
        if (r < 0)
                return r;
        sink->held_fd = bpf_image_hold(sink->image, "sink", index, BPF_ENTERING, err);
        if (sink->held_fd < 0)
                return sink->held_fd;
        *ret = TAKE_PTR(sink);
        return 0;
}

void sink_free(struct sink *sink)
{
        if (!sink)
                return;
        if (sink->held_fd >= 0)
                close(sink->held_fd);
        bpf_image_free(sink->image);
        free(sink);
}

int sink_read(const struct sink *sink, struct sink_counters *ret, struct err *err)
{
        struct sink_counters c;
        int r;

        r = bpf_image_sum_counters(sink->image, "counts", 0, SLICE_MAX, COUNT_WORDS, (uint64_t *)c.vlans, err);
        if (r >= 0)
                r = bpf_image_sum_counters(sink->image, "counts", SINK_OTHER, 1, COUNT_WORDS, (uint64_t *)&c.other,
                                           err);
        if (r < 0)
                return r;
        *ret = c;
        return 0;
}
