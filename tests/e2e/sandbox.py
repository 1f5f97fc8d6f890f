# SPDX-License-Identifier: Apache-2.0
"""Sandboxes for the tests of assay exec, of whoever runs them."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import program

PYTHON = "/usr/bin/python3"
ORDINARY = 65533  # a user that nobody else is
OWN_ERROR = 125


def prefix(user):
    """What makes the following command run as the user."""
    if user is None:
        return []
    return ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"]


def can_be_ordinary():
    done = subprocess.run([*prefix(ORDINARY), "unshare", "--user", "--map-root-user", "--net", "true"], check=False,
                          capture_output=True)
    return done.returncode == 0


class Sandbox(unittest.TestCase):
    """As who runs the tests; Ordinary repeats them as another user."""
    user = None

    @classmethod
    def setUpClass(cls):
        if cls.user is not None:
            program.need_root()
            program.need("userns", can_be_ordinary())
        cls.scratch = tempfile.TemporaryDirectory(prefix="assay-exec-")
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.folder.chmod(0o777)
        cls.assay = cls.folder / "assay"
        shutil.copy(program.ASSAY, cls.assay)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def command(self, *args):
        return [*prefix(self.user), str(self.assay), "exec", *map(str, args)]

    def exec(self, *args, **kwargs):
        options = {"text": True, "stdin": subprocess.DEVNULL, "timeout": 60, "cwd": self.folder, "check": False,
                   "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kwargs}
        done = subprocess.run(self.command(*args), **options)
        if isinstance(done.stderr, str):  # a sanitizer's remark about stacks that it does not know is no message of ours
            done.stderr = program.without_asan(done.stderr)
        return done

    def python(self, script, *options, **kwargs):
        return self.exec(*options, "--", PYTHON, "-c", script, **kwargs)

    def out(self, *args, **kwargs):
        done = self.exec(*args, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


def as_ordinary_user(module, *cases):
    """The same tests once more in @module (its globals()), as an ordinary user, where they are run by root."""
    if os.geteuid() == 0:
        for case in cases:
            name = case.__name__ + "AsOrdinaryUser"
            module[name] = type(name, (case,), {"user": ORDINARY, "__module__": case.__module__})
