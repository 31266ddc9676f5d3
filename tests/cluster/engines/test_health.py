"""The commands of health checks, run by this machine's bash against servers on loopback."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from streamquake.cluster.engines import health
from streamquake.cluster.engines.kafka.engine import API_VERSIONS

LIMIT_S = 30
HOST = "127.0.0.1"


@contextmanager
def answering(request: bytes, answer: bytes) -> Iterator[int]:
    """The port of a server that answers one connection after it has received the request."""
    received: list[bytes] = []

    def serve() -> None:
        connection, _ = listener.accept()
        connection.settimeout(LIMIT_S)
        with connection, connection.makefile("rb") as incoming:
            received.append(incoming.read(len(request)))
            connection.sendall(answer)

    with socket.create_server((HOST, 0)) as listener:
        listener.settimeout(LIMIT_S)
        server = threading.Thread(target=serve)
        server.start()
        yield listener.getsockname()[1]
        server.join(LIMIT_S)
    assert received == [request]


def status(command: tuple[str, ...]) -> int:
    done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
    return done.returncode


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b'HTTP/1.1 200 OK\r\n\r\n{"FSState" : "Operational"}', True),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", False),
        (b"", False),
    ],
)
def test_a_page_is_requested_and_its_text_is_checked(answer: bytes, expected: bool) -> None:
    with answering(b"GET /jmx?qry=a:b=c HTTP/1.0\r\n\r\n", answer) as port:
        found = status(health.http_check(HOST, port, "/jmx?qry=a:b=c", '"FSState"'))

    assert (found == 0) is expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(b"Mode: follower\n", True), (b"not currently serving: Mode: none\n", False), (b"", False)],
)
def test_a_line_must_match_the_expression(answer: bytes, expected: bool) -> None:
    with answering(b"srvr", answer) as port:
        found = status(health.line_check(HOST, port, "srvr", "^Mode: "))

    assert (found == 0) is expected


@pytest.mark.parametrize(
    ("answer", "expected"), [(bytes([0, 0, 1, 2, 3]), True), (b"HTTP/1.1 400", False), (b"", False)]
)
def test_a_message_must_begin_with_its_length(answer: bytes, expected: bool) -> None:
    with answering(b"\0\0\0\x0a\0\x12\0\0\0\0\0\0\xff\xff", answer) as port:
        found = status(health.message_check(HOST, port, API_VERSIONS))

    assert (found == 0) is expected


def test_every_command_fails_without_a_listener() -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]

    assert status(health.http_check(HOST, port, "/", "x")) != 0
    assert status(health.line_check(HOST, port, "srvr", "x")) != 0
    assert status(health.message_check(HOST, port, API_VERSIONS)) != 0
