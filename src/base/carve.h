/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Several arrays in one piece of memory, so that one call allocates and frees them. A function that names them all is
 * called twice: without memory to learn how much they take, and with it to place them.
 *
 *         static size_t place(struct graph *g, void *memory)
 *         {
 *                 size_t used = 0;
 *
 *                 g->nodes = carve(memory, &used, g->n_nodes, sizeof(*g->nodes));
 *                 g->edges = carve(memory, &used, g->n_edges, sizeof(*g->edges));
 *                 return used;
 *         }
 */

/* carve - the next @n times @size bytes of @memory, at a multiple of 8; NULL without memory
 * @used: bytes so far, of which there are fewer than half of what a size_t can say
 */
static inline void *carve(void *memory, size_t *used, size_t n, size_t size)
{
        void *at = memory ? (char *)memory + *used : NULL;

        *used += (n * size + 7) & ~(size_t)7;
        return at;
}

#define CARVE_SMALL 1024

/* carve_alloc - @size bytes of zeros, which free() releases; NULL if memory ran out
 *
 * Small pieces come from malloc(): in glibc calloc() passes by the thread's cache of freed pieces and takes several
 * times as long. The empty statement keeps the compiler from making calloc() of it.
 */
static inline void *carve_alloc(size_t size)
{
        void *memory;

        if (size > CARVE_SMALL)
                return calloc(1, size);
        memory = malloc(size);
        __asm__ volatile("" : "+r"(memory));
        if (memory)
                memset(memory, 0, size);
        return memory;
}
