# SPDX-License-Identifier: Apache-2.0
"""assay policy learn: what a command did becomes the policy under which it can do just that."""
import os
import pathlib
import tempfile
import unittest

import origin
import program
from sandbox import PYTHON

setUpModule = origin.set_up
CURL = ["curl", "-sS", "--max-time", "20"]


class Learn(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="assay-learn-")
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name) / "learned.yaml"

    def learn(self, *args):
        return program.run("policy", "learn", "-o", self.path, "--", *args)

    def exec(self, *args):
        return program.run("exec", "--policy", self.path, "--enforce", "proxy", "--", *args)

    def rules(self):
        return [line.strip("- ") for line in self.path.read_text().splitlines() if line.startswith("  - ")]

    def test_addresses(self):
        urls = [f"http://{origin.HERE}:{origin.OPEN}/", f"http://[{origin.HERE6}]:{origin.OPEN}/"]
        done = self.learn(*CURL, *urls)
        self.assertEqual((done.returncode, done.stdout), (0, "okok"), done.stderr)
        self.assertIn("learned.yaml has 2 rules; read it before you use it", done.stderr)
        self.assertEqual(self.rules(), [f"{{address: {origin.HERE}, port: {origin.OPEN}}}",
                                        f'{{address: "{origin.HERE6}", port: {origin.OPEN}}}'])
        self.assertEqual(self.exec(*CURL, *urls).stdout, "okok")
        self.assertEqual(self.exec(*CURL, f"http://{origin.HERE}:{origin.CLOSED}/").returncode, 7)

    def test_names(self):
        urls = [f"http://{name}.allowed.example:{origin.OPEN}/" for name in ("www", "inside")]
        done = self.learn(*CURL, "-4", *urls)
        self.assertEqual((done.returncode, done.stdout), (0, "okok"), done.stderr)
        self.assertEqual(self.rules(), [f"{{host: inside.allowed.example, port: {origin.OPEN}}}",
                                        f"{{host: www.allowed.example, port: {origin.OPEN}}}",
                                        f"{{address: {origin.HERE}, port: {origin.OPEN}}}"])
        self.assertEqual(self.exec(*CURL, "-4", *urls).stdout, "okok")
        done = self.exec(*CURL, "-4", f"http://www.denied.example:{origin.OPEN}/")
        self.assertEqual((done.returncode, done.stdout), (6, ""))  # curl's: could not resolve

    def test_datagrams(self):
        script = f"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('{origin.HERE}', 9007))"
        done = self.learn(PYTHON, "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.rules(), [f"{{address: {origin.HERE}, port: 9007, transport: udp}}"])
        self.assertEqual(program.without_asan(self.exec(PYTHON, "-c", script).stderr), "")
        self.assertNotEqual(self.exec(PYTHON, "-c", script.replace("9007", "9008")).returncode, 0)

    def test_the_command_is_itself(self):
        self.assertEqual(self.learn("sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.rules(), [])
        self.assertTrue(os.access(self.path, os.R_OK))
        done = self.learn("true")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("learned.yaml is there already; name another file with --output", done.stderr)

    def test_what_cannot_run_leaves_nothing(self):
        self.assertEqual(self.learn("/nonexistent").returncode, 127)
        self.assertFalse(self.path.exists())

    def test_what_was_denied_is_a_comment(self):
        done = self.learn(*CURL, "http://169.254.169.254/")
        self.assertEqual(done.returncode, 7)
        self.assertIn("# denied even while it was only watched: tcp 169.254.169.254:80\n", self.path.read_text())


if __name__ == "__main__":
    program.main()
