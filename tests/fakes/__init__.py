"""A fake cluster: nodes on the fake runtime, links on a fake proxy server."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.links.links import PROXY_NODE
from streamquake.cluster.links.toxiproxy import ToxiproxyError
from streamquake.cluster.node import Node
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import Clock, FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, ExecResult
from streamquake.cluster.sandbox import sandbox_spec
from streamquake.topologies.model import Topology
from tests.fakes import worlds

TOPOLOGY = Topology.model_validate(
    {
        "name": "three-workers",
        "services": {
            "kafka": {"engine": "kafka", "nodes": {"broker": 1}},
            "flink": {"engine": "flink", "nodes": {"jobmanager": 1, "taskmanager": 3}},
        },
        "links": {"sink": {"from": "flink/taskmanager", "to": "kafka/broker", "port": 9094}},
    }
)

WIDE = Topology.model_validate(
    {
        "name": "wide",
        "services": {
            "kafka": {"engine": "kafka", "nodes": {"broker": 3}},
            "hdfs": {
                "engine": "hdfs",
                "nodes": {
                    "namenode": 1,
                    "datanode": {"count": 2, "disk_mb": 512, "clock": "adjustable"},
                },
            },
            "flink": {
                "engine": "flink",
                "nodes": {"jobmanager": 1, "taskmanager": 3},
                "config": {"jobmanager.scheduler": "adaptive"},
            },
            "spark": {"engine": "spark", "nodes": {"master": 1, "worker": 2, "driver": 1}},
        },
        "links": {
            "source": {"from": "flink/taskmanager", "to": "kafka/broker", "port": "input"},
            "sink": {"from": "flink/taskmanager", "to": "kafka/broker", "port": "output"},
            "data": {"from": "flink/taskmanager", "to": "flink/taskmanager", "port": "data"},
        },
    }
)
"""A topology with at least one target of every kind."""


class FakeToxiproxy:
    """A fake proxy server: `busy` is whether traffic passes, `hangs` makes removals of toxics
    fail."""

    def __init__(self, busy: bool = True) -> None:
        self.busy = busy
        self.hangs = False
        self.created: list[str] = []
        self.known: dict[str, str] = {}
        """Proxy -> where it passes its connections on."""
        self._toxics: dict[str, dict[str, dict[str, Any]]] = {}
        self._bytes = 0

    def pending(self) -> str | None:
        return None

    def create(self, name: str, listen: str, upstream: str) -> None:
        self.created.append(name)
        self.known[name] = upstream

    def delete(self, name: str) -> None:
        self.known.pop(name, None)
        self._toxics.pop(name, None)

    def add_toxic(
        self, proxy: str, name: str, kind: str, stream: str, attributes: Mapping[str, int]
    ) -> None:
        toxic = {"type": kind, "stream": stream, "attributes": dict(attributes)}
        self._toxics.setdefault(proxy, {})[name] = toxic

    def remove_toxic(self, proxy: str, name: str) -> None:
        if self.hangs:
            raise ToxiproxyError("DELETE: timed out")
        self._toxics.get(proxy, {}).pop(name, None)

    def proxies(self) -> dict[str, dict[str, Any]]:
        return {
            name: {
                "listen": "[::]:1",
                "upstream": upstream,
                "enabled": True,
                "toxics": [{"name": toxic} for toxic in self.toxics(name)],
            }
            for name, upstream in self.known.items()
        }

    def toxics(self, proxy: str) -> dict[str, dict[str, Any]]:
        return dict(self._toxics.get(proxy, {}))

    def bytes_passed(self, proxies: Collection[str]) -> int:
        return 0

    def sockets(self, spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        """The output of `ss` about open connections: more bytes at each call while traffic
        passes."""
        if argv[0] != "ss" or not argv[-1].startswith("( sport"):
            return None
        self._bytes += 1000 if self.busy else 0
        return ExecResult(exit_code=0, output=f"cubic bytes_acked:7 bytes_received:{self._bytes}")


def fake_cluster(
    topology: Topology = TOPOLOGY,
    clock: Clock | None = None,
    *,
    runtime: FakeRuntime | None = None,
    run_id: str = "test",
) -> Cluster:
    """A cluster whose containers run on the fake runtime, with a fake clock and a runtime of its
    own unless they are given."""
    clock = clock or FakeClock()
    runtime = runtime or FakeRuntime(clock)
    cluster = Cluster(run_id=run_id, topology=topology, runtime=runtime, clock=clock)
    runtime.create_network(cluster.network, {})
    for number, spec in enumerate(topology.nodes(), start=10):
        ip = f"10.0.0.{number}"
        run_labels = {labels.RUN: cluster.run_id}
        sandbox = runtime.start(sandbox_spec(cluster, spec, ip, {}, run_labels))
        container = runtime.start(
            ContainerSpec(
                name=cluster.container_name(spec.host),
                image="none",
                beside=sandbox,
                labels={**run_labels, labels.NODE: spec.name},
            )
        )
        cluster.nodes[spec.name] = Node(
            spec=spec, container=container, sandbox=sandbox, ip=ip, host_ports={}
        )
    runtime.start(
        ContainerSpec(
            name=cluster.container_name("toxiproxy"),
            image="none",
            labels={
                labels.RUN: cluster.run_id,
                labels.NODE: PROXY_NODE,
                labels.PORTS: "8474:1",
                labels.ADDRESS: "10.0.0.4",
            },
        )
    )
    cluster.links.find()
    use_proxy(cluster, FakeToxiproxy())
    for module in pkgutil.iter_modules(worlds.__path__):
        importlib.import_module(f"{worlds.__name__}.{module.name}").install(cluster)
    return cluster


def use_proxy(cluster: Cluster, proxy: FakeToxiproxy) -> None:
    """Let the links of a fake cluster run through this proxy."""
    runtime = cluster.runtime
    assert isinstance(runtime, FakeRuntime)
    runtime.on_network_tool.insert(0, proxy.sockets)
    proxy.known = {path.name: path.target for path in cluster.links.paths}
    cluster.links.proxy = proxy  # type: ignore[assignment]
