/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <ares.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/span.h"
#include "sandbox/resolver.h"
#include "wire/host-name.h"

#define RESOLVER_SERVICES_MAX  8  /* sockets that are served */
#define RESOLVER_ADDRESSES_MAX 64 /* of one answer */

struct resolver_client;

/* A socket that is served. */
struct resolver_service {
        struct loop_io io;
        struct resolver *resolver;
        int fd; /* -1: none */
};

/* A connection to a server upstream; c-ares opens and closes it. */
struct resolver_upstream {
        struct loop_io io;
        struct resolver *resolver;
        struct resolver_upstream *next;
};

/* Where an answer goes: back to the address from which a datagram came, from that at which it arrived; or into a
 * connection. */
struct resolver_return {
        struct resolver_service *service; /* of a datagram */
        struct sockaddr_storage peer;
        socklen_t peer_len;
        uint8_t control[CMSG_SPACE(sizeof(struct in6_pktinfo))] __attribute__((aligned(8)));
        size_t control_len;
        struct resolver_client *client; /* of a stream; NULL with a datagram, and where it was closed meanwhile */
};

/* A query on its way. */
struct resolver_query {
        struct resolver *resolver;
        struct resolver_query *next, **place; /* in the list of those that wait for upstream */
        struct resolver_return to;
        bool is_stream;
        struct dns_message message;
        struct host_name name;
        size_t len;
        uint8_t bytes[]; /* the query as it came, into which @message points */
};

struct resolver {
        struct resolver_options options;
        struct resolver_service services[RESOLVER_SERVICES_MAX];
        struct resolver_client *clients;
        size_t n_clients;

        ares_channel channel;
        bool has_library, has_channel;
        struct resolver_upstream *upstreams;
        struct loop_timer upstream_timer, keep_timer;

        struct resolver_query *waiting;
        size_t n_waiting;
        uint64_t counts[N_RESOLVER_OUTCOMES];
        uint8_t answer[DNS_MESSAGE_MAX]; /* under construction */
};

/* ---- what is asked, and answered (resolver-answer.c) ---- */

/* resolver_take - take a message in from a client, and answer it now or later */
void resolver_take(struct resolver *resolver, struct span bytes, const struct resolver_return *to);

/* resolver_finish - answer a query with what upstream said, and free it
 * @response: empty where nothing came
 * @status:   of c-ares
 */
void resolver_finish(struct resolver_query *query, struct span response, int status);

/* ---- upstream (resolver-upstream.c) ---- */

int resolver_upstream_open(struct resolver *resolver, struct err *err);
void resolver_upstream_close(struct resolver *resolver);

/* resolver_upstream_ask - resolver_finish() is called at some time, perhaps before this returns */
void resolver_upstream_ask(struct resolver_query *query);

/* ---- clients (resolver-client.c) ---- */

int resolver_client_serve(struct resolver_service *service, int type, struct err *err);

/* resolver_client_reply - send an answer; where that does not go, it is dropped, as the network would */
void resolver_client_reply(const struct resolver_return *to, struct span message);

/* resolver_client_release - a query of this connection has been answered */
void resolver_client_release(struct resolver_client *client);

/* resolver_client_resume - take connections again, where there were no descriptors for them */
void resolver_client_resume(struct resolver *resolver);

void resolver_client_close_all(struct resolver *resolver);
