# SPDX-License-Identifier: Apache-2.0
"""assay exec: the command's own exit codes, descriptors, terminal and signals; what it can see and do; and each way out of a
sandbox that lets nothing out. As whoever runs this, and as root again as an ordinary user."""
import fcntl
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time

import program
from sandbox import OWN_ERROR, PYTHON, Sandbox, prefix, as_ordinary_user


class Command(Sandbox):
    def test_exit_codes(self):
        for args, code in [
            (["true"], 0),
            (["sh", "-c", "exit 7"], 7),
            (["sh", "-c", "kill -TERM $$"], 128 + 15),
            (["sh", "-c", "kill -KILL $$"], 128 + 9),
            (["/etc/passwd"], 126),
            (["/etc"], 126),
            (["there-is-no-such-command"], 127),
            (["/no/such/command"], 127),
        ]:
            done = self.exec("--", *args)
            self.assertEqual(done.returncode, code, (args, done.stderr))

    def test_own_errors_are_125(self):
        for args, message in [
            ([], "expected COMMAND"),
            (["--enforce", "magic", "true"], "there is no enforcer magic"),
            (["--no-such-option", "true"], "no-such-option"),
            (["--policy", "/no/such/policy", "true"], "/no/such/policy"),
            (["--user", "root", "true"], "never runs as root"),
            (["--user", "no-such-user", "true"], "no user no-such-user"),
            (["--read", "/no/such/folder", "true"], "/no/such/folder"),
        ]:
            done = self.exec(*args)
            self.assertEqual(done.returncode, OWN_ERROR, (args, done.stderr))
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_auto_takes_what_can(self):
        policy = self.folder / "allow.yaml"
        policy.write_text("allow:\n  - {host: www.example.org, port: 443, sni: www.example.org}\n")
        policy.chmod(0o644)
        for options, enforcer in ([], "deny-all"), (["--policy", policy], "proxy"):
            bundle = self.folder / f"auto-{enforcer}"
            done = self.exec("--bundle", bundle, *options, "--", "true")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads((bundle / "run-bundle.json").read_text())["enforcement"]["enforcer"], enforcer)
            shutil.rmtree(bundle)

    def test_no_enforcer_on_a_host_without_user_namespaces(self):
        if self.user is None:
            self.skipTest("for an ordinary user")
        policy = self.folder / "allow.yaml"
        policy.write_text("allow:\n  - {address: 192.0.2.1, port: 80}\n")
        os.chown(policy, self.user, self.user)  # who is root there
        for enforcer in "auto", "proxy", "deny-all":
            options = ["--policy", policy] if enforcer != "deny-all" else []
            done = subprocess.run([*prefix(self.user), "unshare", "--user", "--map-root-user", "sh", "-c",
                                   'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"', "sh", self.assay, "exec",
                                   "--enforce", enforcer, *options, "--", "echo", "it runs"], text=True, capture_output=True,
                                  timeout=60, cwd=self.folder, check=False)
            self.assertEqual((done.returncode, done.stdout), (OWN_ERROR, ""), enforcer)
            self.assertIn("this host does not allow user namespaces", done.stderr)

    def test_no_enforcer_for_a_policy_is_an_error_with_its_rule(self):
        policy = self.folder / "allow.yaml"
        policy.write_text("default: deny\nallow:\n  - {address: 192.0.2.1, port: 80}\n")
        policy.chmod(0o644)
        done = self.exec("--policy", policy, "--enforce", "deny-all", "true")
        self.assertEqual(done.returncode, OWN_ERROR, done.stderr)
        self.assertIn("allow.yaml:3: allow[1]", done.stderr)

    def test_arguments_arrive_as_they_are(self):
        self.assertEqual(self.out("--", "printf", "%s|", "-n", "--policy", "a b", ""), "-n|--policy|a b||")
        self.assertEqual(self.out("printf", "%s|", "--enforce"), "--enforce|")

    def test_none_says_that_it_is_unenforced(self):
        done = self.exec("--enforce", "none", "--", "true")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("unenforced", done.stderr)

    def test_standard_descriptors(self):
        done = self.exec("--", "sh", "-c", "cat; echo out; echo err >&2", stdin=None, input="in\n")
        self.assertEqual((done.stdout, done.stderr), ("in\nout\n", "err\n"))
        with open(self.folder / "file", "w+", encoding="ascii") as file:
            self.exec("--", "sh", "-c", "echo into a file", stdout=file)
            file.seek(0)
            self.assertEqual(file.read(), "into a file\n")

    def test_no_other_descriptor_is_handed_on(self):
        reader, writer = os.pipe()
        listing = self.python("import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd')))",
                              pass_fds=[reader, writer]).stdout
        os.close(reader)
        os.close(writer)
        self.assertEqual(listing, "[0, 1, 2, 3]\n")  # 3 is the folder being listed

    def test_sockets_are_relayed_by_pipes(self):
        ours, theirs = socket.socketpair()
        text = bytes(range(256)) * 4096  # more than any buffer on the way
        child = subprocess.Popen(self.command("--", "sh", "-c", "test ! -S /dev/stdin && test ! -S /dev/stdout && cat"),
                                 stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL)
        theirs.close()
        got, sent = b"", 0
        ours.setblocking(False)
        while len(got) < len(text):
            readable, writable, _ = select.select([ours], [ours] if sent < len(text) else [], [], 30)
            self.assertTrue(readable or writable, "it does not go on")
            if writable:
                sent += ours.send(text[sent:sent + 65536])
                if sent == len(text):
                    ours.shutdown(socket.SHUT_WR)
            if readable:
                part = ours.recv(65536)
                self.assertTrue(part, "it ended early")
                got += part
        self.assertEqual(got, text)
        self.assertEqual(child.wait(30), 0)
        ours.close()

    def test_a_kind_of_descriptor_that_is_not_handed_on(self):
        for path in "/", "/proc/self/ns/net", "/dev/net/tun":
            if not os.path.exists(path):
                program.need("tun", False)
            with self.subTest(path):
                opened = os.open(path, os.O_RDONLY)
                done = self.exec("--", "true", stdin=opened)
                os.close(opened)
                self.assertEqual(done.returncode, OWN_ERROR)
                self.assertIn("standard input is neither", done.stderr)

    def test_devices_that_lead_nowhere_are_handed_on(self):
        for path in "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom":
            device = os.open(path, os.O_RDONLY)
            done = self.exec("--", "test", "-c", "/dev/stdin", stdin=device)
            os.close(device)
            self.assertEqual((path, done.returncode), (path, 0), done.stderr)

    def test_a_reader_that_leaves_ends_the_command_as_usual(self):
        done = subprocess.run(["sh", "-c", '"$@" | head -n 1', "sh", *self.command("--", "yes")], text=True, timeout=60,
                              capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "y\n"))

    def test_full_output_is_the_commands_own_error(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = self.exec("--", "sh", "-c", "echo text", stdout=full)
        self.assertNotIn(done.returncode, (0, OWN_ERROR))

    def test_signals_are_handed_on(self):
        handed_on = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM]
        script = ("import signal, sys, time\n"
                  "def on(number, frame): print('got', number, flush=True); sys.exit(3)\n"
                  f"for n in {[int(number) for number in handed_on]}: signal.signal(n, on)\n"
                  "print('ready', flush=True)\n"
                  "while True: signal.pause()\n")
        for number in handed_on:
            child = subprocess.Popen(self.command("--", PYTHON, "-c", script), stdout=subprocess.PIPE, text=True)
            self.assertEqual(child.stdout.readline(), "ready\n")
            child.send_signal(number)
            self.assertEqual(child.stdout.read(), f"got {number}\n")
            self.assertEqual(child.wait(30), 3)
            child.stdout.close()

    def test_stop_and_continue(self):
        child = subprocess.Popen(self.command("--", "sh", "-c", "echo $$; read line; echo $line"), stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        child.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        child.send_signal(signal.SIGCONT)
        out, _ = child.communicate("on it goes\n", timeout=30)
        self.assertEqual((out, child.returncode), ("on it goes\n", 0))


class View(Sandbox):
    """What the command is, and what it sees."""

    def test_it_has_no_rights(self):
        status = self.out("--", "cat", "/proc/self/status")
        for line in ("CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
                     "CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
            self.assertIn(line, status)

    def test_it_is_never_the_hosts_root(self):
        uid_map = self.out("--", "cat", "/proc/self/uid_map").split()
        if os.geteuid() == 0 and self.user is None:
            self.assertEqual(uid_map, ["0", "65534", "1"])
            self.assertEqual(self.out("--user", "daemon", "--", "id", "-un"), "daemon\n")
        else:
            uid = str(self.user if self.user is not None else os.geteuid())
            self.assertEqual(self.out("--", "id", "-u"), uid + "\n")
            self.assertNotEqual(self.exec("--user", "daemon", "--", "true").returncode, 0)
        secret = self.folder / "root-only"
        if os.geteuid() == 0:
            secret.write_text("secret")
            secret.chmod(0o600)
            self.assertNotEqual(self.exec("--", "cat", secret).returncode, 0)

    def test_private_folders(self):
        self.assertEqual(self.out("--", "sh", "-c", "ls /tmp; ls /dev").split(),
                         [self.folder.name, "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin",
                          "stdout", "tty", "urandom", "zero"])
        self.assertEqual(self.out("--", "sh", "-c", "ls /run").split(), ["hosts", "nsswitch.conf", "resolv.conf"])
        self.out("--", "touch", "/tmp/assay-exec-left-behind", "/run/assay-exec-left-behind")
        self.assertFalse(pathlib.Path("/tmp/assay-exec-left-behind").exists())
        self.assertFalse(pathlib.Path("/run/assay-exec-left-behind").exists())

    def test_files_that_name_who_answers(self):
        self.assertEqual(self.out("--", "cat", "/etc/resolv.conf"), "nameserver 127.0.0.1\n")
        hosts = self.out("--", "cat", "/etc/hosts").split()
        self.assertEqual(hosts[:2] + hosts[-2:], ["127.0.0.1", "localhost", "::1", "localhost"])
        switch = self.out("--", "cat", "/etc/nsswitch.conf")
        self.assertIn("hosts: files dns\n", switch)
        self.assertEqual(set(switch.split()) & {"resolve", "mdns4_minimal", "mdns4", "sss", "systemd", "nis", "ldap"}, set())

    def test_the_working_directory_stays(self):
        there = {p.name for p in self.folder.iterdir()}
        shown = self.out("--", "sh", "-c", "pwd; echo text > made-here; ls").split()
        self.assertEqual((shown[0], set(shown[1:])), (str(self.folder), there | {"made-here"}))
        self.assertEqual((self.folder / "made-here").read_text(), "text\n")
        (self.folder / "made-here").unlink()

    def test_its_own_processes_and_no_control_groups(self):
        pids = self.python("import os; print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))").stdout
        self.assertRegex(pids, r"^\[1, \d+\]\n$")
        mounts = self.out("--", "cat", "/proc/self/mountinfo")
        visible = self.out("--", "sh", "-c", "ls /sys/fs/cgroup | wc -l; cat /proc/self/cgroup")
        self.assertEqual(visible.split("\n")[0], "0")
        self.assertNotIn("/..", visible)
        self.assertIn(" /sys/fs/cgroup ro", mounts) if os.path.isdir("/sys/fs/cgroup") else None

    def test_init_cannot_be_touched(self):
        script = ("import os, ctypes\n"
                  "libc = ctypes.CDLL(None, use_errno=True)\n"
                  "for path in ('/proc/1/fd', '/proc/1/root', '/proc/1/mem', '/proc/1/environ'):\n"
                  "    try: os.listdir(path) if path.endswith(('fd', 'root')) else open(path, 'rb').read(1); print(path)\n"
                  "    except OSError: pass\n"
                  "if libc.ptrace(16, 1, 0, 0) == 0: print('traced')\n"
                  "if libc.syscall(438, os.pidfd_open(1), 3, 0) >= 0: print('taken')\n"
                  "os.kill(1, 9); os.kill(1, 15); print('alive')\n")
        self.assertEqual(self.python(script).stdout, "alive\n")

    def test_a_session_of_its_own(self):
        self.assertNotEqual(self.python("import os; print(os.getsid(0))").stdout, f"{os.getsid(0)}\n")

    def test_files_can_be_restricted(self):
        inner = self.folder / "inner"
        inner.mkdir(exist_ok=True)
        inner.chmod(0o777)
        (self.folder / "outside").write_text("text")
        script = ("import sys\n"
                  f"for path, mode in (('{self.folder}/outside', 'r'), ('{self.folder}/new', 'w'), ('{inner}/new', 'w'),\n"
                  "                   ('/etc/passwd', 'r'), ('/tmp/own', 'w')):\n"
                  "    try: open(path, mode).close(); print(path, 'yes')\n"
                  "    except OSError as e: print(path, e.strerror)\n")
        done = self.python(script, "--write", inner, cwd="/")
        if "Landlock" in done.stderr:
            program.need("landlock", False)
        shown = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        self.assertEqual(shown[f"{self.folder}/outside"], "No such file or directory")
        self.assertFalse((self.folder / "new").exists())  # at most, it was made in the sandbox's own /tmp
        self.assertEqual((shown[f"{inner}/new"], shown["/etc/passwd"], shown["/tmp/own"]), ("yes", "yes", "yes"))
        self.assertTrue((inner / "new").exists())
        elsewhere = self.python("open('/var/tmp/assay-exec-new', 'w')", "--write", inner, cwd="/")
        self.assertIn("PermissionError", elsewhere.stderr)
        done = self.python(script, "--read", inner, "--read", self.folder, cwd="/")
        self.assertEqual([line.split(" ", 1)[1] for line in done.stdout.splitlines()],
                         ["yes", "Read-only file system", "Read-only file system", "yes", "yes"])

    def test_pairs_of_unix_sockets(self):
        """They are what is left of these; one with a path fails as where there are none, and nothing is said of it."""
        done = self.python("import socket\n"
                           "for kind in socket.SOCK_STREAM, socket.SOCK_SEQPACKET:\n"
                           "    one, other = socket.socketpair(socket.AF_UNIX, kind)\n"
                           "    one.send(b'x')\n"
                           "    print(other.recv(1).decode())\n"
                           "for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET:\n"
                           "    try: socket.socket(socket.AF_UNIX, kind)\n"
                           "    except OSError as e: print(e.strerror)\n")
        refused = "Address family not supported by protocol\n"
        self.assertEqual((done.stdout, done.stderr), ("x\n" * 2 + refused * 3, ""))

    def test_a_home_that_is_not_shown_is_an_empty_one(self):
        """Else git and npm would refuse to do anything; one that is named, or where files are not restricted, stays."""
        home = self.folder / "home"
        (home / "project").mkdir(parents=True, exist_ok=True)
        for options, expected in (((), home), (("--write", home), home), (("--read", home), home),
                                  (("--write", home / "project"), "/tmp")):
            done = self.exec(*options, "--", "sh", "-c", 'echo "$HOME"; ls "$HOME" >&2', env=dict(os.environ, HOME=str(home)),
                             cwd="/")
            if "Landlock" in done.stderr:
                program.need("landlock", False)
            is_root = self.user is None and os.geteuid() == 0  # whose command is another user, with another home
            self.assertEqual(done.stdout, f"{'/tmp' if is_root else expected}\n", options)


class Ways(Sandbox):
    """Ways out, each against a listener outside that would notice."""

    IP = """
import socket
def attempt(name, do):
    try: do(); print(name, 'done', flush=True)
    except OSError as e: print(name, e.errno, flush=True)
def connect(family, address):
    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(5); s.connect(address); s.send(b'x')
def again(family, address):
    s = socket.socket(family, socket.SOCK_DGRAM); s.connect(('127.0.0.1', 9))
    s.connect_ex(('', 0)); s.connect(address); s.send(b'x')
def fast_open(family, address):
    socket.socket(family, socket.SOCK_STREAM).sendto(b'x', socket.MSG_FASTOPEN, address)
def with_options(family, address):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([0x83, 7, 4, 127, 0, 0, 1, 1])); s.settimeout(5); s.connect(address)
def datagram(family, address, size=1):
    s = socket.socket(family, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20); s.sendto(b'x' * size, address)
def message(family, address):
    socket.socket(family, socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, address)
for host in HOSTS:
    v6 = ':' in host
    family = socket.AF_INET6 if v6 else socket.AF_INET
    for port in (PORT, 53, 853):
        address = (host, port)
        if port == 53 and host in ('127.0.0.1', '::1'):
            continue  # the sandbox's own resolver, whose answers other tests look at
        attempt('tcp', lambda: connect(family, address))
        attempt('fast-open', lambda: fast_open(family, address))
        attempt('udp', lambda: datagram(family, address))
        attempt('udp-message', lambda: message(family, address))
        attempt('udp-fragments', lambda: datagram(family, address, 60000))
        if not v6:
            attempt('mapped-tcp', lambda: connect(socket.AF_INET6, ('::ffff:' + host, port)))
            attempt('mapped-udp', lambda: datagram(socket.AF_INET6, ('::ffff:' + host, port)))
            attempt('options', lambda: with_options(family, address))
            attempt('reconnect', lambda: again(family, address))
for group in ('224.0.0.1', '239.1.2.3', '255.255.255.255'):
    attempt('multicast', lambda: datagram(socket.AF_INET, (group, PORT)))
attempt('multicast6', lambda: datagram(socket.AF_INET6, ('ff02::1%lo', PORT)))
"""

    def listeners(self):
        """TCP and UDP on one port of every address of the host, v4 and v6."""
        tcp = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        port = tcp.getsockname()[1]
        udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        udp.bind(("::", port))
        for s in (tcp, udp):
            s.setblocking(False)
            self.addCleanup(s.close)
        return port, tcp, udp

    def assert_silent(self, *listeners):
        for s in listeners:
            with self.assertRaises(BlockingIOError):
                s.accept() if s.type == socket.SOCK_STREAM else s.recvfrom(65536)

    def hosts(self):
        """Addresses of the host: its loopback and, where it has more, those."""
        found = subprocess.run(["ip", "-o", "addr", "show", "scope", "global"], text=True, capture_output=True,
                               check=False).stdout
        return ["127.0.0.1", "::1"] + [line.split()[3].split("/")[0] for line in found.splitlines()]

    def test_the_listener_would_notice(self):
        port, tcp, udp = self.listeners()
        script = self.IP.replace("HOSTS", "['127.0.0.1', '::1']").replace("PORT", str(port))
        subprocess.run([PYTHON, "-c", script], check=True, capture_output=True, timeout=60)
        self.assertEqual(tcp.accept()[1][1] > 0, True)
        self.assertEqual(udp.recvfrom(65536)[0], b"x")

    def test_ip(self):
        port, tcp, udp = self.listeners()
        script = self.IP.replace("HOSTS", repr(self.hosts() + ["192.0.2.1", "2001:db8::1"])).replace("PORT", str(port))
        started = time.monotonic()
        done = self.python(script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len(done.stdout.splitlines()), 60)
        self.assertLess(time.monotonic() - started, 50, "refusals hang")
        self.assert_silent(tcp, udp)
        for line in done.stdout.splitlines():
            name, result = line.split()
            if name.endswith("tcp") or name in ("fast-open", "options"):
                self.assertNotEqual(result, "done", line)
        self.assertIn("assay: denied tcp 192.0.2.1:53 (rule: deny-all", done.stderr)
        self.assertIn("assay: denied udp [2001:db8::1]:853 (rule: deny-all", done.stderr)

    def test_families_and_protocols(self):
        script = ("import socket, itertools\n"
                  "for family in range(64):\n"
                  "    for kind in range(1, 11):\n"
                  "        for protocol in [0, 1, 2, 6, 17, 33, 41, 47, 58, 89, 103, 132, 136, 143, 255, 256, 262, 3, 4, 9, 12, 15, 16]:\n"
                  "            try: socket.socket(family, kind, protocol).close(); print(family, kind, protocol)\n"
                  "            except OSError: pass\n")
        done = self.python(script)
        made = {tuple(map(int, line.split())) for line in done.stdout.splitlines()}
        ip = {(family, kind, protocol) for family in (2, 10) for kind, protocol in ((1, 0), (1, 6), (2, 0), (2, 17))}
        self.assertEqual(made, ip | {(16, 2, 0), (16, 3, 0)})

    def test_unix_sockets(self):
        listeners = []
        for address in (str(self.folder / "socket"), "\0assay-exec-test", "/tmp/assay-exec-socket", "/run/assay-exec-socket"):
            if address.startswith("/run/") and os.geteuid() != 0:
                continue
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.bind(address)
            if address[0] == "/":
                os.chmod(address, 0o777)
                self.addCleanup(os.unlink, address)
            s.listen()
            s.setblocking(False)
            self.addCleanup(s.close)
            listeners.append((address, s))
        script = ("import socket\n"
                  f"for a in {[address for address, _ in listeners]!r}:\n"
                  "    for kind in (1, 2, 5):\n"
                  "        try: s = socket.socket(1, kind); s.connect(a); print('connected', a)\n"
                  "        except OSError: pass\n"
                  "        for pair in (1, 2, 5):\n"
                  "            try: socket.socketpair(1, pair)[0].connect(a); print('connected a pair', a)\n"
                  "            except OSError: pass\n"
                  "            try: socket.socketpair(1, pair)[0].sendmsg([b'x'], [], 0, a); print('sent', a)\n"
                  "            except OSError: pass\n"
                  "a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))\n")
        self.assertEqual(self.python(script).stdout, "b'x'\n")
        self.assert_silent(*(s for _, s in listeners))

    def test_system_calls(self):
        # number and arguments on x86-64; each is allowed to an ordinary process, or fails there with another errno
        if os.uname().machine != "x86_64":
            self.skipTest("numbers of x86-64")
        calls = {
            "unshare user": (272, 0x10000000), "unshare net": (272, 0x50000000), "unshare time": (272, 0x10000080),
            "clone user": (56, 0x10000011, 0, 0, 0, 0), "clone net": (56, 0x50000011, 0, 0, 0, 0),
            "setns": (308, 3, 0), "mount": (165, 0, 0, 0, 0, 0), "umount": (166, 0, 0), "pivot_root": (155, 0, 0),
            "open_tree": (428, 0, 0, 0), "move_mount": (429, 0, 0, 0, 0, 0), "fsopen": (430, 0, 0), "fsconfig": (431, 0, 0, 0, 0, 0),
            "fsmount": (432, 0, 0, 0), "fspick": (433, 0, 0, 0), "mount_setattr": (442, 0, 0, 0, 0, 0), "open_tree_attr": (467, 0, 0, 0, 0, 0),
            "bpf": (321, 0, 0, 0), "userfaultfd": (323, 1), "keyctl": (250, 0, -3, 0), "request_key": (249, 0, 0, 0, 0),
            "add_key": (248, 0, 0, 0, 0, 0), "perf_event_open": (298, 0, 0, -1, -1, 0), "io_uring_setup": (425, 1, 0),
            "io_uring_enter": (426, 0, 0, 0, 0, 0, 0), "io_uring_register": (427, 0, 0, 0, 0), "open_by_handle_at": (304, 0, 0, 0),
            "ioctl TIOCSTI": (16, 0, 0x5412, 0), "ioctl TIOCSTI with high bits": (16, 0, 0x100005412, 0), "ioctl TIOCLINUX": (16, 0, 0x541C, 0),
        }
        script = ("import ctypes, os\n"
                  "libc = ctypes.CDLL(None, use_errno=True)\n"
                  f"for name, call in {calls!r}.items():\n"
                  "    r = libc.syscall(*map(ctypes.c_long, call))\n"
                  "    print(name, '=', r if r >= 0 else ctypes.get_errno(), flush=True)\n"
                  "    if r == 0 and name.startswith('clone'): os._exit(0)\n"
                  "r = libc.syscall(435, None, 0); print('clone3 =', ctypes.get_errno())\n"
                  "r = libc.syscall(499); print('unknown =', ctypes.get_errno())\n")
        expected = [f"{name} = 1" for name in calls] + ["clone3 = 38", "unknown = 38"]
        self.assertEqual(self.python(script).stdout.splitlines(), expected)

    def test_foreign_abis_are_killed(self):
        if os.uname().machine != "x86_64":
            self.skipTest("ABIs of x86-64")
        code = {"i386": b"\xb8\x14\x00\x00\x00\xcd\x80\xc3",          # mov $20,%eax; int $0x80; ret
                "x32": b"\xb8\x27\x00\x00\x40\x0f\x05\xc3"}          # mov $0x40000027,%eax; syscall; ret
        for name, bytes_ in code.items():
            script = ("import ctypes, mmap\n"
                      "m = mmap.mmap(-1, 4096, prot=7)\n"
                      f"m.write({bytes_!r})\n"
                      "address = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
                      "print(ctypes.CFUNCTYPE(ctypes.c_long)(address)())\n")
            done = self.python(script)
            self.assertEqual((done.returncode, done.stdout), (128 + signal.SIGSYS, ""), name)

    def test_the_network_cannot_be_changed(self):
        for args in (["ip", "link", "set", "lo", "down"], ["ip", "link", "add", "v0", "type", "veth"],
                     ["ip", "route", "add", "192.0.2.0/24", "dev", "lo"], ["ip", "addr", "add", "192.0.2.1/24", "dev", "lo"]):
            self.assertNotEqual(self.exec("--", *args).returncode, 0, args)
        self.assertIn("lo:", self.out("--", "ip", "link"))
        done = self.exec("--", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        self.assertNotEqual(done.returncode, 0)

    def test_nested(self):
        self.assertNotEqual(self.exec("--", "unshare", "--user", "--map-root-user", "true").returncode, 0)
        port, tcp, udp = self.listeners()
        done = self.exec("--nested", "--", "unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c",
                         f"mount -t tmpfs none /mnt && umount /mnt; umount /run; umount /tmp; ls /run; ip link set lo up; "
                         f"{PYTHON} -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("ConnectionRefusedError", done.stderr)
        self.assertLessEqual({"hosts", "nsswitch.conf", "resolv.conf"}, set(done.stdout.split()))
        self.assert_silent(tcp, udp)

    def test_loopback_is_its_own_and_works(self):
        script = ("import socket\n"
                  "s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname())\n"
                  "c.send(b'x'); print(s.accept()[0].recv(1))\n"
                  "u = socket.socket(2, 2); u.bind(('127.0.0.1', 0)); socket.socket(2, 2).sendto(b'y', u.getsockname()); print(u.recv(1))\n")
        done = self.python(script)
        self.assertEqual((done.stdout, done.stderr), ("b'x'\nb'y'\n", ""))

    def test_curl_fails_at_once_with_the_rule(self):
        program.need("curl", shutil.which("curl"))
        policy = self.folder / "deny.yaml"
        shutil.copyfile(program.ROOT / "examples" / "deny-all.yaml", policy)
        policy.chmod(0o644)
        done = self.exec("--policy", policy, "--", "curl", "-sS", "http://192.0.2.1/")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("assay: denied tcp 192.0.2.1:80 (rule: deny-all, ", done.stderr)


class End(Sandbox):
    """Whoever is killed, nothing goes on, and nothing stays."""

    def tree(self, pid):
        """All descendants of a process."""
        children = {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                except OSError:
                    continue
                children.setdefault(parent, []).append(int(entry.name))
        found, queue = [], [pid]
        while queue:
            for child in children.get(queue.pop(), []):
                found.append(child)
                queue.append(child)
        return found

    def assert_gone(self, pids):
        def runs(pid):
            try:
                return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
            except OSError:
                return False
        deadline = time.monotonic() + 20
        while any(map(runs, pids)):
            self.assertLess(time.monotonic(), deadline, "processes are left")

    def start(self, *args):
        child = subprocess.Popen(self.command("--", *args), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.addCleanup(child.stdout.close)
        return child

    def test_the_supervisor_is_killed(self):
        child = self.start("sh", "-c", "sleep 1000 & setsid sleep 1000 & (trap '' TERM HUP INT; sleep 1000) & echo up; wait")
        self.assertEqual(child.stdout.readline(), "up\n")
        below = self.tree(child.pid)
        self.assertGreaterEqual(len(below), 5)
        child.kill()
        child.wait(30)
        self.assert_gone(below)

    def test_it_is_killed_at_any_moment(self):
        before = program.host_state()
        script = "import os; os.write(1, b'x'); open('ran', 'w').close()"
        for i in range(40):
            child = subprocess.Popen(self.command("--", PYTHON, "-c", script), stdout=subprocess.DEVNULL, cwd=self.folder)
            for _ in range(i * 400):  # a little later each time, without a clock
                pass
            below = self.tree(child.pid)
            child.kill()
            child.wait(30)
            self.assert_gone(below)
        program.assert_unchanged(self, before)

    def test_init_is_killed(self):
        child = self.start("sh", "-c", "echo up; exec sleep 1000")  # dash itself holds ^C back while it forks
        self.assertEqual(child.stdout.readline(), "up\n")
        below = self.tree(child.pid)
        init = [pid for pid in below if pathlib.Path(f"/proc/{pid}/stat").read_text().split()[3] == str(child.pid)]
        os.kill(init[0], signal.SIGKILL)
        self.assertEqual(child.wait(30), OWN_ERROR)
        self.assert_gone(below)

    def test_what_the_command_leaves_ends_with_it(self):
        child = self.start("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do setsid sh -c 'sleep 1000 & sleep 1000' & done; echo up; read x; exit 4")
        self.assertEqual(child.stdout.readline(), "up\n")
        below = self.tree(child.pid)
        self.assertEqual(child.wait(30), 4)
        self.assert_gone(below)

    def test_orphans_are_reaped(self):
        script = ("import os, time\n"
                  "for _ in range(200):\n"
                  "    if os.fork() == 0:\n"
                  "        if os.fork() == 0: os._exit(0)\n"
                  "        os._exit(0)\n"
                  "    os.wait()\n"
                  "def state(pid):\n"
                  "    try:\n"
                  "        return open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[0]\n"
                  "    except OSError:\n"
                  "        return ''\n"
                  "def zombies(): return [p for p in os.listdir('/proc') if p.isdigit() and state(p) == 'Z']\n"
                  "deadline = time.monotonic() + 20\n"
                  "while zombies() and time.monotonic() < deadline: pass\n"
                  "print(len(zombies()))\n")
        self.assertEqual(self.python(script).stdout, "0\n")

    def test_many_processes_end_at_once(self):
        script = ("import os, signal\n"
                  "for _ in range(300):\n"
                  "    if os.fork() == 0: signal.pause()\n"
                  "print('up', flush=True); signal.pause()\n")
        child = self.start(PYTHON, "-c", script)
        self.assertEqual(child.stdout.readline(), "up\n")
        below = self.tree(child.pid)
        self.assertGreater(len(below), 300)
        child.kill()
        child.wait(30)
        self.assert_gone(below)

    def test_nothing_is_left(self):
        before = program.host_state()
        self.out("--", "true")
        program.assert_unchanged(self, before)


class Terminal(Sandbox):
    def talk(self, steps, *args):
        """Run at a terminal; steps are pairs of what to wait for and what to type then. All that was shown, and the
        status."""
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvp(self.command()[0], self.command(*args))
        fcntl.ioctl(fd, termios.TIOCSWINSZ, b"\x18\x00\x50\x00\x00\x00\x00\x00")
        shown, at = "", 0
        for expected, answer in [*steps, (None, None)]:
            while expected is None or expected not in shown[at:]:
                ready, _, _ = select.select([fd], [], [], 30)
                self.assertTrue(ready, f"waiting for {expected!r} after {shown!r}")
                try:
                    part = os.read(fd, 4096)
                except OSError:
                    part = b""
                if not part:
                    break
                shown += part.decode(errors="replace")
            if answer is not None:
                at = shown.index(expected, at) + len(expected)
                os.write(fd, answer.encode())
        os.close(fd)
        return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def test_a_shell_has_a_terminal_and_job_control(self):
        sleep = "sh -c 'echo as\"\"leep; exec sleep 1000'\n"
        shown, status = self.talk([
            ("$ ", "tty; echo size $(stty size)\n"), ("size 24 80", ""), ("$ ", sleep), ("asleep", "\x1a"),
            ("Stopped", "kill %1; echo don''e\n"), ("done", sleep), ("asleep", "\x03"), ("$ ", "exit 5\n"),
        ], "--", "env", "PS1=$ ", "bash", "--norc", "--noprofile", "-i")
        self.assertEqual(status, 5, shown)
        self.assertIn("/dev/pts/0", shown)

    def test_interrupt_ends_the_command(self):
        shown, status = self.talk([("up", "\x03")], "--", "sh", "-c", "echo up; exec sleep 1000")  # dash itself holds ^C back while it forks
        self.assertEqual(status, 128 + signal.SIGINT, shown)


as_ordinary_user(globals(), Command, View, Ways, End, Terminal)

if __name__ == "__main__":
    sys.exit(program.main())
