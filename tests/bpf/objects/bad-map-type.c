/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
        __uint(type, BPF_MAP_TYPE_LPM_TRIE);
        __uint(max_entries, 1);
        __uint(key_size, 8);
        __uint(value_size, 8);
} trie SEC(".maps");

int program(void *unused)
{
        return bpf_map_delete_elem(&trie, unused);
}
