/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/version.h"

int main(void)
{
        printf("assay %s\n", version_number());
        return 0;
}
