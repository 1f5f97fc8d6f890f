# SPDX-License-Identifier: Apache-2.0
"""What a hostile command tries against assay exec behind the wall and through the proxy, and what an unusual host does to
an honest one. Origins and names are those of the tests of the enforcers; one more host is behind a link."""
import contextlib
import os
import pathlib
import select
import signal
import socket
import subprocess
import threading
import time
import unittest

import origin
import program
import test_enforcers as base
from origin import CLOSED, HERE, HERE6, OPEN, PUBLIC, command
from sandbox import ORDINARY, PYTHON

FAR, FAR6, FAR_PORT = "192.0.2.2", "2001:db8:2::2", 8080
FLOWS = 6000
DATAGRAM_FLOWS = 4096  # that a proxy keeps at most
SPOOF_POLICY = f"""private-addresses: allow
allow: [{{{{address: "{HERE6}", port: {{}}, transport: udp}}}}]
"""
# Datagrams from addresses of others, by both ways to give one, and an honest one.
SPOOF = f"""
import struct
FREEBIND, PKTINFO = 78, 50
there = ("{HERE6}", 9100)
def send(call):
    try:
        call()
    except PermissionError:
        pass
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, FREEBIND, 1)
s.bind(("2001:db8:dead::1", 7777))
send(lambda: s.sendto(b"bound", there))
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, FREEBIND, 1)
source = socket.inet_pton(socket.AF_INET6, "2001:db8:dead::2") + struct.pack("i", 0)
send(lambda: s.sendmsg([b"packet"], [(socket.IPPROTO_IPV6, PKTINFO, source)], 0, there))
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"last", there)
"""
# Routing headers to where the policy lets datagrams go: segments (RFC 8754) that end there, and those that go on.
ROUTED = f"""
import socket
def route(last, left):
    ends = [socket.inet_pton(socket.AF_INET6, a) for a in (last, "{FAR6}")]
    return bytes([0, 4, 4, left, 1, 0, 0, 0]) + b"".join(ends)
for last, left in ("{FAR6}", 0), ("{FAR6}", 1), ("2001:db8:2::9", 1):
    for kind in socket.SOCK_DGRAM, socket.SOCK_STREAM:
        s = socket.socket(socket.AF_INET6, kind)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RTHDR, route(last, left))
        s.settimeout(0.2)
        try:
            s.connect(("{FAR6}", {FAR_PORT}))
            s.send(b"routed")
        except OSError as e:
            print(e.errno)
"""
ROUTING_HEADER = 43  # as the next header of IPv6
# An origin that answers "far" to whoever connects.
ORIGIN = """
import socket, sys, threading
def serve(listener):
    while True:
        connection = listener.accept()[0]
        connection.sendall(b"far")
        connection.close()
listeners = [socket.create_server((address, int(sys.argv[1])), family=family)
             for family, address in ((socket.AF_INET, sys.argv[2]), (socket.AF_INET6, sys.argv[3]))]
for listener in listeners:
    threading.Thread(target=serve, args=(listener,)).start()
print("ready", flush=True)
"""


origin.ZONE.update({"far.allowed.example": ["A", FAR], "far6.allowed.example": ["AAAA", FAR6]})


def read_settings():
    """What is forwarded, on every link but a wall's, which may be going still."""
    return {str(path): path.read_text() for family in ("ipv4", "ipv6")
            for path in pathlib.Path("/proc/sys/net", family, "conf").glob("*/*forwarding") if "assay-wall" not in str(path)}


def write_setting(name, value):
    command("sysctl", "-qw", f"{name}={value}")


def setUpModule():
    origin.set_up()
    for arguments in (["link", "add", "near", "type", "veth", "peer", "name", "far"],
                      ["addr", "add", "192.0.2.1/24", "dev", "near"],
                      ["addr", "add", "2001:db8:2::1/64", "dev", "near", "nodad"], ["link", "set", "near", "up"]):
        command("ip", *arguments)
    holder = subprocess.Popen(["unshare", "--net", "--kill-child", "sh", "-c", f"""
read moved && ip link set lo up && ip link set far up && ip addr add {FAR}/24 dev far &&
ip addr add {FAR6}/64 dev far nodad && ip route add default via 192.0.2.1 && ip route add default via 2001:db8:2::1 &&
exec "$@" """, "sh", PYTHON, "-c", ORIGIN, str(FAR_PORT), FAR, FAR6],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    unittest.addModuleCleanup(holder.communicate)
    unittest.addModuleCleanup(holder.kill)
    while os.readlink(f"/proc/{holder.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
        select.select([], [], [], 0.01)
    command("ip", "link", "set", "far", "netns", str(holder.pid))
    holder.stdin.write("moved\n")
    holder.stdin.flush()
    if holder.stdout.readline() != "ready\n":
        raise RuntimeError("there is no host behind the link")


class Attack(base.Enforcer):
    """What holds for every enforcer. The tests that are inherited run with their own module."""
    __test__ = False

    def datagrams_until(self, listener, last):
        got = []
        while not got or got[-1][0] != last:
            got.append(listener.recvfrom(100))
        return got

    def test_a_datagram_says_who_sent_it(self):
        """A program of IPv6 may take any address for its own; an answer would go where the policy lets nothing go."""
        policy = self.write_policy("spoof.yaml", SPOOF_POLICY.format("9100"))
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as listener:
            listener.bind((HERE6, 9100))
            listener.settimeout(20)
            self.python(SPOOF, policy=policy)
            got = self.datagrams_until(listener, b"last")
        self.assertEqual([(data, where[0]) for data, where in got if where[0].startswith("2001:db8")], [])

    def routed(self, call):
        """How many packets with a routing header pass the link to the far host while @call runs."""
        write_setting("net.ipv6.conf.all.forwarding", 1)
        try:
            with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0003)) as link:
                link.bind(("near", 0x0003))
                call()
                link.setblocking(False)
                n = 0
                with contextlib.suppress(BlockingIOError):
                    while True:
                        packet, where = link.recvfrom(200)
                        n += where[1] == 0x86dd and packet[6] == ROUTING_HEADER
                return n
        finally:
            write_setting("net.ipv6.conf.all.forwarding", 0)

    def test_routing_headers(self):
        """The packet goes to an allowed host, and what that one does with it nobody here decides."""
        policy = self.write_policy("far6.yaml", f"""allow:
  - {{address: "{FAR6}", port: {FAR_PORT}, transport: any}}
""")
        self.assertGreater(self.routed(lambda: subprocess.run([PYTHON, "-c", ROUTED], check=True, capture_output=True)), 0)
        done = []
        self.assertEqual(self.routed(lambda: done.append(self.exec(PYTHON, "-c", ROUTED, policy=policy))), 0)
        self.assertEqual(done[0].returncode, 0, done[0].stderr)
        self.assertIn("assay: denied udp [", done[0].stderr)

    def test_addresses_of_other_enforcers_are_not_ones_own(self):
        done = self.exec(PYTHON, "-c", """
import socket
for family, address in (socket.AF_INET, "198.19.255.1"), (socket.AF_INET6, "fd5a:a57a:ffff::1"):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(20)
    try:
        s.connect((address, 80))
    except ConnectionRefusedError:
        print("refused")
""")
        self.assertEqual(done.stdout, "refused\nrefused\n", done.stderr)

    def test_standard_error_that_nobody_reads(self):
        """The command fills the pipe that denials are told into: they are lost, and all else goes on."""
        ends = os.pipe()
        process = subprocess.Popen(self.args(PYTHON, "-c", f"""
import os, socket
os.set_blocking(2, False)
for size in 4096, 1:
    try:
        while True:
            os.write(2, b"x" * size)
    except BlockingIOError:
        pass
os.set_blocking(2, True)
for port in {CLOSED}, {OPEN}:
    try:
        socket.create_connection(("{HERE}", port), 20)
        print("connected")
    except ConnectionRefusedError:
        print("refused")
"""), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=ends[1], cwd="/", text=True)
        os.close(ends[1])
        try:
            self.assertEqual(process.communicate(timeout=60)[0], "refused\nconnected\n")
            self.assertEqual(process.returncode, 0)
        finally:
            process.kill()
            os.close(ends[0])

    def test_a_family_that_the_host_has_not(self):
        """Both addresses of a name are allowed; the one that leads nowhere fails at once, so that the other is taken."""
        policy = self.write_policy("far.yaml", f"""allow:
  - {{address: {FAR}, port: {FAR_PORT}, transport: any}}
  - {{address: "2000::/3", port: {FAR_PORT}, transport: any}}
""")
        script = f"""
for address in ("2001:db8:2::2", "{FAR}"):
    try:
        with socket.create_connection((address, {FAR_PORT}), 20) as s:
            print(s.recv(10).decode())
    except OSError as e:
        print(errno.errorcode[e.errno] if e.errno else e)
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.sendto(b"x", (address, {FAR_PORT}))
            print("sent")
        except OSError as e:
            print("not sent")
"""
        links = ["near", "origin"]
        for link in links:
            write_setting(f"net.ipv6.conf.{link}.disable_ipv6", 1)
        try:
            done = self.python(script, policy=policy)
        finally:
            for link in links:
                write_setting(f"net.ipv6.conf.{link}.disable_ipv6", 0)
            command("ip", "addr", "add", HERE6 + "/64", "dev", "origin", "nodad")
            command("ip", "addr", "add", "2001:db8:2::1/64", "dev", "near", "nodad")
        self.assertEqual(done.stdout.split("\n")[:4], ["ECONNREFUSED", "not sent", "far", "sent"])
        self.assertNotIn("denied", done.stderr)

    def test_a_host_without_ipv6(self):
        for name in "default", "all":
            write_setting(f"net.ipv6.conf.{name}.disable_ipv6", 1)
        try:
            done = self.curl(f"http://{HERE}:{OPEN}/")
        finally:
            for name in "default", "all":
                write_setting(f"net.ipv6.conf.{name}.disable_ipv6", 0)
            command("ip", "addr", "add", HERE6 + "/64", "dev", "origin", "nodad")
            command("ip", "addr", "add", "2001:db8:2::1/64", "dev", "near", "nodad")
        self.assertEqual((done.returncode, done.stdout), (0, "ok"), done.stderr)
        self.assertNotIn("assay exec:", done.stderr)

    def test_a_server_in_the_sandbox(self):
        done = self.python(f"""
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.connect(("{HERE}", {origin.RANGE}))
for bound, asked in (("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("0.0.0.0", own.getsockname()[0]),
                     ("::1", "::1"), ("::", "localhost")):
    family = socket.AF_INET6 if ":" in bound else socket.AF_INET
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
        server, client = socket.socket(family, kind), socket.socket(family, kind)
        server.bind((bound, 0))
        if kind == socket.SOCK_STREAM:
            server.listen()
        client.connect((asked, server.getsockname()[1]))
        client.sendall(b"hello")
        server = server.accept()[0] if kind == socket.SOCK_STREAM else server
        assert server.recv(10) == b"hello"
""")
        self.assertNotIn("denied", done.stderr)

    def test_flows_come_and_go(self):
        """Connections that are reset, half closed or never used, and datagrams to many: all their descriptors go."""
        policy = self.write_policy("flows.yaml", f"""private-addresses: allow
allow:
  - {{address: {HERE}, port: 9998, transport: tcp}}
  - {{address: {HERE}, port: 20000-29999, transport: udp}}
""")
        listener = socket.create_server((HERE, 9998), backlog=4096)
        accepted = []

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    connection = listener.accept()[0]
                    accepted.append(connection)
                    connection.close()
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        script = f"""
import socket, struct
flows = []
for i in range({FLOWS}):
    s = socket.create_connection(("{HERE}", 9998), 30)
    if i % 4 == 0:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if i % 4 == 1:
        s.shutdown(socket.SHUT_WR)
    if i % 4 != 3:
        s.close()
    else:
        flows.append(s)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in range(20000, 30000):
    s.sendto(b"x", ("{HERE}", port))
socket.create_connection(("{HERE}", 9998), 30)
"""
        process = subprocess.Popen(self.args("sh", "-c", 'echo begun; read x; "$@"; echo $?; read x', "sh", PYTHON, "-c", script,
                                             policy=policy),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", text=True)
        descriptors = pathlib.Path(f"/proc/{process.pid}/fd")
        try:
            self.assertEqual(process.stdout.readline(), "begun\n")
            before = len(list(descriptors.iterdir()))
            process.stdin.write("\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), "0\n")
            deadline = time.monotonic() + 20
            while len(list(descriptors.iterdir())) > before + DATAGRAM_FLOWS and time.monotonic() < deadline:
                pass
            self.assertLessEqual(len(list(descriptors.iterdir())), before + DATAGRAM_FLOWS)
        finally:
            process.communicate("\n", timeout=60)
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            thread.join()

    def test_killed_while_it_starts(self):
        """At whatever step: the call ends, no link or rule stays, and nothing of the command's runs."""
        for i in range(12):
            process = subprocess.Popen(self.args("sh", "-c", "echo started; exec sleep 1000"), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/")
            select.select([process.stdout], [], [], i * 0.008)  # the moment is another each time, and none is asserted
            process.send_signal(signal.SIGKILL if i % 2 else signal.SIGTERM)
            process.wait(timeout=60)
            process.stdout.read()  # ends with the last process that holds it
            process.stdout.close()
        program.assert_unchanged(self, self.before_all)
        self.assertEqual(self.host(), self.before)


class Wall(Attack):
    __test__ = True
    enforcer = "wall"

    def test_the_host_checks_the_sender_too(self):
        """With the inner check taken out by root, the outer one stops it: BPF, and nftables where ports are many."""
        for ports in "9100", "9000-9999":
            policy = self.write_policy("spoof.yaml", SPOOF_POLICY.format(ports))
            script = "import socket\nprint(flush=True)\ninput()\n" + SPOOF
            process = subprocess.Popen(self.args(PYTHON, "-c", script, policy=policy), stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", text=True)
            with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as listener:
                listener.bind((HERE6, 9100))
                listener.settimeout(20)
                process.stdout.readline()
                init = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True,
                                      check=True).stdout.split()[0]
                command("nsenter", "-t", init, "--net", "nft", "flush chain inet assay way6; add rule inet assay way6 accept")
                errors = process.communicate("\n", timeout=60)[1]
                got = self.datagrams_until(listener, b"last")
            self.assertEqual(len(got), 1, got)
            self.assertIn("2 packets passed the first check", errors)

    def test_the_host_looks_up_segments_of_no_connection(self):
        """As only root could write them in the command's network: the inner check takes them for a connection's."""
        for ports in f"{OPEN}", f"{OPEN - 100}-{OPEN}":
            policy = self.write_policy("segments.yaml", f"""private-addresses: allow
allow: [{{address: {HERE}, port: {ports}}}]
""")
            process = subprocess.Popen(self.args("sh", "-c", "echo; read x", policy=policy), stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", text=True)
            with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as listener:
                listener.settimeout(20)
                process.stdout.readline()
                init = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True,
                                      check=True).stdout.split()[0]
                command("nsenter", "-t", init, "--net", PYTHON, "-c", f"""
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
for port in {CLOSED}, {OPEN}:
    s.sendto(struct.pack("!HHIIBBHHH", 7777, port, 1, 1, 5 << 4, 0x10, 1000, 0, 0) + b"secret", ("{HERE}", 0))
""")
                got = []
                while got[-1:] != [OPEN]:
                    segment = listener.recv(100)[20:]
                    if segment.endswith(b"secret"):
                        got.append(int.from_bytes(segment[2:4], "big"))
                errors = process.communicate("\n", timeout=60)[1]
            self.assertEqual(got, [OPEN])
            self.assertIn("1 packets passed the first check", errors)

    def test_the_first_check_is_enough(self):
        """What a program binds to the link, or to loopback's address, is refused at once, and not left to the second."""
        policy = self.write_policy("link.yaml", f"""private-addresses: allow
allow: [{{address: "{HERE6}", port: 9100, transport: udp}}, {{host: "*.allowed.example", port: {OPEN}}}]
""")
        done = self.python(f"""
question = bytes.fromhex("123401000001000000000000") + b"\\3www\\7allowed\\7example" + bytes([0, 0, 1, 0, 1])
def ask(address, kind, link=None, source=None):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind) as s:
        s.settimeout(20)
        try:
            if link:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, link)
            if source:
                s.bind((source, 0))
            s.connect((address, 9100 if source else 53))
            s.sendall(question if kind == socket.SOCK_DGRAM else bytes([0, len(question)]) + question)
            print("sent" if source else len(s.recv(512)) > len(question))
        except OSError as e:
            print(errno.errorcode[e.errno] if e.errno else e)
for address in "192.0.2.53", "2001:db8::53":
    for link in None, b"eth0":
        ask(address, socket.SOCK_STREAM, link)
        ask(address, socket.SOCK_DGRAM, link)
ask("{HERE6}", socket.SOCK_DGRAM, None, "::1")
ask("{HERE6}", socket.SOCK_DGRAM, None, "::")
""", policy=policy)
        self.assertEqual(done.stdout.split(), ["True", "True", "ECONNREFUSED", "EPERM"] * 2 + ["EPERM", "sent"])
        self.assertNotIn("passed the first check", done.stderr)

    def test_a_reset_is_looked_up_by_the_first_check(self):
        """Asked from another's address at a port of its own where nobody listens, the kernel answers to that address."""
        policy = self.write_policy("reset.yaml", f"""private-addresses: allow
allow: [{{address: "{HERE6}", port: 9100, transport: udp}}]
""")
        done = self.python(f"""
FREEBIND = 78
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
    s.connect(("{HERE6}", 9100))
    own = s.getsockname()[0]
with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as s:
    s.setsockopt(socket.IPPROTO_IPV6, FREEBIND, 1)
    s.bind(("2001:db8:dead::1", 7777))
    s.setblocking(False)
    print(errno.errorcode[s.connect_ex((own, 9))])
""", policy=policy)
        self.assertEqual(done.stdout.split(), ["EINPROGRESS"])
        self.assertNotIn("passed the first check", done.stderr)

    def reach_far(self):
        """What comes of each address and name of the host behind this one."""
        policy = self.write_policy("far.yaml", f"""private-addresses: allow
allow:
  - {{address: {FAR}, port: {FAR_PORT}}}
  - {{address: "{FAR6}", port: {FAR_PORT}}}
  - {{address: "{HERE6}", port: {OPEN}}}
  - {{host: "*.allowed.example", port: {FAR_PORT}}}
""")
        return self.python(f"""
for where in "{FAR}", "{FAR6}", "far.allowed.example", "far6.allowed.example":
    try:
        print(socket.create_connection((where, {FAR_PORT}), 20).recv(10).decode())
    except ConnectionRefusedError:
        print("refused")
socket.create_connection(("{HERE6}", {OPEN}), 20)
""", policy=policy)

    def test_beyond_a_host_that_does_not_forward(self):
        """In each family this takes no more of the host than its own link may forward, and answers are handed over."""
        for v4, v6 in (0, 0), (0, 1), (1, 0), (1, 1):
            write_setting("net.ipv4.ip_forward", v4)
            write_setting("net.ipv6.conf.all.forwarding", v6)
            before = read_settings()
            try:
                done = self.reach_far()
                self.assertEqual((done.stdout, done.stderr), ("far\n" * 4, ""))
                self.assertEqual(read_settings(), before)
            finally:
                write_setting("net.ipv4.ip_forward", 1)
                write_setting("net.ipv6.conf.all.forwarding", 0)

    def test_a_kernel_that_cannot_forward_ipv6_for_one_link(self):
        """As before Linux 6.17: the setting is not there, and that is said."""
        settings = "/proc/sys/net/ipv6/conf/all"
        command("mount", "-t", "tmpfs", "none", settings)
        try:
            done = self.reach_far()
        finally:
            command("umount", settings)
        self.assertEqual(done.stdout, "far\nrefused\nfar\nrefused\n")
        self.assertEqual(done.stderr.count("no IPv6 beyond this host: it does not forward"), 1, done.stderr)


class Proxy(Attack):
    __test__ = True
    enforcer = "proxy"

    def ask(self, *firsts):
        """Each on a connection of its own to a name that is allowed. Return: what came back, or how it ended."""
        done = self.python(f"""
for first in {firsts!r}:
    with socket.create_connection(("www.allowed.example", {OPEN}), 20) as s:
        s.sendall(first)
        try:
            print(s.recv(4096)[:12])
        except ConnectionResetError:
            print("reset")
""", policy=self.names_policy)
        return done.stdout.split("\n")[:-1]

    def test_requests_that_a_lenient_server_takes(self):
        """The origin is one: it takes any space for a space. None may reach it for a host that is not allowed."""
        def lines(host):
            rest = b"\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n"
            return [first + rest for first in (b" GET / HTTP/1.1", b"GET\t/\tHTTP/1.1", b"\x1cGET / HTTP/1.1",
                                               b"\xa0GET / HTTP/1.1", b"GET /" + b"a" * 9000 + b" HTTP/1.1")]
        self.assertEqual(self.ask(*lines(b"www.denied.example")), ["reset"] * 5)
        for request in lines(b"www.denied.example"):  # the origin does take them
            with socket.create_connection((PUBLIC, OPEN), 20) as s:
                s.sendall(request)
                self.assertEqual(s.recv(4096)[:12], b"HTTP/1.1 200")

    def test_a_client_that_does_not_say_whom_it_wants(self):
        """It says nothing, or goes on saying it; the rule asks for a name, so there is no server who could end this."""
        policy = self.write_policy("silent.yaml", """allow:
  - {host: www.allowed.example, port: 443, sni: www.allowed.example}
""")
        done = self.python("""
import select
silent, slow = [socket.create_connection(("www.allowed.example", 443), 20) for _ in range(2)]
for byte in bytes([22, 3, 1, 0, 255, *range(200)]):
    slow.send(bytes([byte]))
    if select.select([slow], [], [], 0.1)[0]:
        break
for s in silent, slow:
    try:
        print(s.recv(1))
    except ConnectionResetError:
        print("reset")
""", policy=policy)
        self.assertEqual(done.stdout, "reset\nreset\n")
        self.assertIn("it did not say in time which host it is for", done.stderr)

    def test_an_offer_of_http2(self):
        """As Java's client makes it with its first request; whoever goes on with HTTP/2 goes no further."""
        offer = (f"GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: 0\r\n"
                 f"Host: www.allowed.example:{OPEN}\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
                 "Upgrade: h2c\r\n\r\n").encode()
        self.assertEqual(self.ask(offer), [str(b"HTTP/1.1 200")])
        self.assertEqual(self.ask(offer + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ["reset"])

    def test_few_descriptors(self):
        """Flows of datagrams, which nobody ends, leave some of them to connections, and connections that rest to others."""
        policy = self.write_policy("few.yaml", f"""private-addresses: allow
allow: [{{address: {HERE}, port: 20000-29999, transport: udp}}, {{address: {HERE}, port: {OPEN}}}]
""")
        script = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in range(20000, 21000):
    s.sendto(b"x", ("{HERE}", port))
def ask():
    with socket.create_connection(("{HERE}", {OPEN}), 20) as t:
        t.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        print(t.recv(12).decode())
ask()
resting = [socket.create_connection(("{HERE}", {OPEN}), 20) for _ in range(100)]
answerer = ("{HERE}", 29999)
s.settimeout(0.1)
while True:
    s.sendto(b"hello", answerer)  # those before may have filled a buffer
    try:
        print(s.recv(10).decode())
        break
    except TimeoutError:
        pass
resting.clear()
ask()
"""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answerer:
            answerer.bind((HERE, 29999))

            def answer():
                answerer.sendto(*answerer.recvfrom(100))
            threading.Thread(target=answer, daemon=True).start()
            limited = ["prlimit", "--nofile=256:256", *self.args(PYTHON, "-c", script, policy=policy)]
            done = subprocess.run(limited, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
                                  cwd="/")
        self.assertEqual(done.stdout, "HTTP/1.1 200\nhello\nHTTP/1.1 200\n", done.stderr)

    def test_no_descriptors_are_left(self):
        """One connection more than fit is refused at once, and told; those before go on, and so does one that comes when another
        has gone."""
        policy = self.write_policy("full.yaml", f"private-addresses: allow\nallow: [{{address: {HERE}, port: 9997}}]\n")

        def echo(connection):
            with connection:
                while data := connection.recv(100):
                    connection.sendall(data)

        def accept(listener):
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()
        script = f"""
import socket
def begin():
    try:
        return socket.create_connection(("{HERE}", 9997), 20)
    except ConnectionResetError:
        return None
def ask(s):
    try:
        s.sendall(b"x")
        return s.recv(1) == b"x"
    except (AttributeError, ConnectionResetError, BrokenPipeError):
        return False
flows = [begin() for _ in range(150)]
answers = [ask(s) for s in flows]
print(answers == sorted(answers, reverse=True), sum(answers), all(ask(s) for s in flows[:sum(answers)]))
flows[0].shutdown(socket.SHUT_WR)
print(flows[0].recv(1))
more = [begin() for _ in range(2)]
print([ask(s) for s in more])
"""
        with socket.create_server((HERE, 9997), backlog=256) as listener:
            threading.Thread(target=accept, args=(listener,), daemon=True).start()
            limited = ["prlimit", "--nofile=256:256", *self.args(PYTHON, "-c", script, policy=policy)]
            done = subprocess.run(limited, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
                                  cwd="/")
            listener.shutdown(socket.SHUT_RDWR)
        # an eighth for other things, a sixteenth for datagrams, two a connection
        self.assertEqual(done.stdout, "True 104 True\nb''\n[True, False]\n", done.stderr)
        self.assertIn(f"assay: denied tcp {HERE}:9997 (rule: 104 connections are open, and no more fit", done.stderr)

    def memory(self, process):
        """What the supervisor keeps, in bytes; None where a sanitizer keeps more."""
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        kept = int(next(line.split()[1] for line in status.split("\n") if line.startswith("RssAnon:"))) * 1024
        return None if program.is_sanitized() else kept

    def test_receivers_that_stall(self):
        """What they do not take stays in the kernel and holds back the sender: no buffer here for any of them, no pipe for
        each. When they take it, nothing is missing."""
        policy = self.write_policy("stall.yaml", f"private-addresses: allow\nallow: [{{address: {HERE}, port: 9996}}]\n")
        script = f"""
import select, socket
flows = []
for _ in range(100):
    s = socket.create_connection(("{HERE}", 9996), 20)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    s.setblocking(False)
    flows.append(s)
print("open", flush=True)
input()
sent = 0
poll = select.poll()
for s in flows:
    poll.register(s, select.POLLOUT)
of = {{s.fileno(): s for s in flows}}
while ready := poll.poll(500):
    for fd, _ in ready:
        try:
            sent += of[fd].send(bytes(65536))
        except BlockingIOError:
            pass
print(sent, flush=True)
"""
        with socket.create_server((HERE, 9996), backlog=256) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            process = subprocess.Popen(self.args("sh", "-c", '"$@"; read x', "sh", PYTHON, "-c", script, policy=policy),
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", text=True)
            try:
                self.assertEqual(process.stdout.readline(), "open\n")
                far = [listener.accept()[0] for _ in range(100)]
                descriptors = pathlib.Path(f"/proc/{process.pid}/fd")
                before, memory = len(list(descriptors.iterdir())), self.memory(process)
                process.stdin.write("\n")
                process.stdin.flush()
                sent = int(process.stdout.readline())
                self.assertGreater(sent, 100 * 256 * 1024)  # so much that pipes come into it
                self.assertLessEqual(len(list(descriptors.iterdir())), before + 2 * 16)
                if memory is not None:
                    self.assertLess(self.memory(process) - memory, 2 << 20)  # a buffer of 64 KiB for each would be 6 MiB
                arrived = 0
                for connection in far:
                    with connection:
                        while data := connection.recv(1 << 20):
                            arrived += len(data)
                self.assertEqual(arrived, sent)
            finally:
                process.communicate("\n", timeout=60)

    def test_heads_that_do_not_end(self):
        """What is held back of them has a bound in all; beyond it connections end, and are told, until there is room again."""
        done = self.python(f"""
import select
heads, n_ended, poll = {{}}, 0, select.poll()
for _ in range(160):
    s = socket.create_connection(("www.allowed.example", {OPEN}), 20)
    try:
        s.sendall(b"GET / HTTP/1.1\\r\\nX: " + b"a" * 30000)
        heads[s.fileno()] = s
        poll.register(s, select.POLLIN)
    except (ConnectionResetError, BrokenPipeError):
        n_ended += 1
while n_ended < 21 and (ready := poll.poll(20000)):
    for fd, _ in ready:
        poll.unregister(fd)
        heads.pop(fd).close()
        n_ended += 1
print(len(heads), poll.poll(0))
heads.popitem()[1].close()
s = socket.create_connection(("www.allowed.example", {OPEN}), 20)
s.sendall(b"GET / HTTP/1.1\\r\\nHost: www.allowed.example\\r\\nConnection: close\\r\\n\\r\\n")
print(s.recv(12))
""", policy=self.names_policy)
        self.assertEqual(done.stdout, "139 []\nb'HTTP/1.1 200'\n", done.stderr)
        self.assertIn("too many connections have not said yet whom they ask for", done.stderr)

    def test_a_protocol_without_lines(self):
        """What cannot be a request goes on at once, since whoever sent it waits for the answer."""
        with socket.create_server((PUBLIC, 443)) as listener:
            answer = []

            def serve():
                with listener.accept()[0] as connection:
                    answer.append(connection.recv(100))
                    connection.sendall(b"\1\0\0")
            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            done = self.python("""
s = socket.create_connection(("www.allowed.example", 443), 20)
s.sendall(b"AMQP\\0\\0\\x09\\x01")
print(s.recv(10))
""", policy=self.names_policy)
            thread.join()
        self.assertEqual((done.stdout, answer), ("b'\\x01\\x00\\x00'\n", [b"AMQP\0\0\x09\x01"]))


class OrdinaryProxy(Proxy):
    """As an ordinary user, in user namespaces of its own."""
    user = ORDINARY


def load_tests(loader, tests, pattern):
    """Those that are written here; those of the enforcers have been run by their own module."""
    suite = unittest.TestSuite()
    for case in Wall, Proxy, OrdinaryProxy:
        names = [name for name in loader.getTestCaseNames(case) if not hasattr(base.Enforcer, name)]
        suite.addTests(case(name) for name in names)
    return suite


if __name__ == "__main__":
    program.main()
