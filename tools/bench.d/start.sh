#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How long starting the program takes beside a program that does nothing, alternating.
set -eu
exec python3 - "$ASSAY" <<'END'
import statistics
import subprocess
import sys
import time


def once(*command):
    began = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return (time.monotonic() - began) * 1000


pairs = [(once(sys.argv[1], "--version"), once("true")) for _ in range(200)]
own, peer = (statistics.median(column) for column in zip(*pairs))
more = statistics.median(a - b for a, b in pairs)
print(f"assay --version {own:.2f} ms, true {peer:.2f} ms; {more:.2f} ms more (wanted: at most 5), 200 pairs")
END
