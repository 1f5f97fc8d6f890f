# SPDX-License-Identifier: Apache-2.0
"""assay reflex: programs attached, actuating in the simulation, refused; the monitor asked, and its corpora."""
import pathlib
import signal
import subprocess
import tempfile
import unittest

import program

C_SOURCE = r"""
#include "bpf/reflex.h"
#define SEC(name) __attribute__((section(name), used))
SEC("reflex") long tick(const struct reflex_event *event)
{
        return pwm_write(1, event->sequence);
}
SEC("reflex") long button(const struct reflex_event *event)
{
        gpio_set(17, 1);
        return motor_pair(-5, event->sequence & 1 ? 10 : 15);
}
SEC("reflex") long broken(const struct reflex_event *event)
{
        return pwm_write(1, ((const unsigned long long *)event)[3]);
}
"""


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        source = cls.folder.name + "/prog.c"
        cls.object = cls.folder.name + "/prog.o"
        with open(source, "w", encoding="ascii") as file:
            file.write(C_SOURCE)
        subprocess.run(["clang", "-O2", "-g", "-target", "bpf", f"-I{program.ROOT}", "-c", source, "-o", cls.object],
                       check=True)

    def test_timer_and_event(self):
        code, result = program.run_json("reflex", "run", self.object, "-t", "300ms", "--attach", "tick=timer:1000/s",
                                        "--attach", "button=event:500/s", "--authority", "mission")
        self.assertEqual(code, 0)
        tick, button = result["attachments"]
        self.assertEqual((tick["program"], tick["kind"], button["program"], button["kind"]),
                         ("tick", "timer", "button", "event"))
        self.assertGreater(tick["events"], 0)
        self.assertGreater(button["events"], 0)
        self.assertLessEqual(button["events"] + button["waiting"], 150)
        self.assertEqual(tick["allow"] + tick["clamp"], tick["events"])
        self.assertEqual(button["allow"] + button["clamp"], 3 * button["events"])
        self.assertEqual(button["reject"] + button["safe"], 0)
        self.assertGreaterEqual(button["clamp"], button["events"])  # -5 is below the range
        self.assertEqual(result["channels"]["gpio:17"], 1)
        self.assertIn(result["channels"]["pwm:2"], [10, 15])
        self.assertEqual({record["authority"] for record in result["audit"]}, {"mission"})
        self.assertEqual(button["entry_to_output"]["n"], button["events"])
        self.assertLessEqual(len(result["audit"]), 128)
        self.assertEqual(len(result["audit"]) + result["audit_dropped"], tick["events"] + 3 * button["events"])

    def test_text(self):
        done = program.run("reflex", "run", self.object, "-t", "100ms", "-a", "tick=timer:1000/s", "--audit")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for word in ["tick", "timer:1000/s", "at the end: ", "utilisation admitted", "audit"]:
            self.assertIn(word, done.stdout)

    def test_refused(self):
        done = program.run("reflex", "run", self.object, "-a", "broken=event")
        self.assertEqual((done.returncode, done.stderr), (3, ""))
        self.assertIn("broken: bounds at slot", done.stdout)
        self.assertIn("prog.c:", done.stdout)
        code, result = program.run_json("reflex", "run", self.object, "-a", "broken=event")
        self.assertEqual((code, result["program"], result["refused"]["kind"]), (3, "broken", "bounds"))

    def test_too_much_together(self):
        done = program.run("reflex", "run", self.object, *["-a", "button=event:100000/s"] * 7)
        self.assertEqual(done.returncode, 3)
        self.assertIn("button: utilisation: ", done.stdout)

    def test_interrupted(self):
        process = subprocess.Popen([program.ASSAY, "reflex", "run", self.object, "-a", "tick=timer:100/s", "-t", "1h",
                                    "--json"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while True:  # until it catches the signal, SigCgt in its status
            with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                caught = int(next(line for line in file if line.startswith("SigCgt")).split()[1], 16)
            if caught >> (signal.SIGINT - 1) & 1:
                break
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, errors), (0, ""))
        self.assertIn("attachments", out)

    def test_wrong_usage(self):
        for args, message in [
            (["run", self.object], "Give --attach"),
            (["run", self.object, "-a", "timer"], "expected timer:RATE"),
            (["run", self.object, "-a", "timers:1/s"], "expected timer:RATE"),
            (["run", self.object, "-a", "tick=timer:0/s"], "from 1/s"),
            (["run", self.object, "-a", "tick=timer:5ms"], "a number a second"),
            (["run", self.object, "-a", "timer:1/s"], "--program"),
            (["run", self.object, "-a", "tock=timer:1/s"], "tock"),
            (["run", "no-such-file", "-a", "event"], "no-such-file"),
            (["decide", "pwm", "1"], "such as pwm:1"),
            (["decide", "pwm:1", "9@1"], "9@1"),
            (["decide", "pwm:1", "9.5"], "expected a value"),
            (["decide", "pwm:1"], "expected CHANNEL VALUE"),
            (["decide", "pwm:1", "1", "--authority", "king"], "learned"),
            (["corpus", "--draws", "0"], "draws"),
        ]:
            done = program.run("reflex", *args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertIn(message, done.stderr)


class Monitor(unittest.TestCase):
    def decide(self, *args):
        code, result = program.run_json("reflex", "decide", *args)
        self.assertEqual(code, 0)
        return [(d["answer"], d.get("applied"), d["cause"]) for d in result["decisions"]]

    def test_decide(self):
        self.assertEqual(self.decide("pwm:1", "15", "90", "90@1ms", "95@9ms"),
                         [("allow", 15, "none"), ("clamp", 20, "slew"), ("clamp", 40, "slew"), ("clamp", 60, "slew")])
        self.assertEqual(self.decide("pwm:1", "--slew", "request", "90", "90", "95@1ms"),
                         [("clamp", 20, "slew"), ("clamp", 40, "slew"), ("clamp", 90, "range")])
        self.assertEqual(self.decide("pwm:0", "1"), [("reject", None, "unknown-channel")])
        self.assertEqual(self.decide("gpio:5", "--held", "1"), [("safe", 0, "hold")])
        self.assertEqual(self.decide("gpio:5", "--held", "--stopped", "1"), [("safe", 0, "estop")])

    def test_corpus(self):
        code, result = program.run_json("reflex", "corpus", "--draws", "100000", "--seed", "7")
        self.assertEqual((code, result["as_published"]), (0, True))
        public, own = result["public"], result["own"]
        self.assertEqual([public[k] for k in ["draws", "escapes", "reject", "clamp"]], [1000, 0, 450, 317])
        self.assertEqual((own["draws"], own["escapes"]), (100000, 0))


class Experiments(unittest.TestCase):
    """Campaigns without a boundary: from the manifest that ships to an archive that verifies."""

    def test_campaigns(self):
        for name, settings in [("exp-031", ["samples=100"]), ("exp-032", ["rate=5000/s", "duration=600ms", "warmup=20ms"])]:
            with tempfile.TemporaryDirectory() as scratch:
                done = program.run("run", name, "--short", *[f"--set=workload.{s}" for s in settings], "-o", scratch)
                self.assertIn(done.returncode, [0, 3, 4], done.stdout + done.stderr)  # its verdict is the host's
                self.assertIn("8 of 8 rounds count", done.stdout)
                archive, = pathlib.Path(scratch).glob(name + "-*")
                verified = program.run("verify", archive)
                self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

    def test_kinds_that_do_not_fit(self):
        manifest = (program.ROOT / "experiments" / "exp-031.yaml").read_text()
        packets = "{kind: stamp-probe, from: a, to: b, slice: c, duration: 1s}"
        wrong = manifest.replace("{kind: monitor-decision, samples: 10000, warmup-samples: 500}", packets)
        for name in ["mixed", "allow", "clamp", "safe", "reject"]:
            wrong = wrong.replace(f"{name}: {{workload: {{requests: {name}}}}}", f"{name}: {{}}")
        wrong = wrong.replace(", workload: {repeat: 2}", "").replace("thousand", "rtt")
        wrong = wrong.replace(", workload: {samples: 2000}", "")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(wrong)
            file.flush()
            done = program.run("run", file.name, "--dry-run")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("stamp-probe does not run in the boundary none", done.stderr)


if __name__ == "__main__":
    program.main()
