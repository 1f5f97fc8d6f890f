/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sys/netns.h"

/* A connection to the packet filter of one network namespace, in nftables' own language. It stays in its namespace and
 * keeps it alive. Not to be shared between processes or threads. */
struct nft;

/* nft_open - connect
 * @ns:  NULL for the namespace of the calling thread
 * @ret: nft_free() releases it
 */
int nft_open(const struct netns *ns, struct nft **ret, struct err *err);

void nft_free(struct nft *nft);

DEFINE_CLEANUP(struct nft *, nft_free)
#define _cleanup_nft_ _cleanup_(nft_free_cleanup)

/* nft_run - carry out commands, all of them or none
 *
 * Return: 0; -EOPNOTSUPP, kind unsupported, with the first line of nftables' reason where it refuses.
 */
int nft_run(struct nft *nft, const char *commands, struct err *err);

/* nft_list - what a "list ..." command answers, as nftables' JSON: the array of its objects
 * @ret: a new reference
 *
 * Return: as nft_run(); -EINVAL, kind data, where the answer is no such JSON.
 */
int nft_list(struct nft *nft, const char *command, json_t **ret, struct err *err);
