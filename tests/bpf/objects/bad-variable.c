/* SPDX-License-Identifier: Apache-2.0 */
extern int nowhere;

int uses_nowhere(void *unused)
{
        return nowhere;
}
