# SPDX-License-Identifier: Apache-2.0
"""libassay-bpf as somebody else gets it: installed somewhere, found by pkg-config, compiled against from C and C++."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

import program

BUILD = os.environ["ASSAY_BUILD"]
CC = shlex.split(os.environ["ASSAY_CC"])
CXX = shlex.split(os.environ["ASSAY_CXX"])  # empty where there is no C++ compiler
SANITIZE = os.environ["ASSAY_SANITIZE"]

COUNT_C = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct event { unsigned int kind, value; };
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 8); __type(key, unsigned int);
         __type(value, unsigned long long); } totals SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } out SEC(".maps");
const volatile unsigned int weights[8] = {1, 1, 1, 1, 1, 1, 1, 1};
SEC("event") unsigned long long count(const struct event *event)
{
        struct event copy = *event;
        unsigned int kind = event->kind;
        unsigned long long *total = bpf_map_lookup_elem(&totals, &kind);
        if (!total)
                return 0;
        *total += event->value * weights[kind & 7];
        bpf_ringbuf_output(&out, &copy, sizeof(copy), 0);
        return *total;
}
SEC("event") int broken(const struct event *event)
{
        volatile unsigned int wild[4] = {0};
        return wild[event->kind];
}
"""


def run(*command, **kwargs):
    return subprocess.run([str(c) for c in command], text=True, capture_output=True, check=False, timeout=120, **kwargs)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.scratch = pathlib.Path(folder.name)
        cls.root = cls.scratch / "root"
        done = run("meson", "install", "-C", BUILD, "--no-rebuild", "--tags", "devel,runtime", "--destdir", cls.root)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.library, = cls.root.rglob("libassay-bpf.so")
        (cls.scratch / "count.c").write_text(COUNT_C)
        cls.object = cls.scratch / "count.o"
        machine = run(*CC, "-print-multiarch").stdout.strip()
        done = run("clang", "-O2", "-g", "-target", "bpf", "-idirafter", f"/usr/include/{machine}", "-c",
                   cls.scratch / "count.c", "-o", cls.object)
        assert done.returncode == 0, done.stderr
        cls.env = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=str(cls.root), PKG_CONFIG_PATH=str(cls.library.parent / "pkgconfig"),
                       LD_LIBRARY_PATH=str(cls.library.parent))

    def compile(self, compiler, source, *flags):
        found = run("pkg-config", "--cflags", "--libs", "assay-bpf", env=self.env)
        self.assertEqual(found.returncode, 0, found.stderr)
        output = self.scratch / (pathlib.Path(source).stem + "-" + pathlib.Path(compiler[0]).name)
        sanitize = [] if SANITIZE == "none" else [f"-fsanitize={SANITIZE}"]
        done = run(*compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", *sanitize, *flags, source, "-o", output,
                   *shlex.split(found.stdout))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return output

    def test_goes_where_debian_looks(self):
        """Left alone, Meson takes lib64 on a Debian without dpkg-dev, where neither ld.so nor pkg-config looks."""
        options = json.loads(run("meson", "introspect", "--buildoptions", program.ROOT / "meson.build").stdout)
        self.assertEqual([option["value"] for option in options if option["name"] == "libdir"], ["lib"])

    def test_example(self):
        example = self.compile(CC, program.ROOT / "examples" / "libassay-bpf" / "check-and-run.c", "-std=c11")
        done = run(example, self.object, env=self.env)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertRegex(done.stdout, r"(?m)^count: accepted, at most \d+ ns and \d+ bytes of stack\n  returned 0$")
        self.assertRegex(done.stdout, r"(?m)^broken: refused: bounds: ")
        self.assertRegex(done.stdout, r"count\.c:\d+: return wild\[event->kind\]")
        done = run(example, self.scratch / "count.c", env=self.env)
        self.assertEqual(done.returncode, 1)  # bytes that are no ELF file are taken for instructions
        self.assertIn("refused: length", done.stdout)

    def test_from_c(self):
        for standard in ["-std=c99", "-std=gnu17"]:
            user = self.compile(CC, program.ROOT / "tests" / "e2e" / "library-user.c", standard)
            done = run(user, self.object, env=self.env)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_from_cpp(self):
        program.need("c++", CXX)
        for standard in ["-std=c++11", "-std=c++20"]:
            user = self.compile(CXX, program.ROOT / "tests" / "e2e" / "library-user.c", standard, "-x", "c++")
            done = run(user, self.object, env=self.env)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_what_is_exported(self):
        """What the header declares, each with the interface's version, and nothing else."""
        header, = self.root.rglob("assay-bpf.h")
        declared = set(re.findall(r"\b(assay_bpf_\w+)\(", re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)))
        self.assertGreater(len(declared), 20)
        symbols = [line.split()[-1] for line in run("nm", "-D", "--defined-only", self.library).stdout.splitlines()]
        exported = {symbol for symbol in symbols if symbol != "ASSAY_BPF_1" and not symbol.startswith("__")}
        self.assertEqual(exported, {name + "@@ASSAY_BPF_1" for name in declared})
        self.assertEqual([p.name for p in header.parent.iterdir() if p.suffix == ".h"], ["assay-bpf.h"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
