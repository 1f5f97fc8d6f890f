# SPDX-License-Identifier: Apache-2.0
"""assay http: the origin to curl and to raw bytes, the client to other servers, and each to the other."""
import functools
import hashlib
import http.server
import json
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

import program


class Origin:
    """assay http origin on a port that the kernel chose."""

    def __init__(self, *args, address="127.0.0.1:0"):
        self.process = subprocess.Popen([program.ASSAY, "http", "origin", address, "--json", *map(str, args)], text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = self.process.stderr.readline()
        assert first.startswith("serving at "), first
        self.address = first.split()[-1]
        self.url = f"http://{self.address}"
        if "--tls" in args:
            self.url = f"https://{self.address}"
            self.certificate = self.process.stderr.readline().split()[-1]

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


def events(n):
    return b"".join(b"data: %05d\n\n" % i for i in range(n))


def curl(*args):
    program.need("curl", shutil.which("curl") is not None)
    return subprocess.run(["curl", "-sS", "--noproxy", "*", "--max-time", "20", *args], capture_output=True, check=True).stdout


def raw(origin, request):
    """The whole answer to bytes, to the end of the connection."""
    host, port = origin.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=20) as s:
        s.sendall(request)
        answer = b""
        while part := s.recv(65536):
            answer += part
        return answer


class OriginToOthers(unittest.TestCase):
    def test_body_by_curl(self):
        with Origin("--body", "300001B", "--write", "1KiB") as origin:
            one = curl(f"{origin.url}/")
            self.assertEqual(len(one), 300001)
            two = curl(f"{origin.url}/?x=1", f"{origin.url}/")
            self.assertEqual(two, one + one)
            counts = origin.counts()
            self.assertEqual((counts["requests"], counts["connections"], counts["refused"]), (3, 2, 0))
            self.assertEqual(counts["body_bytes"], 3 * 300001)

    def test_events_by_curl(self):
        with Origin("--events", 7, "--every", "1ms") as origin:
            self.assertEqual(curl(f"{origin.url}/events"), events(7))
            self.assertEqual(curl("--http1.0", f"{origin.url}/events"), events(7))
        with Origin("--events", 0) as origin:
            self.assertEqual(curl(f"{origin.url}/events"), b"")

    def test_ipv6(self):
        with Origin(address="[::1]:0") as origin:
            self.assertEqual(len(curl("-g", f"{origin.url}/")), 1024)

    def test_pipeline_and_head(self):
        with Origin("--body", "5B") as origin:
            body = curl(f"{origin.url}/")
            answer = raw(origin, b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
                                 b"GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            parts = answer.split(b"HTTP/1.1 200 OK\r\n")
            self.assertEqual(len(parts), 4)
            self.assertTrue(parts[1].endswith(b"Content-Length: 5\r\n\r\n"))
            self.assertTrue(parts[2].endswith(b"\r\n\r\n" + body))
            self.assertTrue(parts[3].endswith(b"Connection: close\r\n\r\n" + body))

    def test_refusals(self):
        long = b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20000 + b"\r\n\r\n"
        with Origin() as origin:
            for request, status in [
                (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", b"405"),
                (b"GET /other HTTP/1.1\r\nHost: a\r\n\r\n", b"404"),
                (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", b"413"),
                (b"GET / HTTP/1.1\r\n\r\n", b"400"),
                (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
                (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", b"505"),
                (b"\x16\x03\x01\x02\x00\r\n\r\n", b"400"),
                (long, b"431"),
            ]:
                answer = raw(origin, request)
                self.assertTrue(answer.startswith(b"HTTP/1.1 " + status), (request[:60], answer[:60]))
                self.assertIn(b"Connection: close\r\n", answer)
            self.assertEqual(origin.counts()["refused"], 8)

    def test_client_goes_away(self):
        with Origin("--body", "32MiB") as origin:
            host, port = origin.address.rsplit(":", 1)
            with socket.create_connection((host, int(port)), timeout=20) as s:
                s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                self.assertEqual(s.recv(9), b"HTTP/1.1 ")
            self.assertEqual(len(curl(f"{origin.url}/")), 32 << 20)  # it is still there
            counts = origin.counts()
            self.assertEqual((counts["lost"], counts["requests"]), (1, 1))


class ClientToOthers(unittest.TestCase):
    def check(self, url, body, *args, connections):
        code, result = program.run_json("http", "get", url, "-c", 20, "--length", len(body), "--sha256",
                                        hashlib.sha256(body).hexdigest(), *args)
        self.assertEqual((code, result["failures"]), (0, []))
        counts = result["counts"]
        self.assertEqual((counts["requests"], counts["completed"], counts["failed"]), (20, 20, 0))
        self.assertEqual(counts["body_bytes"], 20 * len(body))
        self.assertEqual(counts["connections"], connections)

    def test_python(self):
        body = bytes(range(256)) * 100

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.send_response(200)
                if self.path == "/chunked":
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for at in range(0, len(body), 999):
                        part = body[at:at + 999]
                        self.wfile.write(b"%x;a=b\r\n%s\r\n" % (len(part), part))
                    self.wfile.write(b"0\r\nTrailer: x\r\n\r\n")
                elif self.path == "/close":
                    self.send_header("Connection", "close")
                    self.end_headers()
                    self.wfile.write(body)
                    self.close_connection = True
                else:
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_port}"
        self.check(f"{url}/", body, connections=20)
        self.check(f"{url}/", body, "-k", connections=1)
        self.check(f"{url}/chunked", body, "-k", connections=1)
        self.check(f"{url}/close", body, "-k", connections=20)

    def test_python_of_http_1_0(self):
        with tempfile.TemporaryDirectory() as folder:
            body = b"from a file\n" * 1000
            (pathlib.Path(folder) / "file").write_bytes(body)

            class Quiet(http.server.SimpleHTTPRequestHandler):
                def log_message(self, *_):
                    pass

            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
            self.addCleanup(server.server_close)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.shutdown)
            self.check(f"http://127.0.0.1:{server.server_port}/file", body, "-k", "-T", 4, connections=20)

    def test_nginx(self):
        program.need("nginx", shutil.which("nginx") is not None)
        with tempfile.TemporaryDirectory() as folder:
            body = b"0123456789" * 20000
            (pathlib.Path(folder) / "file").write_bytes(body)
            pathlib.Path(folder).chmod(0o755)
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                port = s.getsockname()[1]
            config = pathlib.Path(folder) / "nginx.conf"
            config.write_text(f"""daemon off; pid {folder}/pid; error_log {folder}/log; master_process off;
                events {{}} http {{ access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b;
                fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
                server {{ listen 127.0.0.1:{port}; root {folder}; }} }}""")
            nginx = subprocess.Popen(["nginx", "-e", f"{folder}/log", "-c", str(config)], stderr=subprocess.DEVNULL)
            try:
                curl("--retry", "50", "--retry-connrefused", "--retry-delay", "0", "--retry-max-time", "20",
                     f"http://127.0.0.1:{port}/file")
                self.check(f"http://127.0.0.1:{port}/file", body, "-T", 4, connections=20)
                self.check(f"http://127.0.0.1:{port}/file", body, "-k", connections=1)
            finally:
                nginx.terminate()
                nginx.wait()


class Secure(unittest.TestCase):
    def test_origin_to_curl(self):
        with Origin("--tls", "--events", 5, "--every", "1ms", "--body", "200000B") as origin, \
                tempfile.TemporaryDirectory() as folder:
            host, port = origin.address.rsplit(":", 1)
            pem = ssl.get_server_certificate((host, int(port)))
            self.assertEqual(hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest(), origin.certificate)
            authorities = pathlib.Path(folder) / "pem"
            authorities.write_text(pem)
            self.assertEqual(len(curl("--cacert", str(authorities), f"{origin.url}/")), 200000)
            self.assertEqual(curl("--cacert", str(authorities), f"{origin.url}/events", f"{origin.url}/events"), events(5) * 2)
            self.assertEqual(curl("--tlsv1.2", "--tls-max", "1.2", "--cacert", str(authorities), f"{origin.url}/events"),
                             events(5))
            with self.assertRaises(subprocess.CalledProcessError):
                curl(f"{origin.url}/")  # of an authority that nobody knows
            # Ours checks what curl checks.
            code, result = program.run_json("http", "get", f"{origin.url}/", "--authorities", authorities, "-c", 10)
            self.assertEqual((code, result["failures"]), (0, []))

    def test_client_to_python(self):
        with tempfile.TemporaryDirectory() as folder:
            key, pem = f"{folder}/key", f"{folder}/pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", pem, "-subj",
                            "/CN=x", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
            (pathlib.Path(folder) / "file").write_bytes(b"secret" * 5000)

            class Quiet(http.server.SimpleHTTPRequestHandler):
                def log_message(self, *_):
                    pass

            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pem, key)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            server.handle_error = lambda *_: None
            self.addCleanup(server.server_close)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.shutdown)
            digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pathlib.Path(pem).read_text())).hexdigest()
            wrong = "TLS: the certificate is not the right one"
            for host, args, cause in [
                ("localhost", ("--authorities", pem), None),
                ("127.0.0.1", ("--authorities", pem), wrong),  # it is for another host
                ("localhost", (), wrong),
                ("127.0.0.1", ("--pin", digest), None),
                ("127.0.0.1", ("--pin", "0" * 64), wrong),
            ]:
                code, result = program.run_json("http", "get", f"https://{host}:{server.server_port}/file", "-4", "-c", 5,
                                                "--length", 30000, *args)
                self.assertEqual([f["cause"] for f in result["failures"]], [cause] if cause else [], (host, args))
                self.assertEqual((code, result["counts"]["completed"]), (1, 0) if cause else (0, 5))

    def test_pair(self):
        with Origin("--tls", "-T", 2, "--body", "1MiB", "--write", "1KiB") as origin:
            for args, connections in [((), 40), (("-k",), 4)]:
                code, result = program.run_json("http", "get", f"{origin.url}/", "-T", 4, "-c", 40, "--pin", origin.certificate,
                                                "--length", 1 << 20, *args)
                self.assertEqual((code, result["failures"]), (0, []))
                self.assertEqual(result["counts"]["completed"], 40)
                self.assertLessEqual(result["counts"]["connections"], connections)
            self.assertEqual(origin.counts()["requests"], 80)

    def test_not_tls(self):
        with Origin() as plain, Origin("--tls") as secure:
            code, result = program.run_json("http", "get", f"https://{plain.address}/", "-c", 5)
            self.assertEqual((code, result["failures"][0]["cause"]), (1, "TLS: Protocol error"))
            code, result = program.run_json("http", "get", f"http://{secure.address}/", "-c", 5)
            self.assertEqual((code, result["counts"]["failed"]), (1, 5))
            code, result = program.run_json("http", "get", secure.url, "-c", 5, "--pin", secure.certificate)
            self.assertEqual(code, 0)  # it goes on


class Pair(unittest.TestCase):
    def test_fresh(self):
        with Origin() as origin:
            body = curl(f"{origin.url}/")
            code, result = program.run_json("http", "get", f"{origin.url}/", "-T", 8, "-c", 400, "-w", 40, "--samples",
                                            "--length", 1024, "--sha256", hashlib.sha256(body).hexdigest())
            self.assertEqual((code, result["failures"]), (0, []))
            self.assertEqual(result["counts"]["connections"], 400)
            self.assertEqual((len(result["samples"]), result["warmup_requests"]), (440, 40))
            for start, connect, first, whole in result["samples"]:
                self.assertTrue(0 < connect <= first <= whole, (start, connect, first, whole))
            # Nearest rank, by other means.
            ranked = sorted(s[3] for s in result["samples"][40:])
            self.assertEqual(result["figures"]["request"]["p50_ns"], ranked[199])
            self.assertEqual(result["figures"]["request"]["p99_ns"], ranked[395])
            self.assertEqual(origin.counts()["requests"], 441)

    def test_keep_alive_and_events(self):
        with Origin("--events", 3, "--every", "1ms") as origin:
            code, result = program.run_json("http", "get", f"{origin.url}/events", "-T", 2, "-k", "-c", 20, "--sha256",
                                            hashlib.sha256(events(3)).hexdigest())
            self.assertEqual((code, result["failures"]), (0, []))
            self.assertLessEqual(result["counts"]["connections"], 2)
            self.assertGreaterEqual(result["figures"]["request"]["min_ns"], 2000000)  # the third event is due then
            self.assertLessEqual(origin.counts()["connections"], 2)

    def test_threads_of_the_origin(self):
        with Origin("-T", 2, "--body", "3MiB") as origin:
            code, result = program.run_json("http", "get", f"{origin.url}/", "-T", 8, "-c", 64, "--length", 3 << 20)
            self.assertEqual((code, result["counts"]["completed"]), (0, 64))
            self.assertEqual(origin.counts()["body_bytes"], 64 * 3 << 20)

    def test_failures_are_named_and_have_no_duration(self):
        with Origin() as origin:
            for args, url, cause in [
                ((), "/other", "status 404"),
                (("--length", 1023), "/", "the body has another length"),
                (("--sha256", "0" * 64), "/", "the body has another SHA-256"),
                (("--body-max", "1023B"), "/", "the body is too long"),
            ]:
                code, result = program.run_json("http", "get", origin.url + url, "-c", 10, "--samples", *args)
                self.assertEqual(code, 1)
                self.assertEqual(result["failures"], [{"cause": cause, "count": 10, "first": 0}])
                self.assertEqual(result["figures"], {})
                self.assertEqual([s[1:] for s in result["samples"]], [[None] * 3] * 10)
            url = origin.url
        code, result = program.run_json("http", "get", url, "-c", 10)
        self.assertEqual(result["failures"][0]["cause"], "connect: Connection refused")

    def test_text(self):
        with Origin() as origin:
            done = program.run("http", "get", origin.url, "-c", 300)
            self.assertEqual(done.returncode, 0)
            for expected in ("request", "first_byte", "300 requests: 300 completed on 300 new connections, 0 failed",
                             "SHA-256 of each body: e8911b43b0bb02c1"):
                self.assertIn(expected, done.stdout)

    def test_wrong_usage(self):
        for args, message in [
            (("get", "ftp://a/"), "does not begin with http:// or https://"),
            (("get", "https://127.0.0.1/", "--proxy", "127.0.0.1:1"), "https through a proxy"),
            (("get", "https://127.0.0.1/", "--pin", "12"), "64 hexadecimal digits"),
            (("get", "http://127.0.0.1/", "--sha256", "12"), "64 hexadecimal digits"),
            (("get", "http://127.0.0.1/", "--samples"), "--samples needs --json"),
            (("get", "http://127.0.0.1/", "-T", "0"), "out of range"),
            (("origin", "224.0.0.1"), "a unicast address"),
            (("origin", "--event", "8B"), "out of range"),
        ]:
            done = program.run("http", *args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    program.main()
