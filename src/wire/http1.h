/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "wire/host-name.h"

/* HTTP/1 messages (RFC 9110, RFC 9112): the head, and as much of the framing as finds the next one on a connection.
 *
 * Requests are read as a gateway has to that decides by the host: whatever two readers could understand in two ways is
 * refused, also where RFC 9112 lets a lenient recipient accept it. Each request names exactly one host. */

#define HTTP1_HEAD_LEN     ((size_t)64 * 1024)   /* a usual limit of a head */
#define HTTP1_HEAD_LEN_MAX ((size_t)1024 * 1024) /* the largest that may be asked for */

/* Why a message is not taken. */
enum http1_fault {
        HTTP1_FAULT_NONE,
        HTTP1_FAULT_INCOMPLETE,   /* no fault so far: more octets are needed */
        HTTP1_FAULT_HEAD_LENGTH,  /* the head is longer than the limit */
        HTTP1_FAULT_LINE_END,     /* a CR without LF, or an LF without CR */
        HTTP1_FAULT_START_LINE,   /* not "METHOD TARGET VERSION" or "VERSION STATUS REASON" with single spaces */
        HTTP1_FAULT_VERSION,      /* another version than HTTP/1.0 and HTTP/1.1 */
        HTTP1_FAULT_TARGET,       /* a target of none of the four forms, or of one that the method does not have */
        HTTP1_FAULT_SCHEME,       /* an absolute target that is not of http */
        HTTP1_FAULT_USERINFO,     /* a user in an authority */
        HTTP1_FAULT_HOST,         /* a host that is neither a name nor an address */
        HTTP1_FAULT_HOST_ADDRESS, /* an IPv4 address in an unusual form: octal, hexadecimal, short or mapped */
        HTTP1_FAULT_PORT,         /* a port that is not a number from 1 to 65535, or is missing after CONNECT */
        HTTP1_FAULT_HOST_MISSING, /* no Host field */
        HTTP1_FAULT_HOST_TWICE,   /* more than one */
        HTTP1_FAULT_HOST_DIFFERS, /* Host and target name two hosts, or two ports */
        HTTP1_FAULT_FIELD,        /* a field line without a name, or with octets that do not belong there */
        HTTP1_FAULT_FOLD,         /* a field continued on a second line */
        HTTP1_FAULT_LENGTH,       /* Content-Length that is no number, or is given twice */
        HTTP1_FAULT_ENCODING,     /* Transfer-Encoding other than a single "chunked", or in HTTP/1.0 */
        HTTP1_FAULT_FRAMING,      /* Content-Length and Transfer-Encoding together */
        HTTP1_FAULT_UPGRADE,      /* an upgrade to HTTP/2, or another protocol, of a request with a body */
        HTTP1_FAULT_EXPECT,       /* an expectation other than 100-continue */
        HTTP1_FAULT_CHUNK,        /* a chunk's size, extension or end that is not as it has to be */
        HTTP1_FAULT_TRAILER,      /* a trailer section that is not fields, or is too long */
        N_HTTP1_FAULTS,
};

/* http1_fault_name - stable lower-case name, such as "host-twice" */
const char *http1_fault_name(enum http1_fault fault);

/* http1_head_end - look for the end of a head in the octets that have arrived
 * @limit:  octets that the head may have, at most HTTP1_HEAD_LEN_MAX
 * @at:     how far it was looked before, 0 at first; moved on, so that no octet is looked at twice
 * @ret:    octets of the head with the empty line that ends it
 *
 * Return: HTTP1_FAULT_NONE; HTTP1_FAULT_INCOMPLETE; HTTP1_FAULT_HEAD_LENGTH; HTTP1_FAULT_LINE_END.
 */
enum http1_fault http1_head_end(struct span input, size_t limit, size_t *at, size_t *ret);

/* The four forms of a target, RFC 9112, 3.2. */
enum http1_form {
        HTTP1_FORM_ORIGIN,    /* /where?query */
        HTTP1_FORM_ABSOLUTE,  /* http://host/where?query */
        HTTP1_FORM_AUTHORITY, /* host:port, of CONNECT */
        HTTP1_FORM_ASTERISK,  /* *, of OPTIONS */
};

/* How the end of a body is known, RFC 9112, 6.3. */
enum http1_framing {
        HTTP1_FRAMING_NONE, /* there is no body */
        HTTP1_FRAMING_LENGTH,
        HTTP1_FRAMING_CHUNKED,
        HTTP1_FRAMING_CLOSE, /* with the connection; only of responses */
};

struct http1_request {
        struct span method, target;
        enum http1_form form;
        unsigned minor_version; /* 0 or 1 */
        struct host_name host;  /* of the Host field, and of the target where it has one */
        uint16_t port;          /* 80 where none is written */
        bool has_port;          /* one is written */
        enum http1_framing framing;
        uint64_t content_length; /* with HTTP1_FRAMING_LENGTH */
        bool is_connect;         /* where it succeeds, what follows is a tunnel and no request */
        bool is_upgrade;         /* where it succeeds (101), what follows is another protocol */
        bool offers_h2; /* an upgrade to HTTP/2, of which most servers take no notice. Where one succeeds, what comes
                         * next begins with a preface that is no request of HTTP/1 (RFC 7540, 3.5) */
        bool expects_continue; /* the body may be withheld: after a final response without 100, what comes next is the
                                * body to one reader and a request to another, so the connection must not go on */
        bool keeps_alive;      /* the connection is not to be closed after it */
};

/* http1_request_parse - read a whole head, as http1_head_end() found it
 * @ret: holds spans into @head; empty on a fault
 */
enum http1_fault http1_request_parse(struct span head, struct http1_request *ret);

struct http1_response {
        unsigned minor_version;
        unsigned status; /* 100 to 999 */
        struct span reason;
        enum http1_framing framing;
        uint64_t content_length; /* with HTTP1_FRAMING_LENGTH */
        bool keeps_alive;
};

/* http1_response_parse - read a whole head of a response
 * @method: of the request that it answers: HEAD has no body, and a successful CONNECT neither
 */
enum http1_fault http1_response_parse(struct span head, struct span method, struct http1_response *ret);

/* http1_field - the value of the first field line with a name, without the space around it
 * @head: a head that was parsed
 *
 * Return: 1 with @ret set; 0 where there is none.
 */
int http1_field(struct span head, const char *name, struct span *ret);

/* A body on its way. Whoever moves octets asks http1_body_run() how many may pass unseen, tells http1_body_pass() how
 * many did, and has the others looked at by http1_body_read(). */
struct http1_body {
        enum http1_framing framing;
        uint64_t left;      /* octets of the body or of this chunk that are still to come */
        size_t line_len;    /* octets of the line of framing that is under way */
        size_t trailer_len; /* octets of the trailer section so far */
        uint8_t state;      /* of chunked framing */
        uint8_t n_digits;   /* of a chunk's size */
        bool is_done;
};

/* http1_body_begin - start after a head; @content_length counts with HTTP1_FRAMING_LENGTH */
void http1_body_begin(struct http1_body *body, enum http1_framing framing, uint64_t content_length);

/* http1_body_run - how many octets that come next are content for sure; 0 where framing comes next, or nothing */
uint64_t http1_body_run(const struct http1_body *body);

/* http1_body_pass - @len octets, at most http1_body_run(), went by unseen */
void http1_body_pass(struct http1_body *body, uint64_t len);

/* http1_body_read - go on over @input, to the end of what is content or framing in one piece
 * @ret_content: the part of @input that is content; may be empty
 * @ret_len:     octets of @input that this step took; the rest is for the next, or, once is_done, no part of the body
 *
 * Return: HTTP1_FAULT_NONE; HTTP1_FAULT_CHUNK; HTTP1_FAULT_TRAILER; HTTP1_FAULT_LINE_END. After a fault the connection
 * has no known next request.
 */
enum http1_fault http1_body_read(struct http1_body *body, struct span input, struct span *ret_content, size_t *ret_len);
