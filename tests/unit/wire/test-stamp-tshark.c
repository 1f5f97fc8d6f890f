/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "tests/skip.h"
#include "wire/stamp.h"
#include "wire/vlan.h"

/* Our packets as another implementation reads them: tshark, whose TWAMP-Test dissector knows this format (RFC
 * 8762, 4.6: the two interoperate). One request and its reply, the reply in an 802.1Q frame. */

#define SENT_NS     (INT64_C(1795000000) * NSEC_PER_SEC + 123456789)
#define RECEIVED_NS (SENT_NS + 1000)
#define REPLIED_NS  (SENT_NS + 2500)

#define LEN_HEADERS (VLAN_ETHER_LEN + 20 + 8)

static void put_headers(uint8_t *p, uint16_t source_port, uint16_t destination_port)
{
        memset(p, 0, LEN_HEADERS);
        put_be16(p + 12, 0x0800);
        p += VLAN_ETHER_LEN;
        p[0] = 0x45;
        put_be16(p + 2, 20 + 8 + STAMP_LEN);
        p[8] = STAMP_TTL;
        p[9] = 17;
        put_be32(p + 12, 0x0a000000 | source_port);
        put_be32(p + 16, 0x0a000000 | destination_port);
        put_be16(p + 20, source_port);
        put_be16(p + 22, destination_port);
        put_be16(p + 24, 8 + STAMP_LEN);
}

/* One record of the classic capture format, little-endian. */
static bool write_record(FILE *f, const uint8_t *frame, size_t len)
{
        uint8_t header[16] = {0};

        put_le32(header + 8, (uint32_t)len);
        put_le32(header + 12, (uint32_t)len);
        return fwrite(header, sizeof(header), 1, f) == 1 && fwrite(frame, len, 1, f) == 1;
}

static bool write_capture(FILE *f)
{
        struct stamp_error error = {.is_synchronised = true, .scale = 32, .multiplier = 1};
        struct stamp_request request = {.sequence = 7,
                                        .timestamp = stamp_time_encode(STAMP_FORMAT_NTP, SENT_NS),
                                        .error = error};
        struct stamp_reply reply = {
                .sequence = 9,
                .timestamp = stamp_time_encode(STAMP_FORMAT_NTP, REPLIED_NS),
                .error = {.scale = 32, .multiplier = 2},
                .receive_timestamp = stamp_time_encode(STAMP_FORMAT_NTP, RECEIVED_NS),
                .sender_sequence = request.sequence,
                .sender_timestamp = request.timestamp,
                .sender_error = error,
                .sender_ttl = 253,
        };
        uint8_t header[24] = {0}, frame[LEN_HEADERS + STAMP_LEN + VLAN_TAG_LEN];
        size_t len = LEN_HEADERS + STAMP_LEN;

        put_le32(header, 0xa1b2c3d4);
        put_le32(header + 4, 0x00040002); /* version 2.4 */
        put_le32(header + 16, 65535);
        put_le32(header + 20, 1); /* Ethernet */
        if (fwrite(header, sizeof(header), 1, f) != 1)
                return false;

        put_headers(frame, 40000, STAMP_PORT);
        stamp_request_put(&request, frame + LEN_HEADERS);
        if (!write_record(f, frame, len))
                return false;

        put_headers(frame, STAMP_PORT, 40000);
        stamp_reply_put(&reply, frame + LEN_HEADERS);
        return vlan_push(frame, &len, sizeof(frame), &(struct vlan_tag){.id = 10}) == 0 && write_record(f, frame, len);
}

/* Whether the fields of one packet hold what they should: @expected[i] stands somewhere in field i (tshark's versions
 * print dates differently), and NULL is not looked at. Returns the rest of the text, or NULL. */
static char *check_packet(char *line, const char *const *expected, size_t n)
{
        char *end = strchr(line, '\n');

        if (!end)
                return NULL;
        *end = '\0';
        for (size_t i = 0; i < n; i++) {
                char *field = strsep(&line, "\t");

                if (!field || (expected[i] && !strstr(field, expected[i]))) {
                        fprintf(stderr, "field %zu: tshark read \"%s\", expected \"%s\"\n", i,
                                field ? field : "nothing", expected[i]);
                        return NULL;
                }
        }
        return end + 1;
}

static int check_capture(const char *path)
{
        static const char *const of_request[] = {NULL, "7", ":40.123456789", "1", "0", "32", "1"};
        static const char *const of_reply[] = {"10", "9", ":40.123459289", "0", "0",
                                               "32", "2", ":40.123457789", "7", ":40.123456789",
                                               "253"};
        char command[512], output[1024], *line = output;
        size_t len;
        FILE *f;

        snprintf(command, sizeof(command),
                 "LC_ALL=C TZ=UTC tshark -r %s -d udp.port==%d,twamp.test -T fields -E occurrence=f -e vlan.id"
                 " -e twamp.test.seq_number -e twamp.test.timestamp -e twamp.test.error_estimate.s"
                 " -e twamp.test.error_estimate.z -e twamp.test.error_estimate.scale"
                 " -e twamp.test.error_estimate.multiplier -e twamp.test.receive_timestamp"
                 " -e twamp.test.sender_seq_number -e twamp.test.sender_timestamp -e twamp.test.sender_ttl 2>/dev/null",
                 path, STAMP_PORT);
        f = popen(command, "r");
        if (!f)
                return EXIT_FAILURE;
        len = fread(output, 1, sizeof(output) - 1, f);
        output[len] = '\0';
        if (pclose(f) != 0) {
                fprintf(stderr, "tshark failed\n");
                return EXIT_FAILURE;
        }
        line = check_packet(line, of_request, ARRAY_SIZE(of_request));
        return line && check_packet(line, of_reply, ARRAY_SIZE(of_reply)) ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(void)
{
        char path[] = "/tmp/assay-test-stamp-XXXXXX";
        int fd, r = EXIT_FAILURE;
        FILE *f;

        if (system("command -v tshark >/dev/null 2>&1") != 0)
                return test_skip("tshark", "not installed");

        fd = mkstemp(path);
        if (fd < 0)
                return EXIT_FAILURE;
        f = fdopen(fd, "wb");
        if (f && write_capture(f) && fclose(f) == 0)
                r = check_capture(path);
        unlink(path);
        return r;
}
