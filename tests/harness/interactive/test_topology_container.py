"""`TopologyContainer` on the fake runtime: a cluster for a block, its faults, ports and end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus, ExecResult
from streamquake.harness.interactive.injection import heal_faults, inject_now
from streamquake.harness.interactive.topology_container import (
    NotHealed,
    NotInEffect,
    NotRemoved,
    NotStarted,
    TopologyContainer,
)
from streamquake.topologies.problems import BadInput
from tests.echo import echo_topology

pytestmark = pytest.mark.usefixtures("echo_engine")


@pytest.fixture
def runtime() -> FakeRuntime:
    """A runtime in which every server listens."""
    fake = FakeRuntime(FakeClock())
    fake.on_network_tool.append(lambda spec, argv: ExecResult(exit_code=0, output=":7000"))
    return fake


def container(runtime: FakeRuntime, tmp_path: Path, *, keep: bool = False) -> TopologyContainer:
    topology = echo_topology().model_copy(update={"links": {}})
    return TopologyContainer(
        topology, out=tmp_path, seed=1, keep=keep, runtime=runtime, clock=FakeClock()
    )


@pytest.fixture
def echo(runtime: FakeRuntime, tmp_path: Path) -> Iterator[TopologyContainer]:
    with container(runtime, tmp_path) as started:
        yield started


def state(echo: TopologyContainer, node: str) -> ContainerStatus:
    return echo.cluster.state(echo.cluster.node(node)).status


def test_a_cluster_is_there_for_a_block(runtime: FakeRuntime, tmp_path: Path) -> None:
    with container(runtime, tmp_path) as echo:
        owners = {found.labels[labels.OWNER] for found in runtime.find({labels.RUN: ""})}
        assert owners == {labels.owner_of_this_process()}
        assert echo.start() is echo
        folder = echo.folder

    assert runtime.find({labels.RUN: ""}) == ()
    assert (folder / "logs" / "echo-server-1" / "log.txt").is_file()
    echo.stop()
    with pytest.raises(NotStarted, match="call `start`"):
        _ = echo.cluster


def test_an_error_in_the_block_removes_the_cluster(runtime: FakeRuntime, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), container(runtime, tmp_path):
        _ = 1 / 0

    assert runtime.find({labels.RUN: ""}) == ()


def test_a_kept_cluster_stays_for_the_commands(runtime: FakeRuntime, tmp_path: Path) -> None:
    with container(runtime, tmp_path, keep=True):
        pass

    assert {found.labels[labels.OWNER] for found in runtime.find({labels.RUN: ""})} == {""}


def test_what_cannot_be_removed_is_told(
    runtime: FakeRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(name: str) -> None:
        raise ContainerError("is busy")

    echo = container(runtime, tmp_path).start()
    monkeypatch.setattr(runtime, "remove", busy)

    with pytest.raises(NotRemoved, match="is busy"):
        echo.stop()


def test_a_fault_lasts_for_its_block(echo: TopologyContainer) -> None:
    with echo.fault("pause", "echo/server-1") as injected:
        assert injected.result.evidence
        assert state(echo, "echo/server-1") == ContainerStatus.PAUSED

    assert state(echo, "echo/server-1") == ContainerStatus.RUNNING
    echo.wait_until_ready()


def test_a_fault_takes_its_parameters(echo: TopologyContainer) -> None:
    with echo.fault("kill", "echo/server-2", signal="TERM") as injected:
        assert dict(injected.intent.params) == {"signal": "TERM"}


def test_an_error_in_the_block_heals_the_fault(echo: TopologyContainer) -> None:
    with pytest.raises(ZeroDivisionError), echo.fault("pause", "echo/server-1"):
        _ = 1 / 0

    assert state(echo, "echo/server-1") == ContainerStatus.RUNNING


def test_a_fault_without_effect_is_an_error_before_the_block(
    echo: TopologyContainer, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> None:
        raise ContainerError("the cgroup freezer is missing")

    monkeypatch.setattr(runtime, "pause", broken)

    with (
        pytest.raises(NotInEffect, match="freezer is missing"),
        echo.fault("pause", "echo/server-1"),
    ):
        pytest.fail("the block began")


def test_a_fault_that_is_not_healed_is_an_error(
    echo: TopologyContainer, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> None:
        raise ContainerError("the cgroup freezer is missing")

    injecting = echo.fault("pause", "echo/server-1")
    injecting.__enter__()
    monkeypatch.setattr(runtime, "unpause", broken)

    with pytest.raises(NotHealed, match="pause on echo/server-1: not healed"):
        injecting.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("name", "target", "problem"),
    [("pauze", "echo/server-1", "pause"), ("pause", "echo/server-9", "no node is called")],
)
def test_an_unknown_fault_or_target_is_bad_input(
    echo: TopologyContainer, name: str, target: str, problem: str
) -> None:
    with pytest.raises(BadInput, match=problem), echo.fault(name, target):
        pytest.fail("the block began")


def test_ports_are_found_by_name_and_number(echo: TopologyContainer) -> None:
    published = echo.cluster.node("echo/server-1").host_ports[7000]

    assert echo.get_exposed_port("echo/server-1", "echo") == published
    assert echo.get_exposed_port("echo/server-1", 7000) == published
    assert echo.get_container_host_ip() == "127.0.0.1"
    assert echo.network.name == echo.cluster.network
    with pytest.raises(LookupError, match='no node is called "echo/server-9"'):
        echo.get_exposed_port("echo/server-9", 7000)
    with pytest.raises(LookupError, match="publishes no port ecko"):
        echo.get_exposed_port("echo/server-1", "ecko")
    with pytest.raises(LookupError, match="kafka"):
        echo.get_bootstrap_server()


def test_a_topology_is_found_beside_a_file(runtime: FakeRuntime, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nservices: {echo: {engine: test-echo, nodes: {server: 1}}}\n"
    )

    assert TopologyContainer("mine", beside=tmp_path, runtime=runtime).topology.name == "mine"
    with pytest.raises(BadInput, match="yours"):
        TopologyContainer("yours", beside=tmp_path, runtime=runtime)


def test_an_interruption_of_its_end_removes_the_cluster(
    runtime: FakeRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(container: str, tail: int | None = None) -> str:
        raise KeyboardInterrupt

    echo = container(runtime, tmp_path).start()
    monkeypatch.setattr(runtime, "logs", interrupted)

    with pytest.raises(KeyboardInterrupt):
        echo.stop()

    assert runtime.find({labels.RUN: ""}) == ()


def test_a_start_without_its_guard_leaves_nothing(
    runtime: FakeRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard, calls = runtime.guard, iter((True, False))

    def failing(run_id: str) -> AbstractContextManager[None]:
        if next(calls):
            return guard(run_id)
        raise ContainerError("the reaper does not answer")

    monkeypatch.setattr(runtime, "guard", failing)
    echo = container(runtime, tmp_path)

    with pytest.raises(ContainerError, match="does not answer"):
        echo.start()

    assert runtime.find({labels.RUN: ""}) == ()
    with pytest.raises(NotStarted):
        _ = echo.cluster


def test_the_error_of_the_block_stays_visible(
    runtime: FakeRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> None:
        raise ContainerError("is busy")

    def use() -> None:
        with container(runtime, tmp_path) as echo, echo.fault("pause", "echo/server-1"):
            monkeypatch.setattr(runtime, "unpause", broken)
            monkeypatch.setattr(runtime, "remove", broken)
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError) as caught:
        use()

    heal, removal = caught.value.__notes__
    assert heal.startswith("pause on echo/server-1: not healed: ")
    assert "is busy" in removal


def test_a_fault_that_another_process_healed_is_not_healed_again(echo: TopologyContainer) -> None:
    session = echo._started()
    with echo.fault("pause", "echo/server-1"):
        heal_faults(session, [], limit_s=1)
        inject_now(session, "pause", "echo/server-1", [], rng=random.Random(1), limit_s=1)

    assert state(echo, "echo/server-1") == ContainerStatus.PAUSED
    assert len(session.intents.open_intents()) == 1


def test_only_a_kafka_has_bootstrap_servers(echo: TopologyContainer) -> None:
    with pytest.raises(LookupError, match="no such service of the engine kafka"):
        echo.get_bootstrap_server("echo")
