# SPDX-License-Identifier: Apache-2.0
"""Campaigns of HTTP requests and commands: natively, in the sandbox, in a wrapper, through an ordinary proxy; and what is
missing or goes wrong there."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

import program

HTTP = program.ROOT / "tests" / "cases" / "campaigns" / "http.yaml"


# What goes wrong needs no wrapper, and less of everything.
WRONG = """
assay: 1
id: http
title: Requests and a command that fail
hypotheses: {none: {claim: No request fails., rules: [{of: [proxy, stream], metric: failed, at_most: 0}]}}
base:
  boundary: {kind: none}
  workload: {kind: http, threads: 1, requests: 5, warmup: 0, events: 3, every: 300ms, timeout: 1ms, origin-cpu: 0}
arms:
  proxy: {boundary: {kind: ordinary-proxy, program: haproxy}}
  native: {control: harm}
points:
  stream: {}
  start: {workload: {kind: command, argv: [sh, -c, exit 3], runs: 5, warmup: 0}}
cells: {proxy: [stream], native: [start]}
control-rules: {native: {of: [native, start], metric: failed, at_least: 1}}
rounds: 6
"""


LOST = """
hypotheses: {none: {claim: No look-up fails., rules: [{of: [walled, lookup], metric: failed, at_most: 0}]}}
base: {boundary: {kind: none}, workload: {kind: datagram, ask: lookup, requests: 5, warmup: 0, origin-cpu: 0}}
arms:
  walled: {boundary: {kind: sandbox, enforce: proxy, policy: policies/one-origin.yaml}}
  native: {control: harm}
points: {lookup: {}}
control-rules: {native: {of: [native, lookup], metric: failed, at_most: 0}}
rounds: 6
"""

CONTAINER = """
assay: 1
id: left
title: A command in a container
hypotheses: {none: {claim: No run fails., rules: [{of: [runc, start], metric: failed, at_most: 0}]}}
base: {boundary: {kind: wrapper, program: runc}, workload: {kind: command, argv: [true], runs: 5, warmup: 0, timeout: 100s}}
arms:
  runc: {}
  same-same: {control: same-same}
points: {start: {}}
control-rules:
  same-same: {of: [same-same, start], versus: [runc, start], metric: wall.p50, ratio_within: [0.0001, 10000]}
rounds: 6
"""


def samples(trial):
    text = subprocess.run(["zstd", "-dcq", str(trial / "samples.csv.zst")], text=True, capture_output=True, check=True)
    head, *rows = [line.split(",") for line in text.stdout.splitlines()]
    return head, rows


class Peers(unittest.TestCase):
    def setUp(self):
        program.need_root()
        built = pathlib.Path(program.ASSAY).resolve()
        program.need("a folder that everybody may enter", all(p.stat().st_mode & 1 for p in (built, *built.parents)))
        for name in ("bwrap", "haproxy", "runc"):
            program.need(name, shutil.which(name) is not None)
        self.before = program.host_state()
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-e2e-", dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def tearDown(self):
        program.assert_unchanged(self, self.before)

    def run_one(self, *changes, text=None, env=None):
        """Run the manifest, or one in which texts are replaced by others."""
        text = text or HTTP.read_text()
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        shutil.copytree(HTTP.parent / "policies", self.scratch / "policies", dirs_exist_ok=True)
        manifest = self.scratch / "http.yaml"
        manifest.write_text(text)
        done = program.run("run", manifest, "-o", self.scratch, env=env)
        found = [p for p in self.scratch.iterdir() if p.name.startswith("http-")]
        return done, found[0] if found else None

    def trials(self, archive, cell):
        found = sorted((archive / "data" / "trials").glob(f"*-{cell}-r*"))
        self.assertGreaterEqual(len(found), 6)
        return [(path, json.loads((path / "trial.json").read_text())) for path in found]

    def test_whole(self):
        done, archive = self.run_one()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("wrapper/small", done.stdout)
        policy = HTTP.parent / "policies" / "one-origin.yaml"
        self.assertEqual((archive / "data/inputs/policies/one-origin.yaml").read_bytes(), policy.read_bytes())
        verified = program.run("verify", archive)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        for cell in ("native-small", "watched-small", "walled-small", "relayed-small", "container-small", "wrapper-small",
                     "wrapper-secure"):
            for path, trial in self.trials(archive, cell):
                self.assertTrue(trial["valid"], trial["reason"])
                counts = trial["counts"]
                self.assertEqual((counts["slots"], counts["completed"], counts["connections"]), (18, 16, 16))
                self.assertEqual(counts["body_bytes"], 16 * 3000)
                self.assertEqual(trial["notes"]["origin_counts"]["requests"], 18)
                head, rows = samples(path)
                self.assertEqual(head, ["slot", "request_ns", "first_byte_ns", "connect_ns"])
                self.assertEqual([int(row[0]) for row in rows], list(range(18)))
                for row in rows:
                    self.assertTrue(0 < int(row[3]) <= int(row[2]) <= int(row[1]), row)
        self.assertTrue(trial["proof"]["before"]["evidence"]["shares_network"])
        events = b"".join(b"data: %05d\n\n" % i for i in range(3))
        for path, trial in self.trials(archive, "proxy-stream"):
            self.assertEqual(trial["boundary"]["proxy"], "haproxy")
            self.assertEqual(trial["notes"]["client"]["sha256"], hashlib.sha256(events).hexdigest())
            for row in samples(path)[1]:
                self.assertGreaterEqual(int(row[1]), 2000000)  # the third event is due then
        for _, trial in self.trials(archive, "container-small"):
            self.assertEqual((trial["boundary"]["program"], trial["boundary"]["network"]), ("runc", "host"))
            self.assertTrue(trial["proof"]["before"]["evidence"]["shares_network"])
            self.assertEqual(trial["counts"]["failed"], 0)
        for cell in ("container-echo", "walled-echo", "relayed-echo", "native-lookup", "walled-by-name-lookup",
                     "relayed-by-name-lookup"):
            for path, trial in self.trials(archive, cell):
                self.assertTrue(trial["valid"], trial["reason"])
                counts = trial["counts"]
                self.assertEqual((counts["slots"], counts["completed"], counts["failed"]), (22, 20, 0), trial["notes"])
                self.assertEqual(trial["notes"]["origin_counts"]["answered"], 22)  # and so nobody else answered
                head, rows = samples(path)
                self.assertEqual(head, ["slot", "round_trip_ns"])
                self.assertEqual([int(row[0]) for row in rows], list(range(22)))
                self.assertTrue(all(int(row[1]) > 0 for row in rows))
        for path, trial in self.trials(archive, "apart-start") + self.trials(archive, "closed-start"):
            self.assertFalse(trial["proof"]["before"]["evidence"]["shares_network"])
            self.assertGreater(trial["notes"]["spawn_p50_ns"], 0)
            for row in samples(path)[1]:
                self.assertGreater(int(row[1]), trial["notes"]["spawn_p50_ns"])

        for _, trial in self.trials(archive, "open-deny"):  # each way leads out where nothing closes it
            counts = trial["counts"]
            self.assertEqual((counts["unproven"], counts["blocked_allowed"]), (0, 0), trial["notes"])
            self.assertEqual(counts["escapes"] + counts["absent"], counts["attempts"])
            self.assertGreater(counts["escapes"], 40)
            tried = counts["attempts"]
        for cell in ("walled-deny", "relayed-deny"):
            for _, trial in self.trials(archive, cell):
                counts = trial["counts"]
                self.assertEqual((counts["escapes"], counts["blocked_allowed"], counts["unproven"]), (0, 0, 0))
        for _, trial in self.trials(archive, "closed-deny"):
            self.assertEqual((trial["counts"]["escapes"], trial["counts"]["unproven"]), (0, 0))
            stopped = [p["attempt"] for p in trial["notes"]["proofs"] if p["result"] == "stopped"]
            self.assertEqual(len(stopped), tried)  # and not one of them is left out here

    def test_program_is_missing(self):
        """A PATH with bwrap, and without haproxy and runc."""
        folder = self.scratch / "bin"
        folder.mkdir()
        for name in ("bwrap", "true", "readlink"):
            (folder / name).symlink_to(shutil.which(name))
        env = {"PATH": str(folder)}
        done = program.run("run", HTTP, "-o", self.scratch / "out", env=env)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("container/small cannot run on this host: the program runc is not installed", done.stderr)
        self.assertFalse((self.scratch / "out").exists())
        code, plan = program.run_json("run", HTTP, "--dry-run", "--skip-missing", env=env)
        self.assertEqual(code, 0)
        cells = {trial["cell"] for trial in plan["trials"]}
        self.assertIn("wrapper/small", cells)
        self.assertFalse({"proxy/stream", "container/small", "container/echo"} & cells)
        (folder / "runc").symlink_to(shutil.which("runc"))
        done = program.run("run", HTTP, "-o", self.scratch / "out", env=env)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("proxy/stream cannot run on this host: the program haproxy is not installed", done.stderr)

    def test_container_that_is_left_behind(self):
        """A kill leaves runc's group with the command in it, which the next campaign with a container ends and removes."""
        def folders():
            return {p.name for p in pathlib.Path("/run").glob("assay-runc-*")}

        before = folders()
        manifest = self.scratch / "left.yaml"
        manifest.write_text(CONTAINER.replace("true", "sleep, 1000"))
        run = subprocess.Popen([program.ASSAY, "run", manifest, "-o", self.scratch / "left"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        left = []
        deadline = time.monotonic() + 60
        while not left and time.monotonic() < deadline:
            left = [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if program.read_or_nothing(p) == b"sleep\x001000\0"]
        self.assertTrue(left, "the container did not begin")
        run.kill()
        run.wait()
        groups = set(program.host_state()["groups"]) - set(self.before["groups"])
        self.assertTrue(groups)
        self.assertTrue(folders() - before)
        manifest.write_text(CONTAINER)
        done = program.run("run", manifest, "-o", self.scratch)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(folders(), before)
        self.assertFalse(groups & set(program.host_state()["groups"]))
        self.assertEqual(program.read_or_nothing(left[0]), b"")

    def test_program_that_nobody_may_run(self):
        """A command in the sandbox is not root, and the client is this program."""
        folder = self.scratch / "private"
        folder.mkdir(mode=0o700)
        shutil.copy(program.ASSAY, folder / "assay")
        done = subprocess.run([folder / "assay", "run", "exp-020", "--dry-run"], text=True, capture_output=True, timeout=60,
                              env=dict(os.environ, ASSAY_EXPERIMENTS=str(program.ROOT / "experiments")))
        self.assertEqual((done.returncode, done.stdout), (6, ""))
        self.assertIn(f"since others may not enter {self.scratch}", done.stderr)

    def test_failures_are_counted_and_named(self):
        """Requests that take longer than they may, and a command that fails."""
        done, archive = self.run_one(text=WRONG)
        self.assertEqual(done.returncode, 3)
        for path, trial in self.trials(archive, "proxy-stream"):
            self.assertEqual(trial["notes"]["failures"][0]["cause"], "no response in time")
            self.assertEqual((trial["counts"]["failed"], trial["counts"]["completed"]), (5, 0))
            self.assertEqual({row[1] for row in samples(path)[1]}, {""})
        for path, trial in self.trials(archive, "native-start"):
            self.assertEqual((trial["counts"]["failed"], trial["notes"]["first_failure"]), (5, "run 0 ended with status 3: "))
            self.assertEqual({row[1] for row in samples(path)[1]}, {""})
        self.assertIn("failed of proxy/stream at most 0", done.stdout)
        self.assertEqual(program.run("verify", archive).returncode, 0)

    def test_lookup_of_a_denied_name(self):
        """A policy without names: no look-up is answered, and none has a duration."""
        done, archive = self.run_one(text=HTTP.read_text().partition("hypotheses:")[0] + LOST)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        for path, trial in self.trials(archive, "walled-lookup"):
            self.assertTrue(trial["valid"], trial["reason"])
            self.assertEqual((trial["counts"]["failed"], trial["counts"]["completed"]), (5, 0))
            self.assertEqual([f["cause"] for f in trial["notes"]["failures"]], ["Operation not permitted"])
            self.assertEqual({row[1] for row in samples(path)[1]}, {""})
        self.assertEqual(program.run("verify", archive).returncode, 0)

    def test_other_proxies(self):
        for name in ("tinyproxy", "squid"):
            with self.subTest(name):
                program.need(name, shutil.which(name) is not None)
                text = WRONG.replace("haproxy", name).replace("timeout: 1ms", "timeout: 5s").replace("300ms", "1ms")
                done, archive = self.run_one(text=text.replace("id: http", f"id: http-{name}"))
                for path, trial in self.trials(archive, "proxy-stream"):
                    self.assertTrue(trial["valid"], trial["reason"])
                    self.assertEqual((trial["boundary"]["proxy"], trial["boundary"]["form"]), (name, "forward"))
                    self.assertEqual((trial["counts"]["failed"], trial["counts"]["completed"]), (0, 5))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                shutil.rmtree(archive)

    def test_proxy_cannot_start(self):
        """What it says for itself is the reason of the trial."""
        folder = self.scratch / "bin"
        folder.mkdir()
        (folder / "haproxy").write_text("#!/bin/sh\necho no license today >&2\nexit 1\n")
        (folder / "haproxy").chmod(0o755)
        done, _ = self.run_one(text=WRONG, env={"PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("haproxy ended: no license today", done.stdout + done.stderr)

    def test_plan_of_the_experiment(self):
        for args in ((), ("--short",)):
            code, plan = program.run_json("run", "exp-020", "--dry-run", *args)
            self.assertEqual(code, 0)
            cells = {trial["cell"] for trial in plan["trials"]}
            self.assertLessEqual({"native/small", "wall/bulk", "proxy/stream", "deny-all/deny", "haproxy/small",
                                  "bubblewrap/start", "open/deny", "runc/small", "runc/start", "native/echo", "wall/echo",
                                  "proxy/echo", "native/lookup", "wall-by-name/lookup", "proxy-by-name/lookup"}, cells)
            self.assertEqual({"wall/https", "proxy/https", "native/https", "wall/keep-alive"} <= cells, not args)
            self.assertEqual(len(plan["trials"]), len(cells) * (9 if args else 33))  # with 1 and 3 of warm-up

    def test_wrong_places(self):
        for change, message in [
            (("wrapper: {boundary: {kind: wrapper, program: bwrap}}",
              "wrapper: {boundary: {kind: wrapper, program: bwrap, network: none}}"), "this boundary has none"),
            (("{kind: wrapper, program: bwrap}", "{kind: wrapper, program: bwarp}"), "is not one of bwrap, runc"),
            (("{kind: wrapper, program: bwrap, network: none}", "{kind: wrapper, program: runc, network: none}"),
             "none is only for bwrap"),
            (("{kind: wrapper, program: bwrap}", "{kind: wrapper}"), "program"),
            (("{kind: command, argv: [\"true\"], runs: 5, warmup: 1}", "{kind: monitor-decision}"),
             "does not run in the boundary wrapper"),
            (("events: 3", "tls: true, events: 3"), "tls does not go through an ordinary proxy"),
            (("closed: [start, deny]", "closed: [small, deny]"), "this boundary has none"),
            (("closed: [start, deny]", "closed: [echo, deny]"), "this boundary has none"),
            (("proxy: [stream]", "proxy: [stream, echo]"), "datagrams do not go through an ordinary proxy"),
            (("ask: echo", "ask: ecco"), "is not one of echo, lookup"),
            (("ask: echo, ", ""), "ask"),
            (("size: 1000B", "size: 15B"), "size"),
            (("size: 1000B", "size: 65508B"), "size"),
            (("enforce: none", "enforce: nome"), "did you mean \"none\"?"),
            (("{kind: command, argv: [\"true\"], runs: 5, warmup: 1}", "{kind: escape}"),
             "escape does not run in the boundary wrapper"),
            (("argv: [\"true\"]", "argv: []"), "names no program"),
            (("origin-cpu: 0", "origin-cpu: 1000"), "processor 1000"),
        ]:
            done, archive = self.run_one(change)
            self.assertIn(done.returncode, (2, 6), change)
            self.assertIn(message, done.stderr)
            self.assertIsNone(archive)


if __name__ == "__main__":
    program.main()
