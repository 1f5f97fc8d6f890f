/* SPDX-License-Identifier: Apache-2.0 */
/* One program that the decoder refuses beside one that it does not. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("event")
int good(void *unused)
{
        return 1;
}

SEC("event")
int indirect(int (**f)(void))
{
        return (*f)();
}
