# SPDX-License-Identifier: Apache-2.0
"""What many rules and many pinned addresses add to a small request under the wall and through the proxy: sandboxes with few
and with many of them stand side by side, and take turns. See sandbox-scale.sh."""
import contextlib
import json
import os
import pathlib
import random
import re
import resource
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

ASSAY = os.environ["ASSAY"]
ROUNDS = int(os.environ.get("ROUNDS", "30"))
COUNT = 400  # requests in a turn
HERE, NAMES, PORT, FLOWS_PORT = "198.51.100.1", "198.51.100.2", 8080, 9998
PINS, PINS_OF_NAME = 100000, 64
RULES = 1000


def command(*args):
    subprocess.run(args, check=True)


def addresses_of(name):
    """m7.pins.example has the eighth 64 addresses of 11.0.0.0/8; others have that of the origin, the last one of PINS."""
    number = re.fullmatch(r"m(\d+)\.pins\.example", name)
    if number is None:
        return [socket.inet_aton(HERE)]
    first = int(number[1]) * PINS_OF_NAME
    return [struct.pack("!I", (11 << 24) + i) for i in range(first, min(first + PINS_OF_NAME, PINS - 1))]


def question(name, number):
    encoded = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
    return struct.pack("!6H", number, 0x100, 1, 0, 0, 0) + encoded + struct.pack("!2H", 1, 1)


def answer(query):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    asked = query[12:at + 5]
    found = addresses_of(".".join(labels)) if asked[-4:-2] == b"\0\1" else []
    records = b"".join(struct.pack("!3HIH", 0xC00C, 1, 1, 86400, 4) + address for address in found)
    return query[:2] + struct.pack("!5H", 0x8180, 1, len(found), 0, 0) + asked + records


def serve_names(sock):
    while True:
        query, where = sock.recvfrom(2048)
        sock.sendto(answer(query), where)


def prepare(folder):
    """In namespaces of our own: an origin and a name server at addresses of this host."""
    command("ip", "link", "set", "lo", "up")
    command("ip", "link", "add", "origin", "type", "veth", "peer", "name", "origin-peer")
    for address in HERE, NAMES:
        command("ip", "addr", "add", address + "/32", "dev", "origin")
    for link in "origin", "origin-peer":
        command("ip", "link", "set", link, "up")
    command("sysctl", "-qw", "net.ipv4.ip_forward=1")
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind((NAMES, 53))
    threading.Thread(target=serve_names, args=(names,), daemon=True).start()
    servers = folder / "resolv.conf"
    servers.write_text(f"nameserver {NAMES}\n")
    command("mount", "--bind", str(servers), "/etc/resolv.conf")


def few_rules():
    return f"allow:\n- {{address: {HERE}, port: {PORT}, transport: tcp}}\n"


def many_rules():
    """Names, suffixes, ranges and single addresses, with one port, several, or all; what is asked for comes last."""
    lines = []
    for i in range(RULES - 1):
        port = ["443", "[80, 8000-8010]", "1-65535"][i % 3]
        what = [f"host: h{i}.example.org", f'host: "*.s{i}.example.org"', f"address: 12.{i // 250}.{i % 250}.0/{24 + i % 8}",
                f"address: 13.{i // 250}.{i % 250}.1"][i % 4]
        lines.append(f"- {{{what}, port: {port}}}\n")
    return "allow:\n" + "".join(lines) + few_rules().split("\n", 1)[1]


def names_rules():
    return f'allow:\n- {{host: "*.pins.example", port: [443, {PORT}], transport: tcp}}\n'


LOOK_UP = """
import socket, sys
exec(sys.argv[1])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("127.0.0.1", 53))
s.settimeout(60)
waiting = 0
for i in range(N):
    s.send(question(f"m{i}.pins.example", i))
    waiting += 1
    if waiting == 16:
        s.recv(4096)
        waiting -= 1
for _ in range(waiting):
    s.recv(4096)
"""


class Sandbox:
    """One that stays, and in which requests are made when it is told so."""

    def __init__(self, folder, enforcer, name, policy, url):
        path = folder / f"{name}.yaml"
        path.write_text(policy)
        path.chmod(0o600)
        self.url = url
        began = time.monotonic()
        self.process = subprocess.Popen([ASSAY, "exec", "--enforce", enforcer, "--policy", path, "--", "sh", "-c",
                                         'echo up; while read -r line; do eval "$line"; done'],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "up\n":
            raise SystemExit(f"sandbox-scale: {enforcer} did not start with {name}")
        self.took_ms = (time.monotonic() - began) * 1000

    def run(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def pin(self, folder, pins):
        """Return: how many seconds of time and of the supervisor's processor all the look-ups took."""
        script = folder / "look-up.py"
        here = pathlib.Path(__file__).read_text()
        function = "import struct\n" + here[here.index("def question"):here.index("def answer")]
        script.write_text(LOOK_UP.replace("N)", f"{-(-pins // PINS_OF_NAME)})").replace("exec(sys.argv[1])", function))
        os.chmod(script, 0o644)
        began, cpu = time.monotonic(), self.cpu_s()
        if self.run(f"/usr/bin/python3 {script} && echo pinned") != "pinned\n":
            raise SystemExit("sandbox-scale: not all names were answered")
        return time.monotonic() - began, self.cpu_s() - cpu

    def request(self):
        """Return: the median of requests on connections of their own, in microseconds."""
        done = json.loads(self.run(f"{ASSAY} http get -q --json -c {COUNT} -w 40 -T 4 {self.url} | tr -d '\\n'; echo"))
        return done["figures"]["request"]["p50_ns"] / 1000

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def end(self):
        self.process.communicate()


def bounds(ratios):
    """Of their median, 95%, by bootstrap."""
    draw = random.Random(7)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[1949]


def compare(what, few, many):
    """Whoever is first in one round is second in the next."""
    pairs = []
    for i in range(ROUNDS):
        order = [few, many] if i % 2 == 0 else [many, few]
        took = {sandbox: sandbox.request() for sandbox in order}
        pairs.append((took[few], took[many]))
    ratios = [b / a for a, b in pairs]
    low, high = bounds(ratios)
    a, b = (statistics.median(column) for column in zip(*pairs))
    print(f"{what}: request p50 {a:.0f} us and {b:.0f} us, ratio {statistics.median(ratios):.3f} ({low:.3f}-{high:.3f}), "
          f"{ROUNDS} pairs of {COUNT} requests", flush=True)


OPEN_FLOWS = """
import socket
flows = []
for _ in range(N):
    flows.append(socket.create_connection(("HERE", PORT), 30))
    flows[-1].sendall(b"x")
    flows[-1].recv(1)
print("open")
"""


def flows(enforcer, sandbox, folder):
    """What the supervisor has while flows are open: 10,000, or as many as its limit of descriptors allows."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    n = min(10000, (hard - 160 - 64) // 2) if enforcer == "proxy" else min(10000, hard - 100)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    listener = socket.create_server((HERE, FLOWS_PORT), backlog=4096)
    accepted = []

    def serve():
        for _ in range(n):
            accepted.append(listener.accept()[0])
            accepted[-1].sendall(b"y")
    threading.Thread(target=serve, daemon=True).start()
    script = folder / "flows.py"
    script.write_text(OPEN_FLOWS.replace("N)", f"{n})").replace("HERE", HERE).replace("PORT", str(FLOWS_PORT))
                      + "import os\nos.read(0, 1)\n")
    os.chmod(script, 0o644)
    before = sandbox.memory_mb()
    if sandbox.run(f"/usr/bin/python3 -u {script}") != "open\n":
        raise SystemExit(f"sandbox-scale: {n} flows could not be opened")
    print(f"{enforcer}: the supervisor has {sandbox.memory_mb():.1f} MB with {n} open flows, {before:.1f} MB without "
          f"(wanted: under 16 at 10000; {(sandbox.memory_mb() - before) * 2 ** 20 / n:.0f} bytes each)", flush=True)
    sandbox.process.stdin.write("\n")
    sandbox.process.stdin.flush()
    listener.close()
    for connection in accepted:
        connection.close()


def measure(folder, enforcer):
    with contextlib.ExitStack() as stack:
        def start(*args):
            sandbox = Sandbox(folder, enforcer, *args)
            stack.callback(sandbox.end)
            return sandbox
        address, name = f"http://{HERE}:{PORT}/", f"http://origin.pins.example:{PORT}/"
        flows(enforcer, start("flows", few_rules().replace(str(PORT), str(FLOWS_PORT)), ""), folder)
        few, many = start("few", few_rules(), address), start("many", many_rules(), address)
        print(f"{enforcer}: starts in {few.took_ms:.0f} ms with 1 rule, {many.took_ms:.0f} ms with {RULES}")
        compare(f"{enforcer}, 1 rule and {RULES}", few, many)
        one, pinned = start("one", names_rules(), name), start("pinned", names_rules(), name)
        for sandbox in one, pinned:
            sandbox.request()
        took, cpu = pinned.pin(folder, PINS)
        print(f"{enforcer}: {PINS} addresses pinned in {took:.2f} s, {cpu / PINS * 1e6:.1f} us of a processor each; the "
              f"supervisor has {pinned.memory_mb():.1f} MB, {one.memory_mb():.1f} MB without")
        compare(f"{enforcer}, 1 pinned address and {PINS}", one, pinned)


def main():
    with tempfile.TemporaryDirectory(prefix="assay-scale-", dir="/var/tmp") as scratch:
        folder = pathlib.Path(scratch)
        folder.chmod(0o755)
        prepare(folder)
        origin = subprocess.Popen([ASSAY, "http", "origin", "-q", f"{HERE}:{PORT}", "--cpu", "1"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for enforcer in sys.argv[1:]:
                measure(folder, enforcer)
        finally:
            origin.terminate()
            origin.wait()


main()
