/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* Two matrices of 4 x 4, multiplied on the stack by three loops that are not unrolled. */
#define N 4

struct pair {
        __s32 a[N][N], b[N][N];
};

SEC("event")
int matrix(const struct pair *p)
{
        __s64 c[N][N] = {}, trace = 0;

#pragma clang loop unroll(disable)
        for (int i = 0; i < N; i++)
#pragma clang loop unroll(disable)
                for (int j = 0; j < N; j++)
#pragma clang loop unroll(disable)
                        for (int k = 0; k < N; k++)
                                c[i & 3][j & 3] += (__s64)p->a[i][k] * p->b[k][j];
        for (int i = 0; i < N; i++)
                trace += c[i][i];
        return trace;
}
