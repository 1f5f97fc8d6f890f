#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The main job in its short form: how much of an overload was sent, and the tail beside the idle one of the same round.
# SET="workload.duration=1s" (one key and value) makes it shorter, and says less.
set -eu
command -v jq >/dev/null || { echo "skipped: jq is missing"; exit 0; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM
"$ASSAY" run exp-001 --short ${SET:+--set "$SET"} -o "$scratch" >/dev/null 2>"$scratch/messages" && code=0 || code=$?
case $code in
0 | 3 | 4) ;;
6) echo "skipped: $(tail -n 1 "$scratch/messages")"; exit 0 ;;
*) cat "$scratch/messages" >&2; exit 1 ;;
esac

jq -r '.cells[] | .cell as $cell | .background[] | select(.offered_bps > 0) |
        "\($cell): \(.sent_bps / 1e6) of \(.offered_bps / 1e6) mbit sent (wanted: within 1% of 600), \(.delivered_bps / 1e6
        ) delivered, \(.dropped_packets) packets dropped"' "$scratch"/exp-001-*/data/summary.json
jq -r 'def ratio: if type == "number" then . / 1e6 else . end;
        (.controls + .hypotheses)[].rules[] | select(.unit == "ppm") |
        "\(.text): \(.value | ratio), bounds \(.lower | ratio) to \(.upper | ratio): \(.outcome)"' \
        "$scratch"/exp-001-*/data/verdict.json
echo "(wanted: at most 1.0 with a tree per queue, over 10 with one queue; \"lost\": more were lost than the quantile bears)"
