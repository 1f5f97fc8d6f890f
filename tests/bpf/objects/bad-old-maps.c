/* SPDX-License-Identifier: Apache-2.0 */
struct old_definition {
        unsigned int type, key_size, value_size, max_entries, flags;
};

struct old_definition __attribute__((section("maps"), used)) old = {1, 4, 4, 1, 0};

int program(void *unused)
{
        return 0;
}
