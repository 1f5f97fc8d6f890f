#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packets of 1400 bytes a second that one processor offers through a gateway without a queue: the generator beside iperf3's
# UDP client, taking turns. The sender's processor does all the work of the path, the other one has the sink. Two figures,
# since two things are compared:
#
# - the senders alone: all paths end in the same program at the far end's link that counts and drops, so that no socket and
#   no other processor takes part: packets for each second that the sender's processor works, interrupts included. The
#   generator sends whole frames, and beside that by a UDP socket as iperf3 does; then both mostly wait for the same kernel.
#   (iperf3's first packets have to reach its server; a second after that is counted.)
# - the tools as they are used, each with its own sink by socket: packets for each second of work of both processors. Who
#   wakes the other end for each packet pays for it on both.
set -eu
. tools/bench.d/path

rounds=${ROUNDS:-15}
has iperf3 || exit 0
has jq || exit 0
path_up

# work PROCESSORS: seconds that these (a pattern) worked since boot
work() {
        awk -v hz="$(getconf CLK_TCK)" -v cpus="^cpu[$1]$" '$1 ~ cpus { ticks += $2 + $3 + $4 + $7 + $8 } END { print ticks / hz }' \
                /proc/stat
}

uptime_s() {
        cut -d ' ' -f 1 /proc/uptime
}

# per_work COMMAND: the command prints how many packets it sent; how many that are for each second of work
per_work() {
        before=$(work 01)
        packets=$("$@")
        work 01 | awk -v p="$packets" -v before="$before" '{ print p / ($1 - before) }'
}

send_assay() {
        in_namespace "$near" "$ASSAY" load send "$far_address:9867" --packet 1400B --unlimited --frames --cpu 1 --duration 1s -q --json |
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

# counted PORT COMMAND...: packets that a sender in @near sends in a second, once it has run for a while, for each second
# that its processor then works
counted() {
        port=$1
        shift
        nsenter --target "$near" --net "$@" >/dev/null 2>&1 &
        sender=$!
        sleep 0.4
        before="$(work 1) $(uptime_s)"
        packets=$(in_namespace "$far" "$ASSAY" load sink "$far_address:$port" --bpf eth0 --cpu 0 --duration 1s -q --json \
                2>/dev/null | jq .counts.packets)
        echo "$packets $before $(work 1) $(uptime_s)" | awk '{ print $1 * ($5 - $3) / ($4 - $2) }'
        wait "$sender" || true
}

counted_assay() {
        counted 9866 "$ASSAY" load send "$far_address:9866" --packet 1400B --unlimited --cpu 1 --duration 2s -q "$@"
}

assay_counted() {
        printf '%s %s\n' "$(counted_assay --frames)" "$(counted_assay)"
}

iperf3_counted() {
        start_server "$far" taskset -c 0 iperf3 -s -p 9865
        counted 9865 taskset -c 1 iperf3 -c $far_address -p 9865 -u -b 0 -l 1372 -t 2
        stop_server
}

# rounds FIRST SECOND
rounds() {
        for round in $(seq "$rounds"); do
                alternate "$round" "$1" "$2"
        done >"$scratch/rounds"
}

# compare COLUMN COLUMN-OF-IPERF3 WHAT WANTED
compare() {
        printf '%s: assay %.0f, iperf3 %.0f; ratio %s%s, %d rounds\n' "$3" \
                "$(awk -v i="$1" '{ print $i }' "$scratch/rounds" | median)" \
                "$(awk -v i="$2" '{ print $i }' "$scratch/rounds" | median)" \
                "$(awk -v a="$1" -v b="$2" '$b > 0 { print $a / $b }' "$scratch/rounds" | bounds)" "$4" "$rounds"
}

rounds assay_counted iperf3_counted
compare 1 3 'packets for each second of the sending processor, to one sink in the kernel, by frames' ' (wanted: at least 1.5)'
compare 2 3 'the same by a UDP socket' ''
rounds assay_by_socket iperf3_by_socket
compare 1 2 'packets for each second of work of both processors, sender and sink by socket, by frames' ''
