#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packets a second that one processor answers: the reflector beside sockperf's server, flooded by the other processor over
# one link, taking turns. The flood is more than either can answer: else the figure would be the flood's, and would depend
# on how often each side sleeps. Answers are counted where they arrive, for each second that the server's processor works,
# interrupts included. (Only one of them is there at a time: while a socket wants stamps the kernel stamps every packet.)
set -eu
. tools/bench.d/path

rounds=${ROUNDS:-15}
milliseconds=500
has sockperf || exit 0
has jq || exit 0
path_up

# flood TEMPLATE COMMAND...: answers a second, and a second of work
flood() {
        template=$1
        shift
        start_server "$gateway" "$@"
        in_namespace "$near" "$BENCH_BUILD/tools/bench.d/bench-flood" $gateway_address:9864 "$template" eth0 $milliseconds 1 0
        stop_server
}

flood_assay() {
        flood "$scratch/stamp" "$ASSAY" probe reflect $gateway_address:9864 --cpu 0 --priority 0 -q
}

flood_sockperf() {
        flood "$scratch/sockperf" taskset -c 0 sockperf server -i $gateway_address -p 9864
}

# A request of each protocol: ours by the RFC, sockperf's as its own client sends it.
python3 - "$scratch" <<'END'
import socket, struct, subprocess, sys, time
folder = sys.argv[1]
with open(folder + "/stamp", "wb") as f:
    f.write(struct.pack(">IQH", 1, (int(time.time()) + 2208988800) << 32, 1) + bytes(30))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s, open(folder + "/sockperf", "wb") as f:
    s.bind(("127.0.0.1", 0))
    s.settimeout(10)
    client = subprocess.Popen(["sockperf", "ping-pong", "-i", "127.0.0.1", "-p", str(s.getsockname()[1]), "-m", "44",
                               "-t", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    f.write(s.recv(2048))
    client.terminate()
    client.wait()
END

for round in $(seq "$rounds"); do
        alternate "$round" flood_assay flood_sockperf
done >"$scratch/rounds"

a=$(awk '{ print $2 }' "$scratch/rounds" | median)
s=$(awk '{ print $4 }' "$scratch/rounds" | median)
printf 'answers a second of one processor: assay %.0f, sockperf %.0f; ratio %s (wanted: at least 1.0), %d rounds\n' \
        "$a" "$s" "$(awk '$4 > 0 { print $2 / $4 }' "$scratch/rounds" | bounds)" "$rounds"
printf 'share of its processor that each had: assay %.2f, sockperf %.2f\n' \
        "$(awk '{ print $1 / $2 }' "$scratch/rounds" | median)" "$(awk '{ print $3 / $4 }' "$scratch/rounds" | median)"
