#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packets of 1400 bytes a second that one processor offers through a gateway without a queue: the generator beside iperf3's
# UDP client, each to the sink that goes with it, taking turns. The other processor has the sink.
set -eu
. tools/bench.d/path

rounds=${ROUNDS:-7}
has iperf3 || exit 0
has jq || exit 0
path_up

iperf3_once() {
        start_server "$far" taskset -c 0 iperf3 -s -p 9865
        in_namespace "$near" taskset -c 1 iperf3 -c $far_address -p 9865 -u -b 0 -l 1372 -t 2 -J |
                jq '.end.sum.packets / .end.sum.seconds'
        stop_server
}

# assay_once SINK-OPTIONS...
assay_once() {
        start_server "$far" "$ASSAY" load sink $far_address "$@" --cpu 0 -q
        in_namespace "$near" "$ASSAY" load send $far_address --packet 1400B --unlimited --cpu 1 --duration 2s -q --json |
                jq '.counts.sent_packets * 1000000000 / .counts.duration_ns'
        stop_server
}

for _ in $(seq "$rounds"); do
        echo "$(assay_once --bpf eth0) $(assay_once) $(iperf3_once)"
done >"$scratch/rounds"

i=$(awk '{ print $3 }' "$scratch/rounds" | median)
for column in 1 2; do
        a=$(awk -v c=$column '{ print $c }' "$scratch/rounds" | median)
        ratio=$(awk -v c=$column '$3 > 0 { print $c / $3 }' "$scratch/rounds" | median)
        [ $column -eq 1 ] && sink='a sink in the kernel' || sink='a sink by socket'
        printf 'packets a second from one processor: assay to %s %.0f, iperf3 %.0f; ratio %.2f%s, medians of %d rounds\n' \
                "$sink" "$a" "$i" "$ratio" "$([ $column -eq 1 ] && echo ' (wanted: at least 1.5)')" "$rounds"
done
