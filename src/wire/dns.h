/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* DNS messages, RFC 1035, as far as a resolver of host names needs them: one question; answers of A, AAAA, CNAME and
 * PTR; EDNS (RFC 6891) with extended errors (RFC 8914). Everything else in a message is stepped over, and every length
 * and name on the way is checked.
 *
 * Names are text without the last dot, "" for the root, in the letters in which they came. An octet that is not visible
 * ASCII, and a dot or backslash within a label, is refused rather than escaped: no host has such a name. */

#define DNS_PORT        53
#define DNS_NAME_TEXT   254 /* 253 octets and the terminator */
#define DNS_HEADER_LEN  12
#define DNS_UDP_MAX     512   /* of a message over UDP, where no EDNS says otherwise */
#define DNS_MESSAGE_MAX 65535 /* over TCP, where two octets of length come before it */

enum dns_type {
        DNS_TYPE_A = 1,
        DNS_TYPE_CNAME = 5,
        DNS_TYPE_PTR = 12,
        DNS_TYPE_AAAA = 28,
        DNS_TYPE_OPT = 41,
};

#define DNS_CLASS_IN 1

enum dns_rcode {
        DNS_RCODE_NOERROR = 0,
        DNS_RCODE_FORMERR = 1,
        DNS_RCODE_SERVFAIL = 2,
        DNS_RCODE_NXDOMAIN = 3,
        DNS_RCODE_NOTIMP = 4,
        DNS_RCODE_REFUSED = 5,
        DNS_RCODE_BADVERS = 16, /* EDNS of a version that is not known */
};

/* dns_rcode_name - as tools write it: "NXDOMAIN"; "OTHER" for one that is not listed above */
const char *dns_rcode_name(unsigned rcode);

/* Codes of RFC 8914 that say why there is no answer. */
enum dns_extended_error {
        DNS_EDE_OTHER = 0,
        DNS_EDE_BLOCKED = 15,       /* a policy of who runs the resolver refuses the name */
        DNS_EDE_NOT_SUPPORTED = 21, /* no such kind of question here */
        DNS_EDE_NETWORK_ERROR = 23, /* the servers asked could not be reached, or did not answer sensibly */
};

/* Why a message is not taken. */
enum dns_fault {
        DNS_FAULT_NONE,
        DNS_FAULT_SHORT,     /* ends within its header: there is not even an id to answer with */
        DNS_FAULT_DIRECTION, /* a response where a query is expected, or the reverse */
        DNS_FAULT_CUT,       /* ends within a record */
        DNS_FAULT_COUNT,     /* not exactly one question, or a query with answers */
        DNS_FAULT_LABEL,     /* a reserved label type, or an octet that no host name has */
        DNS_FAULT_LENGTH,    /* a name of more than 253 octets */
        DNS_FAULT_POINTER,   /* compression that does not lead backwards: forward, into the header, or a loop */
        DNS_FAULT_DATA,      /* record data of another length than its type has */
        DNS_FAULT_OPT,       /* a second OPT record, one with a name, or with options that do not fill it */
        DNS_FAULT_TRAILING,  /* octets after the last record */
        N_DNS_FAULTS,
};

/* dns_fault_name - stable lower-case name, such as "pointer" */
const char *dns_fault_name(enum dns_fault fault);

struct dns_edns {
        bool is_present;
        uint16_t udp_size; /* the largest message over UDP that the sender takes; at least 512 */
        uint8_t version;
        bool wants_dnssec;
};

/* The start of a message. */
struct dns_message {
        uint16_t id;
        bool is_response;
        uint8_t opcode; /* 0 is a standard query */
        bool is_truncated;
        bool recursion_desired;
        bool checking_disabled;
        uint16_t rcode; /* with the upper bits from EDNS */
        char name[DNS_NAME_TEXT];
        uint16_t type, class; /* of the question */
        struct span question; /* the octets of the question: name, type and class */
        struct dns_edns edns;

        /* What dns_answer_next() needs. */
        struct span bytes;
        size_t answers_at;
        uint16_t n_answers;
};

/* dns_query_parse - read a query: its start, and all records to the last octet
 * @ret: holds spans into @bytes. On a fault, id, opcode and recursion_desired are set where the header was all there,
 *       so that the sender can be told, and the rest is empty.
 */
enum dns_fault dns_query_parse(struct span bytes, struct dns_message *ret);

/* dns_response_parse - read a response: its start, and all records to the last octet. @ret: as above. */
enum dns_fault dns_response_parse(struct span bytes, struct dns_message *ret);

/* One record of the answer section, of class IN. */
struct dns_answer {
        char name[DNS_NAME_TEXT];
        uint16_t type;
        uint32_t ttl_s;             /* with the topmost bit set it means 0 (RFC 2181, 8), and is 0 here */
        uint8_t address[16];        /* of A (4 octets) and AAAA */
        char target[DNS_NAME_TEXT]; /* of CNAME and PTR */
};

/* Where in the answers of a message a reader is; starts as {0}. */
struct dns_cursor {
        size_t at;
        uint16_t n_read;
};

/* dns_answer_next - the next A, AAAA, CNAME or PTR record among the answers of a response that was parsed
 *
 * Return: 1; 0 at the end.
 */
int dns_answer_next(const struct dns_message *response, struct dns_cursor *cursor, struct dns_answer *ret);

/* dns_name_equal - whether two names are the same, which they are in any case of letters */
bool dns_name_equal(const char *a, const char *b);

/* dns_name_of_address - the name under which PTR records of an address are: "1.2.0.192.in-addr.arpa" and the like
 * @family: AF_INET or AF_INET6
 */
void dns_name_of_address(int family, const uint8_t *address, char ret[static DNS_NAME_TEXT]);

/* dns_name_to_address - the address that such a name stands for
 *
 * Return: its family, AF_INET or AF_INET6, with @ret_address set; 0 where the name is not of one whole address.
 */
int dns_name_to_address(const char *name, uint8_t ret_address[static 16]);

/* A message being written. It never grows over its buffer: what does not fit is left out and remembered. */
struct dns_writer {
        uint8_t *buf;
        size_t size;     /* to be written, at most */
        size_t reserved; /* of it, for what dns_writer_finish() adds */
        size_t len;
        size_t owner_at; /* of the name that the next answer belongs to */
        uint16_t n_answers;
        bool is_full;
};

/* dns_query_put - write a query for a name, recursion desired
 * @udp_size: for EDNS; 0 leaves EDNS out
 *
 * Return: its length; -EINVAL where @name is none; -ENOSPC.
 */
int dns_query_put(uint8_t *buf, size_t size, uint16_t id, const char *name, uint16_t type, uint16_t udp_size);

/* dns_writer_begin - start the response to @query: its id, its question as it came, octet for octet
 * @size: of @buf; at least 512
 * @rcode: see dns_writer_finish()
 */
void dns_writer_begin(struct dns_writer *w, uint8_t *buf, size_t size, const struct dns_message *query);

/* dns_writer_cname - answer that the name so far is an alias of @target, to which the answers after this belong */
void dns_writer_cname(struct dns_writer *w, const char *target, uint32_t ttl_s);

/* dns_writer_address - answer an address: A for AF_INET, AAAA for AF_INET6 */
void dns_writer_address(struct dns_writer *w, int family, const uint8_t *address, uint32_t ttl_s);

/* dns_writer_ptr - answer a name */
void dns_writer_ptr(struct dns_writer *w, const char *target, uint32_t ttl_s);

/* How a response ends. */
struct dns_end {
        enum dns_rcode rcode;
        bool has_error; /* an extended error goes with it, where the query had EDNS */
        enum dns_extended_error error;
        const char *error_text; /* UTF-8, cut after 255 octets; may be NULL */
};

/* dns_writer_finish - write what ends the response to @query
 *
 * Where answers did not fit, none of them is sent, and the truncation bit tells the client to come back over TCP.
 * An extended error's text is left out where it alone does not fit.
 * Return: the length of the message.
 */
size_t dns_writer_finish(struct dns_writer *w, const struct dns_message *query, const struct dns_end *end);
