#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What 1,000 rules and 100,000 pinned addresses add to a small request, and how long they take to be put in force; what the
# supervisor has with 10,000 open flows, or as many as its limit of descriptors lets the proxy have.
set -eu
[ "$(id -u)" -eq 0 ] || { echo "not measured: it needs root" >&2; exit 0; }
exec unshare --net --mount python3 tools/bench.d/sandbox-scale.py ${ENFORCERS:-wall proxy}
