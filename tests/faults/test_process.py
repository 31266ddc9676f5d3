"""The faults on processes: what does not bite is said so, and nothing is left half undone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from streamquake.cluster.node import Node
from streamquake.cluster.runtime.fake_runtime import ENDINGS, FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerError, ContainerSpec, ExecResult, Status
from streamquake.faults.catalogue.crash_loop import CrashLoop
from streamquake.faults.catalogue.kill import Kill
from streamquake.faults.catalogue.kill_executor import KillExecutor
from streamquake.faults.catalogue.oom_container import OomContainer
from streamquake.faults.catalogue.oom_heap import OomHeap
from streamquake.faults.catalogue.pause import Pause
from streamquake.faults.catalogue.rolling_restart import RollingRestart
from streamquake.faults.catalogue.stop import Stop
from streamquake.faults.catalogue.stop_the_world import StopTheWorld
from streamquake.faults.fault import Fault
from streamquake.faults.injection.intents import IntentLog
from streamquake.faults.mechanisms.entrypoint import SCRIPT, put_line
from tests.fakes import WIDE, fake_cluster
from tests.fakes.worlds.process import PROGRAM
from tests.injecting import Striker

NODE = "hdfs/datanode-2"
MINE = (Kill, Stop, Pause, StopTheWorld, RollingRestart, CrashLoop, OomHeap, OomContainer)


class Bed(Striker):
    """A fake cluster and the log of what is done to it."""

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

    def status(self) -> Status:
        return self.cluster.state(self.node).status

    def script(self) -> str:
        return self.runtime.containers[self.node.container].files[SCRIPT]


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path)


@pytest.mark.parametrize(
    ("made", "params", "words"),
    [
        (Kill, {"signal": "STOP"}, "'KILL', 'TERM'"),
        (Stop, {"grace_s": 0}, "greater than 0"),
        (CrashLoop, {"times": 0}, "greater than or equal to 1"),
        (CrashLoop, {"lives_s": -1}, "greater than or equal to 0"),
        (OomHeap, {"heap_mb": 1}, "greater than or equal to 2"),
        (RollingRestart, {"ready_s": 0}, "greater than 0"),
    ],
)
def test_parameters_without_sense_are_refused(
    made: type[Fault], params: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        made(**params)


@pytest.mark.parametrize("made", MINE)
def test_a_node_that_was_removed_meanwhile_is_healed(made: type[Fault], bed: Bed) -> None:
    intent, struck = bed.strike(made(**made.example))
    assert struck.done, struck.reason
    bed.runtime.remove(bed.node.container)

    healed = bed.undo(intent)

    assert healed.done, healed.reason
    assert bed.log.open() == ()


@pytest.mark.parametrize("made", MINE)
def test_a_node_that_ended_and_was_started_meanwhile_is_healed(made: type[Fault], bed: Bed) -> None:
    intent, struck = bed.strike(made(**made.example))
    assert struck.done, struck.reason
    bed.runtime.kill(bed.node.container)
    bed.cluster.start_again(bed.node)

    healed = bed.undo(intent)

    assert healed.done, healed.reason
    assert bed.status() == Status.RUNNING
    assert bed.script() == PROGRAM


def test_a_signal_that_the_process_survives_is_said_not_to_bite(bed: Bed) -> None:
    intent, struck = bed.strike(Kill(signal="QUIT"))

    assert not struck.done
    assert "running" in struck.reason
    assert bed.undo(intent).done


@pytest.mark.parametrize(("signal", "exit_code"), [("TERM", 143), ("INT", 130), ("HUP", 129)])
def test_the_exit_code_tells_the_signal(signal: str, exit_code: int, bed: Bed) -> None:
    _, struck = bed.strike(Kill.model_validate({"signal": signal}))

    assert struck.done, struck.reason
    assert struck.evidence[NODE]["exit_code"] == exit_code


def test_what_had_ended_before_was_not_killed(bed: Bed) -> None:
    bed.runtime.die(bed.node.container, 1)

    _, struck = bed.strike(Kill())

    assert not struck.done


@pytest.mark.parametrize(
    ("stubborn", "ended_by"), [(False, "TERM"), (True, "KILL, after the grace")]
)
def test_a_stop_tells_who_ended_the_node(
    stubborn: bool, ended_by: str, bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    if stubborn:
        monkeypatch.delitem(ENDINGS, "TERM")

    _, struck = bed.strike(Stop(grace_s=2))

    assert struck.done, struck.reason
    assert struck.evidence[NODE]["ended_by"] == ended_by


def test_a_role_is_restarted_in_turn(bed: Bed) -> None:
    names = [node.name for node in bed.cluster.of_role("hdfs/datanode")]

    _, struck = bed.strike(RollingRestart(), "all of hdfs/datanode")

    assert struck.done, struck.reason
    first, second = (struck.evidence[name]["started_at"] for name in names)
    assert first < second


def test_a_restart_ends_at_the_first_node_that_does_not_come_back(bed: Bed) -> None:
    first, second = bed.cluster.of_role("hdfs/datanode")
    bed.runtime.failing_starts[bed.cluster.container_name(first.spec.host)] = ContainerError("no")
    before = bed.cluster.state(second)

    intent, struck = bed.strike(RollingRestart(), "all of hdfs/datanode")

    assert not struck.done
    assert bed.cluster.state(second) == before
    bed.runtime.failing_starts.clear()
    assert bed.undo(intent).done
    assert bed.cluster.state(first).status == Status.RUNNING


def test_a_crash_loop_goes_on_without_us_until_its_last_time(bed: Bed) -> None:
    intent, struck = bed.strike(CrashLoop(times=7))

    assert struck.done, struck.reason
    assert struck.evidence[NODE]["ends"] == 7
    assert struck.evidence[NODE]["exit_code"] == 70
    assert bed.undo(intent).done
    assert bed.script() == PROGRAM
    assert bed.cluster.state(bed.node).restarts == 0


def test_a_node_without_a_shell_script_cannot_be_made_to_fail(bed: Bed) -> None:
    bed.runtime.write(bed.node.container, SCRIPT, "\x7fELF")

    _, struck = bed.strike(CrashLoop())

    assert not struck.done
    assert "a shell script was expected" in struck.reason
    assert bed.status() == Status.RUNNING


def test_a_line_laid_twice_is_there_once_and_others_lines_stay(bed: Bed) -> None:
    foreign = PROGRAM + "# streamquake something-else\n"
    bed.runtime.write(bed.node.container, SCRIPT, foreign)

    for _ in range(2):
        put_line(bed.cluster, bed.node, "true", "mine")

    assert bed.script().count("# streamquake mine") == 1
    assert bed.script().replace("true  # streamquake mine\n", "") == foreign


def test_a_heap_that_suffices_is_said_not_to_bite(bed: Bed) -> None:
    intent, struck = bed.strike(OomHeap(heap_mb=4096))

    assert not struck.done
    assert bed.undo(intent).done
    assert bed.script() == PROGRAM


@pytest.mark.parametrize(("exit_code", "bitten"), [(3, True), (1, False)])
def test_the_exit_status_tells_of_a_heap_whose_error_the_log_has_lost(
    exit_code: int, bitten: bool, bed: Bed
) -> None:
    fault = OomHeap(heap_mb=4096)
    bed.strike(fault)
    bed.runtime.die(bed.node.container, exit_code)
    seen = fault.evidence(bed.cluster, bed.node, {})
    assert (seen.in_effect, seen.seen["out_of_memory_errors"]) == (bitten, 0)


@pytest.mark.parametrize(("exit_code", "words"), [(64, "memory_mb"), (65, "oom_score_adj")])
def test_memory_that_cannot_be_filled_says_why(exit_code: int, words: str, bed: Bed) -> None:
    bed.runtime.on_exec.insert(0, lambda *_: ExecResult(exit_code=exit_code, output=""))

    _, struck = bed.strike(OomContainer())

    assert not struck.done
    assert words in struck.reason
    assert bed.status() == Status.RUNNING


def test_an_end_without_the_kernels_word_is_not_for_want_of_memory(bed: Bed) -> None:
    def dies(*_: object) -> ExecResult:
        bed.runtime.die(bed.node.container, 137)
        return ExecResult(exit_code=137, output="")

    bed.runtime.on_exec.insert(0, dies)

    _, struck = bed.strike(OomContainer())

    assert not struck.done
    assert "oom_killed" in struck.reason


def test_a_worker_without_an_executor_is_said_not_to_be_hit(tmp_path: Path) -> None:
    bed = Bed(tmp_path)
    bed.runtime.on_exec.insert(0, _no_process)

    _, struck = bed.strike(KillExecutor(), "spark/worker-2")

    assert not struck.done


def test_an_executor_that_another_one_follows_at_once_was_killed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fakes.worlds.spark.STARTED_AGAIN_NS", 0)
    bed = Bed(tmp_path)

    intent, struck = bed.strike(KillExecutor(), "spark/worker-2")

    assert struck.done, struck.reason
    assert struck.evidence["spark/worker-2"]["executors"] == [71]
    assert bed.undo(intent).done


def test_a_worker_that_does_not_answer_is_not_taken_for_one_without_an_executor(
    tmp_path: Path,
) -> None:
    bed = Bed(tmp_path)
    intent = bed.intend(KillExecutor(), "spark/worker-2")
    bed.runtime.on_exec.insert(0, _no_answer)

    with pytest.raises(ContainerError, match="frozen"):
        intent.made().evidence(bed.cluster, bed.cluster.node("spark/worker-2"), {"executors": [70]})


def test_executors_run_on_workers_alone() -> None:
    assert "aim at a worker" in str(KillExecutor.trouble(WIDE, "spark/driver"))


def _no_process(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
    return ExecResult(exit_code=1, output="") if argv[0] == "pgrep" else None


def _no_answer(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
    raise ContainerError("is the container frozen?")
