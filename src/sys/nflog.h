/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/span.h"
#include "sys/netns.h"

/* What rules of nftables with "log group N" report of a network namespace: the first bytes of each packet, and who sent
 * it. It stays in its namespace and keeps it alive. Not to be shared between processes or threads. */
struct nflog;

/* nflog_open - take the reports of a group; there is one listener a group and namespace
 * @ns:          NULL for the namespace of the calling thread
 * @copy_bytes:  so much of each packet, from its IP header on
 * @ret:         nflog_free() releases it
 *
 * Return: 0; -EPERM, kind unsupported, where the group is taken or without CAP_NET_ADMIN over the namespace; another
 * negative errno.
 */
int nflog_open(const struct netns *ns, uint16_t group, uint32_t copy_bytes, struct nflog **ret, struct err *err);

void nflog_free(struct nflog *log);

DEFINE_CLEANUP(struct nflog *, nflog_free)
#define _cleanup_nflog_ _cleanup_(nflog_free_cleanup)

/* nflog_fd - becomes readable with the next report; borrowed */
int nflog_fd(const struct nflog *log);

struct nflog_packet {
        struct span bytes; /* from the IP header on; valid until the next call */
        bool has_uid;
        uint32_t uid; /* of the socket that sent it */
};

/* nflog_read - the next report, without waiting
 *
 * Return: 1 with @ret; 0 where there is none; -ENOBUFS where reports were lost since the last call, which may go on;
 * another negative errno.
 */
int nflog_read(struct nflog *log, struct nflog_packet *ret);
