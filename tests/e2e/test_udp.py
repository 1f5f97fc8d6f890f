# SPDX-License-Identifier: Apache-2.0
"""assay udp: the client to servers of others, right and wrong ones, the answers to others' questions, and each to the other."""
import json
import shutil
import signal
import socket
import subprocess
import threading
import unittest

import program


class Server:
    """Answers each datagram with what a function makes of it; nothing where that is None."""

    def __init__(self, *answers):
        self.answers = answers
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while True:
            data, peer = self.socket.recvfrom(65536)
            if peer[1] == self.socket.getsockname()[1]:
                return
            for answer in self.answers:
                reply = answer(data)
                if reply is not None:
                    self.socket.sendto(reply, peer)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.socket.sendto(b"", self.socket.getsockname())  # by which the thread knows that it is over
        self.thread.join()
        self.socket.close()


class Answer:
    """assay udp answer on a port that the kernel chose."""

    def __init__(self, *args, address="127.0.0.1:0"):
        self.process = subprocess.Popen([program.ASSAY, "udp", "answer", address, "--json", "--quiet", *args], text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = self.process.stderr.readline()
        assert first.startswith("answering at "), first
        self.address = first.split()[-1]
        self.port = int(self.address.rsplit(":", 1)[1])

    def counts(self):
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=30)
        assert self.process.returncode == 0
        return json.loads(out)["counts"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


LOOKUP = ("--lookup", "origin.test", "--address", "192.0.2.1")


def answer_of(address):
    """The response of RFC 1035 to a question for an address, with one record that points to the name in the question."""
    def answer(query):
        return (query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + query[12:] + b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" +
                socket.inet_aton(address))
    return answer


def ask(*args, count=5):
    return program.run_json("udp", "ask", "--quiet", "--samples", "--json", "--count", count, *args)


class Udp(unittest.TestCase):
    def assert_right(self, code, result, n=5):
        self.assertEqual((code, result["counts"]), (0, {"requests": n, "completed": n, "failed": 0}), result)
        self.assertTrue(all(s > 0 for s in result["samples"]))

    def assert_wrong(self, code, result, cause, n=5):
        self.assertEqual((code, result["counts"]), (1, {"requests": n, "completed": 0, "failed": n}))
        self.assertEqual(result["failures"], [{"cause": cause, "count": n, "first": 0}])
        self.assertEqual(result["samples"], [None] * n)
        self.assertEqual(result["round_trip"]["p50_ns"], "lost")

    def test_echo_of_others(self):
        with Server(lambda data: data) as server:
            code, result = ask(server.address, "--size", "1000B", "--warmup", 3)
            self.assertEqual(len(result["samples"]), 8)
            self.assertEqual(result["warmup_requests"], 3)
            self.assert_right(code, result)

    def test_wrong_echoes(self):
        for wrong in (lambda data: data[:-1], lambda data: data + b"x", lambda data: data[:-1] + bytes([data[-1] ^ 1]),
                      lambda data: b""):
            with Server(wrong) as server:
                self.assert_wrong(*ask(server.address), "a wrong answer")
                text = program.run("udp", "ask", "--quiet", "--count", 5, server.address)
                self.assertEqual(text.returncode, 1)
                self.assertIn("failed 5: a wrong answer (first: datagram 0)", text.stdout)

    def test_lost(self):
        with Server(lambda data: None) as server:
            self.assert_wrong(*ask(server.address, "--timeout", "20ms"), "no answer in time")

    def test_answer_that_comes_twice(self):
        """What is left of an earlier question is passed over."""
        with Server(lambda data: data, lambda data: data) as server:
            self.assert_right(*ask(server.address))

    def test_nobody_there(self):
        with Server() as server:
            address = server.address
        self.assert_wrong(*ask(address), "Connection refused")

    def test_lookup_of_others(self):
        with Server(answer_of("192.0.2.1")) as server:
            self.assert_right(*ask(server.address, *LOOKUP))
        with Server(answer_of("192.0.2.2")) as server:
            self.assert_wrong(*ask(server.address, *LOOKUP), "a wrong answer")
        with Server(lambda data: data) as server:
            self.assert_wrong(*ask(server.address, *LOOKUP), "a wrong answer")
        with Server(lambda data: b"\xff\xff" + answer_of("192.0.2.1")(data)[2:]) as server:  # to a question of somebody else
            self.assert_wrong(*ask(server.address, "--timeout", "20ms", *LOOKUP), "no answer in time")

    def test_answer_to_others(self):
        with Answer() as answer, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(20)
            for data in (b"x", b"", bytes(range(256)) * 4):
                s.sendto(data, ("127.0.0.1", answer.port))
                if data:
                    self.assertEqual(s.recv(65536), data)
            self.assertEqual(answer.counts(), {"answered": 2, "ignored": 1})

    def test_name_server_to_dig(self):
        program.need("dig", shutil.which("dig") is not None)
        with Answer(*LOOKUP) as answer:
            def dig(*args):
                return subprocess.run(["dig", "@127.0.0.1", "-p", str(answer.port), "+tries=1", *args], text=True,
                                      capture_output=True, check=True).stdout
            self.assertEqual(dig("+short", "Origin.TEST").strip(), "192.0.2.1")
            self.assertEqual(dig("+short", "origin.test", "AAAA"), "")
            self.assertIn("status: NXDOMAIN", dig("other.test"))

    def test_each_to_the_other(self):
        with Answer() as answer:
            self.assert_right(*ask(answer.address, "--size", "65507B"))
            self.assertEqual(answer.counts(), {"answered": 5, "ignored": 0})
        with Answer(*LOOKUP) as answer:
            self.assert_right(*ask(answer.address, *LOOKUP))
            self.assert_wrong(*ask(answer.address, "--lookup", "other.test", "--address", "192.0.2.1"), "a wrong answer")

    def test_usage(self):
        for args, message in [
            (("ask",), "HOST"),
            (("ask", "127.0.0.1", "--size", "15B"), "--size"),
            (("ask", "127.0.0.1", "--lookup", "a.test"), "go together"),
            (("ask", "127.0.0.1", "--address", "192.0.2.1"), "go together"),
            (("ask", "127.0.0.1", "--lookup", "a.test", "--address", "2001:db8::1"), "no IPv4 address"),
            (("ask", "127.0.0.1", "--lookup", "a..test", "--address", "192.0.2.1"), "not a name"),
            (("ask", "127.0.0.1", "--samples"), "--samples needs --json"),
            (("answer", "--lookup", "a.test"), "go together"),
        ]:
            done = program.run("udp", *args)
            self.assertEqual(done.returncode, 2, (args, done.stderr))
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    program.main()
