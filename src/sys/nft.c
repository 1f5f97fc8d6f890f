/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/nft.h"

#include <nftables/libnftables.h>

#include "base/json.h"

struct nft {
        struct nft_ctx *ctx;
};

/* In the namespace: the library connects to the kernel when its context is made. */
static int connect_here(void *userdata, struct err *err)
{
        struct nft *nft = userdata;

        nft->ctx = nft_ctx_new(NFT_CTX_DEFAULT);
        if (!nft->ctx || nft_ctx_buffer_output(nft->ctx) != 0 || nft_ctx_buffer_error(nft->ctx) != 0)
                return err_set(err, ERR_ENVIRONMENT, EIO, "libnftables cannot be used; is it installed?");
        return 0;
}

int nft_open(const struct netns *ns, struct nft **ret, struct err *err)
{
        _cleanup_nft_ struct nft *nft = calloc(1, sizeof(*nft));
        int r;

        if (!nft)
                return err_set_nomem(err);
        r = ns ? netns_run(ns, connect_here, nft, err) : connect_here(nft, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(nft);
        return 0;
}

void nft_free(struct nft *nft)
{
        if (!nft)
                return;
        if (nft->ctx)
                nft_ctx_free(nft->ctx);
        free(nft);
}

int nft_run(struct nft *nft, const char *commands, struct err *err)
{
        int r = nft_run_cmd_from_buffer(nft->ctx, commands);
        const char *reason = nft_ctx_get_error_buffer(nft->ctx);

        if (r != 0)
                return err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP, "nftables refuses: %.*s", (int)strcspn(reason, "\n"),
                               reason);
        return 0;
}

int nft_list(struct nft *nft, const char *command, json_t **ret, struct err *err)
{
        _cleanup_json_ json_t *root = NULL;
        json_t *items;
        int r;

        nft_ctx_output_set_flags(nft->ctx, NFT_CTX_OUTPUT_JSON);
        r = nft_run(nft, command, err);
        nft_ctx_output_set_flags(nft->ctx, 0);
        if (r == 0)
                r = json_parse(span_of_text(nft_ctx_get_output_buffer(nft->ctx)), "nftables", &root, err);
        if (r == 0)
                r = json_get_array(root, "nftables", "nftables", &items, err);
        if (r < 0)
                return r;
        *ret = json_incref(items);
        return 0;
}
