# SPDX-License-Identifier: Apache-2.0
"""tools/trace-uplink: what it prints, and that nothing of it stays, also when it is killed."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import program

TOOL = pathlib.Path(__file__).parents[2] / "tools/trace-uplink"
INSTANCE = "assay-trace-uplink"
PATIENCE_S = 60


class Trace(unittest.TestCase):
    def setUp(self):
        program.need_root()
        self.tracefs = tempfile.mkdtemp(prefix="assay-e2e-")
        self.addCleanup(os.rmdir, self.tracefs)
        mounted = subprocess.run(["mount", "-t", "tracefs", "none", self.tracefs], capture_output=True)
        program.need("tracefs", mounted.returncode == 0)
        self.addCleanup(subprocess.run, ["umount", self.tracefs])

    def start(self, *args):
        return subprocess.Popen([sys.executable, TOOL, "--seconds", "2", *args], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, cwd=TOOL.parents[1])

    def wait_until(self, condition):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def records(self):
        return os.path.isdir(os.path.join(self.tracefs, "instances", INSTANCE))

    def scratch(self):
        return list(pathlib.Path(tempfile.gettempdir()).glob(INSTANCE + "-*"))

    def test_steps_add_up(self):
        """Of the slowest packets, the steps' means make up the round trip's mean."""
        with self.start("--rate", "50mbit") as tool:
            out, err = tool.communicate(timeout=PATIENCE_S)
        self.assertEqual((tool.returncode, err), (0, ""))
        rows = [line for line in out.splitlines() if "%)" in line and not line.startswith("scheduler")]
        slowest = [float(line[28:].split()[3]) for line in rows]
        self.assertEqual(len(rows), 8)
        self.assertAlmostEqual(sum(slowest[:-1]), slowest[-1], delta=1)
        self.assertFalse(self.records() or self.scratch())

    def test_killed(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.start("--rate", "0") as tool:
                self.wait_until(self.records)
                tool.send_signal(number)
                tool.wait(PATIENCE_S)
            self.wait_until(lambda: not self.records() and not self.scratch())


if __name__ == "__main__":
    program.main()
