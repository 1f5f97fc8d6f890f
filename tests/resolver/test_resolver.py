# SPDX-License-Identifier: Apache-2.0
"""The sandbox's resolver: what it answers, what it asks upstream, and what it lets in.

Runs as root of a user and network namespace of its own, where 127.0.0.1:53 is the resolver and 127.0.0.2:53 the server
that it asks, which answers as each test says."""
import os
import queue
import resource
import shutil
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HOST = os.environ.get("RESOLVER_HOST", "build/tests/resolver/resolver-host")
RESOLVER = ("127.0.0.1", 53)
UPSTREAM = "127.0.0.2"
A, CNAME, PTR, TXT, AAAA, OPT = 1, 5, 12, 16, 28, 41
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED, BADVERS = 0, 1, 2, 3, 4, 5, 16
RCODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED", 16: "BADVERS"}
PATIENCE_S = 30
MUST_RUN = os.environ.get("ASSAY_MUST_RUN", "").split(",")

POLICY = """
allow:
  - {host: www.example.org, port: 443}
  - {host: "*.wild.example", port: [80, 443]}
  - {host: db.example.org, port: 5432}
  - {address: 10.20.0.0/16, port: 5432}
  - {host: near.example.org, port: 9}
  - {address: 10.30.0.0/16, port: 9}
deny:
  - {host: secret.wild.example}
"""


def name_of(text):
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".") if label) + b"\0"


def query(name, kind=A, ident=7, edns=None, flags=0x0100, klass=1):
    """A query; `edns` is the size over UDP that is offered."""
    extra = b"" if edns is None else b"\0" + struct.pack(">HHIH", OPT, edns, 0, 0)
    return struct.pack(">6H", ident, flags, 1, 0, 0, 1 if extra else 0) + name_of(name) + struct.pack(">HH", kind, klass) + extra


def record(owner, kind, data, ttl=300, klass=1):
    return name_of(owner) + struct.pack(">HHIH", kind, klass, ttl, len(data)) + data


def a(owner, address, ttl=300):
    return record(owner, A, socket.inet_pton(socket.AF_INET, address), ttl)


def aaaa(owner, address, ttl=300):
    return record(owner, AAAA, socket.inet_pton(socket.AF_INET6, address), ttl)


def alias(owner, target, ttl=300):
    return record(owner, CNAME, name_of(target), ttl)


def question_of(message):
    end = message.index(b"\0", 12) + 5
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode())
        at += 1 + message[at]
    return ".".join(labels), struct.unpack(">H", message[end - 4:end - 2])[0], message[12:end]


def response(asked, records=(), rcode=NOERROR, flags=0x8180):
    """The response to a query, as a server sends it."""
    return asked[:2] + struct.pack(">5H", flags | rcode, 1, len(records), 0, 0) + question_of(asked)[2] + b"".join(records)


class Answer:
    """A response, read as far as tests look at it."""

    def __init__(self, message):
        self.bytes = message
        self.ident, self.flags, _, n_answers, _, n_extra = struct.unpack(">6H", message[:12])
        self.rcode, self.truncated = self.flags & 15, bool(self.flags & 0x0200)
        self.name = question_of(message)[0] if message[4:6] == b"\0\1" else None
        at = 12 + len(question_of(message)[2]) if self.name is not None else 12
        self.records, self.error, self.error_text = [], None, None
        for _ in range(n_answers + n_extra):
            owner, at = self.read_name(at)
            kind, _, ttl, length = struct.unpack(">HHIH", message[at:at + 10])
            data = message[at + 10:at + 10 + length]
            if kind == OPT:
                self.rcode |= ttl >> 24 << 4
                if data:
                    self.error, self.error_text = struct.unpack(">H", data[4:6])[0], data[6:].decode()
            elif kind in (A, AAAA):
                self.records.append((owner, socket.inet_ntop(socket.AF_INET if kind == A else socket.AF_INET6, data), ttl))
            else:
                self.records.append((owner, self.read_name(at + 10)[0], ttl))
            at += 10 + length
        assert at == len(message), "trailing octets"

    def read_name(self, at):
        labels, end = [], None
        while self.bytes[at]:
            if self.bytes[at] >= 0xc0:
                end = end or at + 2
                at = struct.unpack(">H", self.bytes[at:at + 2])[0] & 0x3fff
                continue
            labels.append(self.bytes[at + 1:at + 1 + self.bytes[at]].decode())
            at += 1 + self.bytes[at]
        return ".".join(labels), end or at + 1

    def addresses(self):
        return [data for _, data, _ in self.records]


class Upstream:
    """The server that is asked. `answers` maps (name, type) to a function of the query that gives a response, a pair of
    those for UDP and TCP, or None for silence; what is not there is answered NXDOMAIN."""

    def __init__(self):
        self.answers, self.asked = {}, queue.Queue()
        outer = self

        class Udp(socketserver.BaseRequestHandler):
            def handle(self):
                reply = outer.answer(self.request[0], 0)
                if reply is not None:
                    self.request[1].sendto(reply, self.client_address)

        class Tcp(socketserver.BaseRequestHandler):
            def handle(self):
                head = self.request.recv(2, socket.MSG_WAITALL)
                reply = outer.answer(self.request.recv(struct.unpack(">H", head)[0], socket.MSG_WAITALL), 1)
                if reply is not None:
                    self.request.sendall(struct.pack(">H", len(reply)) + reply)

        socketserver.ThreadingTCPServer.allow_reuse_address = True
        self.servers = [socketserver.ThreadingUDPServer((UPSTREAM, 53), Udp),
                        socketserver.ThreadingTCPServer((UPSTREAM, 53), Tcp)]
        for server in self.servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def answer(self, asked, over_tcp):
        name, kind, _ = question_of(asked)
        self.asked.put((name, kind, over_tcp))
        make = self.answers.get((name, kind), lambda q: response(q, rcode=NXDOMAIN))
        if isinstance(make, tuple):
            make = make[over_tcp]
        return make(asked)

    def set(self, name, *records, kind=A):
        self.answers[(name, kind)] = lambda q: response(q, records)

    def all_asked(self):
        asked = []
        while not self.asked.empty():
            asked.append(self.asked.get())
        return asked


class ResolverTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.upstream = Upstream()

    def setUp(self):
        self.upstream.answers.clear()
        self.upstream.all_asked()
        self.host = self.start()
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.settimeout(PATIENCE_S)
        self.udp.connect(RESOLVER)
        self.addCleanup(self.udp.close)

    def start(self, port=RESOLVER[1], addresses=(RESOLVER[0], "::1")):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(POLICY)
            f.flush()
            host = subprocess.Popen([HOST, f.name, UPSTREAM, str(port), *addresses], text=True, bufsize=1,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.addCleanup(self.stop, host)
            self.assertEqual(host.stdout.readline(), "ready\n")
        return host

    def stop(self, host):
        host.stdin.close()
        self.assertEqual(host.wait(PATIENCE_S), 0)
        host.stdout.close()

    def command(self, word):
        self.host.stdin.write(word + "\n")
        return self.lines("done " + word)

    def lines(self, last):
        """What the resolver said up to a line that starts so."""
        lines = []
        while not lines or not lines[-1].startswith(last):
            lines.append(self.host.stdout.readline().rstrip("\n"))
            self.assertNotEqual(lines[-1], "", lines)
        return lines

    def send(self, message):
        """Over UDP. Gives the answer, and what was admitted and noted of it."""
        self.udp.send(message)
        answer = Answer(self.udp.recv(65535))
        lines = self.lines("note")
        _, rcode, note = lines[-1].split(" ", 2)
        self.assertEqual(rcode, RCODES[answer.rcode])
        return answer, lines[:-1], note

    def ask(self, name, kind=A, **kwargs):
        return self.send(query(name, kind, **kwargs))

    def stream(self, data=b""):
        s = socket.create_connection(RESOLVER, PATIENCE_S)
        self.addCleanup(s.close)
        s.sendall(data)
        return s

    def receive(self, s):
        head = s.recv(2, socket.MSG_WAITALL)
        return Answer(s.recv(struct.unpack(">H", head)[0], socket.MSG_WAITALL)) if head else None

    @staticmethod
    def framed(message):
        return struct.pack(">H", len(message)) + message

    # ---- names ----

    def test_allowed(self):
        self.upstream.set("www.example.org", a("www.example.org", "192.0.2.1"), a("www.example.org", "192.0.2.2", 90))
        answer, admitted, note = self.ask("wWw.eXample.oRg", ident=0x1234)
        self.assertEqual((answer.ident, answer.rcode, answer.name), (0x1234, NOERROR, "wWw.eXample.oRg"))
        self.assertEqual(answer.records, [("wWw.eXample.oRg", "192.0.2.1", 300), ("wWw.eXample.oRg", "192.0.2.2", 90)])
        self.assertEqual(answer.flags & 0x8180, 0x8180)
        self.assertEqual(admitted, ["admit www.example.org 192.0.2.1/32 320", "admit www.example.org 192.0.2.2/32 110"])
        self.assertEqual(note, "answered 1 wWw.eXample.oRg; ; ")
        self.assertEqual(self.upstream.all_asked(), [("www.example.org", A, 0)])

    def test_v6(self):
        self.upstream.set("www.example.org", aaaa("www.example.org", "2001:db8::1"), kind=AAAA)
        answer, admitted, _ = self.ask("www.example.org", AAAA)
        self.assertEqual(answer.addresses(), ["2001:db8::1"])
        self.assertEqual(admitted, ["admit www.example.org 2001:db8::1/128 320"])

    def test_denied(self):
        for name in ("evil.example", "example.org", "org", "sub.www.example.org", "wild.example", "secret.wild.example",
                     "192.0.2.1", "2130706433", "notlocalhost", ""):
            answer, admitted, note = self.ask(name, edns=1232)
            self.assertEqual((answer.rcode, answer.records, admitted), (NXDOMAIN, [], []), name)
            self.assertEqual(answer.error, 15)
            self.assertTrue(note.startswith(f"name-denied 1 {name}; name {name}; "), note)
            self.assertTrue(note.endswith(answer.error_text), note)
        self.assertIn("deny[1]", self.ask("secret.wild.example", edns=512)[0].error_text)
        self.assertEqual(self.upstream.all_asked(), [], "a denied name was told to somebody outside")

    def test_denied_without_edns(self):
        answer, _, _ = self.ask("evil.example")
        self.assertEqual((answer.rcode, answer.error), (NXDOMAIN, None))

    def test_localhost(self):
        """The command's own loopback: no matter of the policy, and of nobody outside (RFC 6761, 6.3)."""
        for name in ("localhost", "LocalHost", "db.localhost"):
            for kind, expected in ((A, ["127.0.0.1"]), (AAAA, ["::1"]), (TXT, [])):
                answer, admitted, _ = self.ask(name, kind)
                self.assertEqual((answer.rcode, answer.addresses(), admitted), (NOERROR, expected, []))
        self.upstream.set("www.example.org", alias("www.example.org", "localhost"), a("localhost", "127.0.0.1"))
        self.assertEqual(self.ask("www.example.org")[0].records, [])
        self.assertEqual(self.upstream.all_asked(), [("www.example.org", A, 0)])

    def test_wildcard(self):
        self.upstream.set("a.b.wild.example", a("a.b.wild.example", "192.0.2.3"))
        self.assertEqual(self.ask("A.b.Wild.example")[0].addresses(), ["192.0.2.3"])

    def test_no_such_name(self):
        answer, _, note = self.ask("none.wild.example")
        self.assertEqual((answer.rcode, answer.records), (NXDOMAIN, []))
        self.assertTrue(note.startswith("empty"))
        self.upstream.set("nodata.wild.example")
        self.assertEqual(self.ask("nodata.wild.example")[0].rcode, NOERROR)

    def test_time_to_live(self):
        for ttl, told, pinned in ((0, 0, 80), (1, 1, 80), (60, 60, 80), (61, 61, 81), (2**31 - 1, 86400, 86420),
                                  (2**31, 0, 80), (2**32 - 1, 0, 80)):
            self.upstream.set("www.example.org", a("www.example.org", "192.0.2.1", ttl))
            answer, admitted, _ = self.ask("www.example.org")
            self.assertEqual(answer.records[0][2], told)
            self.assertEqual(admitted, [f"admit www.example.org 192.0.2.1/32 {pinned}"])

    # ---- aliases ----

    def test_alias(self):
        self.upstream.set("www.example.org", a("end.wild.example", "192.0.2.4"), alias("www.example.org", "mid.example"),
                          alias("MID.example", "End.wild.example"))
        answer, admitted, _ = self.ask("www.example.org")
        self.assertEqual(answer.records, [("www.example.org", "mid.example", 300), ("mid.example", "End.wild.example", 300),
                                          ("End.wild.example", "192.0.2.4", 300)])
        self.assertEqual(admitted, ["admit www.example.org 192.0.2.4/32 320"])
        reverse, _, _ = self.ask("4.2.0.192.in-addr.arpa", PTR)
        self.assertEqual(sorted(reverse.addresses()), ["end.wild.example", "www.example.org"])

    def test_alias_to_denied(self):
        for end in ("evil.example", "secret.wild.example", "192.0.2.1"):
            self.upstream.set("www.example.org", alias("www.example.org", "ok.wild.example"), alias("ok.wild.example", end),
                              a(end, "192.0.2.5"))
            answer, admitted, note = self.ask("www.example.org", edns=1232)
            self.assertEqual((answer.records, admitted), ([], []))
            self.assertIn(answer.rcode, (NXDOMAIN, SERVFAIL))
            self.assertIsNotNone(answer.error)
            if answer.rcode == NXDOMAIN:
                self.assertTrue(note.startswith(f"alias-denied 1 www.example.org; name {end}, of which www.example.org is an alias; "), note)

    def test_alias_loop(self):
        self.upstream.set("www.example.org", alias("www.example.org", "a.wild.example"),
                          alias("a.wild.example", "www.example.org"), a("www.example.org", "192.0.2.5"))
        answer, admitted, _ = self.ask("www.example.org")
        self.assertEqual((answer.rcode, answer.records, admitted), (SERVFAIL, [], []))

    def test_alias_chain(self):
        for n, rcode in ((16, NOERROR), (17, SERVFAIL)):
            names = ["www.example.org"] + [f"n{i}.wild.example" for i in range(n)]
            self.upstream.set("www.example.org", *[alias(x, y) for x, y in zip(names, names[1:])], a(names[-1], "192.0.2.6"))
            answer, _, _ = self.ask("www.example.org", edns=4096)
            self.assertEqual((answer.rcode, len(answer.records)), (rcode, n + 1 if rcode == NOERROR else 0))

    def test_other_owners(self):
        """Addresses of names that were not asked for are not taken."""
        self.upstream.set("www.example.org", a("other.example", "192.0.2.7"), a("ok.wild.example", "192.0.2.7"))
        answer, admitted, _ = self.ask("www.example.org")
        self.assertEqual((answer.records, admitted), ([], []))

    # ---- addresses ----

    def test_rebinding(self):
        v4 = ("127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.1.1", "169.254.169.254",
              "100.64.0.1", "100.100.100.200", "224.0.0.1", "255.255.255.255", "0.0.0.0", "10.21.1.1")
        v6 = ("::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
              "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:7f00:1::", "2001::1", "::127.0.0.1")
        for kind, make, addresses in ((A, a, v4), (AAAA, aaaa, v6)):
            for address in addresses:
                self.upstream.set("www.example.org", make("www.example.org", address), kind=kind)
                answer, admitted, note = self.ask("www.example.org", kind, edns=1232)
                self.assertEqual((answer.rcode, answer.records, admitted), (NOERROR, [], []), address)
                self.assertEqual(answer.error, 15)
                self.assertTrue(note.startswith(f"address-denied {kind} www.example.org; name www.example.org at "), note)
                self.assertIn("; private-addresses deny", note)

    def test_rebinding_in_part(self):
        self.upstream.set("www.example.org", a("www.example.org", "10.0.0.1"), a("www.example.org", "192.0.2.8"))
        answer, admitted, note = self.ask("www.example.org")
        self.assertEqual(answer.addresses(), ["192.0.2.8"])
        self.assertTrue(note.startswith("answered 1 www.example.org; name www.example.org at 10.0.0.1; private-addresses"), note)
        self.assertEqual(admitted, ["admit www.example.org 192.0.2.8/32 320"])

    def test_private_range(self):
        self.upstream.set("db.example.org", a("db.example.org", "10.20.1.1"), a("db.example.org", "10.21.1.1"))
        answer, admitted, _ = self.ask("db.example.org")
        self.assertEqual(answer.addresses(), ["10.20.1.1"])
        self.assertEqual(admitted, ["admit db.example.org 10.20.1.1/32 320"])

    def test_mapped(self):
        """An IPv4 address in IPv6 is let in as what packets will have."""
        self.upstream.set("www.example.org", aaaa("www.example.org", "::ffff:192.0.2.9"), kind=AAAA)
        answer, admitted, _ = self.ask("www.example.org", AAAA)
        self.assertEqual(answer.addresses(), ["::ffff:192.0.2.9"])
        self.assertEqual(admitted, ["admit www.example.org 192.0.2.9/32 320"])

    def test_reverse(self):
        self.upstream.set("www.example.org", a("www.example.org", "192.0.2.1"))
        self.assertEqual(self.ask("1.2.0.192.in-addr.arpa", PTR)[0].rcode, NXDOMAIN)
        self.ask("www.example.org")
        self.upstream.all_asked()
        answer, _, _ = self.ask("1.2.0.192.in-addr.arpa", PTR)
        self.assertEqual((answer.rcode, answer.addresses()), (NOERROR, ["www.example.org"]))
        for name in ("2.2.0.192.in-addr.arpa", "www.example.org", "1.2.0.192.in-addr.arpa.example"):
            self.assertEqual(self.ask(name, PTR)[0].rcode, NXDOMAIN)
        self.assertEqual(self.upstream.all_asked(), [])

    def test_not_admitted(self):
        """An address that the enforcer does not take does not leave."""
        self.upstream.set("www.example.org", a("www.example.org", "192.0.2.1"))
        self.command("refuse")
        answer, _, note = self.ask("www.example.org", edns=1232)
        self.assertEqual((answer.rcode, answer.records, answer.error_text), (SERVFAIL, [], "the set is closed"))
        self.assertTrue(note.startswith("failed"))

    def test_open_flow(self):
        self.upstream.set("near.example.org", a("near.example.org", "10.30.0.1", 0), a("near.example.org", "10.30.0.2", 0))
        self.assertEqual(len(self.ask("near.example.org")[1]), 2)
        self.assertEqual(self.command("keep"), ["done keep"])
        with socket.create_server(("10.30.0.1", 9)) as far, socket.create_connection(("10.30.0.1", 9)):
            lines = self.command("keep")
            self.assertEqual(lines, ["admit near.example.org 10.30.0.1/32 80", "done keep"])
            far.accept()[0].close()

    # ---- upstream misbehaves ----

    def test_malformed_upstream(self):
        good = lambda q: response(q, [a("www.example.org", "192.0.2.1")])
        bad = {
            "cut": lambda q: good(q)[:-1],
            "trailing": lambda q: good(q) + b"\0",
            "short address": lambda q: response(q, [record("www.example.org", A, b"\1\2\3")]),
            "pointer to itself": lambda q: response(q, [b"\xc0" + bytes([len(q[:12] + question_of(q)[2])]) +
                                                        struct.pack(">HHIH", A, 1, 1, 4) + b"\1\2\3\4"]),
            "pointer forward": lambda q: response(q, [b"\xc0\xff" + struct.pack(">HHIH", A, 1, 1, 4) + b"\1\2\3\4"]),
            "loop in an alias": lambda q: response(q, [record("www.example.org", CNAME, b"\1a\xc0" +
                                                              bytes([12 + len(question_of(q)[2]) + 27]))]),
            "counts": lambda q: good(q)[:6] + b"\xff\xff" + good(q)[8:],
            "label": lambda q: response(q, [record("www.example.org", CNAME, b"\3a.b\0")]),
            "nul": lambda q: response(q, [record("www.example.org", CNAME, b"\3a\0b\0")]),
        }
        for what, make in bad.items():
            self.upstream.answers[("www.example.org", A)] = make
            answer, admitted, note = self.ask("www.example.org", edns=1232)
            self.assertEqual((answer.rcode, answer.records, admitted), (SERVFAIL, [], []), what)
            self.assertTrue(note.startswith("failed 1 www.example.org"), note)
            self.assertEqual(answer.error, 23)
        self.upstream.answers[("www.example.org", A)] = good
        self.assertEqual(self.ask("www.example.org")[0].addresses(), ["192.0.2.1"])

    def test_unhelpful_upstream(self):
        """Silence, refusal, another question, another id, noise: all at once, since some are waited for."""
        good = lambda q: response(q, [a("x.wild.example", "192.0.2.1")])
        other = query("evil.example")
        bad = [lambda q: None, lambda q: response(q, rcode=SERVFAIL), lambda q: response(q, rcode=REFUSED),
               lambda q: q[:2] + response(other, [a("evil.example", "192.0.2.1")])[2:],
               lambda q: bytes([q[0] ^ 1]) + good(q)[1:], lambda q: b"noise", lambda q: b"", lambda q: q]
        for i, make in enumerate(bad):
            self.upstream.answers[(f"n{i}.wild.example", A)] = make
            self.udp.send(query(f"n{i}.wild.example", ident=i))
        answers = [Answer(self.udp.recv(65535)) for _ in bad]
        self.assertEqual(sorted(x.ident for x in answers), list(range(len(bad))))
        for answer in answers:
            self.assertEqual((answer.rcode, answer.records), (SERVFAIL, []), answer.ident)

    def test_truncated_upstream(self):
        """What does not fit into a datagram is asked for again over TCP."""
        self.upstream.answers[("www.example.org", A)] = (
            lambda q: response(q, flags=0x8380), lambda q: response(q, [a("www.example.org", "192.0.2.1")]))
        self.assertEqual(self.ask("www.example.org")[0].addresses(), ["192.0.2.1"])
        self.assertEqual(self.upstream.all_asked(), [("www.example.org", A, 0), ("www.example.org", A, 1)])

    def test_large_answer(self):
        addresses = [f"192.0.2.{i}" for i in range(1, 61)]
        self.upstream.answers[("www.example.org", A)] = (
            lambda q: response(q, flags=0x8380), lambda q: response(q, [a("www.example.org", x) for x in addresses]))
        answer, admitted, _ = self.ask("www.example.org")
        self.assertEqual((answer.truncated, answer.records, len(answer.bytes) <= 512), (True, [], True))
        self.assertEqual(len(admitted), len(addresses))
        self.assertEqual(self.ask("www.example.org", edns=4096)[0].addresses(), addresses)
        self.assertEqual(self.receive(self.stream(self.framed(query("www.example.org")))).addresses(), addresses)
        names = ["www.example.org", *(f"{letter * 60}.wild.example" for letter in "abcd")]  # more than 1232 octets
        self.upstream.answers[("www.example.org", A)] = (
            lambda q: response(q, flags=0x8380),
            lambda q: response(q, [alias(x, y) for x, y in zip(names, names[1:])] + [a(names[-1], x) for x in addresses]))
        for offered in 513, 1232, 65535:
            answer = self.ask("www.example.org", edns=offered)[0]
            self.assertEqual((answer.truncated, len(answer.bytes) <= min(offered, 1232)), (True, True))
        answer = self.receive(self.stream(self.framed(query("www.example.org"))))
        self.assertEqual(answer.addresses()[4:], addresses)
        self.assertGreater(len(answer.bytes), 1232)

    def test_many_questions(self):
        """Only so many are asked upstream at once; and one more is answered at once, if not as wished."""
        self.upstream.answers.update({(f"n{i}.wild.example", A): lambda q: None for i in range(256)})
        for i in range(256):
            self.udp.send(query(f"n{i}.wild.example", ident=i))
            if i % 32 == 31:  # what a socket holds is limited, too
                self.assertEqual(self.ask("evil.example")[0].rcode, NXDOMAIN)
        answer, _, note = self.ask("one-more.wild.example")
        self.assertEqual(answer.rcode, SERVFAIL)
        self.assertIn("too many questions at once", note)
        self.assertEqual(self.ask("evil.example")[0].rcode, NXDOMAIN)

    # ---- what a client may send ----

    def test_other_types(self):
        for kind in (2, 6, 15, TXT, 33, 35, 41, 64, 65, 99, 252, 255):
            answer, _, note = self.ask("www.example.org", kind, edns=1232)
            self.assertEqual((answer.rcode, answer.records, answer.error), (NOERROR, [], 21), kind)
            self.assertTrue(note.startswith("unsupported"))
            self.assertEqual(self.ask("evil.example", kind)[0].rcode, NXDOMAIN)
        self.assertEqual(self.ask("www.example.org", klass=3)[0].rcode, REFUSED)
        for opcode in (1, 2, 4, 5, 15):
            self.assertEqual(self.ask("www.example.org", flags=opcode << 11)[0].rcode, NOTIMP)
        badvers = bytearray(query("www.example.org", edns=1232))
        badvers[-5] = 1
        self.assertEqual(self.send(bytes(badvers))[0].rcode, BADVERS)
        self.assertEqual(self.upstream.all_asked(), [])

    def test_malformed_queries(self):
        good = query("www.example.org")
        for message in (good[:-1], good + b"\0", good[:4] + b"\0\0" + good[6:12], good[:5] + b"\2" + good[6:] + good[12:],
                        good[:12] + b"\xc0\x0c\0\1\0\1", good[:12] + b"\1a\xc0\x0c\0\1\0\1", good[:12] + b"\x41a\0\0\1\0\1",
                        good[:12] + b"\2a\0\0\0\1\0\1", good[:7] + b"\1" + good[8:]):
            self.udp.send(message)
            answer = self.udp.recv(65535)
            self.assertEqual((answer[:2], answer[3] & 15, len(answer)), (good[:2], FORMERR, 12), message)
            self.assertTrue(self.lines("note")[-1].startswith("note FORMERR malformed"))

    def test_not_a_query(self):
        """Nothing comes back for what could be an answer, or else two resolvers would talk for ever."""
        for message in (b"", b"\0", b"\0" * 11, response(query("www.example.org")), response(query("evil.example"))):
            self.udp.send(message)
        self.upstream.set("www.example.org", a("www.example.org", "192.0.2.1"))
        self.assertEqual(self.ask("www.example.org", ident=4711)[0].ident, 4711)

    def test_v6_clients(self):
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp:
            udp.settimeout(PATIENCE_S)
            udp.connect(("::1", 53))
            udp.send(query("evil.example"))
            self.assertEqual(Answer(udp.recv(65535)).rcode, NXDOMAIN)
        with socket.create_connection(("::1", 53), PATIENCE_S) as s:
            s.sendall(self.framed(query("evil.example")))
            self.assertEqual(self.receive(s).rcode, NXDOMAIN)

    def test_source(self):
        """An answer comes from the address that was asked, or else the client does not take it."""
        self.start(5353, ("0.0.0.0", "::"))
        for family, address in ((socket.AF_INET, "127.0.0.9"), (socket.AF_INET, "10.30.0.1"),
                                (socket.AF_INET6, "2001:db8:1::1"), (socket.AF_INET6, "::1")):
            with socket.socket(family, socket.SOCK_DGRAM) as udp:
                udp.settimeout(PATIENCE_S)
                udp.connect((address, 5353))
                udp.send(query("evil.example"))
                self.assertEqual(Answer(udp.recv(65535)).rcode, NXDOMAIN)

    # ---- streams ----

    def test_stream(self):
        self.upstream.set("www.example.org", a("www.example.org", "192.0.2.1"))
        s = self.stream()
        for octet in self.framed(query("www.example.org", ident=1)):
            s.sendall(bytes([octet]))
        self.assertEqual(self.receive(s).addresses(), ["192.0.2.1"])
        s.sendall(b"".join(self.framed(query("www.example.org", ident=i)) for i in range(100)) +
                  self.framed(query("evil.example", ident=100)))
        s.shutdown(socket.SHUT_WR)
        answers = {}
        while (answer := self.receive(s)):
            answers[answer.ident] = answer.rcode
        self.assertEqual(answers, {**{i: NOERROR for i in range(100)}, 100: NXDOMAIN})

    def test_bad_streams(self):
        for data in (b"\xff\xff" + b"x" * 100, b"\x10\x01"):
            self.assertEqual(self.stream(data).recv(1), b"")
        s = self.stream(b"\0\0\0\1x" + self.framed(query("evil.example")))
        self.assertEqual(self.receive(s).rcode, NXDOMAIN)
        s = self.stream(b"\0\x50abc")
        s.shutdown(socket.SHUT_WR)
        self.assertEqual(s.recv(1), b"")

    def test_gone_stream(self):
        """A client that leaves while its question is under way does no harm."""
        gate = threading.Event()

        def late(q):
            gate.wait(PATIENCE_S)
            return response(q, [a("late.wild.example", "192.0.2.1")])
        self.upstream.answers[("late.wild.example", A)] = late
        s = self.stream(self.framed(query("late.wild.example")))
        self.upstream.asked.get(timeout=PATIENCE_S)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
        self.assertEqual(self.ask("evil.example")[0].rcode, NXDOMAIN)
        gate.set()
        self.assertTrue(self.lines("note")[-1].startswith("note NOERROR answered"))

    def test_many_streams(self):
        open_ones = [self.stream(self.framed(query("evil.example"))) for _ in range(64)]
        for s in open_ones:
            self.assertEqual(self.receive(s).rcode, NXDOMAIN)
        try:
            self.assertEqual(self.stream().recv(1), b"")
        except ConnectionResetError:
            pass
        open_ones[0].close()
        self.assertEqual(self.receive(self.last_after_close()).rcode, NXDOMAIN)

    def last_after_close(self):
        """A connection that is taken; the one before it may still be on its way out."""
        while True:
            s = self.stream(self.framed(query("evil.example")))
            try:
                if s.recv(1, socket.MSG_PEEK):
                    return s
            except ConnectionResetError:
                continue

    def test_no_descriptors(self):
        """Without descriptors for more connections, the others and datagrams are served, and the loop does not spin."""
        s = self.stream(self.framed(query("evil.example")))
        self.assertEqual(self.receive(s).rcode, NXDOMAIN)
        in_use = len(os.listdir(f"/proc/{self.host.pid}/fd"))
        resource.prlimit(self.host.pid, resource.RLIMIT_NOFILE, (in_use, in_use))
        waiting = self.stream(self.framed(query("evil.example")))
        s.sendall(self.framed(query("evil.example")))
        self.assertEqual(self.receive(s).rcode, NXDOMAIN)
        self.lines("note"), self.lines("note")
        deadline = time.monotonic() + PATIENCE_S
        while self.host_state() != "S":  # a loop that spins never sleeps
            self.assertLess(time.monotonic(), deadline, "the loop spins")
        self.assertEqual(self.ask("evil.example")[0].rcode, NXDOMAIN)
        s.close()
        self.assertEqual(self.receive(waiting).rcode, NXDOMAIN)

    def host_state(self):
        with open(f"/proc/{self.host.pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0]

    # ---- clients as they are ----

    @unittest.skipUnless(shutil.which("dig") or "dig" in MUST_RUN, "dig is missing")
    def test_dig(self):
        self.upstream.set("www.example.org", *[a("www.example.org", f"192.0.2.{i}") for i in range(1, 51)])
        self.upstream.answers[("www.example.org", A)] = (lambda q: response(q, flags=0x8380),
                                                         self.upstream.answers[("www.example.org", A)])

        def dig(*args):
            return subprocess.run(["dig", "@127.0.0.1", *args], text=True, capture_output=True, check=True).stdout
        self.assertEqual(len(dig("+short", "www.example.org").split()), 50)
        self.assertEqual(len(dig("+short", "+noedns", "www.example.org").split()), 50)
        self.assertEqual(len(dig("+short", "+tcp", "+keepopen", "www.example.org", "A", "www.example.org", "A").split()), 100)
        self.assertEqual(dig("+short", "-x", "192.0.2.7"), "www.example.org.\n")
        denied = dig("secret.wild.example")
        self.assertIn("status: NXDOMAIN", denied)
        self.assertRegex(denied, r"EDE: 15 \(Blocked\): .*deny\[1\]")
        self.assertNotIn("Warning", denied)

    def test_getent(self):
        """The C library: both families at once over one socket, and no second try after a denial."""
        self.upstream.set("www.example.org", a("www.example.org", "192.0.2.1"))
        self.upstream.set("www.example.org", aaaa("www.example.org", "2001:db8::1"), kind=AAAA)
        done = subprocess.run(["getent", "ahosts", "www.example.org"], text=True, capture_output=True, check=True)
        self.assertEqual({line.split()[0] for line in done.stdout.splitlines()}, {"192.0.2.1", "2001:db8::1"})
        notes = [self.lines("note")[-1] for _ in range(2)]
        self.assertEqual(subprocess.run(["getent", "ahosts", "evil.example"], capture_output=True).returncode, 2)
        notes = [self.lines("note")[-1] for _ in range(2)]
        self.assertEqual(sorted(note.split()[3] for note in notes), [str(A), str(AAAA)])
        self.assertEqual(self.command("keep"), ["done keep"])  # nothing more was asked


def isolate():
    """Go on as root of a user, network and mount namespace; exit 77 where there are none."""
    if os.environ.get("RESOLVER_ISOLATED"):
        files = {"resolv.conf": "nameserver 127.0.0.1\n", "nsswitch.conf": "hosts: dns\n", "hosts": ""}
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["ip", "address", "add", "10.30.0.1/32", "dev", "lo"], check=True)
        subprocess.run(["ip", "address", "add", "2001:db8:1::1/128", "dev", "lo"], check=True)  # else nobody asks for AAAA
        for name, text in files.items():
            with tempfile.NamedTemporaryFile("w") as f:
                f.write(text)
                f.flush()
                subprocess.run(["mount", "--bind", f.name, "/etc/" + name], check=True)
        return
    unshare = ["unshare", "--user", "--map-root-user", "--net", "--mount"]
    if subprocess.run(unshare + ["true"], capture_output=True).returncode != 0:
        print("userns: unprivileged user namespaces are not allowed here", file=sys.stderr)
        sys.exit(1 if "userns" in MUST_RUN else 77)
    os.environ["RESOLVER_ISOLATED"] = "1"
    os.execvp("unshare", unshare + [sys.executable, *sys.argv])


if __name__ == "__main__":
    isolate()
    unittest.main(verbosity=2)
