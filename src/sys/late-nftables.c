/* SPDX-License-Identifier: Apache-2.0 */
#include <nftables/libnftables.h>

#include "base/late.h"

/* libnftables, with four more libraries behind it. */

static struct late_library nftables = {"libnftables.so.1", NULL};

LATE_FUNCTION(nftables, struct nft_ctx *, nft_ctx_new, (uint32_t flags), (flags))
LATE_FUNCTION(nftables, void, nft_ctx_free, (struct nft_ctx * ctx), (ctx))
LATE_FUNCTION(nftables, void, nft_ctx_output_set_flags, (struct nft_ctx * ctx, unsigned int flags), (ctx, flags))
LATE_FUNCTION(nftables, int, nft_ctx_buffer_output, (struct nft_ctx * ctx), (ctx))
LATE_FUNCTION(nftables, const char *, nft_ctx_get_output_buffer, (struct nft_ctx * ctx), (ctx))
LATE_FUNCTION(nftables, int, nft_ctx_buffer_error, (struct nft_ctx * ctx), (ctx))
LATE_FUNCTION(nftables, const char *, nft_ctx_get_error_buffer, (struct nft_ctx * ctx), (ctx))
LATE_FUNCTION(nftables, int, nft_run_cmd_from_buffer, (struct nft_ctx * ctx, const char *buf), (ctx, buf))
