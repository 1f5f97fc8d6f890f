/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "load/udp.h"
#include "sys/sched.h"

/* Sends the bytes of a file as datagrams, as fast as it goes, and does not read the answers: what a server can answer
 * is seen at the link that the answers come by.
 *
 *   bench-flood ADDRESS:PORT FILE SECONDS CPU */

#define BATCH 64

static int flood(const char *where, const char *path, uint64_t seconds, uint64_t cpu, struct err *err)
{
        const struct sched_request request = {.cpu = (int)cpu};
        struct udp_options options = {0};
        struct mmsghdr messages[BATCH] = {0};
        _cleanup_close_ int fd = -1;
        _cleanup_free_ char *data = NULL;
        struct sched_grant grant;
        struct iovec iov;
        int64_t end_ns;
        size_t len;
        int r;

        r = address_parse(where, 0, &options.peer, err);
        if (r == 0)
                r = file_read(AT_FDCWD, path, UINT16_MAX, &data, &len, err);
        if (r < 0)
                return r;
        fd = udp_open(&options, NULL, err);
        if (fd < 0)
                return fd;
        sched_apply(&request, &grant);
        iov = (struct iovec){.iov_base = data, .iov_len = len};
        for (size_t i = 0; i < BATCH; i++)
                messages[i].msg_hdr = (struct msghdr){.msg_iov = &iov, .msg_iovlen = 1};
        end_ns = clock_now_ns(CLOCK_MONOTONIC) + (int64_t)seconds * NSEC_PER_SEC;
        while (clock_now_ns(CLOCK_MONOTONIC) < end_ns)
                sendmmsg(fd, messages, BATCH, MSG_DONTWAIT);
        return 0;
}

int main(int argc, char **argv)
{
        uint64_t seconds, cpu;
        struct err err = {0};

        if (argc != 5 || number_parse_u64(span_of_text(argv[3]), &seconds) < 0 ||
            number_parse_u64(span_of_text(argv[4]), &cpu) < 0) {
                fprintf(stderr, "usage: bench-flood ADDRESS:PORT FILE SECONDS CPU\n");
                return 2;
        }
        if (flood(argv[1], argv[2], seconds, cpu, &err) < 0) {
                fprintf(stderr, "bench-flood: %s\n", err.text);
                return 1;
        }
        return 0;
}
