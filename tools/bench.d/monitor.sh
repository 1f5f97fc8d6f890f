#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The monitor's decision, and from an event to an actuation in the simulated pipeline.
set -eu
exec "$BENCH_BUILD/tools/bench.d/bench-monitor"
