"""The engine container: its plans, when its nodes are ready, and which documents are rejected."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import PortAllocator, addresses_of, engine, ports_of
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.links.links import port_number
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerError, ContainerSpec, ExecResult
from streamquake.cluster.topology_validation import checked_topology
from streamquake.topologies.model import Topology
from streamquake.topologies.yaml_document import parse_document
from tests.fakes import fake_cluster

DATABASE = """
name: t
services:
  db:
    engine: container
    image: postgres:17
    ports: {sql: 5432, status: 8080}
    command: [postgres, -c, max_prepared_transactions=10]
    volumes: [/var/lib/postgresql/data]
    ready:
      command: [pg_isready, -U, postgres]
    nodes:
      server: {count: 2, memory_mb: 512, env: {POSTGRES_PASSWORD: secret}}
  app:
    engine: container
    image: app:1
    ports: {web: 80}
    nodes: {server: 1}
links:
  sink: {from: app/server, to: db/server, port: sql}
"""
"""Two databases, and a program that connects to them."""
SILENT = "nothing listens for its peers on its port web (80)"


def topology_of(text: str) -> Topology:
    topology, problems = checked_topology(parse_document(text, "t.yaml"))
    assert topology is not None
    assert problems == []
    return topology


def problems_of(text: str) -> list[str]:
    _, problems = checked_topology(parse_document(text, "t.yaml"))
    return [f"{problem.path}: {problem.message}" for problem in problems]


class World:
    """What is inside the nodes: the ports that are listened on, and the answer of a command."""

    def __init__(self, text: str = DATABASE) -> None:
        runtime = FakeRuntime(FakeClock())
        self.cluster = fake_cluster(topology_of(text), runtime=runtime)
        self.listening = {5432, 8080, 80}
        self.answer = ExecResult(exit_code=0, output="accepting connections\n")
        self.sockets: ExecResult | None = None
        self.commands: list[tuple[str, ...]] = []
        runtime.on_network_tool.insert(0, self._sockets)
        runtime.on_exec.insert(0, self._run)

    def _sockets(self, spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        port = int(argv[-1].rpartition(":")[2])
        if self.sockets is not None:
            return self.sockets
        found = f"LISTEN 0 128 0.0.0.0:{port} 0.0.0.0:*\n" if port in self.listening else ""
        return ExecResult(exit_code=0, output=found)

    def _run(self, spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        self.commands.append(tuple(argv))
        return self.answer

    def pending(self, service: str = "db") -> str | None:
        return engine("container").pending(self.cluster, service)


def test_a_node_runs_the_image_with_what_the_document_says() -> None:
    topology = topology_of(DATABASE)
    ports = PortAllocator(host=lambda node, port: port)

    plan = engine("container").plan(topology, topology.nodes()[0], ports)

    assert (plan.image, plan.command[0]) == ("postgres:17", "postgres")
    assert plan.publish == (5432, 8080)
    assert plan.volumes == ("/var/lib/postgresql/data",)
    assert (plan.memory_mb, plan.health) == (512, ("pg_isready", "-U", "postgres"))
    assert engine("container").images(topology, "db") == ()


def test_an_image_that_is_built_here_is_named_without_its_hash() -> None:
    text = DATABASE.replace("image: postgres:17", "image: streamquake/postgres")
    topology = topology_of(text)
    ports = PortAllocator(host=lambda node, port: port)

    plan = engine("container").plan(topology, topology.nodes()[0], ports)

    assert engine("container").images(topology, "db") == (recipe("postgres"),)
    assert plan.image == recipe("postgres").tag


def test_files_are_put_into_every_node() -> None:
    topology = topology_of(
        DATABASE.replace("    volumes:", '    files: {/a/b.sql: "a\\nb"}\n    volumes:')
    )
    ports = PortAllocator(host=lambda node, port: port)

    plans = [engine("container").plan(topology, node, ports) for node in topology.nodes()[:2]]

    assert [plan.files for plan in plans] == [{"/a/b.sql": "a\nb"}] * 2


def test_links_and_jobs_use_the_names_of_its_ports() -> None:
    topology = topology_of(DATABASE)

    assert port_number(topology, topology.links["sink"]) == 5432
    assert ports_of(topology, "db") == {"sql": 5432, "status": 8080}
    assert addresses_of(topology, "db", "sql") == "db-server-1:5432,db-server-2:5432"


def test_a_node_is_ready_when_it_listens_and_its_command_succeeds() -> None:
    world = World()
    assert world.pending() is None
    assert set(world.commands) == {("pg_isready", "-U", "postgres")}

    world.answer = ExecResult(exit_code=2, output="no response\n")
    assert world.pending() == ("db/server-1: `pg_isready` exits with 2: no response")
    world.listening = {5432}
    assert world.pending() == "db/server-1: nothing listens for its peers on its port status (8080)"


def test_without_a_condition_a_node_is_ready_when_it_listens() -> None:
    world = World()
    world.answer = ExecResult(exit_code=1, output="")

    assert world.pending("app") is None
    world.listening = set()
    assert (
        world.pending("app") == "app/server-1: nothing listens for its peers on its port web (80)"
    )


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/ready" else 503)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def page() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("{port: web, path: /ready}", None),
        ("{port: web, path: /ready, status: 204}", "/ready answers 200, not 204"),
        ("{port: web}", "/ answers 503, not 200"),
        ("{port: web, status: 503}", None),
    ],
)
def test_a_page_says_whether_a_node_is_ready(
    page: str, monkeypatch: pytest.MonkeyPatch, condition: str, reason: str | None
) -> None:
    monkeypatch.setattr(Cluster, "address", lambda *_: page)
    world = World(DATABASE.replace("{web: 80}", f"{{web: 80}}\n    ready: {{http: {condition}}}"))

    found = world.pending("app")

    assert found == (None if reason is None else f"app/server-1: {reason}")


def test_a_page_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cluster, "address", lambda *_: "127.0.0.1:1")
    world = World(DATABASE.replace("{web: 80}", "{web: 80}\n    ready: {http: {port: web}}"))

    assert world.pending("app") == "app/server-1: / does not answer: ConnectionError"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("    image: app:1\n", "", "services.app.image: expected the image to run"),
        ("app:1", 'app:1\n    version: "1"', "services.app.version: a container has no `version`"),
        ("app:1", "app:1\n    config: {a: 1}", "services.app.config: a container has no `config`"),
        ("{sql: 5432,", "{sql: 8080,", "services.db.ports: two of sql, status are the same port"),
        ("{web: 80}", "{web: 0}", "services.app.ports.web: "),
        ("[/var", "[var", "services.db.volumes: expected the path of a folder in the container"),
        ("[/var", "['/:/host:rw', /var", "services.db.volumes: expected the path of a folder"),
        ("[/var", "[/, /var", "services.db.volumes: expected the path of a folder"),
        ("[/var", "[/a, /a, /var", "services.db.volumes: expected each folder once"),
        ("[/var", "[/a/../b, /var", "services.db.volumes: expected the path of a folder"),
        ("postgres:17", "Postgres 17", "services.db.image: "),
        ("postgres:17", "streamquake/postgras", "did you mean 'postgres'"),
        ("postgres:17", "streamquake/postgres:9", "services.db.image: no postgres version '9'"),
        ("app:1", 'app:1\n    files: {a/b: "a\\n"}', "services.app.files.a/b: expected the path"),
        ("app:1", 'app:1\n    files: {/a/../b: "a\\n"}', "expected the path of a file in"),
        ("app:1", 'app:1\n    files: {a: "a\\n"}', "services.app.files.a: expected the path of a"),
        ("app:1", 'app:1\n    files: {/a: "a\\n", /a/b: "b\\n"}', "it is a folder of /a/b, and a"),
        ("app:1", 'app:1\n    files: {/proc/a: "a\\n"}', "/proc/a is the kernel's; a file there"),
        ("app:1", "../networks/bridge", "services.app.image: "),
        ("{web: 80}", '{"80": 80}', "services.app.ports.80: expected a name"),
        ("{server: 1}", "{server: {disk_mb: 64}}", "services.app.nodes.server.disk_mb: the disk"),
        ("port: sql}", "port: sq}", 'links.sink.port: container has no port "sq"'),
        ("command: [pg_isready, -U, postgres]", "command: []", "services.db.ready: expected"),
        (
            "command: [pg_isready, -U, postgres]",
            "http: {port: web}",
            'services.db.ready.http.port: `ports` has no "web"',
        ),
        ("nodes: {server: 1}", "nodes: {web: 1}", 'nodes.web: container has no role "web"'),
        ("{server: 1}", "{server: {clock: adjustable}}", "services.app.nodes.server.clock: an adj"),
    ],
)
def test_what_a_container_cannot_have_is_rejected(old: str, new: str, problem: str) -> None:
    assert DATABASE.count(old) == 1
    assert any(problem in found for found in problems_of(DATABASE.replace(old, new)))


@pytest.mark.parametrize(
    "key", ["ports: {a: 1}", "command: [a]", "volumes: [/a]", "ready: {}", 'files: {/a: "a\\n"}']
)
def test_other_engines_reject_the_keys_of_a_container(key: str) -> None:
    text = f"name: t\nservices:\n  kafka:\n    engine: kafka\n    nodes: {{broker: 1}}\n    {key}\n"

    (found,) = problems_of(text)

    assert "only the engine container takes" in found


def test_a_service_cannot_take_the_place_of_the_addresses_of_jobs() -> None:
    text = DATABASE.replace("  db:", "  sink:").replace("db/server", "sink/server")

    assert any("${sink.…}, which has another meaning" in found for found in problems_of(text))


@pytest.mark.parametrize(
    ("address", "listens"),
    [
        ("0.0.0.0:80", True),
        ("[::]:80", True),
        ("*:80", True),
        ("172.18.0.3:80", True),
        ("127.0.0.1:80", False),
        ("[::1]:80", False),
    ],
)
def test_a_node_that_listens_only_for_itself_is_not_ready(address: str, listens: bool) -> None:
    world = World()
    world.sockets = ExecResult(exit_code=0, output=f"LISTEN 0 128 {address} 0.0.0.0:*\n")

    assert (world.pending("app") is None) == listens


def test_a_failed_look_at_the_sockets_proves_nothing() -> None:
    world = World()
    world.sockets = ExecResult(
        exit_code=1, output="nsenter: cannot open the namespace of 0.0.0.0:80"
    )

    assert (
        world.pending("app") == "app/server-1: nothing listens for its peers on its port web (80)"
    )


def test_a_command_that_hangs_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def hangs(*_: object, **__: object) -> ExecResult:
        raise ContainerError("pg_isready: no answer within 5 s")

    monkeypatch.setattr(world.cluster.runtime, "exec", hangs)

    assert world.pending() == "db/server-1: pg_isready: no answer within 5 s"


def test_a_paused_node_is_not_ready() -> None:
    world = World()
    world.cluster.runtime.pause(world.cluster.node("app/server-1").container)

    assert world.pending("app") == "app/server-1: is paused"


def test_a_page_without_an_end_says_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    class Stream(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                while not ended.wait(0.01):
                    self.wfile.write(b"data: 1\n")

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Stream) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(Cluster, "address", lambda *_: f"127.0.0.1:{server.server_port}")
        world = World(DATABASE.replace("{web: 80}", "{web: 80}\n    ready: {http: {port: web}}"))

        assert world.pending("app") is None
        ended.set()
        server.shutdown()
