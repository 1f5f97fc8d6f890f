# SPDX-License-Identifier: Apache-2.0
"""assay exec: the proof that each way out is closed, where it is kept, and the record of a run."""
import json
import os
import pathlib
import shutil
import socket
import sys
import tempfile
import time

import program
from sandbox import OWN_ERROR, PYTHON, Sandbox, as_ordinary_user


class Proof(Sandbox):
    """What the command is told to be is tried before it runs, and recorded."""

    def bundle(self, name, *args, **kwargs):
        folder = self.folder / name
        done = self.exec("--bundle", folder, *args, **kwargs)
        file = folder / "run-bundle.json"
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        return done, json.loads(file.read_text())

    def setUp(self):
        for folder in self.folder.glob("bundle*"):
            shutil.rmtree(folder)

    def test_every_way_is_tried(self):
        done, bundle = self.bundle("bundle", "--prove", "always", "--", "sh", "-c", "exit 3")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertNotIn("denied", done.stderr)  # what the prober tries is not told
        enforcement = bundle["enforcement"]
        self.assertEqual((enforcement["enforcer"], enforcement["observed"]), ("deny-all", "enforced"))
        self.assertIs(enforcement["network_non_bypassable"], True)
        tried = {proof["attempt"]: proof for proof in enforcement["proofs"]}
        for name in ("tcp to 127.0.0.1", "udp-message to ::1", "tcp-mapped to 127.0.0.1", "tcp-fast-open to 127.0.0.1",
                     "raw4", "packet", "vsock", "unix", "netlink-netfilter", "setns", "unshare-user", "io-uring", "keyctl",
                     "foreign-abi", "capability", "init-descriptors", "control-group"):
            self.assertEqual(tried[name]["result"], "stopped", name)
            self.assertFalse(tried[name]["cached"], name)
        self.assertEqual(tried["control from outside to 127.0.0.1"]["result"], "arrived")
        self.assertGreater(len(tried), 60)
        self.assertEqual(bundle["command"]["exit_status"], 3)

    def test_a_proof_is_kept_where_the_command_cannot_write(self):
        if self.user is not None:
            self.skipTest("for root")
        program.need_root()
        self.exec("--prove", "cached", "--", "true")
        _, bundle = self.bundle("bundle", "--prove", "cached", "--", "true")
        self.assertTrue(all(proof["cached"] for proof in bundle["enforcement"]["proofs"]))
        self.assertIs(bundle["enforcement"]["network_non_bypassable"], True)
        self.assertNotEqual(self.exec("--", "ls", "/run/assay").returncode, 0)
        _, other = self.bundle("bundle2", "--nested", "--", "true")  # another filter, another proof
        names = {proof["attempt"] for proof in other["enforcement"]["proofs"]}
        self.assertNotIn("unshare-user", names)

    def test_a_proof_is_of_one_program_and_one_policy(self):
        if self.user is not None:
            self.skipTest("for root")
        program.need_root()

        def is_cached(name, *args, **kwargs):
            proofs = self.bundle(name, *args, "--", "true", **kwargs)[1]["enforcement"]["proofs"]
            self.assertGreater(len(proofs), 60)
            self.assertEqual(len({proof["cached"] for proof in proofs}), 1)
            return proofs[0]["cached"]
        policy = self.folder / "other.yaml"
        policy.write_text(f"default: deny\n# {os.urandom(8).hex()}\n")  # of which there is no proof yet
        policy.chmod(0o644)
        self.assertFalse(is_cached("bundle1", "--policy", policy))
        self.assertTrue(is_cached("bundle2", "--policy", policy))
        self.assay.rename(self.folder / "was")
        try:
            shutil.copy(self.folder / "was", self.assay)  # the same bytes, but who can tell
            self.assertFalse(is_cached("bundle3", "--policy", policy))
        finally:
            (self.folder / "was").replace(self.assay)

    def test_without_a_folder_for_proofs_every_start_proves(self):
        """Others may write where XDG_RUNTIME_DIR leads: what stands there is no proof."""
        if self.user is not None:
            self.skipTest("for root")
        program.need_root()
        with tempfile.TemporaryDirectory(dir="/run") as folder:
            (pathlib.Path(folder) / "assay").mkdir()
            (pathlib.Path(folder) / "assay").chmod(0o777)
            for i in range(2):
                _, bundle = self.bundle(f"bundle{i}", "--", "true", env={**os.environ, "XDG_RUNTIME_DIR": folder})
                self.assertFalse(any(proof["cached"] for proof in bundle["enforcement"]["proofs"]))
            self.assertEqual(list((pathlib.Path(folder) / "assay").iterdir()), [])

    def test_proofs_that_are_of_no_use_go(self):
        """Those of a changed program, of another boot and of yesterday, and of the rest the oldest."""
        if self.user is not None:
            self.skipTest("for root")
        program.need_root()
        with tempfile.TemporaryDirectory(dir="/run") as folder:
            env = {**os.environ, "XDG_RUNTIME_DIR": folder}
            self.exec("--", "true", env=env)
            kept = pathlib.Path(folder) / "assay"
            first, = kept.iterdir()
            program_line, rest = first.read_text().split("\n", 1)
            words = program_line.split(" ")

            def write(name, text, age_s=1000, around="{}"):
                path = kept / around.format(f"proof-{name:016x}")
                path.write_text(text)
                os.utime(path, (time.time() - age_s,) * 2)
                return path.name
            gone = [write(1, f"{' '.join(words[:3])} 1 1.000000000\n{rest}"),
                    write(2, first.read_text().replace("\nboot ", "\nboot x")), write(3, "program"),
                    write(4, first.read_text(), 2 * 86400), write(5, "program", 2 * 86400, ".{}.0.tmp")]
            written = write(6, "program", 1000, ".{}.0.tmp")
            others = [write(100 + i, f"program {words[1]} {int(words[2]) + 1} {' '.join(words[3:])}\n{rest}", 1000 + i)
                      for i in range(70)]
            (kept / "notes").touch()
            self.exec("--nested", "--", "true", env=env)
            left = {path.name for path in kept.iterdir()}
            self.assertEqual(left & set(gone), set())
            self.assertEqual([other in left for other in others], [i < 62 for i in range(70)])
            self.assertLessEqual({first.name, "notes", written}, left)
            self.assertEqual(len(left), 64 + 2)

    def test_where_an_ordinary_user_has_no_folder_in_run(self):
        """A folder below /dev/shm, if nobody else has put it there or may write there, is as good: the command has another."""
        if self.user is None:
            self.skipTest("for an ordinary user")
        env = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
        folder = pathlib.Path(f"/dev/shm/assay-{self.user}")
        shutil.rmtree(folder, ignore_errors=True)
        self.addCleanup(lambda: folder.unlink() if folder.is_symlink() else shutil.rmtree(folder, ignore_errors=True))

        def is_cached(name):
            return self.bundle(name, "--", "true", env=env)[1]["enforcement"]["proofs"][0]["cached"]
        self.assertEqual([is_cached(name) for name in ("bundle1", "bundle2")], [False, True])
        self.assertEqual(self.exec("--", "ls", "-A", "/dev/shm", env=env, cwd="/dev/shm").stdout, "")
        folder.chmod(0o777)
        self.assertFalse(is_cached("bundle3"))
        folder.chmod(0o700)
        self.assertTrue(is_cached("bundle4"))
        os.chown(folder, 1, 1)
        self.assertFalse(is_cached("bundle5"))
        os.chown(folder, self.user, self.user)
        with tempfile.TemporaryDirectory() as other:
            moved = pathlib.Path(other) / "moved"
            os.chmod(other, 0o755)
            shutil.move(folder, moved)
            os.chown(moved, self.user, self.user)
            folder.symlink_to(moved)
            self.assertFalse(is_cached("bundle6"))

    def test_what_this_kernel_lacks_is_in_the_record(self):
        _, bundle = self.bundle("bundle1", "--", "true", preexec_fn=program.refuse_landlock)
        self.assertIn("no Landlock", bundle["enforcement"]["weaker"][0])
        done = self.exec("--write", self.folder, "--", "true", preexec_fn=program.refuse_landlock)
        self.assertEqual(done.returncode, OWN_ERROR)
        self.assertIn("needs a kernel with Landlock", done.stderr)

    def test_policies_narrow_each_other(self):
        for name, text in ("one", "allow: [{address: 192.0.2.1, port: 80}]\n"), ("two", "allow: [{address: 192.0.2.2, port: 80}]\n"):
            (self.folder / f"{name}.yaml").write_text(text)
            (self.folder / f"{name}.yaml").chmod(0o644)
        done, bundle = self.bundle("bundle", "--policy", self.folder / "one.yaml", "--policy", self.folder / "two.yaml",
                                   "--enforce", "proxy", "--", PYTHON, "-c",
                                   "import socket\n"
                                   "for address in ('192.0.2.1', '192.0.2.2'):\n"
                                   "    try: socket.create_connection((address, 80), 20)\n"
                                   "    except ConnectionRefusedError: print('refused')\n")
        self.assertEqual(done.stdout, "refused\nrefused\n", done.stderr)
        self.assertEqual({entry["target"]: entry["rule"].rsplit("/")[-1] for entry in bundle["network"]["denied"]},
                         {"tcp 192.0.2.1:80": "two.yaml", "tcp 192.0.2.2:80": "one.yaml"})
        self.assertEqual(len(bundle["policy"]["layers"]), 2)

    def test_attempts_are_recorded(self):
        _, bundle = self.bundle("bundle", "--", PYTHON, "-c",
                                "import socket\n"
                                "for _ in range(3):\n"
                                "    try: socket.create_connection(('192.0.2.1', 443))\n"
                                "    except PermissionError: pass\n")
        denied = bundle["network"]["denied"]
        self.assertEqual([(d["target"], d["count"]) for d in denied], [("tcp 192.0.2.1:443", 3)])
        self.assertIn("python3", denied[0]["executable"])
        self.assertIn("deny-all", denied[0]["rule"])

    def test_a_record_of_what_did_not_run(self):
        done, bundle = self.bundle("bundle", "--user", "no-such-user", "--", "true")
        self.assertEqual(done.returncode, OWN_ERROR)
        self.assertIn("no-such-user", bundle["command"]["failure"])
        self.assertFalse(bundle["command"]["started"])

    def test_a_record_of_what_nothing_can_enforce(self):
        policy = self.folder / "allows.yaml"
        policy.write_text("allow: [{address: 192.0.2.1, port: 80}]\n")
        policy.chmod(0o644)
        for number, (option, why) in enumerate([(["--policy", policy, "--enforce", "deny-all"], "allows.yaml:1: allow[1]"),
                                                (["--policy", "/no/such/policy"], "/no/such/policy"),
                                                (["--read", "/no/such/folder"], "/no/such/folder")]):
            done, bundle = self.bundle(f"bundle{number}", *option, "--", "true", "x")
            self.assertEqual(done.returncode, OWN_ERROR)
            self.assertIn(why, bundle["command"]["failure"])
            self.assertEqual((bundle["command"]["argv"], bundle["command"]["started"]), (["true", "x"], False))
            enforcement = bundle["enforcement"]
            self.assertEqual((enforcement["enforcer"], enforcement["observed"]), (None, "planned"))
            self.assertIsNone(enforcement["network_non_bypassable"])

    def test_what_is_not_enforced_is_watched(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            where = server.getsockname()
            done, bundle = self.bundle("bundle", "--enforce", "none", "--", PYTHON, "-c",
                                       "import socket\n"
                                       f"for _ in range(3): socket.create_connection({where})\n"
                                       f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', {where})\n")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((bundle["network"]["denied"], bundle["network"]["dns"]), ([], None))
        allowed = {entry["target"]: entry for entry in bundle["network"]["allowed"]}
        self.assertEqual({target: entry["count"] for target, entry in allowed.items()},
                         {f"tcp 127.0.0.1:{where[1]}": 3, f"udp 127.0.0.1:{where[1]}": 1})
        for entry in allowed.values():
            self.assertIn("python3", entry["executable"])
            self.assertGreater(entry["pid"], 1)
        self.assertEqual((bundle["enforcement"]["observed"], bundle["enforcement"]["network_non_bypassable"]),
                         ("unenforced", False))


as_ordinary_user(globals(), Proof)

if __name__ == "__main__":
    sys.exit(program.main())
