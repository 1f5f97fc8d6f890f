/* SPDX-License-Identifier: Apache-2.0 */
#include "base/late.h"

#include <dlfcn.h>

void *late_find(struct late_library *library, const char *name)
{
        if (!library->handle)
                library->handle = dlopen(library->soname, RTLD_NOW | RTLD_LOCAL);
        return library->handle ? dlsym(library->handle, name) : 0;
}
