#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packets a second that one processor answers: the reflector beside sockperf's server, flooded by the other processor over
# one link, taking turns. Answers are counted where they arrive.
set -eu
. tools/bench.d/path

rounds=${ROUNDS:-7}
seconds=2
port=9864
has sockperf || exit 0
has jq || exit 0
path_up

answers() {
        in_namespace "$near" ip -j -s link show dev eth0 | jq '.[0].stats64.rx.packets'
}

# flood TEMPLATE: answers a second
flood() {
        before=$(answers)
        in_namespace "$near" "$BENCH_BUILD/tools/bench.d/bench-flood" $gateway_address:$port "$1" $seconds 1
        echo "$(answers) $before" | awk -v s=$seconds '{ print ($1 - $2) / s }'
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

for _ in $(seq "$rounds"); do
        start_server "$gateway" "$ASSAY" probe reflect $gateway_address:$port --cpu 0 --priority 0 -q
        a=$(flood "$scratch/stamp")
        stop_server
        start_server "$gateway" taskset -c 0 sockperf server -i $gateway_address -p $port
        s=$(flood "$scratch/sockperf")
        stop_server
        echo "$a $s"
done >"$scratch/rounds"

a=$(awk '{ print $1 }' "$scratch/rounds" | median)
s=$(awk '{ print $2 }' "$scratch/rounds" | median)
ratio=$(awk '$2 > 0 { print $1 / $2 }' "$scratch/rounds" | median)
printf 'answers a second on one processor: assay %.0f, sockperf %.0f; ratio %.3f (wanted: at least 1.0), medians of %d rounds\n' \
        "$a" "$s" "$ratio" "$rounds"
