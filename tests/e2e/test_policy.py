# SPDX-License-Identifier: Apache-2.0
"""assay policy: policies and what they decide, as a user sees it."""
import os
import pathlib
import tempfile
import unittest

import program

EXAMPLES = sorted((program.ROOT / "examples").glob("*.yaml"))


class Policy(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, text, name="p.yaml", mode=0o600):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def example(self, name):
        """A copy that only we can write, whatever the umask of the checkout was."""
        return self.write((program.ROOT / "examples" / f"{name}.yaml").read_text(), f"{name}.yaml")

    def test_examples_are_valid(self):
        self.assertEqual([path.stem for path in EXAMPLES], ["deny-all", "local-database", "one-origin", "python-packages"])
        for path in EXAMPLES:
            done = program.run("policy", "check", self.example(path.stem))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"valid, sha256 [0-9a-f]{64}\n")

    def test_explain(self):
        path = self.example("python-packages")
        done = program.run("policy", "explain", path, "https://pypi.org/")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines()[:3], [
            "tcp pypi.org:443: allowed", f"  rule  allow[1], {path}:6", "  why   it allows pypi.org, tcp, port 443"])
        done = program.run("policy", "explain", path, "http://pypi.org/")
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"rule  default deny, {path}:3", done.stdout)
        self.assertIn("the nearest, allow[1] in line 6, is for pypi.org, tcp, port 443", done.stdout)
        code, result = program.run_json("policy", "explain", self.example("one-origin"), "example.org:443")
        self.assertEqual((code, result["outcome"], result["looked_up"]), (4, "pending", True))

    def test_names_that_resolve_to_private_addresses(self):
        path = self.example("local-database")
        for address, code in [("10.20.3.4", 0), ("10.21.3.4", 3), ("192.0.2.1", 0), ("169.254.169.254", 3), ("::1", 3)]:
            done = program.run("policy", "explain", path, "wiki.corp.example:443", "--address", address)
            self.assertEqual(done.returncode, code, done.stdout)
        done = program.run("policy", "explain", path, "tcp://127.0.0.1:5432")
        self.assertEqual((done.returncode, done.stdout.splitlines()[1]), (0, f"  rule  localhost, {path}:5"))

    def test_several_files_narrow(self):
        wide = self.write('allow: {host: "*", port: any}\nlimits: {total: {connections: 5}}\n', "wide.yaml")
        narrow = self.example("python-packages")
        self.assertEqual(program.run("policy", "explain", wide, "example.org:443").returncode, 0)
        done = program.run("policy", "explain", wide, narrow, "example.org:443")
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"{wide}: allowed", done.stdout)
        self.assertIn(f"{narrow}: denied", done.stdout)
        code, result = program.run_json("policy", "check", wide, narrow)
        self.assertEqual(code, 0)
        self.assertEqual(result["policy"]["limits"]["total"]["connections"], 5)
        self.assertEqual([layer["file"] for layer in result["policy"]["layers"]], [str(wide), str(narrow)])

    def test_rules_that_come_to_nothing(self):
        path = self.write("allow:\n  - {host: a.example, port: 1}\n  - {address: 10.0.0.0/8, port: 1}\n"
                          "  - {address: 192.0.2.1, port: 1}\ndeny: [{host: a.example}, {address: 8.0.0.0/6}]\n")
        done = program.run("policy", "check", path)
        self.assertIn(f"note: allow[1], {path}:2, comes to nothing", done.stdout)
        self.assertIn(f"note: allow[2], {path}:3, comes to nothing", done.stdout)
        self.assertNotIn("note: allow[3]", done.stdout)

    def test_errors(self):
        good = self.write("default: deny\n", "good.yaml")
        link = pathlib.Path(self.folder.name) / "link.yaml"
        link.symlink_to(good)
        for args, message in [
            (["check", self.write("alow: []\n", "a.yaml")], 'a.yaml:1:1: unknown key "alow"; did you mean "allow"?'),
            (["check", self.write("allow:\n  - {host: a b, port: 1}\n", "b.yaml")], "b.yaml:2:12: allow[1].host"),
            (["check", self.write("default: deny\n", "c.yaml", 0o664)], "can be written by its group"),
            (["check", link], "is a symbolic link"),
            (["check", self.folder.name], "has to be a regular file"),
            (["check", "/nonexistent.yaml"], "No such file or directory"),
            (["check"], "expected FILE..."),
            (["explain", good], "expected FILE... TARGET"),
            (["explain", good, "example.org"], "its port is missing"),
            (["explain", good, "192.0.2.1:1", "--address", "192.0.2.2"], "--address is for a target with a name"),
            (["explain", good, "a.example:1", "--address", "b.example"], "is not an address"),
        ]:
            done = program.run("policy", *args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertIn(message, done.stderr)

    def test_a_path_is_shown_and_not_obeyed(self):
        path = pathlib.Path(self.folder.name) / "\x1b[31m.yaml"
        path.write_text("deny-all: true\n")
        os.chmod(path, 0o600)
        for args in [["check", path], ["explain", path, "a.example:1"], ["check", path, "--json"]]:
            done = program.run("policy", *args)
            self.assertNotIn("\x1b", done.stdout)
            self.assertIn("x1b", done.stdout)


if __name__ == "__main__":
    program.main()
