/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/macro.h"
#include "fuzz/fuzz.h"
#include "wire/tls-hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct tls_hello hello, part;
        struct host_name name;
        enum tls_hello_fault fault = tls_hello_parse(span_of(data, size), &hello), before;

        if (fault != TLS_HELLO_FAULT_NONE)
                return 0;
        /* No part of a stream is a hello before the whole is, and none is refused that more octets would make right. */
        for (size_t len = 0; len < size; len++) {
                before = tls_hello_parse(span_of(data, len), &part);
                if (before == TLS_HELLO_FAULT_NONE)
                        break;
                if (before != TLS_HELLO_FAULT_INCOMPLETE)
                        abort();
        }
        if (hello.has_name && (host_name_parse(span_of_text(hello.name.text), &name) < 0 ||
                               !host_name_equal(&name, &hello.name) || name.kind != HOST_NAME_IS_NAME))
                abort();
        for (size_t at = 0; at < hello.alpn_len; at += 1u + hello.alpn[at])
                if (hello.alpn[at] == 0 || hello.alpn[at] >= hello.alpn_len - at)
                        abort();
        return 0;
}
