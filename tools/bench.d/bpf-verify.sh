#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The verifier beside the running kernel's, by length and branching, and as a command.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/small.c" <<'END'
struct sample { unsigned int value, scale; };
__attribute__((section("event"))) int scale(const struct sample *s) { return s->value > 100 ? 100 : s->value * s->scale; }
END
clang -target bpf -O2 -g -c "$scratch/small.c" -o "$scratch/small.o"
"$BENCH_BUILD/tools/bench.d/bench-bpf-verify" "$ASSAY" "$scratch/small.o" "$scratch"
