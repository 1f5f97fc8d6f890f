/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* The Internet checksum and a CRC-32, bit by bit, of a fixed buffer: nested loops that end by constants. */
struct frame {
        __u8 bytes[64];
};

static __attribute__((noinline)) __u32 crc32(const __u8 *bytes)
{
        __u32 crc = 0xffffffff;

        for (int i = 0; i < 64; i++) {
                crc ^= bytes[i];
                for (int bit = 0; bit < 8; bit++)
                        crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
        }
        return ~crc;
}

SEC("event")
int checksum(const struct frame *f)
{
        __u32 sum = 0;

        for (int i = 0; i < 64; i += 2)
                sum += (__u32)f->bytes[i] << 8 | f->bytes[i + 1];
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        return (~sum & 0xffff) ^ crc32(f->bytes);
}
