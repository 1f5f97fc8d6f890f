/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"
#include "wire/http1.h"

/* What a client says on a connection of whom it wants: the server name of TLS, the host of each request of HTTP/1.
 * Octets are held back until that is known and found to be allowed. */

enum inspector_mode {
        INSPECTOR_FIRST, /* it is not known yet what is spoken */
        INSPECTOR_HTTP_HEAD,
        INSPECTOR_HTTP_BODY,
        INSPECTOR_ENDED, /* of HTTP: nothing more may come */
        INSPECTOR_OPEN,  /* nothing more is looked at */
};

struct inspector {
        enum inspector_mode mode;
        bool is_strict; /* an upgrade to another protocol, whose hosts would not be seen, is refused */
        bool is_last;   /* no request may follow this one on its connection */
        size_t looked_at;
        struct http1_body body;

        /* Whether the flow may go on: @sni or @http_host is a name in normal form, "" where the client says none, NULL
         * where it does not apply. Both "": it speaks neither TLS nor HTTP. */
        bool (*is_allowed)(void *userdata, const char *sni, const char *http_host);
        void *userdata;
};

/* inspector_read - go on over what the client has sent and was not let through yet
 * @input:   from the first such octet on; the same octets come again, with more, until they are let through
 * @is_end:  no more will come
 * @ret_len: so many may go through now
 * @ret_why: on a refusal that is not is_allowed()'s, the reason; else NULL
 *
 * Return: 0; -EPERM where the connection has to end.
 */
int inspector_read(struct inspector *inspector, struct span input, bool is_end, size_t *ret_len, const char **ret_why);
