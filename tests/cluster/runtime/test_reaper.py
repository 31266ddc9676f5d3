"""The reaper accepts only clients with its secret, and removes only resources of the run."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.reaper import PROTOCOL, Reaper
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.free_ports import free_port
from streamquake.cluster.runtime.waiting import wait_until

SOURCE = Path("cluster/images/toolbox/reaper/main.go")
SECRET = "s" * 64
LIMIT_S = 30.0

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("go") is None, reason="the reaper is written in Go"),
]


class Engine(ThreadingUnixStreamServer):
    """An engine with one container for every requested label, until it is removed."""

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        self.removed: list[str] = []
        super().__init__(str(path), _Answers)


class _Answers(BaseHTTPRequestHandler):
    server: Engine

    def address_string(self) -> str:
        return "reaper"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        filters = json.loads(parse_qs(urlsplit(self.path).query)["filters"][0])
        (label,) = filters["label"]
        exists = self.path.startswith("/containers") and label not in self.server.removed
        listed = [{"Id": label}] if exists else []
        self._answer({"Volumes": []} if self.path.startswith("/volumes") else listed)

    def do_DELETE(self) -> None:
        self.server.removed.append(unquote(urlsplit(self.path).path).rpartition("/")[2])
        self._answer({})

    def _answer(self, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("reaper") / "reaper"
    # The options of the images' build: with the same, Go's cache has the compiled standard library.
    options = ["-trimpath", "-ldflags=-s -w"]
    command = ["go", "build", *options, "-o", str(target), str(SOURCE.absolute())]
    own = {"CGO_ENABLED": "0", "GO111MODULE": "off", "GOFLAGS": ""}
    subprocess.run(command, check=True, env={**os.environ, **own})
    return target


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path / "e.sock") as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


Start = Callable[..., tuple[int, "subprocess.Popen[str]"]]


@pytest.fixture
def start(binary: Path, engine: Engine) -> Iterator[Start]:
    running = []

    def begin(first: str = "60s", secret: str = SECRET) -> tuple[int, subprocess.Popen[str]]:
        port = free_port()
        settings = {
            "RYUK_PORT": str(port),
            "RYUK_CONNECTION_TIMEOUT": first,
            "REAPER_SECRET": secret,
            "RYUK_RECONNECTION_TIMEOUT": "100ms",
            "DOCKER_SOCKET": str(engine.server_address),
        }
        process = subprocess.Popen([binary], env=settings, stderr=subprocess.PIPE, text=True)
        running.append(process)
        return port, process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def _send(port: int, *lines: str) -> tuple[socket.socket, list[str]]:
    """Send lines to the reaper; returns the connection, and the answers until it was closed."""
    found: list[socket.socket] = []

    def pending() -> str | None:
        try:
            found.append(socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S))
        except OSError as error:
            return str(error)
        return None

    wait_until(pending, what="the reaper", limit_s=LIMIT_S, clock=SystemClock())
    (connection,) = found
    answers = []
    for line in lines:
        try:
            connection.sendall(f"{line}\n".encode())
            answer = connection.recv(64).decode()
        except OSError:
            break
        if not answer:
            break
        answers.append(answer)
    return connection, answers


HELLO = f"{PROTOCOL} {SECRET}"


def test_the_run_of_a_client_with_the_secret_is_removed_after_its_disconnect(
    start: Start, engine: Engine
) -> None:
    port, process = start()
    connection, answers = _send(port, HELLO, "label=streamquake.run=mine")

    assert answers == ["ACK\n", "ACK\n"]
    assert process.poll() is None
    connection.close()
    assert process.wait(LIMIT_S) == 0
    assert engine.removed == ["streamquake.run=mine"]


@pytest.mark.parametrize(
    "lines",
    [
        ("label=streamquake.run=theirs",),
        ("", "label=streamquake.run=theirs"),
        (f"{PROTOCOL} {'x' * 64}", "label=streamquake.run=theirs"),
        (f"{PROTOCOL} {SECRET[:-1]}", "label=streamquake.run=theirs"),
        (f"{PROTOCOL} ", "label=streamquake.run=theirs"),
        (SECRET, "label=streamquake.run=theirs"),
        ("x" * 100_000, "label=streamquake.run=theirs"),
    ],
)
def test_a_client_without_the_secret_is_disconnected_and_changes_nothing(
    start: Start, engine: Engine, lines: tuple[str, ...]
) -> None:
    port, process = start()
    mine, _ = _send(port, HELLO, "label=streamquake.run=mine")

    foreign_client, answers = _send(port, *lines)

    assert answers == []
    mine.close()
    assert process.wait(LIMIT_S) == 0
    foreign_client.close()
    assert engine.removed == ["streamquake.run=mine"]


def test_a_silent_client_does_not_keep_the_reaper_running(start: Start, engine: Engine) -> None:
    port, process = start(first="1s")
    foreign_client, _ = _send(port)

    assert process.wait(LIMIT_S) == 0
    foreign_client.close()
    assert engine.removed == []


@pytest.mark.parametrize(
    "label",
    [
        "label=",
        "label=streamquake.run=",
        "label=other=1",
        "name=x",
        "status=running",
        "%zz",
        "label=streamquake.run=a&name=b",
        "label=streamquake.run=a&label=b",
    ],
)
def test_only_the_label_of_a_run_is_accepted(start: Start, engine: Engine, label: str) -> None:
    port, process = start()
    connection, answers = _send(port, HELLO, label)

    assert answers == ["ACK\n"]
    assert process.wait(LIMIT_S) == 0
    connection.close()
    assert engine.removed == []


@pytest.mark.parametrize("secret", ["", "short"])
def test_the_reaper_does_not_start_without_a_secret(start: Start, secret: str) -> None:
    _, process = start(secret=secret)

    assert process.wait(LIMIT_S) == 1
    assert process.stderr is not None
    assert "REAPER_SECRET: expected at least 32 characters" in process.stderr.read()


def test_every_reaper_has_another_secret() -> None:
    runtime = FakeRuntime(SystemClock())

    secrets = [Reaper(runtime, "run")._spec(1).env["REAPER_SECRET"] for _ in range(2)]

    assert secrets[0] != secrets[1]
    assert all(len(secret) == 64 for secret in secrets)
