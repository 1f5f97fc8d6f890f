/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Libraries that few commands need, and that take longer to load than many a command runs, are loaded when one of their
 * functions is first called. The functions keep their names and types, so callers do not notice:
 *
 *         static struct late_library library = {"libpcap.so.0.8"};
 *         LATE_FUNCTION(library, void, pcap_close, (pcap_t *p), (p))
 *
 * Where the library, or the function in it, is missing, the function returns 0 or NULL: the one that every use of the
 * library begins with has to have that as its failure. */

struct late_library {
        const char *soname;
        void *handle; /* never closed */
};

/* late_find - a function of a library, which is loaded where it was not. Return: NULL if it, or the function, is
 * missing. */
void *late_find(struct late_library *library, const char *name);

/* LATE_FUNCTION - defines @name, with the parameters @params, which are called @args */
#define LATE_FUNCTION(library, type, name, params, args)                                                               \
        __attribute__((visibility("hidden"))) type name params                                                         \
        {                                                                                                              \
                static typeof(name) *function;                                                                         \
                                                                                                                       \
                if (!function)                                                                                         \
                        function = late_find(&(library), #name);                                                       \
                return function ? function args : (type)0;                                                             \
        }
