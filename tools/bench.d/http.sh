#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Requests a second of a body of 1 KiB, by 8 connections from one processor to another over loopback: the client beside
# wrk, which checks no body, both against the origin; then the origin beside nginx, both under wrk; taking turns.
set -eu
. tools/bench.d/path

rounds=${ROUNDS:-5}
seconds=2
has wrk || exit 0
has nginx || exit 0
has jq || exit 0
path_up
in_namespace "$near" ip link set lo up

cat >"$scratch/nginx.conf" <<END
daemon off; master_process off; pid $scratch/pid; error_log $scratch/log;
events { worker_connections 4096; }
http {
        access_log off; keepalive_requests 1000000000; tcp_nodelay on; default_type application/octet-stream;
        client_body_temp_path $scratch/a; proxy_temp_path $scratch/b; fastcgi_temp_path $scratch/c;
        uwsgi_temp_path $scratch/d; scgi_temp_path $scratch/e;
        server { listen 127.0.0.1:8081 backlog=4096; location / { return 200 "$(head -c 1024 /dev/zero | tr '\0' x)"; } }
}
END

# wrk_once PORT OPTION...: requests a second
wrk_once() {
        port=$1
        shift
        in_namespace "$near" taskset -c 0 wrk -t1 -c8 -d${seconds}s "$@" "http://127.0.0.1:$port/" |
                awk '/^Requests\/sec/ { print $2 }'
}

# assay_once COUNT OPTION...: requests a second
assay_once() {
        count=$1
        shift
        in_namespace "$near" "$ASSAY" http get -q --json -c "$count" -T 8 --cpu 0 "$@" http://127.0.0.1:8080/ |
                jq '.counts.requests_per_ks / 1000'
}

one_round() {
        start_server "$near" "$ASSAY" http origin 127.0.0.1:8080 --cpu 1 -q
        row="$(assay_once 40000) $(wrk_once 8080 -H 'Connection: close')"
        row="$row $(assay_once 160000 -k) $(wrk_once 8080)"
        stop_server
        start_server "$near" taskset -c 1 nginx -e "$scratch/log" -c "$scratch/nginx.conf"
        echo "$row $(wrk_once 8081 -H 'Connection: close') $(wrk_once 8081)"
        stop_server
}

# compare WHAT COLUMN THEIR-COLUMN OURS THEIRS
compare() {
        a=$(awk -v c="$2" '{ print $c }' "$scratch/rounds" | median)
        b=$(awk -v c="$3" '{ print $c }' "$scratch/rounds" | median)
        ratio=$(awk -v c="$2" -v d="$3" '$d > 0 { print $c / $d }' "$scratch/rounds" | median)
        printf '%s, requests a second: %s %.0f, %s %.0f; ratio %.2f, medians of %d rounds\n' "$1" "$4" "$a" "$5" "$b" \
                "$ratio" "$rounds"
}

for _ in $(seq "$rounds"); do
        one_round
done >"$scratch/rounds"

compare 'client, a connection for each' 1 2 assay wrk
compare 'client, connections kept' 3 4 assay wrk
compare 'origin, a connection for each' 2 5 assay nginx
compare 'origin, connections kept' 4 6 assay nginx
