/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed/capture.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"

#define SNAPSHOT_BYTES 65535
#define BUFFER_BYTES   (8 << 20)
#define LOOK_MS        100 /* at least so often: a signal may come just before the wait */

struct capture {
        pcap_t *pcap;
        const char *device;
};

static int start(void *userdata, struct err *err)
{
        struct capture *c = userdata;
        char why[PCAP_ERRBUF_SIZE] = "is libpcap installed?";
        int r;

        c->pcap = pcap_create(c->device, why);
        if (!c->pcap)
                return err_set(err, ERR_ENVIRONMENT, EIO, "cannot watch %s: %s", c->device, why);
        pcap_set_snaplen(c->pcap, SNAPSHOT_BYTES);
        pcap_set_buffer_size(c->pcap, BUFFER_BYTES);
        pcap_set_immediate_mode(c->pcap, 1);
        pcap_set_tstamp_precision(c->pcap, PCAP_TSTAMP_PRECISION_NANO);
        r = pcap_activate(c->pcap);
        if (r < 0)
                return err_set(err, r == PCAP_ERROR_PERM_DENIED ? ERR_UNSUPPORTED : ERR_ENVIRONMENT, EIO,
                               "cannot watch %s: %s", c->device, pcap_geterr(c->pcap));
        if (pcap_setnonblock(c->pcap, 1, why) < 0)
                return err_set(err, ERR_ENVIRONMENT, EIO, "cannot watch %s: %s", c->device, why);
        return 0;
}

int capture_open(const struct netns *ns, const char *device, struct capture **ret, struct err *err)
{
        _cleanup_capture_ struct capture *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return err_set_nomem(err);
        c->device = device;
        r = netns_run(ns, start, c, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

void capture_free(struct capture *c)
{
        if (!c)
                return;
        if (c->pcap)
                pcap_close(c->pcap);
        free(c);
}

struct consumer {
        pcap_dumper_t *dumper;
        capture_fn fn;
        void *userdata;
        uint64_t n, max;
};

static void consume(unsigned char *userdata, const struct pcap_pkthdr *header, const unsigned char *bytes)
{
        struct consumer *to = (struct consumer *)userdata;

        if (to->max > 0 && to->n >= to->max)
                return;
        to->n++;
        if (to->dumper)
                pcap_dump((unsigned char *)to->dumper, header, bytes);
        if (to->fn) /* at nanosecond precision tv_usec holds nanoseconds */
                to->fn((int64_t)header->ts.tv_sec * NSEC_PER_SEC + header->ts.tv_usec, span_of(bytes, header->caplen),
                       header->len, to->userdata);
}

static int consume_all(struct capture *c, struct consumer *to, const volatile int *stop, struct err *err)
{
        struct pollfd fd = {.fd = pcap_get_selectable_fd(c->pcap), .events = POLLIN};

        for (;;) {
                if (pcap_dispatch(c->pcap, -1, consume, (unsigned char *)to) < 0)
                        return err_set(err, ERR_ENVIRONMENT, EIO, "the capture broke off: %s", pcap_geterr(c->pcap));
                if (to->dumper && pcap_dump_flush(to->dumper) < 0)
                        return err_set_errno(err, ERR_IO, errno ? errno : EIO, "cannot write the capture");
                if ((stop && *stop) || (to->max > 0 && to->n >= to->max))
                        return 0;
                poll(&fd, 1, LOOK_MS);
        }
}

int capture_run(struct capture *c, FILE *pcap, capture_fn fn, void *userdata, uint64_t max_frames,
                const volatile int *stop, struct err *err)
{
        struct consumer to = {.fn = fn, .userdata = userdata, .max = max_frames};

        if (pcap) {
                to.dumper = pcap_dump_fopen(c->pcap, pcap); /* never closed: the file is the caller's */
                if (!to.dumper)
                        return err_set(err, ERR_IO, EIO, "cannot write the capture: %s", pcap_geterr(c->pcap));
        }
        return consume_all(c, &to, stop, err);
}
