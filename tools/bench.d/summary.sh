#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Summary of a large archive: samples a second, and memory.
set -eu
exec "$BENCH_BUILD/tools/bench.d/bench-summary"
