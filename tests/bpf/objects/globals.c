/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

const volatile int limit = 10;
static const int table[4] = {5, 6, 7, 8};
int counter;
long base = 0x1122334455;
static short hidden = 3;

SEC("socket")
int use_globals(struct __sk_buff *skb)
{
        counter += hidden;
        hidden++;
        return limit + table[skb->len & 3] + (int)base + counter;
}
