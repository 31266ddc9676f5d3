"""The faults on processes: a fault without effect is reported, and every heal is complete."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from streamquake.cluster.node import Node
from streamquake.cluster.runtime.fake_runtime import ENDINGS, FakeRuntime
from streamquake.cluster.runtime.runtime import (
    ContainerError,
    ContainerSpec,
    ContainerStatus,
    ExecResult,
)
from streamquake.faults.catalogue.crash_loop import CrashLoop
from streamquake.faults.catalogue.kill import Kill
from streamquake.faults.catalogue.kill_executor import KillExecutor
from streamquake.faults.catalogue.oom_container import OomContainer
from streamquake.faults.catalogue.oom_heap import OomHeap
from streamquake.faults.catalogue.pause import Pause
from streamquake.faults.catalogue.rolling_restart import RollingRestart
from streamquake.faults.catalogue.sigstop import Sigstop
from streamquake.faults.catalogue.stop import Stop
from streamquake.faults.fault import Fault
from streamquake.faults.injection.intents import IntentLog
from streamquake.faults.mechanisms.entrypoint import SCRIPT, put_line
from tests.fakes import WIDE, fake_cluster
from tests.fakes.worlds.process import PROGRAM
from tests.injecting import FaultInjector

NODE = "hdfs/datanode-2"
PROCESS_FAULTS = (Kill, Stop, Pause, Sigstop, RollingRestart, CrashLoop, OomHeap, OomContainer)


class Testbed(FaultInjector):
    """A fake cluster, its intents, and access to one node."""

    def __init__(self, folder: Path) -> None:
        log = IntentLog(folder / "intents.jsonl")
        super().__init__(fake_cluster(WIDE), log, limit_s=1, at=NODE)

    @property
    def runtime(self) -> FakeRuntime:
        runtime = self.cluster.runtime
        assert isinstance(runtime, FakeRuntime)
        return runtime

    @property
    def node(self) -> Node:
        return self.cluster.node(NODE)

    def status(self) -> ContainerStatus:
        return self.cluster.state(self.node).status

    def script(self) -> str:
        return self.runtime.containers[self.node.container].files[SCRIPT]


@pytest.fixture
def testbed(tmp_path: Path) -> Testbed:
    return Testbed(tmp_path)


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        (Kill, {"signal": "STOP"}, "'KILL', 'TERM'"),
        (Stop, {"grace_s": 0}, "greater than 0"),
        (CrashLoop, {"times": 0}, "greater than or equal to 1"),
        (CrashLoop, {"lives_s": -1}, "greater than or equal to 0"),
        (OomHeap, {"heap_mb": 1}, "greater than or equal to 2"),
        (RollingRestart, {"ready_s": 0}, "greater than 0"),
    ],
)
def test_invalid_parameters_are_rejected(
    kind: type[Fault], params: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        kind(**params)


@pytest.mark.parametrize("kind", PROCESS_FAULTS)
def test_a_node_that_was_removed_meanwhile_is_healed(kind: type[Fault], testbed: Testbed) -> None:
    intent, injected = testbed.inject_fault(kind(**kind.example))
    assert injected.done, injected.reason
    testbed.runtime.remove(testbed.node.container)

    healed = testbed.undo(intent)

    assert healed.done, healed.reason
    assert testbed.log.open_intents() == ()


@pytest.mark.parametrize("kind", PROCESS_FAULTS)
def test_a_node_that_ended_and_was_restarted_meanwhile_is_healed(
    kind: type[Fault], testbed: Testbed
) -> None:
    intent, injected = testbed.inject_fault(kind(**kind.example))
    assert injected.done, injected.reason
    testbed.runtime.kill(testbed.node.container)
    testbed.cluster.start_again(testbed.node)

    healed = testbed.undo(intent)

    assert healed.done, healed.reason
    assert testbed.status() == ContainerStatus.RUNNING
    assert testbed.script() == PROGRAM


def test_a_signal_that_the_process_survives_is_not_in_effect(testbed: Testbed) -> None:
    intent, injected = testbed.inject_fault(Kill(signal="QUIT"))

    assert not injected.done
    assert "running" in injected.reason
    assert testbed.undo(intent).done


@pytest.mark.parametrize(("signal", "exit_code"), [("TERM", 143), ("INT", 130), ("HUP", 129)])
def test_the_exit_code_identifies_the_signal(signal: str, exit_code: int, testbed: Testbed) -> None:
    _, injected = testbed.inject_fault(Kill.model_validate({"signal": signal}))

    assert injected.done, injected.reason
    assert injected.evidence[NODE]["exit_code"] == exit_code


def test_a_kill_of_a_node_that_had_ended_is_not_in_effect(testbed: Testbed) -> None:
    testbed.runtime.die(testbed.node.container, 1)

    _, injected = testbed.inject_fault(Kill())

    assert not injected.done


@pytest.mark.parametrize(
    ("ignores_term", "ended_by"), [(False, "TERM"), (True, "KILL, after the grace")]
)
def test_a_stop_records_which_signal_ended_the_node(
    ignores_term: bool, ended_by: str, testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    if ignores_term:
        monkeypatch.delitem(ENDINGS, "TERM")

    _, injected = testbed.inject_fault(Stop(grace_s=2))

    assert injected.done, injected.reason
    assert injected.evidence[NODE]["ended_by"] == ended_by


def test_a_role_is_restarted_in_turn(testbed: Testbed) -> None:
    names = [node.name for node in testbed.cluster.of_role("hdfs/datanode")]

    _, injected = testbed.inject_fault(RollingRestart(), "all of hdfs/datanode")

    assert injected.done, injected.reason
    first, second = (injected.evidence[name]["started_at"] for name in names)
    assert first < second


def test_a_rolling_restart_ends_at_the_first_node_that_does_not_start(testbed: Testbed) -> None:
    first, second = testbed.cluster.of_role("hdfs/datanode")
    testbed.runtime.failing_starts[testbed.cluster.container_name(first.spec.host)] = (
        ContainerError("no")
    )
    before = testbed.cluster.state(second)

    intent, injected = testbed.inject_fault(RollingRestart(), "all of hdfs/datanode")

    assert not injected.done
    assert testbed.cluster.state(second) == before
    testbed.runtime.failing_starts.clear()
    assert testbed.undo(intent).done
    assert testbed.cluster.state(first).status == ContainerStatus.RUNNING


def test_a_crash_loop_continues_without_the_harness_until_its_last_restart(
    testbed: Testbed,
) -> None:
    intent, injected = testbed.inject_fault(CrashLoop(times=7))

    assert injected.done, injected.reason
    assert injected.evidence[NODE]["ends"] == 7
    assert injected.evidence[NODE]["exit_code"] == 70
    assert testbed.undo(intent).done
    assert testbed.script() == PROGRAM
    assert testbed.cluster.state(testbed.node).restarts == 0


def test_a_node_without_a_shell_script_cannot_be_made_to_fail(testbed: Testbed) -> None:
    testbed.runtime.write(testbed.node.container, SCRIPT, "\x7fELF")

    _, injected = testbed.inject_fault(CrashLoop())

    assert not injected.done
    assert "a shell script was expected" in injected.reason
    assert testbed.status() == ContainerStatus.RUNNING


def test_a_line_added_twice_exists_once_and_other_lines_stay(testbed: Testbed) -> None:
    with_other_line = PROGRAM + "# streamquake something-else\n"
    testbed.runtime.write(testbed.node.container, SCRIPT, with_other_line)

    for _ in range(2):
        put_line(testbed.cluster, testbed.node, "true", "own")

    assert testbed.script().count("# streamquake own") == 1
    assert testbed.script().replace("true  # streamquake own\n", "") == with_other_line


def test_a_heap_that_suffices_is_not_in_effect(testbed: Testbed) -> None:
    intent, injected = testbed.inject_fault(OomHeap(heap_mb=4096))

    assert not injected.done
    assert testbed.undo(intent).done
    assert testbed.script() == PROGRAM


@pytest.mark.parametrize(("exit_code", "took_effect"), [(3, True), (1, False)])
def test_the_exit_status_proves_an_exhausted_heap_without_an_error_in_the_log(
    exit_code: int, took_effect: bool, testbed: Testbed
) -> None:
    fault = OomHeap(heap_mb=4096)
    testbed.inject_fault(fault)
    testbed.runtime.die(testbed.node.container, exit_code)
    evidence = fault.evidence(testbed.cluster, testbed.node, {})
    assert (evidence.in_effect, evidence.observations["out_of_memory_errors"]) == (took_effect, 0)


@pytest.mark.parametrize(("exit_code", "message"), [(64, "memory_mb"), (65, "oom_score_adj")])
def test_a_failed_fill_of_the_memory_has_a_reason(
    exit_code: int, message: str, testbed: Testbed
) -> None:
    testbed.runtime.on_exec.insert(0, lambda *_: ExecResult(exit_code=exit_code, output=""))

    _, injected = testbed.inject_fault(OomContainer())

    assert not injected.done
    assert message in injected.reason
    assert testbed.status() == ContainerStatus.RUNNING


def test_an_end_without_an_out_of_memory_kill_is_not_in_effect(testbed: Testbed) -> None:
    def end(*_: object) -> ExecResult:
        testbed.runtime.die(testbed.node.container, 137)
        return ExecResult(exit_code=137, output="")

    testbed.runtime.on_exec.insert(0, end)

    _, injected = testbed.inject_fault(OomContainer())

    assert not injected.done
    assert "oom_killed" in injected.reason


def test_a_worker_without_an_executor_is_not_in_effect(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path)
    dataset.runtime.on_exec.insert(0, _no_process)

    _, injected = dataset.inject_fault(KillExecutor(), "spark/worker-2")

    assert not injected.done


def test_a_killed_executor_that_is_replaced_at_once_is_in_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fakes.worlds.spark.RESTART_DELAY_NS", 0)
    dataset = Testbed(tmp_path)

    intent, injected = dataset.inject_fault(KillExecutor(), "spark/worker-2")

    assert injected.done, injected.reason
    assert injected.evidence["spark/worker-2"]["executors"] == [71]
    assert dataset.undo(intent).done


def test_an_unreachable_worker_does_not_count_as_one_without_an_executor(
    tmp_path: Path,
) -> None:
    dataset = Testbed(tmp_path)
    intent = dataset.intend(KillExecutor(), "spark/worker-2")
    dataset.runtime.on_exec.insert(0, _no_answer)

    with pytest.raises(ContainerError, match="frozen"):
        intent.build_fault().evidence(
            dataset.cluster, dataset.cluster.node("spark/worker-2"), {"executors": [70]}
        )


def test_executors_run_only_on_workers() -> None:
    assert "target a worker" in str(KillExecutor.role_problem(WIDE, "spark/driver"))


def _no_process(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
    return ExecResult(exit_code=1, output="") if argv[0] == "pgrep" else None


def _no_answer(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
    raise ContainerError("is the container frozen?")
