"""The engine zookeeper: what it plans, and the client's questions to a server in memory."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from streamquake.cluster.engines.engine import NodePlan, PortAllocator, engine
from streamquake.cluster.engines.zookeeper import client as zookeeper_client
from streamquake.cluster.engines.zookeeper import engine as zookeeper
from streamquake.cluster.engines.zookeeper.client import NO_NODE, ZooKeeperUnreachable
from streamquake.topologies.model import Topology

LIMIT_S = 30


def topology(servers: int) -> Topology:
    service = {"engine": "zookeeper", "nodes": {"server": servers}, "config": {"tickTime": 500}}
    return Topology.model_validate({"name": "t", "services": {"zk": service}})


def settings(servers: int, ordinal: int) -> tuple[NodePlan, dict[str, str]]:
    made = topology(servers)
    ports = PortAllocator(host=lambda node, port: 20_000 + port)
    plan = engine("zookeeper").plan(made, made.nodes()[ordinal - 1], ports)
    (text,) = plan.files.values()
    return plan, dict(line.split("=", 1) for line in text.splitlines())


def test_one_server_stands_alone_and_three_form_an_ensemble() -> None:
    plan, alone = settings(1, 1)
    assert not any(key.startswith("server.") for key in alone)
    assert plan.publish == (2181,)
    plan, third = settings(3, 3)
    assert third["server.2"] == "zk-server-2:2888:3888"
    assert (third["tickTime"], third["dataDir"]) == ("500", "/var/lib/zookeeper")
    assert plan.env["ZOO_MY_ID"] == "3"
    assert zookeeper.quorum(topology(2), "zk") == "zk-server-1:2181,zk-server-2:2181"


class Server:
    """Answers one connection as ZooKeeper does: four letters, or a session and one question."""

    def __init__(self, holds: dict[str, bytes]) -> None:
        self.holds = holds
        self.refuses = False

    def serve(self, connection: socket.socket) -> None:
        head = connection.recv(4)
        if head == b"srvr":
            connection.sendall(b"Mode: standalone\n")
        elif not self.refuses:
            _exactly(connection, struct.unpack(">i", head)[0])
            _send(connection, struct.pack(">iiqi16s", 0, 4000, 7, 16, bytes(16)))
            request = _exactly(connection, struct.unpack(">i", connection.recv(4))[0])
            path = request[12:-1].decode()
            content = self.holds.get(path)
            if content is None:
                _send(connection, struct.pack(">iqi", 1, 0, NO_NODE))
            else:
                _send(connection, struct.pack(">iqii", 1, 0, 0, len(content)) + content + bytes(68))


def _send(connection: socket.socket, message: bytes) -> None:
    connection.sendall(struct.pack(">i", len(message)) + message)


def _exactly(connection: socket.socket, count: int) -> bytes:
    return connection.recv(count, socket.MSG_WAITALL)


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


def test_a_four_letter_word_is_answered() -> None:
    with serving(Server({})) as address:
        assert zookeeper_client.ask(address, "srvr", LIMIT_S) == "Mode: standalone\n"


def test_a_server_that_is_not_serving_differs_from_a_missing_path() -> None:
    server = Server({})
    server.refuses = True
    with serving(server) as address, pytest.raises(ZooKeeperUnreachable, match="ConnectionReset"):
        zookeeper_client.read(address, "/flink/leader", LIMIT_S)
    with pytest.raises(ZooKeeperUnreachable, match="ConnectionRefused"):
        zookeeper_client.ask(address, "srvr", LIMIT_S)
