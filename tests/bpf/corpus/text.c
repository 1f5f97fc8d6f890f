/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* A decimal number, read from text and written back, with buffers that functions get by pointer. */
#define DIGITS 10

struct line {
        char text[32];
};

static __attribute__((noinline)) int parse(const struct line *line, __u64 *ret)
{
        __u64 value = 0;
        int i;

        for (i = 0; i < DIGITS; i++) {
                char c = line->text[i];

                if (c < '0' || c > '9')
                        break;
                value = value * 10 + (c - '0');
        }
        *ret = value;
        return i;
}

static __attribute__((noinline)) void print(__u64 value, char *out)
{
        for (int i = DIGITS - 1; i >= 0; i--) {
                out[i] = '0' + value % 10;
                value /= 10;
        }
}

SEC("event")
int text(const struct line *line)
{
        char out[DIGITS + 2] = {};
        __u64 value = 0;
        int n = parse(line, &value);

        if (n == 0)
                return -1;
        print(value + 1, out);
        bpf_printk("%d", (int)value);
        return out[0] == '0' ? n : -n;
}
