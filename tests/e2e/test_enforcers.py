# SPDX-License-Identifier: Apache-2.0
"""assay exec under a policy that allows something, behind the wall and through the proxy: what is allowed is reached, what
is not is refused at once and told, whoever is killed; and nothing stays on the host. The names come from a server of ours."""
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

import origin
import program
from origin import Answer, CLOSED, HERE, HERE6, NAMES_POLICY, OPEN, OTHER, POLICY, PUBLIC, RANGE, Server, command
from sandbox import ORDINARY, PYTHON

setUpModule = origin.set_up


class Enforcer(unittest.TestCase):
    """What holds for every one of them."""
    __test__ = False
    enforcer, user = None, None

    @classmethod
    def setUpClass(cls):
        if cls.enforcer is None:
            raise unittest.SkipTest("what others inherit")
        cls.scratch = tempfile.TemporaryDirectory(prefix="assay-enforcers-")
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.folder.chmod(0o755)
        cls.assay = shutil.copy(program.ASSAY, cls.folder / "assay")
        cls.policy = cls.write_policy("policy.yaml", POLICY)
        cls.names_policy = cls.write_policy("names.yaml", NAMES_POLICY)

    @classmethod
    def write_policy(cls, name, text):
        path = cls.folder / name
        path.write_text(text)
        path.chmod(0o600)
        if cls.user is not None:
            os.chown(path, cls.user, cls.user)
        return path

    @classmethod
    def tearDownClass(cls):
        if cls.enforcer is None:
            return
        cls.scratch.cleanup()

    def setUp(self):
        self.before = self.host()

    def tearDown(self):
        program.assert_unchanged(self, self.before_all)
        self.assertEqual(self.host(), self.before)

    def host(self):
        self.before_all = program.host_state() if not hasattr(self, "before_all") else self.before_all
        return subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout

    def args(self, *args, policy=None):
        become = ["setpriv", "--reuid", str(self.user), "--regid", str(self.user), "--clear-groups"] if self.user else []
        return [*become, self.assay, "exec", "--enforce", self.enforcer, "--policy", str(policy or self.policy), "--",
                *map(str, args)]

    def exec(self, *args, **kwargs):
        done = subprocess.run(self.args(*args, **kwargs), text=True, capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=60, check=False, cwd="/")
        done.stderr = program.without_asan(done.stderr)
        return done

    def python(self, script, **kwargs):
        done = self.exec(PYTHON, "-c", "import errno, os, socket\n" + script, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def curl(self, url, *options, **kwargs):
        return self.exec("curl", "-sS", "--max-time", "20", *options, url, **kwargs)

    def test_what_is_allowed_arrives(self):
        for url in f"http://{HERE}:{OPEN}/", f"http://[{HERE6}]:{OPEN}/":
            done = self.curl(url)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ok", ""))

    def test_what_is_not_is_refused_at_once_and_told(self):
        for url, target in [(f"http://{HERE}:{CLOSED}/", f"{HERE}:{CLOSED}"), (f"http://{OTHER}:{OPEN}/", f"{OTHER}:{OPEN}"),
                            ("http://192.0.2.1/", "192.0.2.1:80"), ("http://[2001:db8::1]/", "[2001:db8::1]:80"),
                            (f"http://[::ffff:{HERE}]:{CLOSED}/", f"{HERE}:{CLOSED}")]:
            done = self.curl(url)
            self.assertEqual(done.returncode, 7, done.stderr)  # curl's: could not connect
            self.assertIn(f"assay: denied tcp {target} (rule: default deny, {self.policy}", done.stderr)

    def test_the_record_has_what_was_denied(self):
        with tempfile.TemporaryDirectory(prefix="assay-record-") as folder:
            os.chown(folder, self.user or 0, self.user or 0)
            args = self.args("sh", "-c", f"curl -s http://{HERE}:{CLOSED}/; curl -s http://{HERE}:{OPEN}/")
            args[args.index("--"):args.index("--")] = ["--prove", "always", "--bundle", f"{folder}/record"]
            done = subprocess.run(args, text=True, capture_output=True, timeout=60, check=False, cwd="/")
            self.assertEqual((done.returncode, done.stdout), (0, "ok"), done.stderr)
            record = json.loads((pathlib.Path(folder) / "record" / "run-bundle.json").read_text())
        denied = record["network"]["denied"]
        self.assertEqual([entry["target"] for entry in denied], [f"tcp {HERE}:{CLOSED}"])
        self.assertGreaterEqual(denied[0]["count"], 1)
        self.assertIn("default deny, ", denied[0]["rule"])
        self.assertEqual(record["enforcement"]["enforcer"], self.enforcer)
        self.assertEqual(record["enforcement"]["observed"], "enforced")
        self.assertIs(record["enforcement"]["network_non_bypassable"], True)
        if self.enforcer == "proxy":  # and nothing of the proof
            self.assertEqual([entry["target"] for entry in record["network"]["allowed"]], [f"tcp {HERE}:{OPEN}"])
            flowed, = record["network"]["destinations"]
            self.assertEqual((flowed["target"], flowed["flows"]), (f"tcp {HERE}:{OPEN}", 1))
            self.assertGreater(flowed["received_bytes"], flowed["sent_bytes"])

    def record(self, script, n_denials=0, **kwargs):
        """What a script of Python printed, and the record of its run, which lasts until so many denials were told."""
        folder = tempfile.mkdtemp(prefix="assay-record-")
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o777)
        args = self.args(PYTHON, "-c", "import errno, os, socket, sys\n" + script + "\nsys.stdin.read()")
        args[args.index("--"):args.index("--")] = ["--bundle", f"{folder}/record"]
        process = subprocess.Popen(args, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd="/", **kwargs)
        for _ in range(n_denials):
            while (line := process.stderr.readline()) and "assay: denied" not in line:
                pass
        out, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        return out, json.loads((pathlib.Path(folder) / "record" / "run-bundle.json").read_text())

    ASKS = f"""
def ask(family, kind, *where):
    s = socket.socket(family, kind)
    kept.append(s)
    try:
        s.connect(where) if kind == socket.SOCK_STREAM else s.sendto(b"x", where)
    except OSError as e:
        print(errno.errorcode[e.errno], end=" ")
kept = []
for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
    ask(socket.AF_INET, kind, "192.0.2.7", 81)
    ask(socket.AF_INET6, kind, "::ffff:192.0.2.8", 82)
    ask(socket.AF_INET6, kind, "2001:db8::7", 83)
"""
    ASKED = {f"{transport} {where}" for transport in ("tcp", "udp") for where in ("192.0.2.7:81", "192.0.2.8:82",
                                                                                  "[2001:db8::7]:83")}

    def test_the_record_has_who_was_denied(self):
        """Numbers are those of who starts the sandbox, also in a PID namespace, as these tests are."""
        out, record = self.record(self.ASKS + "print(os.getpid())", len(self.ASKED))
        denied = record["network"]["denied"]
        self.assertEqual({entry["target"] for entry in denied}, self.ASKED)
        self.assertEqual({entry["executable"] for entry in denied}, {os.path.realpath(PYTHON)}, denied)
        self.assertEqual(len({entry["pid"] for entry in denied}), 1, denied)
        self.assertGreater(denied[0]["pid"], int(out.split()[-1]))  # which has few in its namespace
        self.assertEqual(out.split()[:-1], ["ECONNREFUSED"] * 3 + ["EPERM"] * 3)
        self.assertEqual({entry["count"] for entry in denied}, {1})

    def test_the_record_has_what_flowed(self):
        """Payload, however a connection is ended; and how often what was allowed was asked for."""
        sizes = iter([(1, 1), (70000, 3000), (5, 300000), (1 << 20, 0), (10, 20)])
        policy = self.write_policy("flows.yaml", f"private-addresses: allow\nallow: [{{address: {HERE}, port: 9998}}]\n")
        plain, self.policy = self.policy, policy
        self.addCleanup(setattr, self, "policy", plain)
        with socket.create_server((HERE, 9998)) as listener:
            def serve():
                for sent, received in sizes:
                    connection = listener.accept()[0]
                    with connection:
                        while sent > 0:
                            sent -= len(connection.recv(65536))
                        connection.sendall(bytes(received))
                        connection.shutdown(socket.SHUT_WR)
                        connection.recv(1)
            threading.Thread(target=serve, daemon=True).start()
            _, record = self.record(f"""
def talk(sent, received, how):
    s = socket.create_connection(("{HERE}", 9998), 20)
    s.sendall(bytes(sent))
    if how == "shuts":
        s.shutdown(socket.SHUT_WR)
    while received > 0 or how != "closes":
        chunk = s.recv(65536)
        if not chunk:
            break
        received -= len(chunk)
    assert received == 0
    s.close()
talk(1, 1, "shuts")
talk(70000, 3000, "waits")
talk(5, 300000, "shuts")
talk(1 << 20, 0, "waits")
talk(10, 20, "closes")
with socket.create_server(("127.0.0.1", 1234)) as own:  # which goes nowhere
    s = socket.create_connection(("127.0.0.1", 1234))
    s.sendall(b"x")
    s.close()
""")
        self.assertEqual(record["network"]["destinations"],
                         [{"target": f"tcp {HERE}:9998", "flows": 5, "sent_bytes": 1 + 70000 + 5 + (1 << 20) + 10,
                           "received_bytes": 1 + 3000 + 300000 + 20}])
        allowed = record["network"]["allowed"]
        self.assertEqual([(entry["target"], entry["count"], entry["executable"]) for entry in allowed],
                         [(f"tcp {HERE}:9998", 5, os.path.realpath(PYTHON))])
        self.assertEqual(record["network"]["denied"], [])

    def test_more_is_asked_for_than_is_remembered(self):
        _, record = self.record("""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in range(1, 20001):
    s.connect(("127.0.0.1", port))
""")
        self.assertEqual((record["network"]["denied"], record["network"]["allowed"]), ([], []))

    def test_ranges_that_hold_the_sandboxs_own_addresses(self):
        policy = self.write_policy("private.yaml", f"""private-addresses: allow
allow: [{{address: "fc00::/7", port: any, transport: any}}, {{address: 10.0.0.0/8, port: any, transport: any}},
        {{address: 198.18.0.0/15, port: any, transport: any}}]
""")
        for url in f"http://{HERE}:{OPEN}/", f"http://[{HERE6}]:{OPEN}/":
            done = self.curl(url, policy=policy)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ok", ""))

    def test_errnos(self):
        done = self.python(f"""
def of(call):
    try:
        call()
    except OSError as e:
        return errno.errorcode[e.errno]
tcp = lambda family, where: of(lambda: socket.socket(family, socket.SOCK_STREAM).connect(where))
udp = lambda family, where: of(lambda: socket.socket(family, socket.SOCK_DGRAM).sendto(b"x", where))
print(tcp(socket.AF_INET, ("{HERE}", {CLOSED})), tcp(socket.AF_INET6, ("2001:db8::1", 1)),
      udp(socket.AF_INET, ("{HERE}", {RANGE - 1})), udp(socket.AF_INET6, ("2001:db8::1", 1)),
      udp(socket.AF_INET, ("255.255.255.255", 1)), udp(socket.AF_INET, ("224.0.0.1", 1)))
""")
        self.assertEqual(done.stdout.split()[:4], ["ECONNREFUSED", "ECONNREFUSED", "EPERM", "EPERM"])
        self.assertNotIn("None", done.stdout)

    def test_udp_of_a_range(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answerer:
            answerer.bind((HERE, RANGE + 7))
            answerer.settimeout(20)

            def answer():
                data, where = answerer.recvfrom(100)
                answerer.sendto(data.upper(), where)
            thread = threading.Thread(target=answer)
            thread.start()
            done = self.python(f"""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.sendto(b"hello", ("{HERE}", {RANGE + 7}))
print(s.recvfrom(100)[0].decode())
""")
            thread.join()
        self.assertEqual(done.stdout, "HELLO\n")

    def test_other_ways_to_the_same_socket(self):
        """A connected socket that is turned elsewhere, data in the first segment, options, a raw packet."""
        done = self.python(f"""
def of(call):
    try:
        return call()
    except OSError as e:
        return errno.errorcode[e.errno]
s = socket.create_connection(("{HERE}", {OPEN}))
def turn():
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    unspecified = (ctypes.c_char * 16)()
    libc.connect(s.fileno(), unspecified, 16)
    s.connect(("{HERE}", {CLOSED}))
print(of(turn))
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
print(of(lambda: s.sendto(b"GET / HTTP/1.0\\r\\n\\r\\n", socket.MSG_FASTOPEN, ("{HERE}", {CLOSED}))))
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([1, 1, 1, 0]))
print(of(lambda: s.connect(("{HERE}", {OPEN}))))
print(of(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)))
print(of(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)))
""")
        answers = done.stdout.split()
        self.assertEqual(answers[0:2], ["ECONNREFUSED", "ECONNREFUSED"])
        self.assertEqual(answers[2], "ECONNREFUSED")
        self.assertNotIn("None", done.stdout)
        self.assertIn("options", done.stderr)

    def test_what_holds_is_what_was_read_at_the_start(self):
        policy = self.write_policy("changed.yaml", POLICY)
        process = subprocess.Popen(self.args("sh", "-c", f"echo up; read x; exec curl -sS --max-time 20 http://{HERE}:{CLOSED}/",
                                             policy=policy), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd="/")
        self.assertEqual(process.stdout.readline(), "up\n")
        self.write_policy("changed.yaml", POLICY.replace(str(OPEN), str(CLOSED)))
        out, _ = process.communicate("\n", timeout=60)
        self.assertEqual((process.returncode, out), (7, ""))
        self.assertEqual(self.curl(f"http://{HERE}:{CLOSED}/", policy=policy).stdout, "ok")

    def test_extension_headers(self):
        """A routing header, the one of IPv6 that a program without rights may ask for, names a further destination."""
        done = self.python(f"""
import struct
segments = struct.pack("BBBBBBH", 0, 2, 4, 0, 0, 0, 0) + socket.inet_pton(socket.AF_INET6, "{HERE6}")  # RFC 8754, 2
for routed in False, True:
    s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    if routed:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RTHDR, segments)
    try:
        s.connect(("{HERE6}", {OPEN}))
        print("connected")
    except OSError as e:
        print(errno.errorcode[e.errno])
""")
        self.assertEqual(done.stdout, "connected\nECONNREFUSED\n", done.stderr)
        self.assertIn(f"denied tcp [{HERE6}]:{OPEN} (rule: IP options and extension headers are not let through)", done.stderr)

    def test_names_are_not_asked_over_tls(self):
        policy = self.write_policy("every.yaml", "private-addresses: allow\n"
                                                 f"allow: [{{address: {HERE}, port: any, transport: any}}]\n")
        with socket.create_server((HERE, 853)) as listener:
            listener.setblocking(False)
            done = self.python(f"""
for port in {OPEN}, 853:
    try:
        socket.create_connection(("{HERE}", port), 20)
        print("connected")
    except ConnectionRefusedError:
        print("refused")
try:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("{HERE}", 853))
except PermissionError:
    print("not sent")
""", policy=policy)
            self.assertEqual(done.stdout, "connected\nrefused\nnot sent\n", done.stderr)
            self.assertIn(f"denied tcp {HERE}:853 (rule: names are asked at port 53)", done.stderr)
            self.assertRaises(BlockingIOError, listener.accept)

    def test_the_command_cannot_change_it(self):
        changes = ["ip link del eth0", "ip link set eth0 down", "ip link set lo down", "ip addr add 10.1.1.1/8 dev lo",
                   "nft flush ruleset", "nft list ruleset", "nsenter --net=/proc/1/ns/net true"]
        done = self.exec("sh", "-c", "".join(f"{change} 2>/dev/null && echo {change}\n" for change in changes) +
                         f"curl -sS --max-time 20 http://{HERE}:{OPEN}/; exec curl -sS --max-time 20 http://{HERE}:{CLOSED}/")
        self.assertEqual((done.returncode, done.stdout), (7, "ok"), done.stderr)

    def test_killed_nothing_is_left_and_nothing_runs_on(self):
        process = subprocess.Popen(self.args("sh", "-c", "while :; do echo alive; sleep 0.01; done"), cwd="/",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"alive\n")
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.read()  # ends when nobody holds the other end any more
        process.stdout.close()
        program.assert_unchanged(self, self.before_all)  # waits
        self.assertEqual(self.host(), self.before)

    def test_two_at_once(self):
        first = subprocess.Popen(self.args("sh", "-c", f"read x; curl -sS http://{HERE}:{OPEN}/"), stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, cwd="/")
        self.assertEqual(self.curl(f"http://{HERE}:{OPEN}/").stdout, "ok")
        self.assertEqual(first.communicate(b"\n", timeout=60)[0], b"ok")

    def test_names(self):
        done = self.curl(f"http://www.allowed.example:{OPEN}/", policy=self.names_policy)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ok", ""))
        done = self.curl(f"http://alias.allowed.example:{OPEN}/", policy=self.names_policy)
        self.assertEqual((done.returncode, done.stdout), (0, "ok"), done.stderr)
        for name in "www.denied.example", "out.allowed.example", "rebound.allowed.example", "inside.allowed.example":
            done = self.curl(f"http://{name}:{OPEN}/", policy=self.names_policy)
            self.assertEqual(done.returncode, 6, done.stderr)  # curl's: could not resolve
            self.assertIn("assay: denied ", done.stderr)

    def test_a_name_of_many_addresses(self):
        """On one port, a range and all of them; twice; and one address is in the answer twice."""
        policy = self.write_policy("many.yaml", f"""allow:
  - {{host: many.allowed.example, port: [{OPEN}, 9000-9009], transport: tcp}}
  - {{host: many.allowed.example, port: any, transport: udp}}
""")
        done = self.python(f"""
for _ in range(2):
    found = socket.getaddrinfo("many.allowed.example", {OPEN}, socket.AF_INET, socket.SOCK_STREAM)
    print(len(set(found)))
s = socket.create_connection(("{PUBLIC}", {OPEN}), 20)
s.sendall(b"GET / HTTP/1.0\\r\\nHost: many.allowed.example\\r\\n\\r\\n")
print(s.recv(12))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"", ("{PUBLIC}", 12345))
""", policy=policy)
        self.assertEqual((done.stdout, done.stderr), ("21\n21\nb'HTTP/1.1 200'\n", ""))

    def test_the_record_says_what_was_answered(self):
        """A denied name does not exist, one that has only denied addresses has none: as the command was told."""
        folder = tempfile.mkdtemp(prefix="assay-record-")
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o777)
        args = self.args(PYTHON, "-c", "import socket\nfor name in ('www', 'rebound'):\n"
                                       "    try: socket.getaddrinfo(name + '.allowed.example', 1, socket.AF_INET)\n"
                                       "    except OSError: pass\n"
                                       "try: socket.getaddrinfo('www.denied.example', 1, socket.AF_INET)\n"
                                       "except OSError: pass\n", policy=self.names_policy)
        args[args.index("--"):args.index("--")] = ["--bundle", f"{folder}/record"]
        subprocess.run(args, check=True, capture_output=True, cwd="/", timeout=60)
        record = json.loads((pathlib.Path(folder) / "record" / "run-bundle.json").read_text())
        answers = {entry["name"]: entry["answer"] for entry in record["network"]["dns"] if entry["type"] == "A"}
        self.assertEqual(answers, {"www.allowed.example": "NOERROR", "rebound.allowed.example": "NOERROR",
                                   "www.denied.example": "NXDOMAIN"})

    def test_an_address_that_no_name_led_to(self):
        done = self.curl(f"http://{PUBLIC}:{OPEN}/", policy=self.names_policy)
        self.assertEqual(done.returncode, 7, done.stderr)

    def test_another_port_of_a_name(self):
        done = self.curl(f"http://www.allowed.example:{CLOSED}/", policy=self.names_policy)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn(f"assay: denied tcp {PUBLIC}:{CLOSED}", done.stderr)

    def test_another_server_for_names_is_ours(self):
        """What is asked elsewhere is turned to the sandbox's resolver, over UDP and TCP; nothing arrives there."""
        done = self.python(f"""
import struct
query = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\\3www\\7allowed\\7example\\0" + struct.pack(">HH", 1, 1)
for family, server in (socket.AF_INET, "192.0.2.53"), (socket.AF_INET6, "2001:db8::53"):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(20)
    s.sendto(query, (server, 53))
    answer = s.recvfrom(2048)
    print(answer[1][0], socket.inet_ntoa(answer[0][-4:]))
    s = socket.create_connection((server, 53), 20)
    s.sendall(struct.pack(">H", len(query)) + query)
    print(socket.inet_ntoa(s.recv(2048)[-4:]))
""", policy=self.names_policy)
        self.assertEqual(done.stdout, f"192.0.2.53 {PUBLIC}\n{PUBLIC}\n2001:db8::53 {PUBLIC}\n{PUBLIC}\n")


class Wall(Enforcer):
    __test__ = True
    enforcer = "wall"

    def test_errors_of_the_path_come_back(self):
        done = self.python(f"""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.connect(("{HERE}", {RANGE + 98}))
s.send(b"x")
try:
    s.recv(10)
except ConnectionRefusedError:
    print("nobody is there")
""")
        self.assertEqual((done.stdout, done.stderr), ("nobody is there\n", ""))

    def test_auto_takes_it(self):
        args = self.args("sh", "-c", "ip link show eth0 | grep -o 'mtu 65535'")
        args[args.index("wall")] = "auto"
        done = subprocess.run(args, text=True, capture_output=True, check=False, cwd="/")
        self.assertEqual((done.returncode, done.stdout), (0, "mtu 65535\n"), done.stderr)

    def test_a_policy_that_it_cannot_enforce(self):
        path = self.write_policy("sni.yaml", "allow:\n  - {host: example.org, port: 443, sni: example.org}\n")
        done = self.exec("true", policy=path)
        self.assertEqual(done.returncode, 125)
        self.assertIn(f"{path}:2", done.stderr)
        self.assertIn("sni", done.stderr)
        for text, place in [("limits: {per-target: {connections: 1}}\n", ": of `limits`"), ("localhost: [1]\n", ":1: it has")]:
            path = self.write_policy("other.yaml", text)
            done = self.exec("true", policy=path)
            self.assertEqual(done.returncode, 125)
            self.assertIn(f"wall: {path}{place}", done.stderr)

    def test_what_is_open_at_the_end_has_flowed(self):
        """A far end that never acknowledges the end of a connection, as one that is too far away for that."""
        command("nft", "add table inet far; add chain inet far in { type filter hook prerouting priority -400; }; "
                       "add rule inet far in iifname \"assay-wall*\" tcp flags & fin == fin drop")
        with socket.create_server((HERE, OPEN + 20)) as listener:
            policy = self.write_policy("far.yaml", f"private-addresses: allow\nallow: [{{address: {HERE}, port: {OPEN + 20}}}]\n")
            plain, self.policy = self.policy, policy
            self.addCleanup(setattr, self, "policy", plain)
            accepted = []
            threading.Thread(target=lambda: accepted.append(listener.accept()[0]), daemon=True).start()
            _, record = self.record(f"""
s = socket.create_connection(("{HERE}", {OPEN + 20}), 20)
s.sendall(bytes(1000))
s.close()
""")
            accepted[0].close()
        command("nft", "delete", "table", "inet", "far")  # the network namespace goes with its last socket
        self.assertEqual(record["network"]["destinations"], [{"target": f"tcp {HERE}:{OPEN + 20}", "flows": 1,
                                                              "sent_bytes": 1000, "received_bytes": 0}])

    def test_names_are_asked_by_the_command_alone(self):
        """A far end that datagrams may go to asks at the command's address, before the command does."""
        def question(name):
            labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
            return bytes.fromhex("123401000001000000000000") + labels + bytes([0, 0, 1, 0, 1])
        self.addCleanup(setattr, self, "policy", self.policy)
        for names in "", f', {{host: "*.allowed.example", port: {OPEN}}}':
            self.policy = self.write_policy("asked.yaml", f"""private-addresses: allow
allow: [{{address: {HERE}, port: {RANGE + 7}, transport: udp}}{names}]
""")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far:
                far.bind((HERE, RANGE + 7))
                far.settimeout(20)

                def ask(far=far):
                    where = far.recvfrom(100)[1]
                    far.sendto(question("far.denied.example"), (where[0], 53))
                    far.sendto(b"asked", where)
                thread = threading.Thread(target=ask)
                thread.start()
                _, record = self.record(f"""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.sendto(b"x", ("{HERE}", {RANGE + 7}))
s.recv(100)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.sendto({question("own.denied.example")!r}, ("127.0.0.1", 53))
s.recv(512)
""")
                thread.join()
            self.assertEqual([entry["name"] for entry in record["network"]["dns"]], ["own.denied.example"])

    def test_what_nobody_could_see_is_null(self):
        """Without BPF nobody sees what passes, and who was refused is looked up; the record says so."""
        _, record = self.record(self.ASKS, len(self.ASKED), preexec_fn=program.refuse_bpf)
        network = record["network"]
        self.assertEqual({entry["target"] for entry in network["denied"]}, self.ASKED)
        self.assertEqual({entry["executable"] for entry in network["denied"]}, {os.path.realpath(PYTHON)})
        self.assertEqual((network["allowed"], network["allowed_omitted"], network["destinations"]), (None, None, None))
        self.assertIn("CAP_BPF", " ".join(record["enforcement"]["weaker"]))

    def test_without_bpf(self):
        """The second check is then nftables', too, and the record says so."""
        policy = self.write_policy("few.yaml", f"private-addresses: allow\nallow: [{{address: {HERE}, port: {OPEN}}}]\n")
        for refuse, weaker in (None, 0), (program.refuse_bpf, 1):
            with tempfile.TemporaryDirectory(prefix="assay-record-") as folder:
                args = self.args("sh", "-c", f"curl -sS http://{HERE}:{OPEN}/; curl -sS http://{HERE}:{CLOSED}/",
                                 policy=policy)
                args[args.index("--"):args.index("--")] = ["--prove", "always", "--bundle", f"{folder}/record"]
                done = subprocess.run(args, text=True, capture_output=True, timeout=60, check=False, cwd="/", preexec_fn=refuse)
                enforcement = json.loads((pathlib.Path(folder) / "record" / "run-bundle.json").read_text())["enforcement"]
            self.assertEqual((done.returncode, done.stdout), (7, "ok"), done.stderr)
            self.assertEqual(len([text for text in enforcement["weaker"] if "second check of the wall" in text]), weaker)
            self.assertIs(enforcement["network_non_bypassable"], True)

    def test_without_rights(self):
        done = subprocess.run(["setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups", "sh", "-c",
                               f'umask 077; p=$(mktemp); echo "allow: [{{address: {HERE}, port: 1}}]" > $p; '
                               f'"$1" exec --enforce wall --policy $p -- true; code=$?; rm $p; exit $code', "sh",
                               self.assay], text=True, capture_output=True, check=False, cwd="/")
        self.assertEqual(done.returncode, 125)
        self.assertIn("CAP_NET_ADMIN", done.stderr)


class Proxy(Enforcer):
    __test__ = True
    enforcer = "proxy"

    def test_whom_a_request_asks_for(self):
        """The host of every request on a connection, and the server name of TLS, have to be allowed at the address."""
        def ask(*lines):
            script = f"""
s = socket.create_connection(("www.allowed.example", {OPEN}), 20)
try:
    for request in {lines!r}:
        s.sendall(request.encode())
        answer = b""
        while not answer.endswith(b"ok"):
            chunk = s.recv(4096)
            if not chunk:
                raise ConnectionError
            answer += chunk
        print(answer.decode().split()[1], end=" ")
except ConnectionError:
    print("ended", end=" ")
"""
            return self.exec(PYTHON, "-c", "import socket\n" + script, policy=self.names_policy)

        def request(host):
            return f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"

        allowed = f"www.allowed.example:{OPEN}"
        self.assertEqual(ask(request(allowed), request(allowed)).stdout, "200 200 ")
        done = ask(request(allowed), request("www.denied.example"))
        self.assertEqual(done.stdout, "200 ended ")
        self.assertIn("denied tcp www.allowed.example", done.stderr)
        for head in ("GET / HTTP/1.1\r\nHost: www.denied.example\r\n\r\n",
                     "GET http://www.denied.example/ HTTP/1.1\r\nHost: www.allowed.example\r\n\r\n",
                     f"GET / HTTP/1.1\r\nHost: {allowed}\r\nHost: www.denied.example\r\n\r\n",
                     f"GET / HTTP/1.1\r\nHost: {allowed}\r\n folded: yes\r\n\r\n",
                     f"POST / HTTP/1.1\r\nHost: {allowed}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"):
            self.assertEqual(ask(head).stdout, "ended ", head)

    def test_sni(self):
        policy = self.write_policy("sni.yaml", f"private-addresses: allow\nallow:\n  - {{address: {HERE}, port: 4433, "
                                               "sni: right.example}\n")
        key = self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out",
                        str(self.folder / "cert.pem"), "-days", "1", "-subj", "/CN=right.example"], check=True,
                       capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "cert.pem", key)
        server = Server((HERE, 4433), Answer)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            for name, code in ("right.example", 0), ("wrong.example", 35):  # curl's: no TLS connection
                done = self.curl(f"https://{name}:4433/", "-k", "--resolve", f"{name}:4433:{HERE}", policy=policy)
                self.assertEqual(done.returncode, code, done.stderr)
            for url in f"http://{HERE}:4433/", f"https://{HERE}:4433/":  # no TLS at all, and no name of a server in it
                done = self.curl(url, "-k", policy=policy)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("denied", done.stderr)
        finally:
            server.shutdown()
            server.server_close()

    def test_the_host_that_a_rule_asks_for(self):
        policy = self.write_policy("host.yaml", f"private-addresses: allow\nallow:\n  - {{address: {HERE}, port: {OPEN}, "
                                                "http-host: \"*.right.example\"}\n")
        for host, answer in [("www.right.example", "ok"), (f"WWW.Right.Example.:{OPEN}", "ok"), ("right.example", ""),
                             ("www.wrong.example", ""), (HERE, "")]:
            done = self.curl(f"http://{HERE}:{OPEN}/", "-H", f"Host: {host}", policy=policy)
            self.assertEqual(done.stdout, answer, (host, done.stderr))
            self.assertEqual("denied" in done.stderr, answer == "", host)

    def test_localhost(self):
        server = Server(("127.0.0.1", 8181), Answer)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            policy = self.write_policy("localhost.yaml", "localhost: [8181]\n")
            done = self.curl("http://127.0.0.1:8181/", policy=policy)
            self.assertEqual((done.returncode, done.stdout), (0, "ok"), done.stderr)
            self.assertEqual(self.curl("http://127.0.0.1:8182/", policy=policy).returncode, 7)
        finally:
            server.shutdown()
            server.server_close()

    def test_limits(self):
        def fetch(limits, script):
            policy = self.write_policy("limits.yaml", f"private-addresses: allow\nallow: [{{address: {HERE}, port: {OPEN}}}]\n"
                                                      f"limits: {{{limits}}}\n")
            return self.exec("sh", "-c", script.replace("GET", f"curl -s http://{HERE}:{OPEN}/"), policy=policy)
        done = fetch("total: {bytes: 1500B}", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do GET; done; exit 0")
        self.assertTrue(2 <= done.stdout.count("ok") < 12, done.stdout)
        self.assertIn("(rule: limits: bytes)", done.stderr)
        done = fetch("per-target: {new-connections: 1/s}", "GET; GET; GET; exit 0")
        self.assertTrue(1 <= done.stdout.count("ok") < 3, done.stdout)
        self.assertIn("limits: new-connections", done.stderr)
        done = fetch("per-target: {connections: 1}", f"""{PYTHON} -c '
import socket
first = socket.create_connection(("{HERE}", {OPEN}), 20)
for _ in range(2):
    first.sendall(b"G" b"ET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    answer = b""
    while not answer.endswith(b"ok"):
        answer += first.recv(4096) or exit("it ended early")
    print(answer[:12])
try:
    print(socket.create_connection(("{HERE}", {OPEN}), 20).recv(1))
except ConnectionError:
    print("ended")'
""")
        self.assertEqual(done.stdout, "b'HTTP/1.1 200'\n" * 2 + "ended\n", done.stderr)
        self.assertIn("limits: connections", done.stderr)
        done = fetch("total: {rate: 80kbit, connections: 1}", "GET && GET")
        self.assertEqual(done.stdout, "okok", done.stderr)

    def test_bulk_both_ways(self):
        """More than goes by copying, with the far end slower than the near one, and half-closed connections."""
        def echo(listener):
            connection = listener.accept()[0]
            data = b""
            while chunk := connection.recv(65536):
                data += chunk
            connection.sendall(data)
            connection.close()
        with socket.create_server((HERE, 9999)) as listener:
            threading.Thread(target=echo, args=(listener,), daemon=True).start()
            policy = self.write_policy("bulk.yaml", f"private-addresses: allow\nallow: [{{address: {HERE}, port: 9999}}]\n")
            done = self.python(f"""
import hashlib, os
data = os.urandom(8 << 20)
s = socket.create_connection(("{HERE}", 9999), 60)
s.sendall(data)
s.shutdown(socket.SHUT_WR)
got = b""
while chunk := s.recv(65536):
    got += chunk
print(got == data)
""", policy=policy)
        self.assertEqual(done.stdout, "True\n")


class OrdinaryProxy(Proxy):
    """As an ordinary user, in user namespaces of its own."""
    user = ORDINARY

    def test_who_is_gone_is_null(self):
        """Nobody looks on, and the socket is closed before the supervisor gets to look for it."""
        folder = tempfile.mkdtemp(prefix="assay-record-")
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o777)
        args = self.args(PYTHON, "-c", """
import socket, sys
print("there", flush=True)
sys.stdin.readline()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    s.sendto(b"x", ("192.0.2.7", 81))
except OSError:
    s.close()
print("gone", flush=True)
sys.stdin.readline()
""")
        args[args.index("--"):args.index("--")] = ["--bundle", f"{folder}/record"]
        process = subprocess.Popen(args, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   cwd="/")
        self.assertEqual(process.stdout.readline(), "there\n")
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "gone\n")
        process.send_signal(signal.SIGCONT)
        process.communicate("\n", timeout=60)
        record = json.loads((pathlib.Path(folder) / "record" / "run-bundle.json").read_text())
        denied, = record["network"]["denied"]
        self.assertEqual((denied["target"], denied["executable"], denied["pid"]), ("udp 192.0.2.7:81", None, None))
        self.assertIn("not known where it is gone", " ".join(record["enforcement"]["weaker"]))


if __name__ == "__main__":
    program.main()
