/* SPDX-License-Identifier: Apache-2.0 */
struct task {
        int pid;
} __attribute__((preserve_access_index));

int reads_task(struct task *t)
{
        return t->pid;
}
