/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Network namespaces, held by descriptor and never by name. Nothing is mounted or pinned, so no janitor is needed: when
 * the last descriptor, process and socket of a namespace is gone, the kernel removes it with all links, addresses,
 * queues and BPF attachments in it, also after SIGKILL. */
struct netns {
        int fd; /* -1: none */
};

#define NETNS_INIT                                                                                                     \
        {                                                                                                              \
                .fd = -1                                                                                               \
        }

/* netns_new - create a namespace; the calling thread stays in its own
 * @ret: netns_done() releases it
 *
 * Needs CAP_SYS_ADMIN in the user namespace that owns the caller's network namespace, since without it there would be
 * no way back. Return: 0; a negative errno, kind unsupported where the right is missing.
 */
int netns_new(struct netns *ret, struct err *err);

/* netns_open_self - the namespace of the calling thread. Return: 0 or a negative errno. */
int netns_open_self(struct netns *ret, struct err *err);

/* netns_open - a namespace by a path that leads to one, such as /proc/PID/ns/net or /proc/PID/fd/N
 *
 * Return: 0; -EINVAL where the path is no network namespace; another negative errno.
 */
int netns_open(const char *path, struct netns *ret, struct err *err);

/* netns_done - close the descriptor; accepts NETNS_INIT, and may be called twice */
void netns_done(struct netns *ns);

#define _cleanup_netns_ _cleanup_(netns_done)

/* netns_inode - the number that tells this namespace from every other one of the running kernel, as in
 * "net:[4026531840]". Return: 0 or a negative errno. */
int netns_inode(const struct netns *ns, uint64_t *ret);

/* netns_enter - move the calling thread into @ns for good. Return: 0 or a negative errno. */
int netns_enter(const struct netns *ns, struct err *err);

/* netns_run - call @fn inside @ns and come back, whatever @fn returns
 * @fn: must neither change the namespace nor leave by another way than returning
 *
 * That there is a way back is tried before the first step. Return: what @fn returned; a negative errno where @ns could
 * not be entered, and @fn was not called.
 */
int netns_run(const struct netns *ns, int (*fn)(void *userdata, struct err *err), void *userdata, struct err *err);

/* netns_socket - a socket that belongs to @ns, close-on-exec
 *
 * Return: a descriptor or a negative errno.
 */
int netns_socket(const struct netns *ns, int domain, int type, int protocol, struct err *err);

/* netns_sysctl_write - set a network setting of @ns
 * @name:  below /proc/sys/net, such as "ipv4/ip_forward"
 *
 * Return: 0; -ENOENT where this kernel has no such setting; another negative errno.
 */
int netns_sysctl_write(const struct netns *ns, const char *name, const char *value, struct err *err);

/* netns_sysctl_read - read a network setting of @ns, without the line feed. Return: as netns_sysctl_write(). */
int netns_sysctl_read(const struct netns *ns, const char *name, char *ret, size_t size, struct err *err);
