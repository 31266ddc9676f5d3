"""One suite over both container runtimes: what holds on the fake holds on Docker.

The container under test runs a small shell script of the toolbox image; on the fake the same
answers are scripted.
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
    Bracket,
    ContainerError,
    ContainerEvent,
    ContainerRuntime,
    ContainerSpec,
    ExecResult,
    PortTaken,
    Status,
)
from streamquake.cluster.runtime.waiting import wait_until

SCRIPT = "cat /etc/bed/greeting; exec sleep 600"


@dataclass
class Bed:
    """A runtime, a run of its own in it, and a container that can be started."""

    runtime: ContainerRuntime
    run_id: str
    subnet: str

    @property
    def marks(self) -> dict[str, str]:
        return {labels.RUN: self.run_id}

    def spec(self, name: str = "a", host: int = 20) -> ContainerSpec:
        return ContainerSpec(
            name=f"{self.run_id}-{name}",
            image=recipe("toolbox").tag,
            command=("sh", "-c", SCRIPT),
            files={"/etc/bed/greeting": "hello from the bed\n"},
            labels={**self.marks, labels.NODE: name},
            network=self.run_id,
            ip=str(ip_network(self.subnet)[host]),
            hostname=name,
            aliases=(name,),
            ports={7000: free_port()},
            memory_mb=64,
            volumes=("/data",),
        )


@pytest.fixture(params=["fake", pytest.param("docker", marks=pytest.mark.container)])
def bed(request: pytest.FixtureRequest, run_id: str) -> Iterator[Bed]:
    runtime: ContainerRuntime = (
        _scripted_fake() if request.param == "fake" else request.getfixturevalue("docker_runtime")
    )
    subnet = runtime.create_network(run_id, {labels.RUN: run_id})
    yield Bed(runtime, run_id, subnet)
    runtime.close_events()
    assert remove_cluster(runtime, run_id) == []


def _scripted_fake() -> FakeRuntime:
    def shell(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        scripted = {"exit 3": ExecResult(exit_code=3, output=""), "true": None}
        return scripted.get(argv[-1])

    fake = FakeRuntime(FakeClock())
    fake.on_exec.append(shell)
    return fake


def _ordered(bracket: Bracket) -> bool:
    return 0 < bracket.called_ns <= bracket.seen_ns < bracket.called_ns + 60 * 10**9


def test_a_started_container_runs_and_is_found_by_its_labels(bed: Bed) -> None:
    container = bed.runtime.start(bed.spec())

    state = bed.runtime.inspect(container)
    assert (state.status, state.exit_code, state.oom_killed) == (Status.RUNNING, None, False)
    assert state.pid > 0
    (found,) = bed.runtime.find(bed.marks)
    assert (found.id, found.name) == (container, f"{bed.run_id}-a")
    assert found.labels[labels.NODE] == "a"
    assert bed.runtime.find({**bed.marks, labels.NODE: "b"}) == ()


def test_an_empty_label_value_finds_any(bed: Bed) -> None:
    container = bed.runtime.start(bed.spec())

    assert [c.id for c in bed.runtime.find({**bed.marks, labels.NODE: ""})] == [container]
    assert bed.runtime.find({**bed.marks, "streamquake.no-such-label": ""}) == ()
    assert bed.run_id in {n.name for n in bed.runtime.find_networks({labels.RUN: ""})}


def test_addresses_of_a_network_may_be_handed_out(bed: Bed) -> None:
    spec = bed.spec()
    bed.runtime.start(spec)

    assert spec.ip is not None
    assert ip_address(spec.ip) in ip_network(bed.subnet)
    with pytest.raises(ContainerError):
        bed.runtime.start(replace(bed.spec("b"), ip=spec.ip))


def test_kill_is_seen_and_leaves_the_signals_exit_code(bed: Bed) -> None:
    container = bed.runtime.start(bed.spec())

    bracket = bed.runtime.kill(container)

    assert _ordered(bracket)
    state = bed.runtime.inspect(container)
    assert (state.status, state.exit_code, state.pid) == (Status.EXITED, 137, 0)


def test_killing_twice_is_harmless(bed: Bed) -> None:
    container = bed.runtime.start(bed.spec())
    bed.runtime.kill(container)

    assert _ordered(bed.runtime.kill(container))
    assert bed.runtime.inspect(container).status == Status.EXITED


def test_a_paused_container_can_be_killed_and_removed(bed: Bed) -> None:
    killed, removed = bed.runtime.start(bed.spec()), bed.runtime.start(bed.spec("b", 21))
    bed.runtime.pause(killed)
    bed.runtime.pause(removed)

    bed.runtime.kill(killed)
    bed.runtime.remove(removed)

    assert bed.runtime.inspect(killed).status == Status.EXITED
    assert bed.runtime.inspect(removed) == GONE


def test_start_again_keeps_name_address_and_port(bed: Bed) -> None:
    spec = bed.spec()
    container = bed.runtime.start(spec)
    bed.runtime.kill(container)

    assert _ordered(bed.runtime.start_again(container))

    assert bed.runtime.inspect(container).status == Status.RUNNING
    (found,) = bed.runtime.find(bed.marks)
    assert (found.id, found.name) == (container, spec.name)
    with pytest.raises(PortTaken):
        bed.runtime.start(replace(bed.spec("b", 21), ports=spec.ports))
    with pytest.raises(ContainerError):
        bed.runtime.start(replace(bed.spec("c", 22), ip=spec.ip))


def test_starting_again_what_runs_is_harmless(bed: Bed) -> None:
    container = bed.runtime.start(bed.spec())
    before = bed.runtime.inspect(container)

    assert _ordered(bed.runtime.start_again(container))
    assert bed.runtime.inspect(container) == before


def test_pause_and_unpause_may_each_run_twice(bed: Bed) -> None:
    container = bed.runtime.start(bed.spec())
    for call, status in (
        (bed.runtime.pause, Status.PAUSED),
        (bed.runtime.pause, Status.PAUSED),
        (bed.runtime.unpause, Status.RUNNING),
        (bed.runtime.unpause, Status.RUNNING),
    ):
        assert _ordered(call(container))
        assert bed.runtime.inspect(container).status == status


def test_a_state_tells_the_image(bed: Bed) -> None:
    spec = bed.spec()
    container = bed.runtime.start(spec)

    state = bed.runtime.inspect(container)

    assert state.image == spec.image
    assert state.image_id


def test_another_container_takes_over_name_address_port_and_volumes(
    bed: Bed, tmp_path: Path
) -> None:
    spec = bed.spec()
    old = bed.runtime.start(spec)
    bed.runtime.put(old, {"/data/kept": "for the next\n"})

    new = bed.runtime.create(replace(spec, name=f"{spec.name}-next", volumes_from=old))
    assert bed.runtime.inspect(new).status == Status.CREATED
    assert bed.runtime.inspect(old).status == Status.RUNNING
    bed.runtime.kill(old)
    assert _ordered(bed.runtime.start_again(new))
    bed.runtime.remove(old)
    bed.runtime.rename(new, spec.name)

    (found,) = bed.runtime.find(bed.marks)
    assert (found.id, found.name) == (new, spec.name)
    assert bed.runtime.inspect(new).status == Status.RUNNING
    bed.runtime.copy_out(new, "/data/kept", tmp_path)
    assert (tmp_path / "kept").read_text(encoding="utf-8") == "for the next\n"
    with pytest.raises(PortTaken):
        bed.runtime.start(replace(bed.spec("b", 21), ports=spec.ports))


def test_a_container_that_was_never_started_can_be_removed(bed: Bed, tmp_path: Path) -> None:
    spec = bed.spec()
    old = bed.runtime.start(spec)
    bed.runtime.put(old, {"/data/kept": "still here\n"})
    new = bed.runtime.create(replace(spec, name=f"{spec.name}-next", volumes_from=old))

    bed.runtime.remove(new)

    assert [found.id for found in bed.runtime.find(bed.marks)] == [old]
    bed.runtime.copy_out(old, "/data/kept", tmp_path)
    assert (tmp_path / "kept").exists()


def test_a_name_in_use_is_refused(bed: Bed) -> None:
    first, second = bed.runtime.start(bed.spec()), bed.runtime.start(bed.spec("b", 21))

    with pytest.raises(ContainerError, match=second):
        bed.runtime.rename(second, bed.spec().name)
    with pytest.raises(ContainerError, match=bed.spec().name):
        bed.runtime.create(bed.spec())

    assert {found.id for found in bed.runtime.find(bed.marks)} == {first, second}


def test_files_can_be_put_into_a_container_that_runs_or_not(bed: Bed, tmp_path: Path) -> None:
    container = bed.runtime.start(bed.spec())

    bed.runtime.put(container, {"/etc/bed/a": "while it runs\n"})
    bed.runtime.kill(container)
    bed.runtime.put(container, {"/etc/bed/b": "while it does not\n"})

    bed.runtime.copy_out(container, "/etc/bed", tmp_path)
    texts = [(tmp_path / "bed" / name).read_text(encoding="utf-8") for name in "ab"]
    assert texts == ["while it runs\n", "while it does not\n"]


def test_a_failing_container_is_started_again_as_often_as_the_engine_may(bed: Bed) -> None:
    container = bed.runtime.start(replace(bed.spec(), command=("sh", "-c", "sleep 0.2; exit 5")))
    bed.runtime.kill(container)
    if isinstance(bed.runtime, FakeRuntime):
        bed.runtime.on_start.append(lambda _: 5)

    bed.runtime.restart_on_failure(container, 2)
    bed.runtime.start_again(container)

    def given_up() -> bool:
        state = bed.runtime.inspect(container)
        return (state.status, state.restarts) == (Status.EXITED, 2)

    _until(given_up)
    assert bed.runtime.inspect(container).exit_code == 5


def test_a_container_in_a_crash_loop_can_be_killed_and_removed(bed: Bed) -> None:
    container = bed.runtime.start(replace(bed.spec(), command=("sh", "-c", "sleep 0.2; exit 5")))
    bed.runtime.restart_on_failure(container, 100)
    _until(lambda: isinstance(bed.runtime, FakeRuntime) or _restarts(bed, container) > 1)

    bed.runtime.restart_on_failure(container, 0)
    bed.runtime.kill(container)
    _until(lambda: bed.runtime.inspect(container).status == Status.EXITED)
    bed.runtime.remove(container)

    assert bed.runtime.inspect(container) == GONE


def test_a_stopped_process_still_counts_as_running_and_can_be_killed(bed: Bed) -> None:
    container = bed.runtime.start(bed.spec())

    assert _ordered(bed.runtime.kill(container, "STOP"))
    assert bed.runtime.inspect(container).status == Status.RUNNING
    assert _ordered(bed.runtime.kill(container, "CONT"))
    assert _ordered(bed.runtime.kill(container, "STOP"))
    bed.runtime.kill(container)

    assert bed.runtime.inspect(container).status == Status.EXITED


def test_what_is_removed_is_gone_and_may_be_removed_twice(bed: Bed) -> None:
    container = bed.runtime.start(bed.spec())

    bed.runtime.remove(container)
    bed.runtime.remove(container)

    assert bed.runtime.inspect(container) == GONE
    assert bed.runtime.find(bed.marks) == ()


@pytest.mark.parametrize("call", ["kill", "pause", "unpause", "start_again", "logs"])
def test_asking_for_what_is_gone_is_a_container_error(bed: Bed, call: str) -> None:
    container = bed.runtime.start(bed.spec())
    bed.runtime.remove(container)

    with pytest.raises(ContainerError, match=container):
        getattr(bed.runtime, call)(container)


def test_a_network_with_a_container_in_it_can_be_removed_twice(bed: Bed) -> None:
    container = bed.runtime.start(bed.spec())
    (network,) = bed.runtime.find_networks(bed.marks)

    bed.runtime.remove(container)
    bed.runtime.remove_network(network.id)
    bed.runtime.remove_network(network.id)

    assert bed.runtime.find_networks(bed.marks) == ()


def test_a_failing_start_leaves_nothing_behind(bed: Bed) -> None:
    spec = replace(bed.spec(), network=f"{bed.run_id}-no-such-network")

    with pytest.raises(ContainerError, match=spec.name):
        bed.runtime.start(spec)

    assert bed.runtime.find(bed.marks) == ()


def test_a_taken_port_is_told_as_such_and_leaves_nothing_behind(bed: Bed) -> None:
    first = bed.spec()
    bed.runtime.start(first)

    with pytest.raises(PortTaken):
        bed.runtime.start(replace(bed.spec("b", 21), ports=first.ports))

    assert len(bed.runtime.find(bed.marks)) == 1


def test_events_of_the_run_are_seen_and_end_when_closed(bed: Bed) -> None:
    seen: list[ContainerEvent] = []
    events = bed.runtime.events(bed.marks)
    reader = threading.Thread(target=lambda: seen.extend(events))
    reader.start()
    container = bed.runtime.start(bed.spec())
    bed.runtime.kill(container)
    bed.runtime.start_again(container)
    bed.runtime.kill(container)
    _until(lambda: len(seen) >= 4)

    bed.runtime.close_events()
    reader.join(timeout=60)

    assert not reader.is_alive()
    assert [event.action for event in seen] == ["start", "die", "start", "die"]
    assert {event.id for event in seen} == {container}
    assert seen[1].exit_code == 137
    assert seen[1].labels[labels.NODE] == "a"
    assert [e.epoch_ms for e in seen] == sorted(e.epoch_ms for e in seen)


def test_exec_tells_the_exit_code(bed: Bed) -> None:
    container = bed.runtime.start(bed.spec())

    assert bed.runtime.exec(container, ["sh", "-c", "exit 3"]).exit_code == 3
    assert bed.runtime.exec(container, ["true"]).exit_code == 0


def test_exec_in_what_does_not_run_is_a_container_error(bed: Bed) -> None:
    container = bed.runtime.start(bed.spec())
    bed.runtime.kill(container)

    with pytest.raises(ContainerError):
        bed.runtime.exec(container, ["true"])


def test_files_can_be_copied_out_of_a_stopped_container(bed: Bed, tmp_path: Path) -> None:
    container = bed.runtime.start(bed.spec())
    bed.runtime.kill(container)

    bed.runtime.copy_out(container, "/etc/bed", tmp_path / "folder")
    bed.runtime.copy_out(container, "/etc/bed/greeting", tmp_path / "file")

    for copy in (tmp_path / "folder" / "bed" / "greeting", tmp_path / "file" / "greeting"):
        assert copy.read_text(encoding="utf-8") == "hello from the bed\n"
    with pytest.raises(ContainerError):
        bed.runtime.copy_out(container, "/etc/bed/nothing", tmp_path)


def test_network_tools_work_beside_a_running_container_only(bed: Bed) -> None:
    container = bed.runtime.start(bed.spec())
    assert bed.runtime.in_network_namespace(container, ["iptables", "-S"]).exit_code == 0

    bed.runtime.kill(container)
    with pytest.raises(ContainerError):
        bed.runtime.in_network_namespace(container, ["iptables", "-S"])


def test_the_guard_removes_nothing_on_the_ordinary_way_out(bed: Bed) -> None:
    with bed.runtime.guard(bed.run_id):
        container = bed.runtime.start(bed.spec())

    assert bed.runtime.inspect(container).status == Status.RUNNING
    assert bed.runtime.find({labels.REAPER: bed.run_id}) == ()


def _restarts(bed: Bed, container: str) -> int:
    return bed.runtime.inspect(container).restarts


def _until(condition: Callable[[], bool], limit_s: float = 60.0) -> None:
    wait_until(
        lambda: None if condition() else "not yet",
        what="the condition",
        limit_s=limit_s,
        clock=SystemClock(),
        every_s=0.02,
    )
