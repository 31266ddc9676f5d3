"""The cluster on the fake runtime: its start, its errors, its removal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from streamquake.cluster.cluster import (
    Cluster,
    NodeDied,
    attach_cluster,
    remove_cluster,
    start_cluster,
)
from streamquake.cluster.job import CurrentJob
from streamquake.cluster.node import Node
from streamquake.cluster.run_context import RunContext
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeContainer, FakeRuntime
from streamquake.cluster.runtime.runtime import (
    ContainerError,
    ContainerSpec,
    ContainerStatus,
    ExecResult,
    PortTaken,
)
from streamquake.cluster.runtime.waiting import NotReadyInTime
from streamquake.topologies.model import Topology
from tests.echo import Echo, echo_topology
from tests.fakes import FakeToxiproxy

pytestmark = pytest.mark.usefixtures("echo_engine", "proxy")

NAME = "streamquake-r1-echo-"


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> FakeToxiproxy:
    proxy = FakeToxiproxy()
    monkeypatch.setattr("streamquake.cluster.links.links.Toxiproxy", lambda url: proxy)
    return proxy


@pytest.fixture
def runtime() -> FakeRuntime:
    """A fake in which every server listens."""

    def listens(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        return ExecResult(exit_code=0, output="LISTEN 0.0.0.0:7000") if argv[0] == "ss" else None

    runtime = FakeRuntime(FakeClock())
    runtime.on_network_tool.append(listens)
    return runtime


@pytest.fixture
def cluster(runtime: FakeRuntime) -> Cluster:
    return Cluster(run_id="r1", topology=echo_topology(), runtime=runtime, clock=runtime.clock)


def _start(cluster: Cluster, limit_s: float = 30) -> list[str]:
    messages: list[str] = []
    start_cluster(cluster, tags={labels.OWNER: "me"}, limit_s=limit_s, show_message=messages.append)
    return messages


def test_a_started_cluster_has_its_nodes_in_order_with_addresses_and_ports(
    cluster: Cluster, runtime: FakeRuntime
) -> None:
    messages = _start(cluster)

    assert list(cluster.nodes) == ["echo/server-1", "echo/server-2", "echo/client-1"]
    assert len({node.ip for node in cluster.nodes.values()}) == 3
    server = cluster.node("echo/server-1")
    sandbox = runtime.by_name(NAME + "server-1-sandbox").spec
    assert (sandbox.hostname, sandbox.aliases, sandbox.ip) == (
        "echo-server-1",
        ("echo-server-1",),
        server.ip,
    )
    assert cluster.address(server, 7000) == f"127.0.0.1:{sandbox.ports[7000]}"
    spec = runtime.by_name(NAME + "server-1").spec
    assert (spec.beside, spec.network, spec.ports) == (server.sandbox, None, {})
    assert spec.files["/etc/echo/reached-at"] == cluster.address(server, 7000) + "\n"
    assert [text.split(" after")[0] for text in messages] == ["3 containers started", "echo ready"]


def test_all_resources_have_the_labels_of_the_run_and_its_tags(
    cluster: Cluster, runtime: FakeRuntime
) -> None:
    _start(cluster)

    run_labels = {labels.RUN: "r1", labels.OWNER: "me"}
    assert len(runtime.find(run_labels)) == len(runtime.containers) == 7
    assert [network.name for network in runtime.find_networks(run_labels)] == ["streamquake-r1"]


def test_link_rules_are_added_at_the_source_nodes(
    cluster: Cluster, runtime: FakeRuntime, proxy: FakeToxiproxy
) -> None:
    _start(cluster)

    assert proxy.created == [
        "line:echo-client-1>echo-server-1",
        "line:echo-client-1>echo-server-2",
    ]
    (applied,) = runtime.by_name(NAME + "client-1-sandbox").rules
    via = runtime.by_name("streamquake-r1-toxiproxy").spec.ip
    for number, server in enumerate(cluster.of_role("echo/server")):
        rule = f"-d {server.ip} --dport 7000 -j DNAT --to-destination {via}:{21000 + number}"
        assert rule in applied[-1]
    assert not any("DNAT" in " ".join(r) for r in runtime.by_name(NAME + "server-1-sandbox").rules)


def test_a_failed_link_rule_is_an_error_with_the_tools_output(
    cluster: Cluster, runtime: FakeRuntime
) -> None:
    runtime.on_network_tool.insert(
        0,
        lambda spec, argv: (
            ExecResult(exit_code=4, output="no such table") if argv[0] == "sh" else None
        ),
    )

    with pytest.raises(ContainerError, match=r"links of echo/client-1 .* no such table"):
        _start(cluster)


def test_a_taken_port_is_replaced_in_container_and_plan(
    cluster: Cluster, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    _draw(monkeypatch, iter([20_001, *[20_001] * 3, *range(20_002, 20_010)]))
    runtime.start(ContainerSpec(name="other", image="none", ports={1: 20_001}))

    _start(cluster)

    for node in cluster.nodes.values():
        port = runtime.containers[node.sandbox].spec.ports[7000]
        assert port == node.host_ports[7000] != 20_001
        files = runtime.containers[node.container].spec.files
        assert files["/etc/echo/reached-at"] == f"127.0.0.1:{port}\n"


def test_the_start_fails_after_several_taken_ports(
    cluster: Cluster, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    _draw(monkeypatch, iter([20_001] * 100))
    runtime.start(ContainerSpec(name="other", image="none", ports={1: 20_001}))

    with pytest.raises(PortTaken, match="20001"):
        _start(cluster)


def _draw(monkeypatch: pytest.MonkeyPatch, ports: Iterator[int]) -> None:
    monkeypatch.setattr("streamquake.cluster.cluster.free_port", lambda: next(ports))
    monkeypatch.setattr("streamquake.cluster.links.links.free_port", lambda: next(ports))


def test_a_dead_node_ends_the_wait_at_once(cluster: Cluster, runtime: FakeRuntime) -> None:
    def dies(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        if argv[0] == "ss" and "server-2" in spec.name:
            found = runtime.by_name(spec.name)
            runtime.write_log(found.id, "java.lang.OutOfMemoryError")
            for frame in range(20):
                runtime.write_log(found.id, f"\tat com.example.Server.run(Server.java:{frame})")
            runtime.die(found.id, 137, oom_killed=True)
        return ExecResult(exit_code=0, output="")

    runtime.on_network_tool.insert(0, dies)

    with pytest.raises(NodeDied) as died:
        _start(cluster)

    assert str(died.value) == (
        "echo/server-2 ended with exit code 137, killed for lack of memory\n"
        "java.lang.OutOfMemoryError\n"
    )
    assert runtime.clock.now_ns() < 2e9


def test_link_rules_that_cannot_be_added_are_an_error(
    cluster: Cluster, runtime: FakeRuntime
) -> None:
    runtime.on_network_tool.insert(
        0, lambda spec, argv: ExecResult(exit_code=1, output="no room") if argv[0] == "sh" else None
    )
    with pytest.raises(ContainerError, match="could not be added: no room"):
        _start(cluster)


def test_a_service_starts_when_the_service_that_it_needs_is_ready(
    runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after(self: Echo, topology: Topology, service: str) -> tuple[str, ...]:
        return ("second",) if service == "first" else ()

    requested = 0

    def slow(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        nonlocal requested
        if argv[0] != "ss" or "second" not in spec.name or requested == 3:
            return None
        requested += 1
        assert not [c for c in runtime.containers.values() if "first" in c.spec.name]
        return ExecResult(exit_code=0, output="")

    monkeypatch.setattr(Echo, "after", after, raising=False)
    runtime.on_network_tool.insert(0, slow)
    service = {"engine": "test-echo", "nodes": {"server": 1}}
    topology = Topology.model_validate(
        {"name": "echo", "services": {"first": service, "second": service}}
    )
    cluster = Cluster(run_id="r1", topology=topology, runtime=runtime, clock=runtime.clock)
    messages = [text.split(" after")[0] for text in _start(cluster)]
    assert requested == 3
    assert messages == ["second ready", "2 containers started", "first ready"]
    assert list(cluster.nodes) == ["first/server-1", "second/server-1"]


def test_a_service_that_does_not_become_ready_is_reported_with_its_reason(
    cluster: Cluster, runtime: FakeRuntime
) -> None:
    runtime.on_network_tool.clear()

    with pytest.raises(NotReadyInTime) as late:
        _start(cluster, limit_s=5)

    assert str(late.value) == ("cluster ready: not within 5 s: echo: a server does not listen yet")


def test_a_long_wait_shows_what_is_not_ready(cluster: Cluster, runtime: FakeRuntime) -> None:
    runtime.on_network_tool.clear()
    messages: list[str] = []

    with pytest.raises(NotReadyInTime):
        start_cluster(cluster, tags={}, limit_s=40, show_message=messages.append)

    why = "not ready yet: echo: a server does not listen yet; at most 40 s are waited"
    assert messages == ["3 containers started", why, why]


def test_logs_of_running_nodes_are_saved_when_another_node_does_not_start(
    cluster: Cluster, runtime: FakeRuntime, tmp_path: Path
) -> None:
    runtime.failing_starts[NAME + "client-1"] = ContainerError("the disk is full")

    with pytest.raises(ContainerError, match="the disk is full"):
        _start(cluster)
    runtime.write_log(cluster.node("echo/server-1").container, "listening")
    cluster.save_logs(tmp_path)

    assert (tmp_path / "echo-server-1" / "log.txt").read_text() == "listening\n"
    assert remove_cluster(runtime, "r1") == []
    assert (runtime.find({}), runtime.find_networks({})) == ((), ())


def test_an_unreadable_log_is_reported_and_the_other_logs_are_saved(
    cluster: Cluster, runtime: FakeRuntime, tmp_path: Path
) -> None:
    _start(cluster)
    runtime.remove(cluster.node("echo/server-1").container)

    with pytest.raises(RuntimeError, match=r"logs not saved: echo/server-1: "):
        cluster.save_logs(tmp_path)

    assert (tmp_path / "echo-client-1" / "log.txt").exists()


def test_only_resources_of_the_run_are_removed(cluster: Cluster, runtime: FakeRuntime) -> None:
    foreign = runtime.start(ContainerSpec(name="other", image="none", labels={labels.RUN: "r2"}))
    runtime.create_network("other", {labels.RUN: "r2"})
    _start(cluster)

    assert remove_cluster(runtime, "r1") == []

    assert [found.id for found in runtime.find({})] == [foreign]
    assert [network.name for network in runtime.find_networks({})] == ["other"]


def test_a_failed_removal_is_reported_and_the_others_continue(
    cluster: Cluster, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    _start(cluster)
    stuck = cluster.node("echo/server-2").container
    remove = runtime.remove

    def fail_for_one(container: str) -> None:
        if container == stuck:
            raise ContainerError("the device is busy")
        remove(container)

    monkeypatch.setattr(runtime, "remove", fail_for_one)

    assert remove_cluster(runtime, "r1") == [f"{stuck}: the device is busy"]
    assert [found.id for found in runtime.find({})] == [stuck]


def _start_with_link_rules(cluster: Cluster, runtime: FakeRuntime) -> tuple[Node, FakeContainer]:
    """Start the cluster; returns a node with a link, and its sandbox, which has the rules."""
    _start(cluster)
    return cluster.node("echo/client-1"), runtime.by_name(NAME + "client-1-sandbox")


def test_link_rules_outlive_a_process_and_are_added_again_to_a_new_sandbox(
    cluster: Cluster, runtime: FakeRuntime
) -> None:
    client, sandbox = _start_with_link_rules(cluster, runtime)
    before = list(sandbox.rules)
    runtime.kill(client.container)
    cluster.start_again(client)
    assert cluster.state(client).status == ContainerStatus.RUNNING
    assert sandbox.rules == before
    runtime.kill(client.container)
    runtime.kill(client.sandbox)
    assert sandbox.rules == []

    cluster.start_again(client)

    assert cluster.state(client).status == ContainerStatus.RUNNING
    assert sandbox.state.status == ContainerStatus.RUNNING
    assert sandbox.rules == before


def test_link_rules_are_added_to_a_sandbox_that_another_process_started_anew(
    cluster: Cluster, runtime: FakeRuntime
) -> None:
    client, sandbox = _start_with_link_rules(cluster, runtime)
    before = list(sandbox.rules)
    for container in (client.container, client.sandbox):
        runtime.kill(container)
    runtime.start_again(client.sandbox)
    assert sandbox.rules == []

    cluster.start_again(client)

    assert sandbox.rules == before


def test_another_process_finds_the_cluster_by_its_labels(
    cluster: Cluster, runtime: FakeRuntime
) -> None:
    _start(cluster)

    found = attach_cluster(
        run_id="r1", topology=cluster.topology, runtime=runtime, clock=runtime.clock
    )

    assert list(found.nodes) == list(cluster.nodes)
    assert found.nodes == cluster.nodes
    assert found.links.proxy is not None
    runtime.kill(found.node("echo/client-1").sandbox)
    found.start_again(found.node("echo/client-1"))
    (rule,) = runtime.by_name(NAME + "client-1-sandbox").rules
    assert "DNAT" in rule[-1]


def test_the_context_of_a_run_is_discarded_at_its_end(cluster: Cluster) -> None:
    own = cluster.run.run_id

    def fail() -> None:
        with cluster.used_by("second"):
            cluster.run.job = CurrentJob(service="flink", id="job")
            cluster.run.supervised = {"echo/server-1"}
            assert cluster.run.run_id == "second"
            raise LookupError("the run fails")

    with pytest.raises(LookupError, match="the run fails"):
        fail()

    assert cluster.run == RunContext(run_id=own)
