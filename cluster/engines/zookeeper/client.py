"""As much of ZooKeeper's client protocol as it takes to ask how a server is and to read a path.

The records are those of `zookeeper.jute` (ConnectRequest, RequestHeader, GetDataRequest and their
answers), unchanged since ZooKeeper 3.4: big-endian, each message behind its length.
"""

from __future__ import annotations

import socket
import struct

from streamquake.topologies.errors import ErrorKind, StreamquakeError

GET_DATA, NO_NODE = 4, -101
SESSION_MS = 4_000
"""How long a server keeps the session of a reader that ended without closing it."""


class ZooKeeperUnreachable(StreamquakeError):
    """The server does not answer, or is not serving now; a retry may help."""

    kind = ErrorKind.CLUSTER_FAILED


def ask(address: str, word: str, limit_s: float) -> str:
    """A server's answer to one of its four-letter words. Raises ZooKeeperUnreachable."""
    try:
        with _connected(address, limit_s) as connection:
            connection.sendall(word.encode())
            with connection.makefile("rb") as answer:
                return answer.read().decode(errors="replace")
    except OSError as error:
        raise ZooKeeperUnreachable(f"does not answer: {type(error).__name__}") from error


def read(address: str, path: str, limit_s: float) -> bytes | None:
    """The content of a path, or None where there is none. Raises ZooKeeperUnreachable."""
    try:
        with _connected(address, limit_s) as connection:
            _send(connection, struct.pack(">iqiqi16sb", 0, 0, SESSION_MS, 0, 16, bytes(16), 0))
            _receive(connection)
            name = path.encode()
            head = struct.pack(f">iii{len(name)}s?", 1, GET_DATA, len(name), name, False)
            _send(connection, head)
            return _data(_receive(connection))
    except (OSError, struct.error) as error:
        raise ZooKeeperUnreachable(f"does not answer: {type(error).__name__}") from error


def _connected(address: str, limit_s: float) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=limit_s)


def _data(answer: bytes) -> bytes | None:
    _, _, error = struct.unpack_from(">iqi", answer)
    if error == NO_NODE:
        return None
    if error != 0:
        raise ZooKeeperUnreachable(f"answers with error {error}")
    (length,) = struct.unpack_from(">i", answer, 16)
    return answer[20 : 20 + max(0, length)]


def _send(connection: socket.socket, message: bytes) -> None:
    connection.sendall(struct.pack(">i", len(message)) + message)


def _receive(connection: socket.socket) -> bytes:
    (length,) = struct.unpack(">i", _exactly(connection, 4))
    return _exactly(connection, length)


def _exactly(connection: socket.socket, count: int) -> bytes:
    """Read exactly this many bytes; a server that is not serving closes the connection instead."""
    found = b""
    while len(found) < count:
        part = connection.recv(count - len(found))
        if not part:
            raise ConnectionResetError("closed by the server")
        found += part
    return found
