# SPDX-License-Identifier: Apache-2.0
"""An origin and a name server at addresses of the host that tests of the enforcers stand on, which is theirs alone."""
import http.server
import pathlib
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

import program

HERE, OTHER, HERE6, PUBLIC = "10.77.0.1", "10.77.0.2", "fd77::1", "203.0.113.9"
OPEN, CLOSED, RANGE = 8099, 8100, 9000
POLICY = f"""private-addresses: allow
allow:
  - {{address: {HERE}, port: {OPEN}, transport: tcp}}
  - {{address: {HERE}, port: {RANGE}-{RANGE + 99}, transport: udp}}
  - {{address: "{HERE6}", port: {OPEN}, transport: tcp}}
"""
# What the name server says; documentation's addresses are nobody's, and here they are this host's.
ZONE = {
    "www.allowed.example": ["A", PUBLIC],
    "alias.allowed.example": ["CNAME", "www.allowed.example"],
    "out.allowed.example": ["CNAME", "www.denied.example"],
    "many.allowed.example": ["A", *[f"198.51.100.{i}" for i in range(20)], PUBLIC, PUBLIC],
    "www.denied.example": ["A", PUBLIC],
    "rebound.allowed.example": ["A", "127.0.0.1"],
    "inside.allowed.example": ["A", HERE],
}
KINDS = {"A": (1, socket.AF_INET), "AAAA": (28, socket.AF_INET6)}
NAMES_POLICY = f"""allow:
  - {{host: "*.allowed.example", port: [{OPEN}, 443], transport: tcp}}
"""


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


class Server6(Server):
    address_family = socket.AF_INET6


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:  # a client that turns elsewhere
            pass


def encode_name(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def answer_question(query):
    """A response to the one question of a query, from ZONE; a name that is not there does not exist."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    question = query[12:at + 5]
    kind, = struct.unpack(">H", query[at + 1:at + 3])
    name, records = ".".join(labels).lower(), []
    for _ in range(3):
        entry = ZONE.get(name)
        if entry and entry[0] == "CNAME":
            data = encode_name(entry[1])
            records.append(encode_name(name) + struct.pack(">HHIH", 5, 1, 0, len(data)) + data)
            name = entry[1]
        elif entry:
            for address in entry[1:]:
                number, family = KINDS["AAAA" if ":" in address else "A"]
                data = socket.inet_pton(family, address)
                if kind == number:
                    records.append(encode_name(name) + struct.pack(">HHIH", kind, 1, 0, len(data)) + data)
            break
    code = 0 if ".".join(labels).lower() in ZONE else 3
    return query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(records), 0, 0) + question + b"".join(records)


def serve_names(sock):
    while True:
        try:
            query, where = sock.recvfrom(2048)
            sock.sendto(answer_question(query), where)
        except OSError:
            return


def command(*args):
    subprocess.run(args, check=True)


def set_up():
    """In the network and mount namespaces of these tests: an origin at some of this host's addresses, and a name server."""
    program.need_root()
    command("ip", "link", "add", "origin", "type", "veth", "peer", "name", "origin-peer")
    for address in HERE + "/24", OTHER + "/24", HERE6 + "/64", PUBLIC + "/32":
        command("ip", "addr", "add", address, "dev", "origin", *(["nodad"] if ":" in address else []))
    for link in "origin", "origin-peer":
        command("ip", "link", "set", link, "up")
    servers = [Server((address, port), Answer) for address in (HERE, OTHER, PUBLIC) for port in (OPEN, CLOSED)]
    servers.append(Server6((HERE6, OPEN), Answer))
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind((OTHER, 53))
    threading.Thread(target=serve_names, args=(names,), daemon=True).start()
    folder = tempfile.TemporaryDirectory(prefix="assay-resolv-")
    unittest.addModuleCleanup(folder.cleanup)
    path = pathlib.Path(folder.name) / "resolv.conf"
    path.write_text(f"nameserver {OTHER}\n")
    command("mount", "--bind", str(path), "/etc/resolv.conf")
    command("sysctl", "-qw", "net.ipv4.ip_forward=1")
    command("nft", "table inet somebodys { chain forward { type filter hook forward priority 10; oifname \"none\" drop; }; "
                   "chain leaving { type nat hook postrouting priority srcnat; oifname \"none\" masquerade; }; }")
