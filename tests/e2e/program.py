# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: running the program as a user does, and skipping by name."""
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSAY = os.environ.get("ASSAY", str(ROOT / "build" / "assay"))
MUST_RUN = set(filter(None, os.environ.get("ASSAY_MUST_RUN", "").split(",")))


def run(*args, timeout=120, env=None, **kwargs):
    """Run assay with text output; never raises on its exit code."""
    full = dict(os.environ, ASSAY_EXPERIMENTS=str(ROOT / "experiments"), **(env or {}))
    return subprocess.run([ASSAY, *map(str, args)], text=True, capture_output=True, stdin=subprocess.DEVNULL,
                          timeout=timeout, env=full, **kwargs)


def run_json(*args, **kwargs):
    """Run assay with --json and give the exit code and what it printed."""
    done = run(*args, "--json", **kwargs)
    return done.returncode, json.loads(done.stdout)


def need(capability, is_there):
    """Skip the test where the capability is missing, unless ASSAY_MUST_RUN names it."""
    if is_there:
        return
    if capability in MUST_RUN:
        raise AssertionError(f"{capability} is missing, and ASSAY_MUST_RUN names it")
    raise unittest.SkipTest(f"{capability} is missing")


def need_root():
    need("root", os.geteuid() == 0)


def host_state():
    """What must be the same before and after: namespaces, links, BPF pins, and processes named assay or of its children."""
    def out(*command):
        return subprocess.run(command, text=True, capture_output=True, check=False).stdout
    namespaces = set()
    processes = set()
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            namespaces.add(os.readlink(entry / "ns" / "net"))
            command = (entry / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
        except OSError:
            continue
        if command.endswith("assay"):
            processes.add(entry.name)
    pins = sorted(str(p) for p in pathlib.Path("/sys/fs/bpf").rglob("*")) if pathlib.Path("/sys/fs/bpf").is_dir() else []
    return {"namespaces": sorted(namespaces), "links": out("ip", "-o", "link"), "queues": out("tc", "qdisc", "show"),
            "pins": pins, "processes": sorted(processes)}


def assert_unchanged(test, before):
    """That the host looks as before. What a kill ends is gone a moment later, so there are five seconds to get there."""
    deadline = time.monotonic() + 5
    while host_state() != before and time.monotonic() < deadline:
        pass
    test.assertEqual(host_state(), before)


def isolate():
    """As root: go on in namespaces of our own, so that what else happens on the host is neither seen nor disturbed."""
    if os.geteuid() != 0 or os.environ.get("ASSAY_E2E_ISOLATED"):
        return
    os.environ["ASSAY_E2E_ISOLATED"] = "1"
    os.execvp("unshare", ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "sh", "-c",
                          'mount -t tmpfs none /run/lock && ip link set lo up && exec "$@"', "sh", sys.executable, *sys.argv])


def main():
    """Run the module's tests; exit 77 where every one of them was skipped, so that the skip shows."""
    isolate()
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun == 0 or len(result.skipped) == result.testsRun:
        sys.exit(77)
