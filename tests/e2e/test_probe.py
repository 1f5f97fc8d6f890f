# SPDX-License-Identifier: Apache-2.0
"""The instruments as a user runs them, on loopback: probe and reflector, load and sink."""
import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

import program


class Background:
    """A verb that runs until it is interrupted; its first line on stderr says that it is ready."""

    def __init__(self, *args, wait_for, env=None):
        self.process = subprocess.Popen([program.ASSAY, *args], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=dict(os.environ, **(env or {})))
        self.first = self.process.stderr.readline()
        assert wait_for in self.first, self.first + self.process.stderr.read()

    def finish(self, sent=signal.SIGINT):
        self.process.send_signal(sent)
        out, _ = self.process.communicate(timeout=30)
        return self.process.returncode, out

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def reflector(*args, env=None):
    background = Background("probe", "reflect", *args, wait_for="reflecting at ", env=env)
    background.address = background.first.split()[-1]
    return background


class Probe(unittest.TestCase):
    def check_pair(self, address):
        with reflector(address, "--json") as peer:
            code, result = program.run_json("probe", "send", peer.address, "-c", 200, "-r", "1000/s", "--same-clock")
            self.assertEqual(code, 0)
            counts = result["counts"]
            self.assertEqual(counts["slots"], 200)
            self.assertEqual(counts["sent"] + counts["missed"], 200)
            self.assertEqual((counts["lost"], counts["negative"], counts["duplicates"]), (0, 0, 0))
            self.assertEqual((counts["forward_hops_max"], counts["return_hops_max"]), (0, 0))
            for name in ("rtt", "rtt_user", "response", "lateness", "there", "back"):
                figure = result["figures"][name]
                self.assertGreater(figure["p50_ns"], 0 if name != "lateness" else -1, name)
                self.assertIsNone(figure["p99_ns"], name)  # 299 values are the least
            code, out = peer.finish()
            self.assertEqual(code, 0)
            self.assertEqual(json.loads(out)["counts"]["reflected"], counts["sent"])

    def test_ipv4(self):
        self.check_pair("127.0.0.1:0")

    def test_ipv6(self):
        program.need("ipv6", os.path.exists("/proc/net/if_inet6"))
        self.check_pair("[::1]:0")

    def test_text(self):
        with reflector("127.0.0.1:0", "--stateless") as peer:
            done = program.run("probe", "send", peer.address, "-c", 400, "--priority", 0)
            self.assertEqual(done.returncode, 0)
            for pattern in (r"^  rtt +\d", r"^  rtt_user +\d", r"400 slots: \d+ sent, \d+ missed; \d+ answered, 0 lost",
                            r"hops there: 0", r"one-way delays are not shown|both clocks are synchronised"):
                self.assertRegex(done.stdout, re.compile(pattern, re.M))
            self.assertIn("400 packets", done.stderr)
            code, out = peer.finish(signal.SIGTERM)
            self.assertEqual(code, 0)
            self.assertRegex(out, r"\d+ packets received, \d+ answered")

    def test_stamps_of_the_user_alone(self):
        with reflector("127.0.0.1:0") as peer:
            code, result = program.run_json("probe", "send", peer.address, "-c", 100, "--user-stamps", "--priority", 0)
        self.assertEqual(code, 0)
        self.assertGreater(result["figures"]["rtt_user"]["p50_ns"], 0)
        self.assertNotIn("rtt", result["figures"])
        self.assertEqual(result["counts"]["unstamped_send"], result["counts"]["sent"])

    def test_who_says_that_the_clock_is_synchronised(self):
        """The S bit of the error estimate (RFC 8762, section 4.2.1; RFC 4656, section 4.1.2) is the kernel's word, at both
        ends; and only with both are one-way delays shown."""
        def environment(clock):
            return dict(LD_PRELOAD=os.environ["KERNEL_CLOCK_MODULE"], KERNEL_CLOCK=clock,
                        ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")

        for own in "synchronised", "free":
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.bind(("127.0.0.1", 0))
                s.settimeout(20)
                program.run("probe", "send", f"127.0.0.1:{s.getsockname()[1]}", "-c", 1, "--linger", "1ms", env=environment(own))
                estimate = struct.unpack(">H", s.recv(100)[12:14])[0]
                self.assertEqual(estimate >> 15, own == "synchronised")
                error_s = (estimate & 255) * 2.0 ** (((estimate >> 8) & 63) - 32)
                self.assertTrue(500e-6 <= error_s < 505e-6, error_s)
            for far in "synchronised", "free":
                with reflector("127.0.0.1:0", env=environment(far)) as peer:
                    done = program.run("probe", "send", peer.address, "-c", 20, "--priority", 0, env=environment(own))
                both = own == far == "synchronised"
                self.assertEqual("both clocks are synchronised" in done.stdout, both, done.stdout)
                self.assertEqual(re.search(r"^  there +\d", done.stdout, re.M) is not None, both, done.stdout)

    def test_interrupted_probe_shows_its_result(self):
        with reflector("127.0.0.1:0") as peer:
            with Background("probe", "send", peer.address, "-t", "1h", "--json", wait_for="STAMP to") as probe:
                self.assertIn(" s  sent ", probe.process.stderr.readline())
                code, out = probe.finish()
                self.assertEqual(code, 0)
                counts = json.loads(out)["counts"]
                self.assertGreater(counts["received"], 0)
                self.assertLess(counts["slots"], 3600000)

    def test_nobody_answers(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
            closed.bind(("127.0.0.1", 0))
            port = closed.getsockname()[1]
            done = program.run("probe", "send", f"127.0.0.1:{port}", "-c", 5, "--linger", "1ms")
        self.assertEqual(done.returncode, 1)
        self.assertIn("5 lost (100.000 %)", done.stdout)

    def test_reflector_in_a_script(self):
        """Our reflector as another implementation sees it: bytes by the RFC."""
        with reflector("127.0.0.1:0") as peer, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            host, port = peer.address.rsplit(":", 1)
            s.settimeout(20)
            request = struct.pack(">IQH", 41, 0xEEB5B24012345678, 0x0001) + bytes(30)
            for own in range(3):
                s.sendto(request, (host, int(port)))
                reply = s.recv(100)
                self.assertEqual(len(reply), 44)
                self.assertEqual(struct.unpack(">I", reply[:4])[0], own)
                self.assertEqual(reply[24:38], request[:14])
                self.assertEqual(reply[38:40] + reply[41:], bytes(5))
                self.assertNotEqual(reply[13], 0)

    def answer(self, s, count, is_ptp, is_stateful, clocks):
        """A reflector by the RFC alone (section 4.3.1), with NTP or PTP timestamps of a clock that is @clocks seconds ahead."""
        def stamp():
            seconds, ns = divmod(time.time_ns(), 10 ** 9)
            seconds += clocks + (0 if is_ptp else 2208988800)
            return struct.pack(">II", seconds & 0xffffffff, ns if is_ptp else (ns << 32) // 10 ** 9)

        for own in range(count):
            request, peer = s.recvfrom(2048)
            received = stamp()
            head = struct.pack(">I", own) if is_stateful else request[:4]
            reply = head + stamp() + struct.pack(">HH", (0x4000 if is_ptp else 0) | 1, 0) + received + request[:14]
            s.sendto(reply + bytes(2) + b"\xff" + bytes(3) + request[44:], peer)

    def test_another_reflector(self):
        for is_ptp, is_stateful, clocks in [(False, False, 0), (False, True, 3600), (True, False, 0), (True, True, -3600)]:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.bind(("127.0.0.1", 0))
                s.settimeout(20)
                answering = threading.Thread(target=self.answer, args=(s, 50, is_ptp, is_stateful, clocks), daemon=True)
                answering.start()
                code, result = program.run_json("probe", "send", "127.0.0.1:%d" % s.getsockname()[1], "-c", 50, "-r", "20/s",
                                                "-s", "100B", "--priority", 0)
            counts = result["counts"]
            self.assertEqual((code, counts["lost"], counts["negative"], counts["duplicates"]), (0, 0, 0, 0))
            self.assertEqual(counts["received"], counts["sent"])
            self.assertEqual((counts["forward_hops_min"], counts["forward_hops_max"]), (0, 0))
            self.assertGreater(result["figures"]["rtt"]["min_ns"], 0)
            self.assertEqual(result["notes"]["peer_clock"]["format"], "ptp" if is_ptp else "ntp")

    def test_wrong_usage(self):
        for args, message in [
            (["probe", "send", "127.0.0.1", "-r", "0/s"], "out of range"),
            (["probe", "send", "127.0.0.1", "-s", "43B"], "out of range"),
            (["probe", "send", "127.0.0.1:99999"], "port"),
            (["probe", "send", "224.0.0.1"], "unicast"),
            (["probe", "send", "-4", "-6", "127.0.0.1"], "exclude each other"),
            (["probe", "send"], "expected REFLECTOR"),
            (["probe", "send", "-c", "3", "-t", "1s", "127.0.0.1"], "--duration and --count exclude each other"),
            (["load", "send", "--unlimited", "-r", "1mbit", "127.0.0.1"], "--rate and --unlimited exclude each other"),
            (["load", "send", "-r0", "127.0.0.1", "--unlimited"], "--rate and --unlimited exclude each other"),
            (["load", "send", "127.0.0.1", "--nice", "20"], "out of range"),
            (["probe", "reflect", "239.0.0.1"], "unicast"),
            (["load", "send", "127.0.0.1", "-b", "65p"], "out of range"),
            (["load", "send", "0.0.0.0"], "unicast"),
            (["load", "sink", "--bpf", "no-such-link"], "no-such-link"),
        ]:
            done = program.run(*args)
            self.assertEqual(done.returncode, 2, args)
            self.assertIn(message, done.stderr, args)

    def test_port_in_use(self):
        with reflector("127.0.0.1:0") as peer:
            done = program.run("probe", "reflect", peer.address)
            self.assertEqual(done.returncode, 1)
            self.assertIn(peer.address, done.stderr)


class Load(unittest.TestCase):
    def test_frames_need_ethernet(self):
        done = program.run("load", "send", "--frames", "127.0.0.1")
        self.assertEqual((done.returncode, done.stdout), (6, ""))
        self.assertRegex(done.stderr, "Ethernet|CAP_NET_RAW")

    def test_what_is_sent_arrives(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % free.getsockname()[1]
        with Background("load", "sink", address, "--json", wait_for="counting at ") as sink:
            code, result = program.run_json("load", "send", address, "-r", "20mbit", "-t", "500ms", "-b", "4p")
            self.assertEqual(code, 0)
            sent = result["counts"]
            # 1414 octets of layer 2 a packet: 884.02 of them in half a second, in bursts of four
            self.assertEqual(sent["offered_packets"], 888)
            self.assertEqual(sent["offered_bytes"], 888 * 1414)
            self.assertEqual(sent["refused_packets"], 0)
            code, out = sink.finish()
            self.assertEqual(code, 0)
            got = json.loads(out)["counts"]
            self.assertEqual(got["packets"] + got["receive_overflow"], sent["sent_packets"])
            self.assertEqual(got["ip_bytes"], got["packets"] * 1400)
            self.assertEqual((got["duplicates"], got["reordered"], got["unmarked"]), (0, 0, 0))

    def test_rate_zero(self):
        code, result = program.run_json("load", "send", "127.0.0.1:9", "-r", "0", "-t", "100ms")
        self.assertEqual(code, 0)
        self.assertEqual(result["counts"]["offered_packets"], 0)
        self.assertEqual(result["counts"]["duration_ns"], 100000000)


if __name__ == "__main__":
    program.main()
