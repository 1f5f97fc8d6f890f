/* SPDX-License-Identifier: Apache-2.0 */
int nowhere(int x);

int calls_nowhere(void *unused)
{
        return nowhere(1);
}
