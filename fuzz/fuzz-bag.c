/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/bag-internal.h"
#include "base/file.h"
#include "fuzz/fuzz.h"

/* The first byte says which tag file the rest is. */

static void check_entries(const struct bag_manifest *manifest, bool is_payload)
{
        for (size_t i = 0; i < manifest->n; i++) {
                const char *path = manifest->entries[i].path;
                _cleanup_free_ char *encoded = bag_encode_path(path), *decoded = NULL;

                if (!file_is_beneath(path) || (strncmp(path, "data/", 5) == 0) != is_payload)
                        abort();
                if (i > 0 && strcmp(manifest->entries[i - 1].path, path) >= 0)
                        abort();
                if (!encoded || bag_decode_path(span_of_text(encoded), &decoded) < 0 || strcmp(decoded, path) != 0)
                        abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_bag_manifest_ struct bag_manifest manifest = {0};
        _cleanup_bag_report_ struct bag_report report = {0};
        struct bag_oxum oxum;
        struct span s;

        if (size == 0)
                return 0;
        s = span_of(data + 1, size - 1);
        switch (data[0]) {
        case 'd':
                (void)bag_declaration_parse(s, &report);
                break;
        case 'i':
                (void)bag_info_parse(s, &oxum, &report);
                break;
        default:
                (void)bag_manifest_parse(s, "input", data[0] == 'm', &manifest, &report);
                check_entries(&manifest, data[0] == 'm');
                break;
        }
        return 0;
}
