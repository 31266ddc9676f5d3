"""One suite for both container runtimes: the fake behaves as Docker does.

The tested container runs a small shell script in the toolbox image; the fake returns scripted
answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from streamquake.cluster.cluster import remove_cluster
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import FakeClock, SystemClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.free_ports import free_port
from streamquake.cluster.runtime.runtime import (
    GONE,
    ContainerError,
    ContainerEvent,
    ContainerRuntime,
    ContainerSpec,
    ContainerStatus,
    ExecResult,
    InjectionTimes,
    PortTaken,
)
from streamquake.cluster.runtime.waiting import wait_until

SCRIPT = "cat /etc/probe/greeting; exec sleep 600"


@dataclass
class Testbed:
    """A runtime with a run of its own, and the specification of a container."""

    runtime: ContainerRuntime
    run_id: str
    subnet: str

    @property
    def run_labels(self) -> dict[str, str]:
        return {labels.RUN: self.run_id}

    def spec(self, name: str = "a", host: int = 20) -> ContainerSpec:
        return ContainerSpec(
            name=f"{self.run_id}-{name}",
            image=recipe("toolbox").tag,
            command=("sh", "-c", SCRIPT),
            files={"/etc/probe/greeting": "hello from the probe\n"},
            labels={**self.run_labels, labels.NODE: name},
            network=self.run_id,
            ip=str(ip_network(self.subnet)[host]),
            hostname=name,
            aliases=(name,),
            ports={7000: free_port()},
            memory_mb=64,
            volumes=("/data",),
        )


@pytest.fixture(params=["fake", pytest.param("docker", marks=pytest.mark.container)])
def testbed(request: pytest.FixtureRequest, run_id: str) -> Iterator[Testbed]:
    runtime: ContainerRuntime = (
        _scripted_fake() if request.param == "fake" else request.getfixturevalue("docker_runtime")
    )
    subnet = runtime.create_network(run_id, {labels.RUN: run_id})
    yield Testbed(runtime, run_id, subnet)
    runtime.close_events()
    assert remove_cluster(runtime, run_id) == []


def _scripted_fake() -> FakeRuntime:
    def shell(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        scripted = {"exit 3": ExecResult(exit_code=3, output=""), "true": None}
        return scripted.get(argv[-1])

    fake = FakeRuntime(FakeClock())
    fake.on_exec.append(shell)
    return fake


def _is_ordered(bracket: InjectionTimes) -> bool:
    return 0 < bracket.called_ns <= bracket.seen_ns < bracket.called_ns + 60 * 10**9


def test_a_started_container_runs_and_is_found_by_its_labels(testbed: Testbed) -> None:
    container = testbed.runtime.start(testbed.spec())

    state = testbed.runtime.inspect(container)
    assert (state.status, state.exit_code, state.oom_killed) == (
        ContainerStatus.RUNNING,
        None,
        False,
    )
    assert state.pid > 0
    (found,) = testbed.runtime.find(testbed.run_labels)
    assert (found.id, found.name) == (container, f"{testbed.run_id}-a")
    assert found.labels[labels.NODE] == "a"
    assert testbed.runtime.find({**testbed.run_labels, labels.NODE: "b"}) == ()


def test_an_empty_label_value_finds_any(testbed: Testbed) -> None:
    container = testbed.runtime.start(testbed.spec())

    assert [c.id for c in testbed.runtime.find({**testbed.run_labels, labels.NODE: ""})] == [
        container
    ]
    assert testbed.runtime.find({**testbed.run_labels, "streamquake.no-such-label": ""}) == ()
    assert testbed.run_id in {n.name for n in testbed.runtime.find_networks({labels.RUN: ""})}


def test_a_container_gets_a_given_address_of_the_network(testbed: Testbed) -> None:
    spec = testbed.spec()
    testbed.runtime.start(spec)

    assert spec.ip is not None
    assert ip_address(spec.ip) in ip_network(testbed.subnet)
    with pytest.raises(ContainerError):
        testbed.runtime.start(replace(testbed.spec("b"), ip=spec.ip))


def test_kill_is_observed_and_sets_the_exit_code_of_the_signal(testbed: Testbed) -> None:
    container = testbed.runtime.start(testbed.spec())

    bracket = testbed.runtime.kill(container)

    assert _is_ordered(bracket)
    state = testbed.runtime.inspect(container)
    assert (state.status, state.exit_code, state.pid) == (ContainerStatus.EXITED, 137, 0)


def test_killing_twice_is_harmless(testbed: Testbed) -> None:
    container = testbed.runtime.start(testbed.spec())
    testbed.runtime.kill(container)

    assert _is_ordered(testbed.runtime.kill(container))
    assert testbed.runtime.inspect(container).status == ContainerStatus.EXITED


def test_a_paused_container_can_be_killed_and_removed(testbed: Testbed) -> None:
    killed, removed = (
        testbed.runtime.start(testbed.spec()),
        testbed.runtime.start(testbed.spec("b", 21)),
    )
    testbed.runtime.pause(killed)
    testbed.runtime.pause(removed)

    testbed.runtime.kill(killed)
    testbed.runtime.remove(removed)

    assert testbed.runtime.inspect(killed).status == ContainerStatus.EXITED
    assert testbed.runtime.inspect(removed) == GONE


def test_a_restart_keeps_name_address_and_port(testbed: Testbed) -> None:
    spec = testbed.spec()
    container = testbed.runtime.start(spec)
    testbed.runtime.kill(container)

    assert _is_ordered(testbed.runtime.start_again(container))

    assert testbed.runtime.inspect(container).status == ContainerStatus.RUNNING
    (found,) = testbed.runtime.find(testbed.run_labels)
    assert (found.id, found.name) == (container, spec.name)
    with pytest.raises(PortTaken):
        testbed.runtime.start(replace(testbed.spec("b", 21), ports=spec.ports))
    with pytest.raises(ContainerError):
        testbed.runtime.start(replace(testbed.spec("c", 22), ip=spec.ip))


def test_a_restart_of_a_running_container_is_harmless(testbed: Testbed) -> None:
    container = testbed.runtime.start(testbed.spec())
    before = testbed.runtime.inspect(container)

    assert _is_ordered(testbed.runtime.start_again(container))
    assert testbed.runtime.inspect(container) == before


def test_pause_and_unpause_may_each_run_twice(testbed: Testbed) -> None:
    container = testbed.runtime.start(testbed.spec())
    for call, status in (
        (testbed.runtime.pause, ContainerStatus.PAUSED),
        (testbed.runtime.pause, ContainerStatus.PAUSED),
        (testbed.runtime.unpause, ContainerStatus.RUNNING),
        (testbed.runtime.unpause, ContainerStatus.RUNNING),
    ):
        assert _is_ordered(call(container))
        assert testbed.runtime.inspect(container).status == status


def test_a_state_contains_the_image(testbed: Testbed) -> None:
    spec = testbed.spec()
    container = testbed.runtime.start(spec)

    state = testbed.runtime.inspect(container)

    assert state.image == spec.image
    assert state.image_id


def test_another_container_takes_over_name_address_port_and_volumes(
    testbed: Testbed, tmp_path: Path
) -> None:
    spec = testbed.spec()
    old = testbed.runtime.start(spec)
    testbed.runtime.put(old, {"/data/kept": "for the next\n"})

    new = testbed.runtime.create(replace(spec, name=f"{spec.name}-next", volumes_from=old))
    assert testbed.runtime.inspect(new).status == ContainerStatus.CREATED
    assert testbed.runtime.inspect(old).status == ContainerStatus.RUNNING
    testbed.runtime.kill(old)
    assert _is_ordered(testbed.runtime.start_again(new))
    testbed.runtime.remove(old)
    testbed.runtime.rename(new, spec.name)

    (found,) = testbed.runtime.find(testbed.run_labels)
    assert (found.id, found.name) == (new, spec.name)
    assert testbed.runtime.inspect(new).status == ContainerStatus.RUNNING
    testbed.runtime.copy_out(new, "/data/kept", tmp_path)
    assert (tmp_path / "kept").read_text(encoding="utf-8") == "for the next\n"
    with pytest.raises(PortTaken):
        testbed.runtime.start(replace(testbed.spec("b", 21), ports=spec.ports))


def test_a_container_that_was_never_started_can_be_removed(
    testbed: Testbed, tmp_path: Path
) -> None:
    spec = testbed.spec()
    old = testbed.runtime.start(spec)
    testbed.runtime.put(old, {"/data/kept": "still here\n"})
    new = testbed.runtime.create(replace(spec, name=f"{spec.name}-next", volumes_from=old))

    testbed.runtime.remove(new)

    assert [found.id for found in testbed.runtime.find(testbed.run_labels)] == [old]
    testbed.runtime.copy_out(old, "/data/kept", tmp_path)
    assert (tmp_path / "kept").exists()


def test_a_name_in_use_is_rejected(testbed: Testbed) -> None:
    first, second = (
        testbed.runtime.start(testbed.spec()),
        testbed.runtime.start(testbed.spec("b", 21)),
    )

    with pytest.raises(ContainerError, match=second):
        testbed.runtime.rename(second, testbed.spec().name)
    with pytest.raises(ContainerError, match=testbed.spec().name):
        testbed.runtime.create(testbed.spec())

    assert {found.id for found in testbed.runtime.find(testbed.run_labels)} == {first, second}


def test_files_can_be_put_into_a_running_or_stopped_container(
    testbed: Testbed, tmp_path: Path
) -> None:
    container = testbed.runtime.start(testbed.spec())

    testbed.runtime.put(container, {"/etc/probe/a": "while it runs\n"})
    testbed.runtime.kill(container)
    testbed.runtime.put(container, {"/etc/probe/b": "while it does not\n"})

    testbed.runtime.copy_out(container, "/etc/probe", tmp_path)
    texts = [(tmp_path / "probe" / name).read_text(encoding="utf-8") for name in "ab"]
    assert texts == ["while it runs\n", "while it does not\n"]


def test_the_engine_restarts_a_failing_container_up_to_its_limit(testbed: Testbed) -> None:
    container = testbed.runtime.start(
        replace(testbed.spec(), command=("sh", "-c", "sleep 0.2; exit 5"))
    )
    testbed.runtime.kill(container)
    if isinstance(testbed.runtime, FakeRuntime):
        testbed.runtime.on_start.append(lambda _: 5)

    testbed.runtime.restart_on_failure(container, 2)
    testbed.runtime.start_again(container)

    def gave_up() -> bool:
        state = testbed.runtime.inspect(container)
        return (state.status, state.restarts) == (ContainerStatus.EXITED, 2)

    _until(gave_up)
    assert testbed.runtime.inspect(container).exit_code == 5


def test_a_container_in_a_crash_loop_can_be_killed_and_removed(testbed: Testbed) -> None:
    container = testbed.runtime.start(
        replace(testbed.spec(), command=("sh", "-c", "sleep 0.2; exit 5"))
    )
    testbed.runtime.restart_on_failure(container, 100)
    _until(lambda: isinstance(testbed.runtime, FakeRuntime) or _restarts(testbed, container) > 1)

    testbed.runtime.restart_on_failure(container, 0)
    testbed.runtime.kill(container)
    _until(lambda: testbed.runtime.inspect(container).status == ContainerStatus.EXITED)
    testbed.runtime.remove(container)

    assert testbed.runtime.inspect(container) == GONE


def test_a_stopped_process_still_counts_as_running_and_can_be_killed(testbed: Testbed) -> None:
    container = testbed.runtime.start(testbed.spec())

    assert _is_ordered(testbed.runtime.kill(container, "STOP"))
    assert testbed.runtime.inspect(container).status == ContainerStatus.RUNNING
    assert _is_ordered(testbed.runtime.kill(container, "CONT"))
    assert _is_ordered(testbed.runtime.kill(container, "STOP"))
    testbed.runtime.kill(container)

    assert testbed.runtime.inspect(container).status == ContainerStatus.EXITED


def test_a_removed_container_is_not_found_and_can_be_removed_twice(testbed: Testbed) -> None:
    container = testbed.runtime.start(testbed.spec())

    testbed.runtime.remove(container)
    testbed.runtime.remove(container)

    assert testbed.runtime.inspect(container) == GONE
    assert testbed.runtime.find(testbed.run_labels) == ()


@pytest.mark.parametrize("call", ["kill", "pause", "unpause", "start_again", "logs"])
def test_a_call_on_a_removed_container_is_a_container_error(testbed: Testbed, call: str) -> None:
    container = testbed.runtime.start(testbed.spec())
    testbed.runtime.remove(container)

    with pytest.raises(ContainerError, match=container):
        getattr(testbed.runtime, call)(container)


def test_a_network_with_a_container_in_it_can_be_removed_twice(testbed: Testbed) -> None:
    container = testbed.runtime.start(testbed.spec())
    (network,) = testbed.runtime.find_networks(testbed.run_labels)

    testbed.runtime.remove(container)
    testbed.runtime.remove_network(network.id)
    testbed.runtime.remove_network(network.id)

    assert testbed.runtime.find_networks(testbed.run_labels) == ()


def test_a_failing_start_leaves_nothing_behind(testbed: Testbed) -> None:
    spec = replace(testbed.spec(), network=f"{testbed.run_id}-no-such-network")

    with pytest.raises(ContainerError, match=spec.name):
        testbed.runtime.start(spec)

    assert testbed.runtime.find(testbed.run_labels) == ()


def test_a_taken_port_has_its_own_error_and_leaves_no_container(testbed: Testbed) -> None:
    first = testbed.spec()
    testbed.runtime.start(first)

    with pytest.raises(PortTaken):
        testbed.runtime.start(replace(testbed.spec("b", 21), ports=first.ports))

    assert len(testbed.runtime.find(testbed.run_labels)) == 1


def test_events_of_the_run_arrive_and_end_when_closed(testbed: Testbed) -> None:
    received: list[ContainerEvent] = []
    events = testbed.runtime.events(testbed.run_labels)
    reader = threading.Thread(target=lambda: received.extend(events))
    reader.start()
    container = testbed.runtime.start(testbed.spec())
    testbed.runtime.kill(container)
    testbed.runtime.start_again(container)
    testbed.runtime.kill(container)
    _until(lambda: len(received) >= 4)

    testbed.runtime.close_events()
    reader.join(timeout=60)

    assert not reader.is_alive()
    assert [event.action for event in received] == ["start", "die", "start", "die"]
    assert {event.id for event in received} == {container}
    assert received[1].exit_code == 137
    assert received[1].labels[labels.NODE] == "a"
    assert [e.epoch_ms for e in received] == sorted(e.epoch_ms for e in received)


def test_exec_returns_the_exit_code(testbed: Testbed) -> None:
    container = testbed.runtime.start(testbed.spec())

    assert testbed.runtime.exec(container, ["sh", "-c", "exit 3"]).exit_code == 3
    assert testbed.runtime.exec(container, ["true"]).exit_code == 0


def test_exec_in_a_stopped_container_is_a_container_error(testbed: Testbed) -> None:
    container = testbed.runtime.start(testbed.spec())
    testbed.runtime.kill(container)

    with pytest.raises(ContainerError):
        testbed.runtime.exec(container, ["true"])


def test_files_can_be_copied_out_of_a_stopped_container(testbed: Testbed, tmp_path: Path) -> None:
    container = testbed.runtime.start(testbed.spec())
    testbed.runtime.kill(container)

    testbed.runtime.copy_out(container, "/etc/probe", tmp_path / "folder")
    testbed.runtime.copy_out(container, "/etc/probe/greeting", tmp_path / "file")

    for copy in (tmp_path / "folder" / "probe" / "greeting", tmp_path / "file" / "greeting"):
        assert copy.read_text(encoding="utf-8") == "hello from the probe\n"
    with pytest.raises(ContainerError):
        testbed.runtime.copy_out(container, "/etc/probe/nothing", tmp_path)


def test_network_tools_need_a_running_container(testbed: Testbed) -> None:
    container = testbed.runtime.start(testbed.spec())
    assert testbed.runtime.in_network_namespace(container, ["iptables", "-S"]).exit_code == 0

    testbed.runtime.kill(container)
    with pytest.raises(ContainerError):
        testbed.runtime.in_network_namespace(container, ["iptables", "-S"])


def test_the_guard_removes_nothing_after_a_normal_exit(testbed: Testbed) -> None:
    with testbed.runtime.guard(testbed.run_id):
        container = testbed.runtime.start(testbed.spec())

    assert testbed.runtime.inspect(container).status == ContainerStatus.RUNNING
    assert testbed.runtime.find({labels.REAPER: testbed.run_id}) == ()


def _restarts(dataset: Testbed, container: str) -> int:
    return dataset.runtime.inspect(container).restarts


def _until(condition: Callable[[], bool], limit_s: float = 60.0) -> None:
    wait_until(
        lambda: None if condition() else "not yet",
        what="the condition",
        limit_s=limit_s,
        clock=SystemClock(),
        every_s=0.02,
    )
