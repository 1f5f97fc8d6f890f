# SPDX-License-Identifier: Apache-2.0
"""A testbed that stays: up, status, shell, capture, down; as root and as an ordinary user; and what is left of it."""
import fcntl
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import program


class Testbed(unittest.TestCase):
    def setUp(self):
        program.need_root()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.env = {"XDG_RUNTIME_DIR": str(self.folder)}

    def processes(self):
        """Those that have this test's folder in their environment."""
        found = []
        for environ in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if str(self.folder).encode() in environ.read_bytes():
                    found.append(environ.parent.name)
            except OSError:
                continue
        return found

    def tearDown(self):
        self.assay("down")
        self.assertEqual(self.processes(), [])

    def assay(self, *args, **kwargs):
        return program.run("testbed", *args, env=self.env, **kwargs)

    def status(self):
        return program.run_json("testbed", "status", env=self.env)

    def up(self, *args):
        done = self.assay("up", "exp-001", *args)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_up_status_down(self):
        self.assertEqual(self.assay("status").stdout, "DOWN\n")
        self.assertEqual(self.assay("down").stdout, "Nothing stood.\n")
        self.assertEqual(self.up(), "It stands.\n")
        self.assertEqual(self.up(), "It stands already.\n")
        code, status = self.status()
        self.assertEqual((code, status["state"], status["topology"]), (0, "up", "star"))
        self.assertEqual([node["name"] for node in status["nodes"]],
                         ["front-left", "rear-right", "central-hpc", "gateway"])
        self.assertTrue(self.assay("status").stdout.startswith("UP\ntopology star, scheduler tree, "))
        other = self.assay("up", "exp-001", "--cell", "one-queue/idle")
        self.assertEqual(other.returncode, 1)
        self.assertIn("another testbed stands already", other.stderr)
        self.assertEqual(self.assay("down").stdout, "It is down.\n")
        self.assertEqual(self.status()[1]["state"], "down")

    def test_cells_and_overrides(self):
        self.up("--cell", "per-queue/idle", "--set", "boundary.uplink.rate=600mbit")
        self.assertEqual(self.status()[1]["scheduler"], "tree-per-queue")
        self.assay("down")
        self.up("--set", "boundary.topology=direct")
        self.assertEqual(self.status()[1]["topology"], "direct")

    def test_wrong_usage(self):
        for args, code, message in [
            (["up"], 2, "expected EXPERIMENT"),
            (["up", "exp-001", "--cell", "none/idle"], 2, "has no cell none/idle"),
            (["up", "exp-030"], 2, "is of kind none"),
            (["up", "exp-001", "--set", "boundary.slices.adas.vlan=0"], 2, "expected 1 to 4094"),
            (["shell"], 2, "expected ZONE"),
            (["shell", "front-left"], 1, "no testbed stands"),
            (["capture", "uplink"], 1, "no testbed stands"),
            (["capture", "uplink", "-n", "0"], 2, "--count 0 is out of range, expected 1 to "),
        ]:
            if args[1:2] == ["exp-030"] and not (program.ROOT / "experiments" / "exp-030.yaml").exists():
                continue
            done = self.assay(*args)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(message, done.stderr)

    def test_shell(self):
        self.up()
        done = self.assay("shell", "central-hpc", "sh", "-c", "echo $ASSAY_ZONE; ip -o -4 addr show eth0; exit 7")
        self.assertEqual(done.returncode, 7)
        self.assertTrue(done.stdout.startswith("central-hpc\n"))
        self.assertIn("198.18.0.10/30", done.stdout)
        done = self.assay("shell", "gateway", "--", "sh", "-c", "exit 8")
        self.assertEqual((done.returncode, done.stderr), (8, ""))
        done = self.assay("shell", "trunk", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no node named trunk", done.stderr)
        done = self.assay("shell", "gateway", "/nonexistent")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot start /nonexistent: No such file or directory", done.stderr)

    def send(self, zone, to, n):
        code = f"import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nfor _ in range({n}): s.sendto(b'x', ('{to}', 9))"
        self.assertEqual(self.assay("shell", zone, "python3", "-c", code).returncode, 0)

    def captured(self, link, *more, n=3):
        """What capture prints of @n packets that front-left sends to central-hpc."""
        process = subprocess.Popen([program.ASSAY, "testbed", "capture", link, "-n", str(n), *more], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, **self.env))
        while process.poll() is None:  # until it has begun to watch, packets go by unseen
            self.send("front-left", "198.18.0.10", 1)
        out, errors = process.communicate()
        self.assertEqual((process.returncode, errors), (0, ""))
        return out

    def test_capture(self):
        self.up()
        tagged = self.status()[1]["tagger"] != "none"
        lines = self.captured("uplink").splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[0], r"^\d\d:\d\d:\d\d\.\d{6}  " + ("VLAN 10" if tagged else "no VLAN") +
                         r" +198\.18\.0\.1 > 198\.18\.0\.10  \d+ B$")
        self.captured("front-left", "--pcap", str(self.folder / "frames.pcap"))
        program.need("tshark", shutil.which("tshark"))
        fields = subprocess.run(["tshark", "-r", self.folder / "frames.pcap", "-T", "fields", "-e", "vlan.id", "-e",
                                 "ip.src"], text=True, capture_output=True, check=True).stdout.splitlines()
        self.assertEqual(len(fields), 3)
        self.assertIn(("10" if tagged else "") + "\t198.18.0.1", fields)

    def test_capture_ends_with_a_signal(self):
        self.up()
        for number in [signal.SIGINT, signal.SIGTERM]:
            process = subprocess.Popen([program.ASSAY, "testbed", "capture", "uplink"], text=True,
                                       stdout=subprocess.PIPE, env=dict(os.environ, **self.env))
            while not process.stdout.readable() or process.poll() is None:
                self.send("front-left", "198.18.0.10", 1)
                if process.stdout.readline():
                    break
            process.send_signal(number)
            process.communicate(timeout=20)
            self.assertEqual(process.returncode, 0)

    def test_degraded(self):
        self.up()
        self.assay("shell", "gateway", "ip", "link", "set", "eth0", "down")
        done = self.assay("status")
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stdout.startswith("DEGRADED\nlink front-left: "), done.stdout)
        self.assertIn("its end in gateway is down", done.stdout)

    def test_holder_is_killed(self):
        self.up()
        os.kill(self.status()[1]["process"], signal.SIGKILL)
        deadline = time.monotonic() + 20
        while self.status()[1]["state"] != "down" and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(self.assay("status").stdout, "DOWN\n")
        self.assertFalse((self.folder / "assay" / "testbed.sock").exists())

    def wait_for_end(self, pid):
        """Until a process has ended, whether or not somebody has asked for its status."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                if pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                    return
            except OSError:
                return
        self.fail(f"process {pid} does not end")

    def test_hysteresis(self):
        """HTB's hysteresis is on while a testbed stands; after a kill the next command puts back what was there."""
        parameter = pathlib.Path("/sys/module/sch_htb/parameters/htb_hysteresis")
        state = pathlib.Path("/run/assay-htb-hysteresis")
        program.need("hysteresis", os.access(parameter, os.W_OK))
        self.assay("status")  # puts back what an earlier kill left
        if state.exists():
            with state.open("rb") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    program.need("a host without another testbed", False)
        before = parameter.read_text()
        self.addCleanup(parameter.write_text, before)
        parameter.write_text("0\n")
        for command in [["testbed", "status"], ["testbed", "down"], ["doctor"]]:
            self.up()
            self.assertEqual(parameter.read_text(), "1\n")
            holder = self.status()[1]["process"]
            self.assertEqual(parameter.read_text(), "1\n")
            os.kill(holder, signal.SIGKILL)
            self.wait_for_end(holder)
            self.assertEqual(parameter.read_text(), "1\n", "it went back by itself, so this test shows nothing")
            program.run(*command, env=self.env)
            self.assertEqual(parameter.read_text(), "0\n", command)
        self.up()
        self.assay("down")
        self.assertEqual(parameter.read_text(), "0\n")

    def test_holder_is_stuck(self):
        """It is named with what to do; what waits for it goes on when it does."""
        self.up()
        holder = self.status()[1]["process"]
        os.kill(holder, signal.SIGSTOP)
        try:
            done = self.assay("down")
        finally:
            os.kill(holder, signal.SIGCONT)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"`kill -9 {holder}`", done.stderr)

    def test_many_at_once(self):
        """Whatever comes first: one testbed stands, and one command made it."""
        def all_at_once(*args):
            processes = [subprocess.Popen([program.ASSAY, "testbed", *args], text=True, stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                          env=dict(os.environ, ASSAY_EXPERIMENTS=str(program.ROOT / "experiments"),
                                                   **self.env)) for _ in range(4)]
            outputs = [process.communicate(timeout=60) for process in processes]
            self.assertEqual([process.returncode for process in processes], [0] * 4, outputs)
            return sorted(out for out, _ in outputs)

        self.assertEqual(all_at_once("up", "exp-001"), ["It stands already.\n"] * 3 + ["It stands.\n"])
        self.assertEqual(all_at_once("down"), ["It is down.\n"] + ["Nothing stood.\n"] * 3)

    def test_as_an_ordinary_user(self):
        nobody = pwd.getpwnam("nobody")
        allowed = subprocess.run(["unshare", "--user", "--map-root-user", "true"], user=nobody.pw_uid, group=nobody.pw_gid,
                                 extra_groups=[], capture_output=True, check=False).returncode == 0
        program.need("userns", allowed)
        binary = self.folder / "assay-program"
        shutil.copy(program.ASSAY, binary)
        experiments = self.folder / "experiments"
        shutil.copytree(program.ROOT / "experiments", experiments)
        os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)

        as_nobody = {"text": True, "cwd": "/", "user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [],
                     "env": dict(os.environ, ASSAY_EXPERIMENTS=str(experiments), **self.env)}

        def assay(*args):
            return subprocess.run([binary, "testbed", *args], capture_output=True, check=False, timeout=60, **as_nobody)

        done = assay("up", "exp-001")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        try:
            self.assertIn("tags by none, slices told apart by nftables", assay("status").stdout)
            done = assay("shell", "front-left", "ip", "-o", "-4", "addr", "show", "eth0")
            self.assertIn("198.18.0.1/30", done.stdout, done.stderr)
            capture = subprocess.Popen([binary, "testbed", "capture", "uplink", "-n", "1"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, **as_nobody)
            while capture.poll() is None:
                assay("shell", "front-left", "bash", "-c", "echo x >/dev/udp/198.18.0.10/9")
            out, errors = capture.communicate()
            self.assertEqual((capture.returncode, errors), (0, ""))
            self.assertRegex(out, r"no VLAN +198\.18\.0\.1 > 198\.18\.0\.10 ")
            process = assay("up", "exp-001", "--cell", "per-queue/idle")
            self.assertEqual(process.returncode, 1)
        finally:
            self.assertEqual(assay("down").returncode, 0)
        done = assay("up", "exp-001", "--cell", "per-queue/idle")
        self.assertEqual(done.returncode, 6)
        self.assertIn("tree-per-queue: loading BPF programs needs CAP_BPF", done.stderr)
        done = assay("status")
        self.assertTrue(done.stdout.startswith("FAILED\nscheduler tree-per-queue: "), done.stdout)
        self.assertEqual(assay("down").returncode, 0)
        self.assertEqual(assay("status").stdout, "DOWN\n")


if __name__ == "__main__":
    program.main()
