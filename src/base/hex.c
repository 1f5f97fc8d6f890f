/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hex.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

int hex_digit(uint8_t c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

static bool is_space(uint8_t c)
{
        return c == ' ' || (c >= '\t' && c <= '\r');
}

int hex_decode(struct span text, uint8_t **ret, size_t *ret_len, size_t *ret_offset)
{
        _cleanup_free_ uint8_t *bytes = malloc(text.len / 2 + 1);
        size_t len = 0, i = 0;

        if (!bytes)
                return -ENOMEM;

        while (i < text.len) {
                int high, low;

                if (is_space(text.data[i])) {
                        i++;
                        continue;
                }
                high = hex_digit(text.data[i]);
                low = i + 1 < text.len ? hex_digit(text.data[i + 1]) : -1;
                if (high < 0 || low < 0) {
                        *ret_offset = high < 0 ? i : i + 1;
                        return -EINVAL;
                }
                bytes[len++] = (uint8_t)(high << 4 | low);
                i += 2;
        }

        *ret = TAKE_PTR(bytes);
        *ret_len = len;
        return 0;
}
