# SPDX-License-Identifier: Apache-2.0
"""Programs as they are, with resolvers and ways to connect of their own, under a policy that allows two ports of some names:
what they fetch arrives. Each is skipped by name where it is not installed."""
import contextlib
import functools
import hashlib
import os
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import threading
import unittest
import zipfile

import origin
import program
import test_enforcers as base
from origin import PUBLIC, Server, Server6, command
from sandbox import ORDINARY, PYTHON

PUBLIC6, ABSENT6 = "2001:db8:9::9", "2001:db8:9::bad"
PLAIN, TLS = 8080, 8443
NAMES = {"both": (PUBLIC, PUBLIC6), "four": (PUBLIC, None), "six": (None, PUBLIC6), "half": (PUBLIC, ABSENT6)}
POLICY = f"""allow:
  - {{host: "*.clients.example", port: [{PLAIN}, {TLS}], transport: tcp}}
"""
GO = """package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	pool := x509.NewCertPool()
	pem, _ := os.ReadFile(os.Args[1])
	pool.AppendCertsFromPEM(pem)
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	for _, url := range os.Args[2:] {
		answer, err := client.Get(url)
		if err != nil {
			fmt.Println(err)
			continue
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		fmt.Println(string(body))
	}
}
"""
C = """#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        for (int i = 2; i < argc; i++) {
                struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all = NULL;
                char text[2000] = "";
                int fd = -1, n, len = 0;

                if (getaddrinfo(argv[i], argv[1], &hints, &all) != 0) {
                        puts("no such host");
                        continue;
                }
                for (struct addrinfo *at = all; at && fd < 0; at = at->ai_next) {
                        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
                        if (connect(fd, at->ai_addr, at->ai_addrlen) < 0) {
                                close(fd);
                                fd = -1;
                        }
                }
                if (fd < 0) {
                        puts("no connection");
                        continue;
                }
                dprintf(fd, "GET /ok HTTP/1.1\\r\\nHost: %s:%s\\r\\nConnection: close\\r\\n\\r\\n", argv[i], argv[1]);
                while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
                        len += n;
                puts(strstr(text, "\\r\\n\\r\\n") + 4);
                close(fd);
        }
}
"""
ASYNCIO = f"""
import asyncio, sys
async def fetch(name):
    reader, writer = await asyncio.open_connection(name, {PLAIN}, happy_eyeballs_delay=0.25)
    writer.write(b"GET /ok HTTP/1.1\\r\\nHost: %s:{PLAIN}\\r\\nConnection: close\\r\\n\\r\\n" % name.encode())
    print((await reader.read()).decode().split()[-1])
    writer.close()
for name in sys.argv[1:]:
    asyncio.run(fetch(name))
"""
NODE = """
(async () => { for (const url of process.argv.slice(1)) console.log((await (await fetch(url)).text())) })()
"""


class Answer(origin.Answer):
    """The files of a folder."""
    folder = None

    def do_GET(self):
        path = self.folder / self.path.split("?")[0].strip("/")
        path = path / "index.html" if path.is_dir() else path
        there = path.is_file()
        body = path.read_bytes() if there else b""
        self.send_response(200 if there else 404)
        self.send_header("Content-Type", "text/html" if path.suffix == ".html" else "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self):
        with contextlib.suppress(ssl.SSLError):
            super().handle()


def write_package(folder):
    """A wheel, and the page of an index that names it."""
    folder.mkdir(parents=True)
    wheel = folder / "hello-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as whole:
        whole.writestr("hello.py", "")
        whole.writestr("hello-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n")
        whole.writestr("hello-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\n"
                                                    "Tag: py3-none-any\n")
        whole.writestr("hello-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "index.html").write_text(f'<!DOCTYPE html><html><body><a href="{wheel.name}#sha256={digest}">'
                                       f"{wheel.name}</a></body></html>")


def write_repository(folder, work):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    command(*git, "init", "-q", str(work))
    (work / "file").write_text("whole\n")
    command(*git, "-C", str(work), "add", "file")
    command(*git, "-C", str(work), "commit", "-qm", "one")
    command(*git, "clone", "-q", "--bare", str(work), str(folder))
    command(*git, "-C", str(folder), "update-server-info")


def serve(folder, addresses, port, context=None):
    for address in addresses:
        server = (Server6 if ":" in address else Server)((address, port), type("Files", (Answer,), {"folder": folder}))
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def setUpModule():
    """Beside what the tests of the enforcers have: the files that are fetched, over HTTP and HTTPS, at names with addresses of
    either family, of both, and with one where nothing is."""
    origin.set_up()
    command("ip", "addr", "add", PUBLIC6 + "/128", "dev", "origin", "nodad")
    for name, (v4, v6) in NAMES.items():
        origin.ZONE[f"{name}.clients.example"] = ["A", *filter(None, (v4, v6))]
    scratch = tempfile.TemporaryDirectory(prefix="assay-clients-")
    unittest.addModuleCleanup(scratch.cleanup)
    folder = pathlib.Path(scratch.name)
    (folder / "www").mkdir()
    (folder / "www" / "ok").write_text("ok")
    write_package(folder / "www" / "simple" / "hello")
    write_repository(folder / "www" / "project.git", folder / "work")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", folder / "key", "-out", folder / "certificate", "-days", "2", "-subj", "/CN=clients",
                    "-addext", "subjectAltName=DNS:*.clients.example"], check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate", folder / "key")
    serve(folder / "www", (PUBLIC, PUBLIC6), PLAIN)
    serve(folder / "www", (PUBLIC, PUBLIC6), TLS, context)
    Clients.certificate = folder / "certificate"


@functools.cache
def build(name, text, *command_line):
    """Once for all: a file's text and the command that makes a program of it, but for its output and input. Return: the
    program's bytes."""
    with tempfile.TemporaryDirectory(prefix="assay-build-") as folder:
        source = pathlib.Path(folder) / name
        source.write_text(text)
        subprocess.run([*command_line, source.with_suffix(""), source], check=True,
                       env=dict(os.environ, GOCACHE=f"{folder}/cache", CGO_ENABLED="0"))
        return source.with_suffix("").read_bytes()


class Clients(unittest.TestCase):
    """What holds for every enforcer."""
    __test__ = False
    enforcer, user = None, None
    certificate = None
    write_policy = classmethod(base.Enforcer.write_policy.__func__)

    @classmethod
    def setUpClass(cls):
        if cls.enforcer is None:
            raise unittest.SkipTest("what others inherit")
        scratch = tempfile.TemporaryDirectory(prefix="assay-clients-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.folder.chmod(0o755)
        cls.assay = shutil.copy(program.ASSAY, cls.folder / "assay")
        shutil.copy(cls.certificate, cls.folder / "certificate")
        cls.policy = cls.write_policy("policy.yaml", POLICY)

    def exec(self, *args):
        """In a folder that stays visible, with another to write to, and without this host's own ways to trust."""
        become = ["setpriv", "--reuid", str(self.user), "--regid", str(self.user), "--clear-groups"] if self.user else []
        env = {"PATH": os.environ["PATH"], "HOME": "/tmp", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1",
               "GIT_SSL_CAINFO": "certificate", "NODE_EXTRA_CA_CERTS": "certificate",
               **{name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}}
        done = subprocess.run([*become, self.assay, "exec", "--enforce", self.enforcer, "--policy", self.policy, "--",
                               *map(str, args)], text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60,
                              check=False, cwd=self.folder, env=env)
        done.stderr = program.without_asan(done.stderr)
        self.assertNotIn("denied", done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def place(self, name, code):
        path = self.folder / name
        path.write_bytes(code)
        path.chmod(0o755)
        return path

    def urls(self, names=NAMES):
        return [f"http://{name}.clients.example:{PLAIN}/ok" for name in names] + [
            f"https://{name}.clients.example:{TLS}/ok" for name in names]

    def test_go(self):
        """Asks for names itself, and takes no C library: a static binary."""
        program.need("go (too large to be installed for this test)", shutil.which("go") is not None)
        client = self.place("get", build("get.go", GO, "go", "build", "-o"))
        self.assertEqual(self.exec(client, "certificate", *self.urls()), "ok\n" * 2 * len(NAMES))

    def test_musl(self):
        program.need("musl-gcc", shutil.which("musl-gcc") is not None)
        client = self.place("connect", build("connect.c", C, "musl-gcc", "-static", "-o"))
        names = [f"{name}.clients.example" for name in NAMES]
        self.assertEqual(self.exec(client, PLAIN, *names), "ok\n" * len(NAMES))

    def test_node(self):
        program.need("node", shutil.which("node") is not None)
        self.assertEqual(self.exec("node", "-e", NODE, *self.urls()), "ok\n" * 2 * len(NAMES))

    def test_asyncio(self):
        """With a second connection begun before the first has failed."""
        self.assertEqual(self.exec(PYTHON, "-c", ASYNCIO, *(f"{name}.clients.example" for name in NAMES)), "ok\n" * len(NAMES))

    def test_curl(self):
        program.need("curl", shutil.which("curl") is not None)
        self.assertEqual(self.exec("curl", "-sS", "--cacert", "certificate", *self.urls()), "ok" * 2 * len(NAMES))

    def test_pip(self):
        has_pip = subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
        program.need("pip", has_pip)
        for index in f"http://half.clients.example:{PLAIN}/simple", f"https://six.clients.example:{TLS}/simple":
            self.assertEqual(self.exec("sh", "-c", '"$@" >&2 && ls /tmp/got', "sh", PYTHON, "-m", "pip", "download", "--no-deps",
                                       "--dest", "/tmp/got", "--index-url", index, "--trusted-host", "half.clients.example",
                                       "--cert", "certificate", "hello"), "hello-1.0-py3-none-any.whl\n")

    def test_git(self):
        program.need("git", shutil.which("git") is not None)
        for url in f"http://both.clients.example:{PLAIN}", f"https://six.clients.example:{TLS}":
            self.assertEqual(self.exec("sh", "-c", 'git clone -q "$1" /tmp/got && cat /tmp/got/file', "sh", url + "/project.git"),
                             "whole\n")


class Wall(Clients):
    __test__ = True
    enforcer = "wall"


class Proxy(Clients):
    __test__ = True
    enforcer = "proxy"


class OrdinaryProxy(Clients):
    __test__ = True
    enforcer, user = "proxy", ORDINARY


if __name__ == "__main__":
    program.main()
