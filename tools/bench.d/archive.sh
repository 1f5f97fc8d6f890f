#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Digests against sha256sum, and the sample codec against the zstd program.
set -eu
exec "$BENCH_BUILD/tools/bench.d/bench-archive"
