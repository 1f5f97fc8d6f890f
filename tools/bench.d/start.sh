#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How long starting takes beside a program that does nothing: the program alone, and `true` under each enforcer, with a proof
# that is kept and with one given at this start, beside bubblewrap with all namespaces of its own; taking turns.
set -eu
if [ "$(id -u)" -eq 0 ] && [ -z "${START_ISOLATED:-}" ]; then # an address of its own, so that nothing has to be forwarded
        exec env START_ISOLATED=1 unshare --net sh -c 'ip link set lo up && ip addr add 198.51.100.1/32 dev lo && exec "$0"' "$0"
fi
exec python3 - "$ASSAY" <<'END_OF_PYTHON'
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = int(os.environ.get("ROUNDS", "60"))
assay = sys.argv[1]


def once(*command):
    began = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return (time.monotonic() - began) * 1000


def bounds(ratios):
    """Of their median, 95%, by bootstrap."""
    draw = random.Random(7)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[1949]


pairs = [(once(assay, "--version"), once("true")) for _ in range(200)]
own, peer = (statistics.median(column) for column in zip(*pairs))
more = statistics.median(a - b for a, b in pairs)
print(f"assay --version {own:.2f} ms, true {peer:.2f} ms; {more:.2f} ms more (wanted: at most 5), 200 pairs")

with tempfile.TemporaryDirectory(prefix="assay-start-", dir="/var/tmp") as scratch:
    policy = pathlib.Path(scratch) / "policy.yaml"
    policy.write_text("allow: [{address: 198.51.100.1, port: 8080, transport: tcp}]\n")
    policy.chmod(0o600)
    commands = {"true": ["true"]}
    if shutil.which("bwrap"):
        commands["bwrap --unshare-all"] = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"]
    for enforcer in "deny-all", "wall", "proxy":
        for prove in "cached", "always":
            options = [] if enforcer == "deny-all" else ["--policy", str(policy)]
            command = [assay, "exec", "--enforce", enforcer, "--prove", prove, *options, "--", "true"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                commands[f"{enforcer}, proof {'kept' if prove == 'cached' else 'given'}"] = command
            elif prove == "cached":
                print(f"{enforcer}: not measured: {done.stderr.strip()}")
    took = {name: [] for name in commands}
    for _ in range(ROUNDS):
        order = list(commands)
        random.shuffle(order)
        for name in order:
            took[name].append(once(*commands[name]))
    for name, values in took.items():
        text = f"start of true, {name}: {statistics.median(values):.1f} ms"
        for peer in "true", "bwrap --unshare-all":
            if peer in took and peer != name:
                ratios = [a / b for a, b in zip(values, took[peer])]
                low, high = bounds(ratios)
                text += f", {statistics.median(ratios):.2f} times {peer} ({low:.2f}-{high:.2f})"
        print(f"{text}, {ROUNDS} rounds")
END_OF_PYTHON
