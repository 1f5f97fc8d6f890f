/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tls-hello.h"

#include "base/macro.h"

#define RECORD_HANDSHAKE  22
#define RECORD_HEADER_LEN 5
#define RECORD_MAX        ((size_t)16 * 1024)

#define MESSAGE_CLIENT_HELLO 1
#define MESSAGE_HEADER_LEN   4

#define EXTENSION_SERVER_NAME     0
#define EXTENSION_ALPN            16
#define EXTENSION_ENCRYPTED_HELLO 0xfe0d
#define EXTENSION_ENCRYPTED_NAME  0xffce /* what came before it */

#define SERVER_NAME_HOST 0

static const char *const fault_names[N_TLS_HELLO_FAULTS] = {
        [TLS_HELLO_FAULT_NONE] = "none",     [TLS_HELLO_FAULT_INCOMPLETE] = "incomplete",
        [TLS_HELLO_FAULT_RECORD] = "record", [TLS_HELLO_FAULT_TYPE] = "type",
        [TLS_HELLO_FAULT_LENGTH] = "length", [TLS_HELLO_FAULT_TWICE] = "twice",
        [TLS_HELLO_FAULT_NAME] = "name",     [TLS_HELLO_FAULT_ALPN] = "alpn",
};

const char *tls_hello_fault_name(enum tls_hello_fault fault)
{
        return (unsigned)fault < N_TLS_HELLO_FAULTS ? fault_names[fault] : "unknown";
}

/* Reads the handshake message through the records that carry it. */
struct reader {
        struct span stream;
        size_t at;
        size_t record_left;
        size_t message_left; /* octets of the message; before its header is read, those of the header */
};

/* Moves to an octet of handshake data. */
static enum tls_hello_fault next_record(struct reader *r)
{
        while (r->record_left == 0) {
                const uint8_t *p = r->stream.data + r->at;
                size_t n = MIN(r->stream.len - r->at, (size_t)RECORD_HEADER_LEN);

                if ((n > 0 && p[0] != RECORD_HANDSHAKE) || (n > 1 && p[1] != 3))
                        return TLS_HELLO_FAULT_RECORD;
                if (n < RECORD_HEADER_LEN)
                        return TLS_HELLO_FAULT_INCOMPLETE;
                r->record_left = get_be16(p + 3);
                if (r->record_left == 0 || r->record_left > RECORD_MAX)
                        return TLS_HELLO_FAULT_RECORD;
                r->at += RECORD_HEADER_LEN;
        }
        return r->at < r->stream.len ? TLS_HELLO_FAULT_NONE : TLS_HELLO_FAULT_INCOMPLETE;
}

/* Takes @len octets; @buf NULL skips them. */
static enum tls_hello_fault take(struct reader *r, size_t len, uint8_t *buf)
{
        if (len > r->message_left)
                return TLS_HELLO_FAULT_LENGTH;
        while (len > 0) {
                enum tls_hello_fault fault = next_record(r);
                size_t n;

                if (fault != TLS_HELLO_FAULT_NONE)
                        return fault;
                n = MIN(len, r->record_left);
                n = MIN(n, r->stream.len - r->at);
                if (buf) {
                        memcpy(buf, r->stream.data + r->at, n);
                        buf += n;
                }
                r->at += n;
                r->record_left -= n;
                r->message_left -= n;
                len -= n;
        }
        return TLS_HELLO_FAULT_NONE;
}

/* A length of @width octets, 1 to 3, most significant first. */
static enum tls_hello_fault take_length(struct reader *r, size_t width, size_t *ret)
{
        uint8_t octets[3] = {0};
        enum tls_hello_fault fault = take(r, width, octets + 3 - width);

        *ret = (size_t)octets[0] << 16 | get_be16(octets + 1);
        return fault;
}

/* RFC 6066, 3: a list of one entry, which is a host name. */
static enum tls_hello_fault read_name(struct span data, struct tls_hello *hello)
{
        struct span name;

        if (data.len < 5 || get_be16(data.data) != data.len - 2 || data.data[2] != SERVER_NAME_HOST ||
            get_be16(data.data + 3) != data.len - 5)
                return TLS_HELLO_FAULT_NAME;
        name = span_of(data.data + 5, data.len - 5);
        if (host_name_parse(name, &hello->name) < 0 || hello->name.kind != HOST_NAME_IS_NAME)
                return TLS_HELLO_FAULT_NAME;
        hello->has_name = true;
        return TLS_HELLO_FAULT_NONE;
}

/* RFC 7301, 3.1: a list of names that are not empty. */
static enum tls_hello_fault read_alpn(struct span data, struct tls_hello *hello)
{
        if (data.len < 4 || get_be16(data.data) != data.len - 2)
                return TLS_HELLO_FAULT_ALPN;
        for (size_t at = 2; at < data.len; at += 1u + data.data[at])
                if (data.data[at] == 0 || data.data[at] > data.len - at - 1)
                        return TLS_HELLO_FAULT_ALPN;
        hello->alpn_len = data.len - 2;
        memcpy(hello->alpn, data.data + 2, hello->alpn_len);
        return TLS_HELLO_FAULT_NONE;
}

/* Which of the extensions that are looked at have been there. */
struct seen {
        bool name, alpn, encrypted;
};

static enum tls_hello_fault take_extension(struct reader *r, struct seen *seen, struct tls_hello *hello)
{
        uint8_t buf[2 + TLS_HELLO_ALPN_MAX + 4];
        size_t type, len;
        enum tls_hello_fault fault = take_length(r, 2, &type);
        bool is_name = type == EXTENSION_SERVER_NAME, is_alpn = type == EXTENSION_ALPN,
             is_encrypted = type == EXTENSION_ENCRYPTED_HELLO || type == EXTENSION_ENCRYPTED_NAME;

        if (fault == TLS_HELLO_FAULT_NONE)
                fault = take_length(r, 2, &len);
        if (fault != TLS_HELLO_FAULT_NONE)
                return fault;
        if ((is_name && seen->name) || (is_alpn && seen->alpn) || (is_encrypted && seen->encrypted))
                return TLS_HELLO_FAULT_TWICE;
        seen->name |= is_name;
        seen->alpn |= is_alpn;
        seen->encrypted |= is_encrypted;
        hello->has_encrypted_hello = seen->encrypted;
        if (!is_name && !is_alpn)
                return take(r, len, NULL);

        if (len > (is_alpn ? 2 + (size_t)TLS_HELLO_ALPN_MAX : sizeof(buf)))
                return is_alpn ? TLS_HELLO_FAULT_ALPN : TLS_HELLO_FAULT_NAME;
        fault = take(r, len, buf);
        if (fault != TLS_HELLO_FAULT_NONE)
                return fault;
        return is_name ? read_name(span_of(buf, len), hello) : read_alpn(span_of(buf, len), hello);
}

/* Skips a field of @width octets of length and what they count. @min, @max: octets that it may have. */
static enum tls_hello_fault skip_vector(struct reader *r, size_t width, size_t min, size_t max)
{
        size_t len;
        enum tls_hello_fault fault = take_length(r, width, &len);

        if (fault == TLS_HELLO_FAULT_NONE && (len < min || len > max))
                fault = TLS_HELLO_FAULT_LENGTH;
        return fault == TLS_HELLO_FAULT_NONE ? take(r, len, NULL) : fault;
}

static enum tls_hello_fault take_extensions(struct reader *r, struct tls_hello *hello)
{
        enum tls_hello_fault fault;
        struct seen seen = {0};
        size_t len;

        if (r->message_left == 0) /* TLS 1.2 and before may go without */
                return TLS_HELLO_FAULT_NONE;
        fault = take_length(r, 2, &len);
        if (fault == TLS_HELLO_FAULT_NONE && len != r->message_left)
                fault = TLS_HELLO_FAULT_LENGTH;
        while (fault == TLS_HELLO_FAULT_NONE && r->message_left > 0)
                fault = take_extension(r, &seen, hello);
        return fault;
}

static enum tls_hello_fault read_hello(struct reader *r, struct tls_hello *hello)
{
        uint8_t type, version[2];
        enum tls_hello_fault fault = take(r, 1, &type);
        size_t len;

        if (fault == TLS_HELLO_FAULT_NONE && type != MESSAGE_CLIENT_HELLO)
                return TLS_HELLO_FAULT_TYPE;
        if (fault == TLS_HELLO_FAULT_NONE)
                fault = take_length(r, 3, &len);
        if (fault != TLS_HELLO_FAULT_NONE)
                return fault;
        if (len > TLS_HELLO_MAX)
                return TLS_HELLO_FAULT_LENGTH;
        r->message_left = len;

        fault = take(r, 2, version);
        if (fault == TLS_HELLO_FAULT_NONE && version[0] != 3)
                return TLS_HELLO_FAULT_TYPE;
        if (fault == TLS_HELLO_FAULT_NONE)
                fault = take(r, 32, NULL); /* random */
        if (fault == TLS_HELLO_FAULT_NONE)
                fault = skip_vector(r, 1, 0, 32); /* session */
        if (fault == TLS_HELLO_FAULT_NONE)
                fault = skip_vector(r, 2, 2, UINT16_MAX - 1); /* cipher suites */
        if (fault == TLS_HELLO_FAULT_NONE)
                fault = skip_vector(r, 1, 1, UINT8_MAX); /* compression */
        if (fault == TLS_HELLO_FAULT_NONE)
                fault = take_extensions(r, hello);
        /* Nothing else can be in the record in which the hello ends. */
        return fault == TLS_HELLO_FAULT_NONE && r->record_left > 0 ? TLS_HELLO_FAULT_LENGTH : fault;
}

enum tls_hello_fault tls_hello_parse(struct span stream, struct tls_hello *ret)
{
        struct reader r = {.stream = span_of(stream.data, MIN(stream.len, TLS_HELLO_MAX)),
                           .message_left = MESSAGE_HEADER_LEN};
        struct tls_hello hello = {0};
        enum tls_hello_fault fault = read_hello(&r, &hello);

        if (fault == TLS_HELLO_FAULT_INCOMPLETE && stream.len >= TLS_HELLO_MAX)
                fault = TLS_HELLO_FAULT_LENGTH;
        *ret = fault == TLS_HELLO_FAULT_NONE ? hello : (struct tls_hello){0};
        return fault;
}

bool tls_hello_offers(const struct tls_hello *hello, const char *protocol)
{
        size_t len = strlen(protocol);

        for (size_t at = 0; at < hello->alpn_len; at += 1u + hello->alpn[at])
                if (hello->alpn[at] == len && memcmp(hello->alpn + at + 1, protocol, len) == 0)
                        return true;
        return false;
}
