/* SPDX-License-Identifier: Apache-2.0 */
/* No section is named: the global function of .text is the program. */
static __attribute__((noinline)) unsigned long low(unsigned long *words)
{
        return words[0] & 0xff;
}

unsigned long plain(unsigned long *words)
{
        return low(words) + 1;
}
