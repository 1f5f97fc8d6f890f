# SPDX-License-Identifier: Apache-2.0
"""What the documents quote can be computed again from the archives beside them."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import program


class Results(unittest.TestCase):
    def test_every_frozen_archive_verifies(self):
        packed = sorted((program.ROOT / "results").glob("*.tar.zst"))
        self.assertGreaterEqual(len(packed), 1)
        for archive in packed:
            scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-e2e-"))
            self.addCleanup(shutil.rmtree, scratch, ignore_errors=True)
            subprocess.run(["tar", "--zstd", "-xf", archive, "-C", scratch], check=True)
            done = program.run("verify", scratch / archive.name.removesuffix(".tar.zst"))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    program.main()
