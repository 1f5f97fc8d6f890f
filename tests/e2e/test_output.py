# SPDX-License-Identifier: Apache-2.0
"""Whatever is printed either arrives or is an error: --help of every verb, and every result, on a standard output that is
full or closed."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import program

TINY = program.ROOT / "tests" / "cases" / "campaigns" / "tiny.yaml"
LOOPBACK = "127.0.0.1"


class Output(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-e2e-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        packed = sorted((program.ROOT / "results").glob("*.tar.zst"))[0]
        subprocess.run(["tar", "--zstd", "-xf", packed, "-C", cls.scratch], check=True)
        cls.archive = cls.scratch / packed.name.removesuffix(".tar.zst")
        cls.program = cls.scratch / "program"
        cls.program.write_text("r0 = 42\nexit\n")
        cls.certificate = cls.scratch / "certificate"

    def to_device(self, args):
        """What happens with standard output on a full device."""
        with open("/dev/full", "w", encoding="ascii") as full:
            return program.run(*args, stdout=full, capture_output=False, stderr=subprocess.PIPE,
                               env={"XDG_RUNTIME_DIR": str(self.scratch)})

    def check(self, args, wanted=(0,)):
        """That it prints something when it can, and fails with a message when it cannot."""
        well = program.run(*args, env={"XDG_RUNTIME_DIR": str(self.scratch)})
        self.assertIn(well.returncode, wanted, f"{args}: {well.stderr}")
        self.assertNotEqual(well.stdout, "", args)
        full = self.to_device(args)
        self.assertEqual(full.returncode, 1, args)
        self.assertIn("cannot write to standard output: No space left on device", full.stderr, args)

    def test_help(self):
        paths = [[]]
        while paths:
            path = paths.pop()
            self.check([*path, "--help"])
            listed = program.run(*path, "--help").stdout.split("\n\n")
            if "VERB" in listed[0]:
                paths += [[*path, line.split()[0]] for part in listed for line in part.splitlines()
                          if line.startswith("  ") and line[2].isalpha()]

    def test_version(self):
        self.check(["--version"])

    def test_results(self):
        asm = ["--asm", self.program]
        made = program.run("bpf", "check", *asm, "--certificate", self.certificate)
        self.assertEqual(made.returncode, 0, made.stderr)
        rows = [
            ["list"], ["reference"], ["show", self.archive], ["verify", self.archive], ["bpf", "check", *asm],
            ["bpf", "explain", *asm], ["bpf", "exec", *asm], ["bpf", "disasm", *asm],
            ["bpf", "audit", *asm, self.certificate], ["reflex", "decide", "pwm:1", "5"],
            ["policy", "check", program.ROOT / "examples" / "one-origin.yaml"],
            ["policy", "explain", program.ROOT / "examples" / "one-origin.yaml", "tcp://192.0.2.1:80"],
            ["reflex", "corpus"], ["load", "send", LOOPBACK, "--duration", "10ms"],
        ]
        for row in rows:
            self.check(row, (0, 3, 4))
            if "--json" in program.run(*row[:1 + (row[0] in ("bpf", "reflex", "load", "policy"))], "--help").stdout:
                self.check([*row, "--json"], (0, 3, 4))

    def test_results_of_the_host(self):
        program.need_root()
        for row in [["doctor"], ["testbed", "status"], ["run", TINY, "--dry-run"]]:
            self.check(row, (0, 6))
            self.check([*row, "--json"], (0, 6))
        self.check(["bpf", "calibrate"])

    def test_verdict_codes_do_not_hide_it(self):
        """A result that would end in another code than 0 still ends in 1, and says why."""
        broken = self.scratch / "broken"
        broken.write_text("r0 = *(u64 *)(r2 + 0)\nexit\n")
        self.check(["bpf", "check", "--asm", broken], (3,))
        (self.archive / "data" / "extra").write_text("x")
        self.addCleanup((self.archive / "data" / "extra").unlink)
        self.check(["verify", self.archive], (5,))
        self.check(["probe", "send", LOOPBACK + ":9", "--count", "1", "--linger", "10ms", "--quiet"], (1,))
        self.check(["udp", "ask", LOOPBACK + ":9", "--count", "1", "--timeout", "10ms", "--quiet"], (1,))

    def test_every_locale(self):
        """A decimal comma and other orders of letters change no byte."""
        program.need("localedef", shutil.which("localedef") and pathlib.Path("/usr/share/i18n/locales/de_DE").exists())
        made = subprocess.run(["localedef", "--no-archive", "-i", "de_DE", "-f", "UTF-8", self.scratch / "de_DE.UTF-8"],
                              capture_output=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        german = {"LOCPATH": str(self.scratch), "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "LANGUAGE": "de"}
        for args in [["show", self.archive], ["show", self.archive, "--json"], ["verify", self.archive], ["list"],
                     ["reflex", "decide", "pwm:1", "5@1.5ms"], ["bpf", "exec", "--asm", self.program],
                     ["run", TINY, "--set", "seed=1,5"], ["run", TINY, "--set", "workload.duration=0,5s"]]:
            plain, other = program.run(*args, env={"LC_ALL": "C"}), program.run(*args, env=german)
            self.assertEqual((plain.returncode, plain.stdout, plain.stderr), (other.returncode, other.stdout, other.stderr))

    def test_small_stack(self):
        """64 KiB suffice for everything that reads outside bytes; test_run.py has a whole campaign."""
        for args in [["--version"], ["list"], ["show", self.archive], ["verify", self.archive], ["reference"],
                     ["bpf", "check", "--asm", self.program], ["bpf", "exec", "--asm", self.program],
                     ["reflex", "decide", "pwm:1", "5"]]:
            done = program.run(*args, before=program.small_stack())
            self.assertEqual((done.returncode, done.stderr), (0, ""), args)

    def test_links_are_not_followed(self):
        """Whatever part of an archive is a link: nothing that it leads to is shown, by no verb that reads archives."""
        outside = self.scratch / "outside"
        outside.write_text("id: secret\ntitle: secret\ncaveats: [secret]\n")
        trial = sorted(p.name for p in (self.archive / "data" / "trials").iterdir())[0]
        for part in ["data", "data/manifest.yaml", "data/plan.json", "data/summary.json", "data/verdict.json",
                     "data/journal.jsonl", "data/run-env.json", "data/trials", f"data/trials/{trial}",
                     f"data/trials/{trial}/trial.json", f"data/trials/{trial}/samples.csv.zst", "manifest-sha256.txt"]:
            copy = self.scratch / "copy"
            shutil.copytree(self.archive, copy)
            target = copy / part
            if target.is_dir():
                target.rename(self.scratch / "moved")
                target.symlink_to(self.scratch / "moved")
            else:
                target.unlink()
                target.symlink_to(outside)
            shown, verified = program.run("show", copy), program.run("verify", copy)
            for done in [shown, verified]:
                self.assertNotIn("secret", done.stdout + done.stderr, part)
            self.assertIn(verified.returncode, (2, 5), f"{part}: {verified.stderr}")
            if part == "data/manifest.yaml":
                self.assertIn("data/manifest.yaml: it is a link", shown.stdout)
            shutil.rmtree(copy)
            shutil.rmtree(self.scratch / "moved", ignore_errors=True)

    def test_closed(self):
        for args in [["--help"], ["run", "--help"], ["list"], ["show", self.archive]]:
            done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", program.ASSAY, *map(str, args)], text=True,
                                  stderr=subprocess.PIPE, check=False,
                                  env=dict(os.environ, ASSAY_EXPERIMENTS=str(program.ROOT / "experiments")))
            self.assertEqual(done.returncode, 1, args)
            self.assertIn("cannot write to standard output: ", done.stderr)


if __name__ == "__main__":
    program.main()
