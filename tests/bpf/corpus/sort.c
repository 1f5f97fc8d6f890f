/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* The median of nine numbers, sorted on the stack. */
#define N 9

struct numbers {
        __u32 values[N];
};

SEC("event")
int sort(const struct numbers *n)
{
        __u32 sorted[N];

        for (int i = 0; i < N; i++)
                sorted[i] = n->values[i];
        for (int i = 1; i < N; i++)
                for (int k = N - 1; k > 0; k--)
                        if (sorted[k] < sorted[k - 1]) {
                                __u32 greater = sorted[k - 1];

                                sorted[k - 1] = sorted[k];
                                sorted[k] = greater;
                        }
        return sorted[N / 2];
}
