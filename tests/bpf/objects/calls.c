/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct input {
        int n;
};

static __attribute__((noinline)) int leaf(int x)
{
        return x * x;
}

static __attribute__((noinline)) int middle(int x)
{
        return leaf(x) + leaf(x + 1);
}

__attribute__((noinline)) int shared(int x)
{
        return middle(x) - x;
}

SEC("first")
int one(const struct input *in)
{
        return shared(in->n);
}

SEC("second")
int two(struct input *in)
{
        in->n = leaf(in->n);
        return shared(in->n) + 1;
}

SEC("second")
int three(void *unused)
{
        return 3;
}
