#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The probe's round trip through a gateway beside sockperf's, on the same path, with the same size, rate and processor for
# both ends, taking turns; and how late packets are sent. sockperf runs at ordinary priority, since its sender spins and at
# real-time priority would keep its own receiver from the processor. It takes no stamps of the kernel's, so the probe is
# compared without those of what it sends, and what they add is shown beside.
set -eu
. tools/bench.d/path

rounds=${ROUNDS:-41}
has sockperf && peer=yes || peer=
has jq || exit 0
path_up

sockperf_once() {
        start_server "$far" taskset -c 0 sockperf server -i $far_address -p 9863
        in_namespace "$near" taskset -c 0 sockperf under-load -i $far_address -p 9863 --mps 1000 --reply-every 1 -m 44 -t 1 \
                --full-rtt 2>/dev/null | sed -n 's/.*percentile 50.000 = *\([0-9.]*\).*/\1/p'
        stop_server
}

# assay_once RATE SECONDS [OPTION...]: the JSON result
assay_once() {
        rate=$1 seconds=$2
        shift 2
        start_server "$far" "$ASSAY" probe reflect $far_address --cpu 0 -q
        in_namespace "$near" "$ASSAY" probe send $far_address --cpu 0 --rate "$rate/s" --duration "${seconds}s" --same-clock \
                -q --json "$@"
        stop_server
}

assay_p50() {
        assay_once 1000 1 "$@" | jq '.figures.rtt_user.p50_ns / 1000'
}

user_stamps_p50() {
        assay_p50 --user-stamps
}

for round in $(seq "$rounds"); do
        alternate "$round" user_stamps_p50 "${peer:+sockperf_once}" | tr '\n' ' '
        assay_p50
done >"$scratch/rounds"

# column N: its median; ratio N M: bounds of the rounds' ratios
column() {
        awk -v n="$1" '{ print $n }' "$scratch/rounds" | median
}

ratio() {
        awk -v n="$1" -v m="$2" '$m > 0 { print $n / $m }' "$scratch/rounds" | bounds
}

if [ -n "$peer" ]; then
        printf 'round trip p50 at 1000/s by user stamps, %s rounds: sockperf %.2f us\n' "$rounds" "$(column 2)"
        printf '    assay without stamps of the kernel: %.2f us, ratio %s (wanted: at most 1.05)\n' "$(column 1)" "$(ratio 1 2)"
        printf '    assay with them, as campaigns have: %.2f us, ratio %s\n' "$(column 3)" "$(ratio 3 2)"
else
        printf 'round trip p50 at 1000/s, user stamps: assay %.2f us\n' "$(column 1)"
fi

for rate in 1000 10000; do
        assay_once $rate 10 | jq -r --arg rate $rate '"at \($rate)/s: lateness p50 \(.figures.lateness.p50_ns) ns, p99 \(
                .figures.lateness.p99_ns) ns; \(.counts.slots) slots: \(.counts.sent) sent, \(.counts.missed) missed, \(
                .counts.received) answered, \(.counts.lost) lost; rtt by the kernel p50 \(
                .figures.rtt.p50_ns) ns, p99 \(.figures.rtt.p99_ns) ns"'
done
