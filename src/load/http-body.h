/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "seal/digest.h"

/* What an origin serves: bytes that follow from their number alone, so that whoever fetches them can know their digest
 * before, and that nothing on the way can compress. */

#define HTTP_BODY_BYTES_MAX ((size_t)64 << 20)

/* Of one event: "data: ", digits, and the empty line that ends it. */
#define HTTP_EVENT_BYTES_MIN ((size_t)9)
#define HTTP_EVENT_BYTES_MAX ((size_t)65536)
#define HTTP_EVENTS_MAX      100000

/* http_body_fill - the first @len bytes that an origin serves as its body */
void http_body_fill(uint8_t *to, size_t len);

/* http_body_event - event number @i of a stream of server-sent events, exactly @len bytes long
 * @len: from HTTP_EVENT_BYTES_MIN to HTTP_EVENT_BYTES_MAX
 */
void http_body_event(uint8_t *to, size_t len, uint64_t i);

/* http_body_digest - the digest of a body of @len bytes. Return: 0; a negative errno with the reason. */
int http_body_digest(size_t len, struct digest *ret, struct err *err);

/* http_body_events_digest - the digest of @n events of @len bytes each, without what carries them. Return: as above. */
int http_body_events_digest(uint64_t n, size_t len, struct digest *ret, struct err *err);
