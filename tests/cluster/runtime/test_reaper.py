"""The reaper hears only who knows its secret, and removes only what belongs to the run."""

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

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="the reaper is written in Go")


class Engine(ThreadingUnixStreamServer):
    """An engine with one container of each label that is asked for, until it is removed."""

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
        there = self.path.startswith("/containers") and label not in self.server.removed
        listed = [{"Id": label}] if there else []
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
    own = {"CGO_ENABLED": "0", "GO111MODULE": "off", "GOCACHE": str(target.parent / "cache")}
    command = ["go", "build", "-o", str(target), str(SOURCE.absolute())]
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


def _message(port: int, *lines: str) -> tuple[socket.socket, list[str]]:
    """A connection that was told these lines, and what came back for each until it was cut off."""
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


def test_who_knows_the_secret_has_its_run_removed_when_it_goes(
    start: Start, engine: Engine
) -> None:
    port, process = start()
    connection, answers = _message(port, HELLO, "label=streamquake.run=mine")

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
def test_who_does_not_know_it_is_cut_off_and_changes_nothing(
    start: Start, engine: Engine, lines: tuple[str, ...]
) -> None:
    port, process = start()
    mine, _ = _message(port, HELLO, "label=streamquake.run=mine")

    stranger, answers = _message(port, *lines)

    assert answers == []
    mine.close()
    assert process.wait(LIMIT_S) == 0
    stranger.close()
    assert engine.removed == ["streamquake.run=mine"]


def test_a_stranger_that_stays_does_not_keep_the_reaper(start: Start, engine: Engine) -> None:
    port, process = start(first="1s")
    stranger, _ = _message(port)

    assert process.wait(LIMIT_S) == 0
    stranger.close()
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
def test_only_a_run_can_be_named(start: Start, engine: Engine, label: str) -> None:
    port, process = start()
    connection, answers = _message(port, HELLO, label)

    assert answers == ["ACK\n"]
    assert process.wait(LIMIT_S) == 0
    connection.close()
    assert engine.removed == []


@pytest.mark.parametrize("secret", ["", "short"])
def test_it_does_not_begin_without_a_secret(start: Start, secret: str) -> None:
    _, process = start(secret=secret)

    assert process.wait(LIMIT_S) == 1
    assert process.stderr is not None
    assert "REAPER_SECRET: expected at least 32 characters" in process.stderr.read()


def test_each_reaper_is_given_a_secret_of_its_own() -> None:
    runtime = FakeRuntime(SystemClock())

    secrets = [Reaper(runtime, "run")._spec(1).env["REAPER_SECRET"] for _ in range(2)]

    assert secrets[0] != secrets[1]
    assert all(len(secret) == 64 for secret in secrets)
