#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The verifier: what is accepted, in which time, by the states that are kept apart; and counterexamples.
set -eu
exec "$BENCH_BUILD/tools/bench.d/bench-bpf-disjuncts" "$BENCH_BUILD"/tests/bpf/corpus-*.o
