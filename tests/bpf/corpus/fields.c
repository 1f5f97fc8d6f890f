/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* Type-length-value fields, walked through a buffer with an offset that grows by what the data says. */
#define BYTES 128

struct message {
        __u32 len;
        __u8 bytes[BYTES];
};

SEC("event")
int fields(const struct message *m)
{
        __u32 at = 0, len = m->len, sum = 0;

        if (len > BYTES)
                return -1;
        for (int i = 0; i < 32; i++) {
                __u32 size;

                if (at + 2 > len)
                        break;
                size = m->bytes[at + 1];
                if (m->bytes[at] == 7)
                        sum += size;
                at += 2 + size;
                if (at >= BYTES - 2)
                        break;
        }
        return sum;
}
