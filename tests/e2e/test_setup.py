# SPDX-License-Identifier: Apache-2.0
"""What a newcomer meets first: the packages that are missing are named and installed, or it is said how to get them. Apt,
dpkg, sudo and the user's number are made up here; nothing is installed."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import program

SETUP = program.ROOT / "tools" / "setup"
TOOLS = ["bash", "cat", "dirname", "env", "grep", "head", "mktemp", "rm", "sed", "tail", "tee", "wc"]
UNREACHABLE = "".join(f"E: Failed to fetch http://deb.debian.org/p{i}  Temporary failure resolving 'deb.debian.org'\\n"
                      for i in range(9))


def packages(*parts):
    """What tools/packages.txt has in these parts."""
    found = []
    for section in re.split(r"^\[", (program.ROOT / "tools" / "packages.txt").read_text(), flags=re.M)[1:]:
        name, rest = section.split("]", 1)
        if name in parts:
            found += [line for line in rest.split("\n") if line and not line.startswith("#")]
    return found


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.log = self.path / "apt.log"
        for tool in TOOLS:
            (self.path / tool).symlink_to(shutil.which(tool))
        self.user(0)
        self.installed(packages("build", "test", "bench"))
        self.apt_get("printf 'Need to get 91.6 MB of archives.\\nUnpacking.\\n'")

    def command(self, name, text):
        (self.path / name).write_text(f"#!{shutil.which('bash')}\n{text}\n")
        (self.path / name).chmod(0o755)

    def user(self, number):
        self.command("id", f"echo {number}")

    def installed(self, names):
        (self.path / "installed").write_text("".join(f"{name}\n" for name in names))
        self.command("dpkg-query", f'grep -qx -e "${{@: -1}}" {self.path}/installed && echo -n installed')

    def apt_get(self, text):
        self.command("apt-get", f'echo "$*" >>{self.log}\n{text}')

    def setup_parts(self, *parts):
        done = subprocess.run([SETUP, *parts], text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False,
                              timeout=60, env={"PATH": str(self.path), "TMPDIR": str(self.path)})
        self.assertEqual(done.stdout, "")
        self.assertEqual([p.name for p in self.path.glob("tmp.*")], [], "what it wrote on the way is still there")
        return done.returncode, done.stderr

    def asked_of_apt(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def test_every_package_has_one_part(self):
        every = packages("build", "test", "bench")
        self.assertGreater(len(every), 30)
        self.assertEqual(len(every), len(set(every)))

    def test_nothing_is_missing(self):
        self.assertEqual(self.setup_parts("build", "test", "bench"), (0, ""))
        self.assertEqual(self.asked_of_apt(), [])

    def test_only_what_is_missing_of_the_named_parts(self):
        self.installed(set(packages("build")) - {"meson", "scdoc"})
        code, said = self.setup_parts("build")
        self.assertEqual(code, 0, said)
        self.assertIn("\nsetup: meson scdoc\n", said)
        self.assertIn("\nsetup: Need to get 91.6 MB of archives.\n", said)
        self.assertNotIn("Unpacking", said)
        update, install = self.asked_of_apt()
        self.assertTrue(update.endswith(" update"), update)
        self.assertTrue(install.endswith(" install --no-install-recommends meson scdoc"), install)

    def test_a_part_that_is_not_there(self):
        code, said = self.setup_parts("biuld")
        self.assertEqual(code, 2)
        self.assertIn('no part "biuld"', said)

    def test_apt_fails(self):
        self.installed(set(packages("build")) - {"meson"})
        self.apt_get(f'[[ " $* " == *" update "* ]] || {{ printf "%b" "{UNREACHABLE}"; exit 100; }}')
        code, said = self.setup_parts("build")
        self.assertEqual(code, 6)
        self.assertIn("setup: apt-get install failed:\n        E: Failed to fetch http://deb.debian.org/p0 ", said)
        self.assertEqual(said.count("E: Failed"), 5)
        self.assertIn("setup: and 4 more lines like these\n", said)
        self.assertIn("\napt-get update && apt-get install --no-install-recommends meson\n", said)

    def test_a_source_that_is_broken_does_not_matter_if_the_packages_come(self):
        self.installed(set(packages("build")) - {"meson"})
        self.apt_get('[[ " $* " != *" update "* ]] || { echo "E: The repository has no Release file."; exit 100; }')
        code, said = self.setup_parts("build")
        self.assertEqual(code, 0, said)
        self.assertIn("E: The repository has no Release file.", said)
        self.assertEqual(len(self.asked_of_apt()), 2)

    def test_an_ordinary_user_is_told_the_command(self):
        self.user(1000)
        self.installed(set(packages("build")) - {"meson", "clang"})
        code, said = self.setup_parts("build")
        self.assertEqual(code, 6)
        self.assertIn("As root, run:\napt-get update && apt-get install --no-install-recommends meson clang\n", said)
        self.assertEqual(self.asked_of_apt(), [])

    def test_an_ordinary_user_with_sudo(self):
        self.user(1000)
        self.installed(set(packages("build")) - {"meson"})
        self.command("sudo", f'echo "sudo $*" >>{self.log}; exec env "$@"')
        code, said = self.setup_parts("build")
        self.assertEqual(code, 0, said)
        self.assertIn("sudo may ask for your password", said)
        self.assertEqual([line.split()[0] for line in self.asked_of_apt()], ["sudo", "-q", "sudo", "-q"])

    def test_sudo_says_no(self):
        self.user(1000)
        self.installed(set(packages("build")) - {"meson"})
        self.command("sudo", "echo 'newcomer is not in the sudoers file.' >&2; exit 1")
        code, said = self.setup_parts("build")
        self.assertEqual(code, 6)
        self.assertIn("        newcomer is not in the sudoers file.\n", said)
        self.assertIn("as root:\napt-get update && ", said)

    def test_not_debian(self):
        (self.path / "dpkg-query").unlink()
        (self.path / "apt-get").unlink()
        code, said = self.setup_parts("build")
        self.assertEqual(code, 6)
        self.assertIn("not a Debian system", said)
        self.assertIn(" ".join(packages("build")), said)


class Configure(unittest.TestCase):
    def test_what_meson_says_is_shown_only_when_it_fails(self):
        for code in (0, 1):
            with tempfile.TemporaryDirectory() as folder:
                meson = pathlib.Path(folder) / "meson"
                meson.write_text(f'#!/bin/sh\necho "meson $*: no libfyaml here"\nexit {code}\n')
                meson.chmod(0o755)
                done = subprocess.run([program.ROOT / "tools" / "configure", f"{folder}/build", "-Dfuzz=true"], text=True,
                                      capture_output=True, check=False, timeout=60,
                                      env=dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"))
                expected = f"meson setup {folder}/build -Dfuzz=true: no libfyaml here\n" if code else ""
                self.assertEqual((done.returncode, done.stdout, done.stderr), (code, "", expected))


if __name__ == "__main__":
    program.main()
