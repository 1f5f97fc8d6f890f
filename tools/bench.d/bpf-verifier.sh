#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The verifier: time against length, and against the states that are kept apart; and the search for counterexamples.
set -eu
exec "$BENCH_BUILD/tools/bench.d/bench-bpf-verifier" "$BENCH_BUILD"/tests/bpf/corpus-*.o
