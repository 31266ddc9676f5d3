"""The engine zookeeper: its plans, and the client's requests to a server in memory."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kazoo.exceptions import NoNodeError
from kazoo.protocol.serialization import Close, GetChildren

from streamquake.cluster.engines.engine import NodePlan, PortAllocator, engine
from streamquake.cluster.engines.zookeeper import client as zookeeper_client
from streamquake.cluster.engines.zookeeper import engine as zookeeper
from streamquake.cluster.engines.zookeeper.client import ZooKeeperUnreachable
from streamquake.topologies.model import Topology

pytestmark = pytest.mark.slow

LIMIT_S = 30


def topology(servers: int) -> Topology:
    service = {"engine": "zookeeper", "nodes": {"server": servers}, "config": {"tickTime": 500}}
    return Topology.model_validate({"name": "t", "services": {"zk": service}})


def settings(servers: int, ordinal: int) -> tuple[NodePlan, dict[str, str]]:
    ensemble = topology(servers)
    ports = PortAllocator(host=lambda node, port: 20_000 + port)
    plan = engine("zookeeper").plan(ensemble, ensemble.nodes()[ordinal - 1], ports)
    (text,) = plan.files.values()
    return plan, dict(line.split("=", 1) for line in text.splitlines())


def test_one_server_is_standalone_and_three_form_an_ensemble() -> None:
    plan, alone = settings(1, 1)
    assert not any(key.startswith("server.") for key in alone)
    assert plan.publish == (2181,)
    plan, third = settings(3, 3)
    assert third["server.2"] == "zk-server-2:2888:3888"
    assert (third["tickTime"], third["dataDir"]) == ("500", "/var/lib/zookeeper")
    assert plan.env["ZOO_MY_ID"] == "3"
    assert zookeeper.quorum(topology(2), "zk") == "zk-server-1:2181,zk-server-2:2181"


class Server:
    """Answers one connection as ZooKeeper does: a session, then every request for a path."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self.contents = contents
        self.serves = True

    def serve(self, connection: socket.socket) -> None:
        assert _receive(connection)
        if not self.serves:
            return  # a server without an ensemble closes the connection
        _send(connection, struct.pack(">iiqi16s?", 0, 4000, 7, 16, bytes(16), False))
        while (request := _receive(connection)) is not None:
            number, kind = struct.unpack_from(">ii", request)
            if kind == Close.type:
                _send(connection, struct.pack(">iqi", number, 0, 0))
                return
            content = self.contents.get(request[12:-1].decode())
            if content is None:
                _send(connection, struct.pack(">iqi", number, 0, NoNodeError.code))
            elif kind == GetChildren.type:
                names = [struct.pack(">i", len(name)) + name for name in content.split()]
                head = struct.pack(">iqii", number, 0, 0, len(names))
                _send(connection, head + b"".join(names))
            else:
                head = struct.pack(">iqii", number, 0, 0, len(content))
                _send(connection, head + content + bytes(68))


def _receive(connection: socket.socket) -> bytes | None:
    """The next message; None when the client has closed the connection."""
    head = connection.recv(4, socket.MSG_WAITALL)
    if not head:
        return None
    (size,) = struct.unpack(">i", head)
    return connection.recv(size, socket.MSG_WAITALL)


def _send(connection: socket.socket, message: bytes) -> None:
    connection.sendall(struct.pack(">i", len(message)) + message)


@contextmanager
def serving(server: Server) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            connection, _ = listener.accept()
            with connection:
                server.serve(connection)

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join(timeout=LIMIT_S)


def test_a_path_is_read_and_a_missing_one_is_none() -> None:
    server = Server({"/flink/leader": b"pekko.tcp://flink@jm-2:6123/x"})
    with serving(server) as address:
        found = zookeeper_client.read(address, "/flink/leader", LIMIT_S)
    with serving(server) as address:
        missing = zookeeper_client.read(address, "/flink/missing", LIMIT_S)
    assert (found, missing) == (b"pekko.tcp://flink@jm-2:6123/x", None)


def test_the_names_below_a_path_are_read_and_a_missing_path_has_none() -> None:
    server = Server({"/flink/jobs": b"a1 b2"})
    with serving(server) as address:
        assert zookeeper_client.children(address, "/flink/jobs", LIMIT_S) == ("a1", "b2")
    with serving(server) as address:
        assert zookeeper_client.children(address, "/flink/missing", LIMIT_S) == ()


def test_a_server_that_accepts_a_session_serves() -> None:
    with serving(Server({})) as address:
        zookeeper_client.require_serving(address, LIMIT_S)


def test_a_server_that_does_not_serve_differs_from_a_missing_path() -> None:
    server = Server({})
    server.serves = False
    with serving(server) as address, pytest.raises(ZooKeeperUnreachable, match=r"within 0\.5 s"):
        zookeeper_client.read(address, "/flink/leader", 0.5)
    with pytest.raises(ZooKeeperUnreachable, match=r"within 0\.5 s"):
        zookeeper_client.require_serving(address, 0.5)


def test_the_attempts_to_reach_a_server_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZooKeeperUnreachable):
        zookeeper_client.require_serving("127.0.0.1:1", 0.3)
    assert capfd.readouterr() == ("", "")
