#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How often the bounds cover the truth, by simulation. The table in docs/method.md is this one.
set -eu
exec "$BENCH_BUILD/tools/bench.d/bench-coverage"
