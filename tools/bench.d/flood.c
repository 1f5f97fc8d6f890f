/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "load/udp.h"
#include "sys/sched.h"

/* Floods a server with copies of one datagram, more than it can answer, and prints how many answers came back: for each
 * second, and for each second that the server's processor was not idle (the two are the same where the flood is one).
 *
 *   bench-flood ADDRESS:PORT FILE LINK MILLISECONDS CPU SERVER-CPU
 *
 * FILE has the datagram; answers are counted where they come in by LINK, and not read. Many datagrams leave in one
 * packet that the receiving socket takes apart (UDP_SEGMENT), so that a flood costs less than answering it. Before the
 * time that counts, a fifth as long again is flooded, so that both ends are warm. */

#define SEGMENTS 32

struct counters {
        int64_t now_ns;
        uint64_t answers, idle_ticks, ticks;
};

static int read_line(const char *path, const char *name, char **ret, struct err *err)
{
        char *text = NULL, *found;
        size_t len;
        int r;

        r = file_read(AT_FDCWD, path, 1 << 20, &text, &len, err);
        if (r < 0)
                return r;
        found = strstr(text, name);
        if (found)
                memmove(text, found + strlen(name), strlen(found + strlen(name)) + 1);
        else
                r = err_set(err, ERR_ENVIRONMENT, ENOENT, "%s has no line of %s", path, name);
        *ret = text;
        return r;
}

static int read_counters(const char *link, uint64_t cpu, struct counters *ret, struct err *err)
{
        _cleanup_free_ char *device = NULL, *times = NULL;
        uint64_t t[8] = {0};
        char name[64];
        int r;

        snprintf(name, sizeof(name), " %s:", link);
        r = read_line("/proc/net/dev", name, &device, err);
        if (r == 0) {
                snprintf(name, sizeof(name), "cpu%" PRIu64 " ", cpu);
                r = read_line("/proc/stat", name, &times, err);
        }
        if (r < 0)
                return r;
        ret->now_ns = clock_now_ns(CLOCK_MONOTONIC);
        if (sscanf(device, "%*u %" SCNu64, &ret->answers) != 1 ||
            sscanf(times,
                   "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
                   &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) != 8)
                return err_set(err, ERR_ENVIRONMENT, EINVAL, "the kernel's counters are not as expected");
        ret->idle_ticks = t[3] + t[4] + t[7]; /* idle, waiting for a disk, taken by the hypervisor */
        ret->ticks = 0;
        for (size_t i = 0; i < ARRAY_SIZE(t); i++)
                ret->ticks += t[i];
        return 0;
}

static void flood_for(int fd, const uint8_t *data, size_t len, int64_t ns)
{
        int64_t end_ns = clock_now_ns(CLOCK_MONOTONIC) + ns;

        while (clock_now_ns(CLOCK_MONOTONIC) < end_ns)
                (void)send(fd, data, len * SEGMENTS, MSG_DONTWAIT);
}

static int open_flood(const char *where, size_t len, struct err *err)
{
        struct udp_options options = {0};
        _cleanup_close_ int fd = -1;
        int size = (int)len, r;

        r = address_parse(where, 0, &options.peer, err);
        if (r < 0)
                return r;
        fd = udp_open(&options, NULL, err);
        if (fd < 0)
                return fd;
        if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)) < 0)
                return err_set_errno(err, ERR_UNSUPPORTED, errno, "the kernel has no UDP segmentation");
        return TAKE_FD(fd);
}

static void print_answers(const struct counters *from, const struct counters *to)
{
        double answers = (double)(to->answers - from->answers), s = (double)(to->now_ns - from->now_ns) / 1e9;
        double ticks = (double)(to->ticks - from->ticks), idle = (double)(to->idle_ticks - from->idle_ticks);

        printf("%.0f %.0f\n", answers / s, ticks > idle ? answers / s * ticks / (ticks - idle) : 0.0);
}

static int flood(char **argv, int64_t ns, uint64_t cpu, uint64_t server_cpu, struct err *err)
{
        const struct sched_request request = {.cpu = (int)cpu};
        _cleanup_free_ char *data = NULL;
        _cleanup_free_ uint8_t *many = NULL;
        _cleanup_close_ int fd = -1;
        struct counters from, to;
        struct sched_grant grant;
        size_t len;
        int r;

        r = file_read(AT_FDCWD, argv[2], UINT16_MAX / SEGMENTS - 28, &data, &len, err);
        if (r < 0)
                return r;
        many = malloc(len * SEGMENTS + 1);
        if (!many)
                return err_set_nomem(err);
        for (size_t i = 0; i < SEGMENTS; i++)
                memcpy(many + i * len, data, len);
        fd = open_flood(argv[1], len, err);
        if (fd < 0)
                return fd;
        sched_apply(&request, &grant);
        flood_for(fd, many, len, ns / 5);
        r = read_counters(argv[3], server_cpu, &from, err);
        if (r < 0)
                return r;
        flood_for(fd, many, len, ns);
        r = read_counters(argv[3], server_cpu, &to, err);
        if (r == 0)
                print_answers(&from, &to);
        return r;
}

int main(int argc, char **argv)
{
        uint64_t ms, cpu, server_cpu;
        struct err err = {0};

        if (argc != 7 || number_parse_u64(span_of_text(argv[4]), &ms) < 0 || ms > 60000 ||
            number_parse_u64(span_of_text(argv[5]), &cpu) < 0 ||
            number_parse_u64(span_of_text(argv[6]), &server_cpu) < 0) {
                fprintf(stderr, "usage: bench-flood ADDRESS:PORT FILE LINK MILLISECONDS CPU SERVER-CPU\n");
                return 2;
        }
        if (flood(argv, (int64_t)ms * NSEC_PER_MSEC, cpu, server_cpu, &err) < 0) {
                fprintf(stderr, "bench-flood: %s\n", err.text);
                return 1;
        }
        return 0;
}
