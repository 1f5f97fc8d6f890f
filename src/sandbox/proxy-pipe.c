/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/macro.h"
#include "sandbox/proxy-internal.h"

struct proxy_pipe *proxy_pipe_take(struct proxy *proxy)
{
        struct proxy_pipe *pipe = proxy->pipes_free;

        if (pipe) {
                proxy->pipes_free = pipe->next;
                return pipe;
        }
        if (proxy->n_pipes >= proxy->pipes_max)
                return NULL;
        pipe = malloc(sizeof(*pipe));
        if (!pipe || pipe2(pipe->fds, O_CLOEXEC | O_NONBLOCK) < 0) {
                free(pipe);
                return NULL;
        }
        fcntl(pipe->fds[1], F_SETPIPE_SZ, PROXY_PIPE_BYTES);
        proxy->n_pipes++;
        return pipe;
}

static void pipe_free(struct proxy *proxy, struct proxy_pipe *pipe)
{
        for (size_t i = 0; i < ARRAY_SIZE(pipe->fds); i++)
                close(pipe->fds[i]);
        free(pipe);
        proxy->n_pipes--;
}

void proxy_pipe_give(struct proxy *proxy, struct proxy_pipe *pipe, bool is_empty)
{
        if (!pipe)
                return;
        if (!is_empty) {
                pipe_free(proxy, pipe);
                return;
        }
        pipe->next = proxy->pipes_free;
        proxy->pipes_free = pipe;
}

void proxy_pipes_close(struct proxy *proxy)
{
        while (proxy->pipes_free) {
                struct proxy_pipe *pipe = proxy->pipes_free;

                proxy->pipes_free = pipe->next;
                pipe_free(proxy, pipe);
        }
}
