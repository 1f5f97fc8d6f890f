# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: running the program as a user does, and skipping by name."""
import ctypes
import errno
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSAY = os.environ.get("ASSAY", str(ROOT / "build" / "assay"))
MUST_RUN = set(filter(None, os.environ.get("ASSAY_MUST_RUN", "").split(",")))


def run(*args, timeout=120, env=None, before=(), **kwargs):
    """Run assay, by the command @before if there is one, with text output; never raises on its exit code."""
    full = dict(os.environ, ASSAY_EXPERIMENTS=str(ROOT / "experiments"), **(env or {}))
    kwargs.setdefault("capture_output", True)
    return subprocess.run([*before, ASSAY, *map(str, args)], text=True, stdin=subprocess.DEVNULL, timeout=timeout, env=full,
                          check=False, **kwargs)


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


def without_asan(text):
    """What a program said, without what AddressSanitizer has to say of processes that share memory."""
    return re.sub(r"==\d+==WARNING: ASan is ignoring .*\nFalse positive .*\nFor details .*\n", "", text)


def read_or_nothing(path):
    """What a file of /proc says; nothing where its process is gone."""
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""


def host_state():
    """What must be the same before and after: namespaces, links, queues, BPF pins, control groups of its name, and processes
    named assay or of its children."""
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
    groups = sorted(os.path.join(above, name) for above, names, _ in os.walk("/sys/fs/cgroup") for name in names if "assay" in name)
    return {"groups": groups, "namespaces": sorted(namespaces), "links": out("ip", "-o", "link"), "queues": out("tc", "qdisc", "show"),
            "pins": pins, "processes": sorted(processes)}


def assert_unchanged(test, before):
    """That the host looks as before. What a kill ends is gone a moment later, so there are five seconds to get there."""
    deadline = time.monotonic() + 5
    while host_state() != before and time.monotonic() < deadline:
        pass
    test.assertEqual(host_state(), before)


def is_sanitized():
    """Whether the program is built with AddressSanitizer, which needs memory and stack for itself."""
    return b"__asan_init" in pathlib.Path(ASSAY).read_bytes()


def small_stack():
    """What runs the program with 64 KiB of stack; nothing with a sanitizer."""
    return [] if is_sanitized() else ["prlimit", "--stack=65536:65536"]


def refuse(number):
    """For preexec_fn: a seccomp filter as containers have it, with which a system call fails with EPERM."""
    code = [(0x20, 0, 0, 0),  # the number of the system call
            (0x15, 0, 1, number),
            (0x06, 0, 0, 0x00050000 | errno.EPERM),
            (0x06, 0, 0, 0x7fff0000)]  # anything else is allowed
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(instructions)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(38, 1, 0, 0, 0) != 0 or prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no seccomp filter")


def refuse_bpf():
    refuse({"x86_64": 321, "aarch64": 280}[os.uname().machine])


def refuse_landlock():
    refuse(444)  # landlock_create_ruleset(), everywhere


def isolate():
    """As root: go on in namespaces of our own, so that what else happens on the host is neither seen nor disturbed."""
    if os.geteuid() != 0 or os.environ.get("ASSAY_E2E_ISOLATED"):
        return
    os.environ["ASSAY_E2E_ISOLATED"] = "1"
    alone = """
mkdir -p /run/assay &&
for folder in /run/lock /run/assay /dev/shm; do mount -t tmpfs -o "mode=$(stat -c %a "$folder")" none "$folder" || exit; done
ip link set lo up && exec "$@"
"""
    os.execvp("unshare", ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "sh", "-c", alone, "sh",
                          sys.executable, *sys.argv])


def main():
    """Run the module's tests; exit 77 where every one of them was skipped, so that the skip shows."""
    isolate()
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun == 0 or len(result.skipped) == result.testsRun:
        sys.exit(77)
