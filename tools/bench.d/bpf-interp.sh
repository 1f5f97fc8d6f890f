#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The interpreters of BPF programs beside the running kernel.
set -eu
exec "$BENCH_BUILD/tools/bench.d/bench-bpf-interp"
