/* SPDX-License-Identifier: Apache-2.0 */
static __attribute__((noinline)) int target(int x)
{
        return x;
}

long takes_address(long *out)
{
        *out = (long)target;
        return 0;
}
