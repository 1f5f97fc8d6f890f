# SPDX-License-Identifier: Apache-2.0
"""A campaign from manifest to verdict, its archive, and what happens to it when somebody or something interferes."""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import program

TINY = program.ROOT / "tests" / "cases" / "campaigns" / "tiny.yaml"
VERDICTS = TINY.with_name("verdicts.yaml")

# Reads each file with the Prometheus project's own parser, and prints how many samples it has.
READ_SCRAPES = """
import sys
try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
except ImportError:
    sys.exit(77)
for name in sys.argv[1:]:
    with open(name, encoding="utf-8", newline="") as file:
        print(sum(len(family.samples) for family in parse(file.read())))
"""


class Campaign(unittest.TestCase):
    """What every test here has: a scratch folder, and a host that has to look the same afterwards."""

    def setUp(self):
        program.need_root()
        self.before = program.host_state()
        self.running = []
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-e2e-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def tearDown(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.stdout.close()
            process.stderr.close()
            process.wait()
        program.assert_unchanged(self, self.before)

    def start(self, *args):
        process = subprocess.Popen([program.ASSAY, "run", *map(str, args)], text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.running.append(process)
        return process

    def archive(self):
        found = [p for p in self.scratch.iterdir() if p.is_dir() and p.name.startswith("tiny-")]
        self.assertEqual(len(found), 1, found)
        return found[0]

    def wait_for_trials(self, process, count):
        """Until @count trials are in the journal; gives the archive."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            self.assertIsNone(process.poll(), "the campaign ended early")
            for journal in self.scratch.glob("tiny-*/data/journal.jsonl"):
                if journal.read_text().count('"event":"trial"') >= count:
                    return journal.parent.parent
            time.sleep(0.01)
        self.fail("no trial in time")

    def wait_for_measurement(self, process):
        """Until a trial measures: its load keeps a processor busy, and has used 50 ms of it."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                if self.processor_ticks(self.child(process, "load")) >= 5:
                    return
            except OSError:
                continue
        self.fail("no trial measures")

    def processor_ticks(self, pid):
        """Ticks of 10 ms that a process has used."""
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def child(self, process, name):
        """The process id of a child of this name, or None."""
        for child in self.children(process.pid):
            try:
                if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == name:
                    return child
            except OSError:
                continue
        return None

    def children(self, pid):
        found = []
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(stat.parent.name))
        return found


class Whole(Campaign):
    def test_from_manifest_to_verified_archive(self):
        done = program.run("run", TINY, "-o", self.scratch, before=program.small_stack())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for word in ["per-queue/idle", "per-queue/loaded", "same-same/idle", "sane", "holds"]:
            self.assertIn(word, done.stdout)
        archive = self.archive()
        self.assertIn(str(archive), done.stdout + done.stderr)

        outside = subprocess.run(["sha256sum", "--quiet", "-c", "manifest-sha256.txt"], cwd=archive, check=False)
        self.assertEqual(outside.returncode, 0)
        self.assertEqual((archive / "data" / "manifest.yaml").read_bytes(), TINY.read_bytes())
        for name in ["plan.json", "run-env.json", "summary.json", "verdict.json"]:
            json.loads((archive / "data" / name).read_text())
        trials = sorted((archive / "data" / "trials").iterdir())
        valid = 0
        for trial in trials:
            record = json.loads((trial / "trial.json").read_text())
            if not record["valid"]:  # a stall of the host costs a round, which is run again
                self.assertNotEqual(record["reason"], "")
                continue
            valid += 1
            self.assertEqual(record["boundary"]["weaker"], [])
            asked = record["background"]["bulk"]["notes"]["generator"]["scheduling"]
            self.assertTrue(asked["nice"] == -20 or "nice" in asked["refused"])
            self.assertTrue(record["proof"]["before"]["holds"] and record["proof"]["after"]["holds"])
            for scrape in ["before", "during", "after"]:
                self.assertTrue((trial / "scrapes" / f"{scrape}.prom").read_text().endswith("# EOF\n"))
            self.check_log((trial / "log").read_text())
        self.assertGreaterEqual(valid, 18)
        self.check_disk(archive)

        verified = program.run("verify", archive)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        wrong = program.run("show", archive, "--series", "nope")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("rtt_user", wrong.stderr)
        shown = program.run("show", archive)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("sane", shown.stdout)
        self.check_tampering(archive)
        self.check_scrapes(archive)  # last, since it may skip

    def check_disk(self, archive):
        """What --dry-run says it takes is what it took, within a factor of two."""
        planned = json.loads((archive / "data" / "plan.json").read_text())["expected"]["disk_bytes"]
        taken = sum(path.lstat().st_blocks * 512 for path in archive.rglob("*"))
        self.assertTrue(planned / 2 < taken < planned * 2, f"{taken} bytes, planned {planned}")

    def check_scrapes(self, archive):
        """Another reader of OpenMetrics takes them, too."""
        scrapes = sorted(archive.glob("data/trials/*/scrapes/*.prom"))
        done = subprocess.run(["/usr/bin/python3", "-c", READ_SCRAPES, *scrapes], text=True, capture_output=True, check=False)
        program.need("prometheus-client", done.returncode != 77)
        self.assertEqual(done.returncode, 0, done.stderr)
        counts = [int(line) for line in done.stdout.split()]
        self.assertEqual(len(counts), len(scrapes))
        self.assertGreater(min(counts), 50)

    def check_log(self, text):
        """Every phase in its order, at times that do not go back."""
        lines = [re.fullmatch(r" *(\d+\.\d{6}) s  (.+)", line) for line in text.splitlines()]
        times = [float(line[1]) for line in lines]
        self.assertEqual(times, sorted(times))
        said = [line[2] for line in lines if not line[2].startswith(("detail: ", "message: ", "warning: "))]
        self.assertEqual(said, ["setting up", "the boundary is up", "the proof holds", "preparing", "starting", "measuring",
                                "half of it is over; counters were read", "the workload ended", "stopping", "collecting",
                                "the proof holds", "all is down", "valid"])

    def check_tampering(self, archive):
        """One byte flipped, one file gone, one more: each named, exit 5."""
        copy = self.scratch / "copy"
        trial = sorted(p.name for p in (archive / "data" / "trials").iterdir())[0]
        samples = f"data/trials/{trial}/samples.csv.zst"
        for what, harm in {
            samples: lambda p: p.write_bytes(p.read_bytes()[:-1] + bytes([p.read_bytes()[-1] ^ 1])),
            f"data/trials/{trial}/trial.json": lambda p: p.unlink(),
            "data/extra.txt": lambda p: p.write_text("x"),
            "data/verdict.json": lambda p: p.write_text(p.read_text().replace("holds", "fails", 1)),
        }.items():
            shutil.copytree(archive, copy)
            harm(copy / what)
            done = program.run("verify", copy)
            self.assertEqual(done.returncode, 5, what + done.stdout + done.stderr)
            self.assertIn(what, done.stdout + done.stderr)
            shutil.rmtree(copy)

        # a verdict that was changed, and all digests made right again: only computing it anew can tell
        shutil.copytree(archive, copy)
        verdict = copy / "data" / "verdict.json"
        verdict.write_text(verdict.read_text().replace('"holds"', '"fails"', 1))
        for manifest in ["manifest-sha256.txt", "tagmanifest-sha256.txt"]:
            names = [line.split(maxsplit=1)[1] for line in (copy / manifest).read_text().splitlines()]
            sums = subprocess.run(["sha256sum", *names], cwd=copy, text=True, capture_output=True, check=True).stdout
            (copy / manifest).write_text(sums)
        done = program.run("verify", copy)
        self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
        self.assertIn("verdict.json", done.stdout + done.stderr)

    def test_dry_run_runs_nothing(self):
        done = program.run("run", TINY, "--dry-run", "-o", self.scratch)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("per-queue/loaded", done.stdout)
        self.assertEqual(list(self.scratch.iterdir()), [])
        code, plan = program.run_json("run", TINY, "--dry-run", "--set", "rounds=8")
        self.assertEqual((code, len(plan["trials"])), (0, 24))
        self.assertEqual(plan["overrides"], ["rounds=8"])


class Endings(Campaign):
    """How a campaign looks and ends, shown by the quickest one there is."""

    def manifest(self, margin, repeat):
        path = self.scratch / "verdicts.yaml"
        path.write_text(VERDICTS.read_text().replace("MARGIN", margin).replace("REPEAT", str(repeat)))
        return path

    def test_exit_code_is_the_verdict(self):
        for margin, repeat, code, asked, sure in [("60s", 50, 0, "holds", "holds"), ("1ns", 50, 3, "fails", "holds"),
                                                  ("60s", 1, 4, "inconclusive", "inconclusive")]:
            done = program.run("run", self.manifest(margin, repeat), "-o", self.scratch)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertEqual(re.findall(r"^  => (\w+)", done.stdout, re.M), [sure, asked], done.stdout)
            archive = next(self.scratch.glob("verdicts-*"))
            self.assertEqual(program.run("verify", archive).returncode, 0)
            shutil.rmtree(archive)

    def on_a_terminal(self, **env):
        """What a campaign prints to a terminal of 60 columns."""
        command = "stty cols 60 && exec " + shlex.join(map(str, [program.ASSAY, "run", self.manifest("60s", 50), "-o", self.scratch]))
        done = subprocess.run(["script", "-qec", command, "/dev/null"], env=dict(os.environ, **env), capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.decode().split("6 of 6 rounds count")[0]

    def test_progress_on_a_terminal(self):
        """A bar that grows, with the trial's name and the time left, and that is gone in the end."""
        shown = self.on_a_terminal(TERM="xterm")
        bars = re.findall(r"\r(\[(#*)\.*\] (\d+)/12 [^\r\x1b]*)\x1b\[K", shown)
        self.assertEqual(sorted({int(bar[2]) for bar in bars}), list(range(1, 13)))
        lengths = [len(bar[1]) for bar in bars]
        self.assertEqual(lengths, sorted(lengths))
        self.assertGreater(lengths[-1], 20)
        for bar in bars:
            self.assertLess(len(bar[0]), 60)
        self.assertRegex(bars[0][0], r"1/12 0001-\w+-mixed-r1, \d+:\d\d")
        self.assertIn("\r\x1b[K", shown[shown.rindex(bars[-1][0]) + len(bars[-1][0]) + 3:])

    def test_progress_elsewhere(self):
        """Plain lines, one a trial: in a file, and on a terminal that can do no more."""
        done = program.run("run", self.manifest("60s", 50), "-o", self.scratch)
        self.assertNotRegex(done.stderr, r"[\r\x1b]")
        self.assertEqual(len(re.findall(r"^\d+/12 \d{4}-\w+-mixed-r\d, \d+:\d\d left$", done.stderr, re.M)), 12, done.stderr)
        shutil.rmtree(next(self.scratch.glob("verdicts-*")))
        self.assertNotIn("\x1b", self.on_a_terminal(TERM="dumb"))


class Phases(Campaign):
    """One campaign, interrupted by each signal in each phase of a trial, and resumed each time."""

    def is_planning(self, process):
        """It holds network namespaces to see what this host can do, and there is no archive yet."""
        own = os.readlink(f"/proc/{process.pid}/ns/net")
        links = [os.readlink(fd) for fd in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()]
        return any(link.startswith("net:[") and link != own for link in links) and not self.trials()

    def is_setting_up(self, process):
        return self.partial() is not None and self.child(process, "load") is None

    def is_preparing(self, process):
        child = self.child(process, "load")  # which waits for the start, and then is busy
        return child is not None and self.processor_ticks(child) < 5

    def is_measuring(self, process):
        child = self.child(process, "probe")
        return child is not None and self.processor_ticks(self.child(process, "load")) >= 5

    def is_collecting(self, process):
        partial = self.partial()
        return partial is not None and (partial / "samples.csv.zst").exists()

    def is_finishing(self, _):
        return any('"finished"' in path.read_text() for path in self.scratch.glob("tiny-*/data/journal.jsonl"))

    def partial(self):
        """The folder of a trial that runs; not one that an interrupted run left."""
        return next((p for p in self.scratch.glob("tiny-*/data/trials/.*.partial") if p.stat().st_ctime_ns > self.began), None)

    def wait_for(self, condition, process):
        """Until it holds; False where the process ended before it was seen."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if condition(process):
                    return True
            except OSError:  # what was looked at went away
                continue
            if process.poll() is not None:
                return False
        return self.fail(f"{condition.__name__} did not become true")

    def trials(self):
        return [journal.read_text().count('"event":"trial"') for journal in self.scratch.glob("tiny-*/data/journal.jsonl")]

    def interrupt(self, condition, number):
        """Start or go on, and send the signal when the condition holds."""
        kept = self.trials()
        self.began = time.time_ns()
        process = self.start(*(["--resume", self.archive()] if kept else [TINY, "-o", self.scratch]))
        self.assertTrue(self.wait_for(condition, process), condition.__name__)
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
        where = f"{condition.__name__}, {signal.Signals(number).name}: {errors}"
        if number == signal.SIGKILL or (process.returncode == -number and not self.trials()):  # nothing is begun yet
            self.assertEqual(process.returncode, -number, where)
        else:
            self.assertEqual(process.returncode, 1, where)
            self.assertIn(f"stopped by {signal.Signals(number).name}", errors)
            if self.trials():
                self.assertIn(f"assay run --resume {self.archive()}", errors)
        self.assertGreaterEqual(self.trials(), kept, where)
        program.assert_unchanged(self, self.before)

    def test_each_signal_in_each_phase(self):
        signals = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
        remains = self.scratch / ".assay-new.tiny-20000101T000000Z"  # as of a run that was killed while it made its archive
        (remains / "data").mkdir(parents=True)
        for number in signals:
            self.interrupt(self.is_planning, number)
            for archive in self.scratch.glob("tiny-*"):
                shutil.rmtree(archive)  # it had got further by the time the signal came
        for condition in [self.is_setting_up, self.is_preparing, self.is_measuring, self.is_collecting]:
            for number in signals:
                self.interrupt(condition, number)
        self.assertFalse(remains.exists())
        self.began = time.time_ns()
        process = self.start("--resume", self.archive())
        if self.wait_for(self.is_finishing, process):
            process.kill()
        process.communicate(timeout=60)
        if process.returncode != 0:
            done = program.run("run", "--resume", self.archive())
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        archive = self.archive()
        self.assertEqual(program.run("verify", archive).returncode, 0)
        again = program.run("run", "--resume", archive)
        self.assertEqual(again.returncode, 2)
        self.assertIn("finished", again.stderr)


class Interference(Campaign):

    def test_two_at_once(self):
        first = self.start(TINY, "-o", self.scratch)
        self.wait_for_trials(first, 1)
        second = program.run("run", TINY, "-o", self.scratch)
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"process {first.pid}", second.stderr)
        first.terminate()
        first.communicate(timeout=20)

    def test_the_reflector_dies(self):
        process = self.start(TINY, "-o", self.scratch, "--set", "workload.duration=1s")
        self.wait_for_trials(process, 1)
        self.wait_for_measurement(process)
        os.kill(self.child(process, "reflector"), signal.SIGKILL)
        _, errors = process.communicate(timeout=120)
        self.assertIn("INVALID", errors)
        self.assertIn("reflector", errors)
        self.assertEqual(process.returncode, 0, errors)  # its round was run again
        archive = self.archive()
        self.assertEqual(program.run("verify", archive).returncode, 0)


    def test_the_clock_is_stepped(self):
        """By 20 ms and back, while one trial measures: that trial is invalid, and its round is run again."""
        process = self.start(TINY, "-o", self.scratch, "--set", "workload.duration=1s")
        self.wait_for_trials(process, 1)
        self.wait_for_measurement(process)
        for step in [20_000_000, -20_000_000]:
            try:
                time.clock_settime_ns(time.CLOCK_REALTIME, time.clock_gettime_ns(time.CLOCK_REALTIME) + step)
            except PermissionError:
                process.terminate()
                process.communicate(timeout=20)
                program.need("clock", False)
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, errors)
        self.assertRegex(errors, r"INVALID: [^\n]*clock was set")
        self.assertEqual(program.run("verify", self.archive()).returncode, 0)

    def take_gateway_down(self, process):
        """Take down all links of the gateway, which has one for each zone; False where the trial was over before."""
        own = os.readlink(f"/proc/{process.pid}/ns/net")
        script = ('mount -t sysfs none /sys; set -- $(ls /sys/class/net | grep -v lo); [ $# -gt 1 ] || exit 3; '
                  'for link; do ip link set "$link" down; done')
        for fd in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
            try:
                if not os.readlink(fd).startswith("net:[") or os.readlink(fd) == own:
                    continue
            except OSError:
                continue
            inside = ["nsenter", f"--net={fd}", "unshare", "--mount", "sh", "-c", script]
            if subprocess.run(inside, stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return True
        return False

    def test_the_uplink_goes_down(self):
        process = self.start(TINY, "-o", self.scratch, "--set", "workload.duration=1s")
        self.wait_for_trials(process, 1)
        self.wait_for_measurement(process)
        while not self.take_gateway_down(process):  # on a busy host a later trial
            self.wait_for_measurement(process)
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("INVALID: path not proven", errors)


class Input(Campaign):
    """Manifests that are no manifests: exit 2 with the place and what was expected, at once, and nothing is made."""

    def refused(self, path, message):
        done = program.run("run", path, "-o", self.scratch / "out", timeout=20)
        self.assertEqual((done.returncode, done.stdout), (2, ""), f"{path}: {done.stderr}")
        self.assertIn(message, done.stderr)
        self.assertLess(len(done.stderr), 2000)
        self.assertFalse((self.scratch / "out").exists())

    def test_bytes(self):
        bomb = b"a: &a [x, x]\n" + b"".join(b"%c: &%c [*%c, *%c]\n" % (c + 1, c + 1, c, c) for c in range(97, 122))
        for name, data, message in [
            ("large", b"assay: 1\n" + b"# more\n" * 1500000, "more than the 1048576 bytes"),
            ("nested", b"assay: " + b"[" * 100000, "nested deeper than 32 levels"),
            ("bomb", bomb, "bomb.yaml:1:4: an anchor"),
            ("latin-1", b"assay: 1\ntitle: caf\xe9\n", "latin-1.yaml:2:11: byte 0xE9 is not UTF-8"),
            ("utf-16", "assay: 1\n".encode("utf-16"), "utf-16.yaml:1:1: byte 0xFF is not UTF-8"),
            ("binary", bytes(range(256)), "binary.yaml:1:1: "),
            ("empty", b"", "empty.yaml:1:1: "),
        ]:
            path = self.scratch / f"{name}.yaml"
            path.write_bytes(data)
            self.refused(path, message)

    def test_what_is_no_file(self):
        os.mkfifo(self.scratch / "fifo.yaml")
        (self.scratch / "folder.yaml").mkdir()
        self.refused(self.scratch / "fifo.yaml", "is not a regular file")
        self.refused(self.scratch / "folder.yaml", "is not a regular file")
        self.refused("/dev/zero", "is not a regular file")
        self.refused(self.scratch / "none.yaml", "No such file")

    def test_claims(self):
        """What each part of Assay refuses reaches the user with the place."""
        text = TINY.read_text()
        for old, new, message in [
            ("rounds: 6", "round: 6", "did you mean"),
            ("rate: 100mbit", "rate: 100Mb", '"100Mb" is not a rate such as'),
            ("guarantee: 20mbit, ceiling: 20mbit", "guarantee: 21mbit, ceiling: 21mbit", "more than the uplink's rate"),
            ("vlan: 20", "vlan: 10", "VLAN 10 is already that of slice safety"),
            ("from: left", "from: lift", "there is no zone named lift"),
            ("versus: [per-queue, idle]", "versus: [per-queue, idel]", "unknown point"),
            ("  same-same: {control: same-same}", "  same-same: {}", "is no control; expected"),
            ("{rate: 40mbit}", "{rate: 400mbit}", "`overload: true`"),
            ("metric: rtt.p50, ratio_at_most", "metric: rtt.p99, ratio_at_most", "rtt.p99 needs 299 values in a trial"),
        ]:
            self.assertIn(old, text)
            path = self.scratch / "claim.yaml"
            path.write_text(text.replace(old, new, 1))
            self.refused(path, message)
            self.assertRegex(program.run("run", path).stderr, r"claim\.yaml:\d+:\d+: ")


class Rights(Campaign):
    """An ordinary user, and hosts that lack something."""

    TREE = ["--set", "boundary.uplink.scheduler=tree"]

    def ordinary(self, *args):
        self.scratch.chmod(0o777)
        tools = self.scratch / "tools"  # a place that the other user may read
        tools.mkdir()
        shutil.copy(program.ASSAY, tools / "assay")
        shutil.copy(TINY, tools / "tiny.yaml")
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", tools / "assay", "run",
                               tools / "tiny.yaml", "-o", self.scratch, *args], text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, check=False)
        shutil.rmtree(tools)
        return done

    def test_ordinary_user(self):
        program.need("userns", subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "unshare",
                                               "-rn", "true"], check=False).returncode == 0)
        done = self.ordinary(*self.TREE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("class: provisional", done.stdout)
        for weaker in ["802.1Q", "the probe ran without real-time priority (EPERM)",
                       "the generator of bulk ran without its nice value (EACCES)"]:
            self.assertIn(weaker, done.stdout)
        self.assertEqual(program.run("verify", self.archive()).returncode, 0)

    def test_missing_capability_is_named(self):
        done = self.ordinary()
        self.assertEqual(done.returncode, 6, done.stdout + done.stderr)
        self.assertIn("BPF", done.stderr)
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_each_right_is_named(self):
        """Root without one capability, or under a limit: it ends before anything starts, and says what is missing."""
        drop = ["capsh", "--drop=cap_{}", "--", "-c", 'exec "$@"', "sh"]
        for what, command, code, message in [
            ("net_admin", drop, 6, "CAP_NET_ADMIN"),
            ("net_raw", drop, 6, "CAP_NET_RAW"),
            ("descriptors", ["prlimit", "--nofile=20"], 1, "Too many open files"),
            ("namespaces", ["unshare", "-rn", "sh", "-c", 'echo 2 > /proc/sys/user/max_net_namespaces && exec "$@"',
                            "sh"], 6, "user.max_net_namespaces"),
        ]:
            command = [part.format(what) for part in command]
            done = subprocess.run([*command, program.ASSAY, "run", str(TINY), "-o", str(self.scratch), *self.TREE],
                                  text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False)
            self.assertEqual((done.returncode, done.stdout), (code, ""), what + done.stderr)
            self.assertIn(message, done.stderr)
            self.assertEqual(list(self.scratch.iterdir()), [], what)

    def without_bpf(self, *args):
        """As in a container whose seccomp filter refuses bpf(2)."""
        return program.run(*args, preexec_fn=program.refuse_bpf)

    def test_bpf_is_refused(self):
        """Root whose bpf(2) is refused: the weaker mechanism where there is one, else the reason, before anything starts."""
        done = self.without_bpf("run", TINY, "-o", self.scratch)
        self.assertEqual((done.returncode, done.stdout), (6, ""), done.stderr)
        self.assertRegex(done.stderr, "tree-per-queue: .*BPF")
        self.assertEqual(list(self.scratch.iterdir()), [])
        done = self.without_bpf("run", TINY, "-o", self.scratch, *self.TREE, "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.without_bpf("doctor")
        self.assertRegex(done.stdout, r"\n  bpf +no ")

    def within(self, controller, file, limit):
        """What becomes of a campaign in a control group of version 1 with that limit."""
        group = pathlib.Path("/sys/fs/cgroup") / controller / f"assay-e2e-{os.getpid()}"
        program.need(f"cgroup-{controller}", os.access(group.parent / "cgroup.procs", os.W_OK))
        group.mkdir()
        try:
            (group / file).write_text(str(limit))
            return program.run("run", TINY, "-o", self.scratch, before=[
                "sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"])
        finally:
            self.leave(group)

    def leave(self, group):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                return group.rmdir()
            except OSError:  # what the kill ended is not gone yet
                continue
        return self.fail(f"{group} is not empty")

    def test_too_few_processes(self):
        """Trials that cannot start their processes are invalid and say why; the campaign ends and its archive verifies."""
        done = self.within("pids", "pids.max", 2)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"INVALID: [^\n]*Resource temporarily unavailable")
        self.assertIn("0 of 6 rounds", done.stdout)
        self.assertEqual(program.run("verify", self.archive()).returncode, 0)

    def test_too_little_memory(self):
        """Killed by the kernel in the middle, or refused memory by it: what was finished is kept, and it can go on."""
        if program.is_sanitized():
            self.skipTest("a sanitizer has memory of its own")
        for halves in range(6, 24):  # the least that an archive can be made with is too little for its trials
            done = self.within("memory", "memory.limit_in_bytes", halves << 19)
            if any(self.scratch.glob("tiny-*")):
                break
            self.assertNotEqual(done.returncode, 0, f"{halves / 2} MiB")
        self.assertIn(done.returncode, (-signal.SIGKILL, 1), done.stderr)
        if done.returncode == 1:
            self.assertRegex(done.stderr, "(?i)cannot allocate memory|out of memory")
            self.assertIn("--resume", done.stderr)
        kept = (self.archive() / "data" / "journal.jsonl").read_text().count('"event":"trial"')
        process = self.start("--resume", self.archive())
        self.wait_for_trials(process, kept + 1)
        process.terminate()
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 1)

    def test_missing_processor_is_named(self):
        done = program.run("run", TINY, "-o", self.scratch, "--set", "workload.cpu=1000")
        self.assertEqual(done.returncode, 6)
        self.assertIn("processor 1000", done.stderr)
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_inside_unshare(self):
        program.need("userns", subprocess.run(["unshare", "-rn", "true"], check=False).returncode == 0)
        done = subprocess.run(["unshare", "-rn", program.ASSAY, "run", str(TINY), "-o", str(self.scratch), *self.TREE],
                              text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Places(Campaign):
    def test_output_is_a_file(self):
        (self.scratch / "file").write_text("")
        done = program.run("run", TINY, "-o", self.scratch / "file")
        self.assertEqual(done.returncode, 1)
        self.assertIn("file", done.stderr)

    def test_output_is_there(self):
        """Whatever the second is in which the archive gets its name."""
        now = time.time()
        for second in range(30):
            (self.scratch / time.strftime("tiny-%Y%m%dT%H%M%SZ", time.gmtime(now + second))).mkdir()
        before = sorted(self.scratch.iterdir())
        done = program.run("run", TINY, "-o", self.scratch)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("is there already", done.stderr)
        self.assertEqual(sorted(self.scratch.iterdir()), before)

    def test_output_is_read_only(self):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "none", self.scratch], check=True)
        self.addCleanup(subprocess.run, ["umount", self.scratch], check=False)
        done = program.run("run", TINY, "-o", self.scratch)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Read-only file system", done.stderr)

    def test_file_size_is_limited(self):
        done = subprocess.run(["prlimit", "--fsize=100", program.ASSAY, "run", str(TINY), "-o", str(self.scratch)],
                              text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_standard_error_is_closed(self):
        """Messages end up in no file that the campaign opens in its place, such as the host's lock."""
        process = subprocess.Popen(["sh", "-c", 'exec "$@" 2>&-', "sh", program.ASSAY, "run", TINY, "-o", self.scratch],
                                   text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.running.append(process)
        self.wait_for_trials(process, 1)
        process.terminate()
        process.communicate(timeout=20)
        self.assertRegex(pathlib.Path("/run/lock/assay-campaign.lock").read_text(), r"\A\d+\n\Z")

    def test_output_fills_up(self):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "none", self.scratch], check=True)
        self.addCleanup(subprocess.run, ["umount", self.scratch], check=False)
        done = program.run("run", TINY, "-o", self.scratch)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("No space left on device", done.stderr)
        archive = self.archive()
        subprocess.run(["mount", "-o", "remount,size=16m", self.scratch], check=True)
        done = program.run("run", "--resume", archive)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(program.run("verify", archive).returncode, 0)


if __name__ == "__main__":
    program.main()
