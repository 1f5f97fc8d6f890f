#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a decision of a policy costs, with 10, 1,000 and 10,000 rules.
set -eu
exec "$BENCH_BUILD/tools/bench.d/bench-policy"
