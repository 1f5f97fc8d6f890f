#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packets of 1400 bytes a second that one processor offers through a gateway without a queue: the generator beside iperf3's
# UDP client, taking turns. The sender's processor does all the work of the path, the other one has the sink. Two figures,
# since two things are compared:
#
# - the tools as they are used, each with its own sink by socket: packets for each second of work of both processors,
#   interrupts included. Who wakes the other end for each packet pays for it on both.
# - the senders alone: both paths end in a program at the far end's link that counts and drops, so that no socket and no
#   other processor takes part. (iperf3's first packets have to reach its server; a second after that is counted.)
set -eu
. tools/bench.d/path

rounds=${ROUNDS:-9}
has iperf3 || exit 0
has jq || exit 0
path_up

# work: seconds that processors 0 and 1 worked since boot
work() {
        awk -v hz="$(getconf CLK_TCK)" '/^cpu[01] / { ticks += $2 + $3 + $4 + $7 + $8 } END { print ticks / hz }' /proc/stat
}

# per_work COMMAND: the command prints how many packets it sent; how many that are for each second of work
per_work() {
        before=$(work)
        packets=$("$@")
        work | awk -v p="$packets" -v before="$before" '{ print p / ($1 - before) }'
}

send_assay() {
        in_namespace "$near" "$ASSAY" load send "$far_address:9867" --packet 1400B --unlimited --cpu 1 --duration 1s -q --json |
                jq .counts.sent_packets
}

send_iperf3() {
        in_namespace "$near" taskset -c 1 iperf3 -c $far_address -p 9865 -u -b 0 -l 1372 -t 1 -J | jq .end.sum.packets
}

assay_by_socket() {
        start_server "$far" "$ASSAY" load sink "$far_address:9867" --cpu 0 -q
        per_work send_assay
        stop_server
}

iperf3_by_socket() {
        start_server "$far" taskset -c 0 iperf3 -s -p 9865
        per_work send_iperf3
        stop_server
}

# counted PORT COMMAND...: packets a second of a sender in @near, once it has run for a while
counted() {
        port=$1
        shift
        nsenter --target "$near" --net "$@" >/dev/null 2>&1 &
        sender=$!
        sleep 0.4
        in_namespace "$far" "$ASSAY" load sink "$far_address:$port" --bpf eth0 --cpu 0 --duration 1s -q --json 2>/dev/null | jq .counts.packets
        wait "$sender" || true
}

assay_counted() {
        counted 9866 "$ASSAY" load send "$far_address:9866" --packet 1400B --unlimited --cpu 1 --duration 1800ms -q
}

iperf3_counted() {
        start_server "$far" taskset -c 0 iperf3 -s -p 9865
        counted 9865 taskset -c 1 iperf3 -c $far_address -p 9865 -u -b 0 -l 1372 -t 2
        stop_server
}

# compare FIRST SECOND WHAT WANTED
compare() {
        for round in $(seq "$rounds"); do
                alternate "$round" "$1" "$2"
        done >"$scratch/rounds"
        printf '%s: assay %.0f, iperf3 %.0f; ratio %s%s, %d rounds\n' "$3" \
                "$(awk '{ print $1 }' "$scratch/rounds" | median)" "$(awk '{ print $2 }' "$scratch/rounds" | median)" \
                "$(awk '$2 > 0 { print $1 / $2 }' "$scratch/rounds" | bounds)" "$4" "$rounds"
}

compare assay_by_socket iperf3_by_socket 'packets for each second of work, sender and sink by socket' ' (wanted: at least 1.5)'
compare assay_counted iperf3_counted 'packets a second of the sender alone, to one sink in the kernel' ''
