# SPDX-License-Identifier: Apache-2.0
"""assay bpf: programs from raw bytes, hexadecimal, assembly and compiled C, as a user gives them."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import program

RETURN_42 = "b70000002a0000009500000000000000"

C_SOURCE = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct sample { unsigned int value; unsigned int scale; };
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } out SEC(".maps");
static unsigned int runs;
static __attribute__((noinline)) unsigned int twice(unsigned int x) { runs++; return 2 * x; }
SEC("event") int scale(const struct sample *s)
{
        unsigned int v = twice(s->value) * s->scale;
        bpf_printk("value %u", v);
        bpf_ringbuf_output(&out, &v, sizeof(v), 0);
        return runs;
}
SEC("event") int broken(const struct sample *s)
{
        unsigned int a[4];
        volatile unsigned int *p = a;
        return p[s->value];
}
"""


def run_with_input(text, *args):
    return subprocess.run([program.ASSAY, "bpf", *args], input=text, text=True, capture_output=True, check=False, timeout=60)


class Raw(unittest.TestCase):
    def test_hex(self):
        for text in [RETURN_42, " ".join(RETURN_42[i:i + 2] for i in range(0, 32, 2)) + "\n", RETURN_42.upper()]:
            done = run_with_input(text, "exec", "--hex", "-")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout, "r0 = 0x2a (42), 2 instructions\n")

    def test_raw_bytes(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes.fromhex(RETURN_42))
            file.flush()
            code, result = program.run_json("bpf", "exec", file.name)
        self.assertEqual(code, 0)
        self.assertEqual((result["r0"], result["instructions_run"]), ("0x2a", 2))

    def test_assembly_and_back(self):
        done = run_with_input("r0 = *(u16 *)(r1 + 2)\nif w0 s> 5 goto +1\nr0 = 0\nexit\n", "disasm", "--asm", "-")
        self.assertEqual(done.returncode, 0)
        lines = re.findall(r"^ +\d+: [0-9a-f]{16}  (.*)$", done.stdout, re.M)
        self.assertEqual(lines, ["r0 = *(u16 *)(r1 + 2)", "if w0 s> 5 goto +1", "r0 = 0", "exit"])

    def test_memory_and_context(self):
        text = "r0 = *(u32 *)(r1 + 0)\n*(u8 *)(r1 + 4) = 7\nexit\n"
        done = run_with_input(text, "exec", "--asm", "-", "--mem", "78 56 34 12 00", "--json")
        self.assertIn('"r0": "0x12345678"', done.stdout)
        self.assertIn('"memory": "7856341207"', done.stdout)
        done = run_with_input(text, "exec", "--asm", "-", "--context", "8B:ro")
        self.assertEqual(done.returncode, 1)
        self.assertIn("read-only at slot 1", done.stdout)
        done = run_with_input(text, "exec", "--asm", "-", "--mem", "0000", "--context", "1B")
        self.assertEqual(done.returncode, 2)
        self.assertIn("2 bytes, but the program's context", done.stderr)

    def test_maps(self):
        text = "*(u32 *)(r10 - 4) = 9\nr1 = map[0]\nr2 = r10\nr2 += -4\ncall map_lookup_elem\nif r0 != 0 goto +0\nr0 = 3\nexit\n"
        done = run_with_input(text, "exec", "--asm", "-", "--map", "hash:4:8:4")
        self.assertEqual(done.stdout, "r0 = 0x3 (3), 8 instructions\n")
        done = run_with_input(text, "exec", "--asm", "-")
        self.assertEqual(done.returncode, 3)
        self.assertIn("map at slot 1", done.stdout)
        for spec in ["array:8:8:1", "array:4:8", "list:4:8:1", "array:4:8:1:1", "ring:0:0:1000", ""]:
            done = run_with_input(text, "exec", "--asm", "-", "--map", spec)
            self.assertEqual((done.returncode, done.stdout), (2, ""), spec)
            self.assertIn("--map", done.stderr)

    def test_faults(self):
        for text, options, code, message in [
            ("r0 = r3\nexit", [], 1, "uninit-register at slot 0: reads r3"),
            ("r0 = r3\nexit", ["--lax"], 0, "r0 = 0x0"),
            (".slot ff00000000000000\nexit", [], 3, "opcode at slot 0"),
            ("r0 = 0\ngoto -1", ["--steps", "100"], 1, "step-limit at slot 1: 100 instructions"),
        ]:
            done = run_with_input(text, "exec", "--asm", "-", *options)
            self.assertEqual(done.returncode, code, text)
            self.assertIn(message, done.stdout)

    def test_no_program(self):
        for text, option, message in [("b7", "--hex", "length"), ("b7 zz", "--hex", "1:4: expected pairs"),
                                      ("r0 = frog\n", "--asm", "1:6: expected"), ("", "--hex", "length")]:
            done = run_with_input(text, "exec", option, "-")
            self.assertIn(done.returncode, (2, 3))
            self.assertIn(message, done.stdout + done.stderr)

    def test_text_is_no_program(self):
        done = run_with_input("int f(void) { return 0; }\n", "check", "-")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("clang -target bpf", done.stderr)

    def test_plugin(self):
        done = run_with_input(RETURN_42, "exec", "--plugin")
        self.assertEqual((done.returncode, done.stdout), (0, "2a\n"))
        # r0 = the length that the memory has, plus its first byte
        code = "bf20000000000000 7113000000000000 0f30000000000000 9500000000000000"
        done = run_with_input(code, "exec", "--plugin", "10 20 30 ")
        self.assertEqual((done.returncode, done.stdout), (0, "13\n"))
        done = run_with_input("7900000000000000 9500000000000000", "exec", "--plugin")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertIn("null", done.stderr)


class Calibrate(unittest.TestCase):
    def test_table(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "costs.json"
            done = program.run("bpf", "calibrate", "--margin", "2", "--output", path)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"(?m)^divide +[0-9.]+ +12\.00$")
            table = json.loads(path.read_text())
        self.assertEqual(table["assay"], 1)
        self.assertEqual(len(table["class_ps"]), 10)
        self.assertTrue(all(cost > 0 for cost in [*table["class_ps"].values(), *table["helper_ps"].values()]))
        self.assertEqual(program.run("bpf", "calibrate", "--margin", "0.5").returncode, 2)


class Check(unittest.TestCase):
    def test_accepted(self):
        done = run_with_input(RETURN_42, "check", "--hex", "-")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("accepted for profile full", done.stdout)
        self.assertIn("2 transfers of at most 8", done.stdout)

    def test_refused(self):
        text = "r2 = *(u32 *)(r1 + 0)\nr0 = 0\nif r2 != 0x1234567 goto +1\nr0 = *(u64 *)(r10 - 8)\nexit\n"
        done = run_with_input(text, "check", "--asm", "--context", "16B", "-")
        self.assertEqual((done.returncode, done.stderr), (3, ""))
        self.assertIn("uninit-stack at slot 3", done.stdout)
        self.assertIn("way there, by slots: 0 > 3", done.stdout)
        self.assertIn("context 67452301", done.stdout)
        self.assertIn("try: ", done.stdout)
        done = run_with_input(text, "check", "--asm", "--context", "16B", "--json", "-")
        result = json.loads(done.stdout)["programs"][0]
        self.assertFalse(result["accepted"])
        self.assertEqual((result["fault"]["kind"], result["fault"]["slot"]), ("uninit-stack", 3))
        example = result["counterexample"]
        self.assertEqual((example["fault"]["kind"], example["fault"]["slot"]), ("uninit-stack", 3))
        done = run_with_input(text, "exec", "--asm", "--mem", example["context"], "-")
        self.assertEqual(done.returncode, 1)
        self.assertIn("uninit-stack at slot 3", done.stdout)

    def test_replay(self):
        lookup = "*(u32 *)(r10 - 4) = 9\nr1 = map[0]\nr2 = r10\nr2 += -4\ncall map_lookup_elem\n"
        for text, options in [
            (lookup + "if r0 == 0 goto +3\nr1 = *(u64 *)(r0 + 0)\nif r1 != 77 goto +1\nr0 = r9\nr0 = 0\nexit\n",
             ["--map", "hash:4:8:4"]),
            ("call ktime_get_ns\nif r0 != 1234 goto +1\nr0 = r9\nexit\n", []),
            ("r0 = *(u8 *)(r1 + 9)\nif r0 != 5 goto +1\nr0 = r9\nexit\n", ["--context", "16B"]),
        ]:
            done = run_with_input(text, "check", "--asm", *options, "-")
            self.assertEqual(done.returncode, 3)
            slot = re.search(r"uninit-register at slot (\d+)", done.stdout).group(1)
            replay = re.search(r"replay: assay bpf exec (.*) and the same file", done.stdout).group(1).split()
            self.assertIn(replay[0], ("--entry", "--answer", "--mem"))
            done = run_with_input(text, "exec", "--asm", *options, *replay, "-")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"uninit-register at slot {slot}", done.stdout)
            # it is this input, not any
            self.assertEqual(run_with_input(text, "exec", "--asm", *options, "-").returncode, 0)

    def test_wrong_entries_and_answers(self):
        for option, value in [("--entry", "map1:00:00"), ("--entry", "map0"), ("--entry", "map0:00000000:00"), ("--entry", "")]:
            done = run_with_input("r0 = 0\nexit\n", "exec", "--asm", "--map", "hash:4:8:4", option, value, "-")
            self.assertEqual((done.returncode, done.stdout), (2, ""), value)
            self.assertIn(option, done.stderr)
        for value in ["", "x", "0x", "7 ", "99999999999999999999"]:
            self.assertEqual(run_with_input("r0 = 0\nexit\n", "exec", "--asm", "--answer", value, "-").returncode, 2, value)

    def test_without_optimisation(self):
        done = run_with_input("b7000000 00000000 8d000000 02000000 95000000 00000000", "check", "--hex", "-")
        self.assertEqual(done.returncode, 3)
        self.assertIn("try: Compile with -O2", done.stdout)

    def test_not_proven(self):
        # 5 * 5 is 25, which the check does not know of squares
        text = "r0 = *(u8 *)(r1 + 0)\nr0 *= r0\nif r0 != 26 goto +1\nr0 = r7\nexit\n"
        done = run_with_input(text, "check", "--asm", "--context", "16B", "-")
        self.assertEqual(done.returncode, 3)
        self.assertIn("could not prove", done.stdout)

    def test_profiles(self):
        text = "r0 = 0\nr0 += 1\nif r0 < 9 goto -2\nexit\n"
        self.assertEqual(run_with_input(text, "check", "--asm", "-").returncode, 0)
        done = run_with_input(text, "check", "--asm", "--profile", "embedded", "-")
        self.assertEqual(done.returncode, 3)
        self.assertIn("loop at slot 2", done.stdout)
        text = "r1 = 1\nr2 = 0\ncall gpio_set\nexit\n"
        for options, code in [([], 3), (["--actuation", "allow"], 0), (["--profile", "embedded"], 0),
                              (["--profile", "embedded", "--actuation", "deny"], 3)]:
            self.assertEqual(run_with_input(text, "check", "--asm", "-", *options).returncode, code, options)
        self.assertEqual(run_with_input(text, "check", "--asm", "-", "--profile", "cloud").returncode, 2)

    def test_explain(self):
        text = "r0 = *(u8 *)(r1 + 0)\nr0 &= 7\nexit\n"
        done = run_with_input(text, "explain", "--asm", "--context", "1B", "-")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"1: r0 &= 7\n +r0: 0 to 255; r1: context\+0\n +2: exit\n +r0: 0 to 7")

    def test_certificate(self):
        text = "r0 = *(u8 *)(r1 + 0)\nr2 = 0\nr2 += 1\nif r2 < r0 goto -2\nexit\n"
        with tempfile.TemporaryDirectory() as folder:
            source, certificate = pathlib.Path(folder) / "prog.s", pathlib.Path(folder) / "prog.cert"
            source.write_text(text)
            args = ["--asm", "--context", "16B", source]
            self.assertEqual(program.run("bpf", "check", *args, "--certificate", certificate).returncode, 0)
            done = program.run("bpf", "audit", *args, certificate)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            code, result = program.run_json("bpf", "audit", *args, certificate)
            self.assertEqual((code, result["holds"]), (0, True))
            # Another program, another profile, a claim that is not true, and no certificate.
            source.write_text(text.replace("r2 = 0", "r2 = 1"))
            done = program.run("bpf", "audit", *args, certificate)
            self.assertEqual(done.returncode, 3)
            self.assertIn("for another program", done.stdout)
            source.write_text(text)
            self.assertEqual(program.run("bpf", "audit", *args, "--actuation", "allow", certificate).returncode, 3)
            claims = json.loads(certificate.read_text())
            claims["contexts"][0]["loops"][0]["least"] = 2
            certificate.write_text(json.dumps(claims))
            done = program.run("bpf", "audit", *args, certificate)
            self.assertEqual(done.returncode, 3)
            self.assertIn("certificate at slot", done.stdout)
            certificate.write_text("{}")
            done = program.run("bpf", "audit", *args, certificate)
            self.assertEqual((done.returncode, done.stdout), (2, ""))


class Compiled(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        (folder / "prog.c").write_text(C_SOURCE)
        triple = subprocess.run(["clang", "-print-multiarch"], text=True, capture_output=True, check=True).stdout.strip()
        subprocess.run(["clang", "-O2", "-g", "-target", "bpf", "-Wno-uninitialized", "-idirafter", f"/usr/include/{triple}",
                        "-c", folder / "prog.c", "-o", folder / "prog.o"], check=True)
        cls.object = folder / "prog.o"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_runs(self):
        code, result = program.run_json("bpf", "exec", "--program", "scale", "--mem", "0500000003000000", self.object)
        self.assertEqual(code, 0)
        self.assertEqual(result["r0"], "0x1")
        self.assertEqual(result["trace"], "value 30\n")
        self.assertEqual(result["rings"], {"out": ["1e000000"]})

    def test_check(self):
        code, result = program.run_json("bpf", "check", self.object)
        self.assertEqual(code, 3)
        by_name = {one["name"]: one for one in result["programs"]}
        self.assertTrue(by_name["scale"]["accepted"])
        self.assertFalse(by_name["broken"]["accepted"])
        self.assertIn("return p[s->value];", by_name["broken"]["fault"]["source"])
        self.assertIsNotNone(by_name["broken"]["counterexample"])

    def test_fault_names_the_source_line(self):
        done = program.run("bpf", "exec", "--program", "broken", self.object)
        self.assertEqual(done.returncode, 1)
        self.assertIn("uninit-stack at slot", done.stdout)
        self.assertRegex(done.stdout, r"prog\.c:19: return p\[s->value\];")

    def test_disassembly_shows_functions_and_source(self):
        done = program.run("bpf", "disasm", self.object)
        self.assertEqual(done.returncode, 0)
        self.assertIn("event/scale:", done.stdout)
        self.assertIn("\ntwice:\n", done.stdout)
        self.assertRegex(done.stdout, r"; .*prog\.c:11 bpf_printk\(\"value %u\", v\);")
        self.assertIn("call ringbuf_output", done.stdout)

    def test_which_program(self):
        done = program.run("bpf", "exec", self.object)
        self.assertEqual(done.returncode, 2)
        self.assertIn("choose one with --program: scale, broken", done.stderr)
        done = program.run("bpf", "exec", "--program", "scal", self.object)
        self.assertEqual(done.returncode, 2)

    def test_plugin_takes_an_object(self):
        text = self.object.read_bytes().hex()
        done = run_with_input(text, "exec", "--plugin", "--elf", "--program", "scale", "0500000003000000")
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"))

    def test_cut_off_object(self):
        whole = self.object.read_bytes()
        for length in [4, 16, 64, 500, len(whole) // 2, len(whole) - 1]:
            with tempfile.NamedTemporaryFile() as file:
                file.write(whole[:length])
                file.flush()
                done = program.run("bpf", "disasm", file.name)
            self.assertEqual(done.returncode, 2, length)
            self.assertNotEqual(done.stderr, "")


class Experiment(unittest.TestCase):
    """exp-030, from the manifest that ships, with fewer points and samples."""

    TINY = "short: {rounds: 6, points: [minimal, add-1000], workload: {samples: 5, batch: 2, warmup-samples: 1}}"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)
        self.manifest = self.scratch / "exp-030.yaml"
        text = (program.ROOT / "experiments" / "exp-030.yaml").read_text()
        self.assertIn("short: {rounds: 8}", text)
        self.manifest.write_text(text.replace("short: {rounds: 8}", self.TINY))

    def test_campaign(self):
        program.need("bpf", program.run("run", self.manifest, "--short", "--dry-run").returncode != 6)
        done = program.run("run", self.manifest, "--short", "-o", self.scratch)
        self.assertIn(done.returncode, [0, 3, 4], done.stdout + done.stderr)  # its verdict is the host's
        self.assertIn("6 of 6 rounds count", done.stdout)
        archive, = self.scratch.glob("exp-030-*")
        verified = program.run("verify", archive)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

        trial = json.loads(next((archive / "data" / "trials").glob("*-kernel-add-1000-r1/trial.json")).read_text())
        self.assertEqual((trial["counts"]["instructions"], trial["counts"]["verifications"]), (1000, 12))
        self.assertEqual(trial["notes"]["verifier"], "linux")
        summary = json.loads((archive / "data" / "summary.json").read_text())
        medians = {cell["cell"]: cell["series"]["verify"]["p50_ns"]["median"] for cell in summary["cells"]}
        self.assertEqual(set(medians), {"assay/minimal", "assay/add-1000", "kernel/minimal", "kernel/add-1000",
                                        "same-same/add-1000"})
        self.assertTrue(all(value > 0 for value in medians.values()), medians)

    def test_missing_right_is_named(self):
        program.need_root()
        self.scratch.chmod(0o777)
        tools = self.scratch / "tools"  # a place that the other user may read
        tools.mkdir()
        for file in [program.ASSAY, self.manifest]:
            shutil.copy(file, tools)
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", tools / "assay", "run",
                               tools / "exp-030.yaml", "--short", "-o", self.scratch], text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, check=False)
        self.assertEqual((done.returncode, done.stdout), (6, ""), done.stderr)
        self.assertIn("kernel/minimal", done.stderr)
        self.assertIn("CAP_BPF", done.stderr)
        self.assertEqual(list(self.scratch.glob("exp-030-*")), [])

    def test_unknown_program(self):
        done = program.run("run", self.manifest, "--dry-run", "--set", "workload.program=add:2")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn('workload.program: there is no "add:2"', done.stderr)


if __name__ == "__main__":
    program.main()
