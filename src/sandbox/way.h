/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/ip.h"

/* Ways out of a sandbox, each as a program would try it. */

#define WAY_V4 1u
#define WAY_V6 2u

struct way {
        const char *name; /* stable; as in run bundles and the archive of a campaign */
        /* To be tried for each address of these families, at which somebody listens who would notice; 0: once, and that
         * it is not refused is already too much. */
        unsigned families;
        bool nested_allows; /* not closed with --nested, where it leads nowhere */

        /* Tries it. Nothing in it waits: sockets are not blocking. @to is NULL without families.
         * Return: 0 where no call was refused; the negative errno of one that was. */
        int (*try)(const struct ip_prefix *to, uint16_t port);
};

/* Parts of the table. */
extern const struct way network_ways[], kernel_ways[];
extern const size_t n_network_ways, n_kernel_ways;

/* way_at - the way number @i, over both parts; NULL where there are no more */
const struct way *way_at(size_t i);
