"""Failover scope: the verdict on a recorded failover, and on one with a single change.

Two sources feed two counters by key; every subtask has a node of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.verdict.checks.failover_scope import FailoverScope
from streamquake.reports.record.event import Action
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.histories import Story, case

Subtask = tuple[str, int]
NAMES = {"s": "Source: input", "c": "Count -> Sink"}
PLACES: dict[Subtask, str] = {
    ("s", 0): "tm-1",
    ("s", 1): "tm-2",
    ("c", 0): "tm-3",
    ("c", 1): "tm-4",
}
SPARE = "tm-5"
ALL = list(PLACES)
SINGLE = [[list(place)] for place in ALL]
SLICES = [[["s", 0], ["c", 0]], [["s", 1], ["c", 1]]]
WHOLE = [[list(place) for place in ALL]]
EFFECT_S, AGAIN_S, END_S = 20.0, 24.0, 40.0
STARTED_MS = 1_000_000


class Failover:
    """A recorded failover; a test changes one thing in it."""

    def __init__(
        self,
        restarted: list[Subtask],
        *,
        regions: Any = SINGLE,
        ship: str = "HASH",
        nodes: tuple[str, ...] = ("tm-3",),
        fault: str = "kill",
    ) -> None:
        self.graph: dict[str, Any] = {
            "vertices": [{"id": v, "name": n, "parallelism": 2} for v, n in NAMES.items()],
            "edges": [{"from": "s", "to": "c", "ship": ship, "exchange": "pipelined_approximate"}],
            "regions": regions,
        }
        self.fault: dict[str, Any] = {"step": 0, "fault": fault, "nodes": list(nodes)}
        self.fault |= {"called_ns": int(EFFECT_S * 1e9), "seen_ns": int(EFFECT_S * 1e9) + 1000}
        self.tasks: list[tuple[float, dict[str, Any]]] = [
            (AGAIN_S, self.task(place, attempt=1, start_ms=STARTED_MS + 23_000, node=SPARE))
            for place in restarted
        ]
        self.failures: list[tuple[float, dict[str, Any]]] = []
        self.others: list[tuple[float, Action, dict[str, Any]]] = []
        self.whole_s: float | None = AGAIN_S + 1
        self.drained = True
        self.placed_attempt = 0
        self.running: dict[Subtask, list[tuple[float, float]]] = {
            place: self._samples(place in restarted) for place in ALL
        }

    @staticmethod
    def task(place: Subtask, **value: Any) -> dict[str, Any]:
        vertex, subtask = place
        known = {"attempt": 0, "node": PLACES[place], "state": "RUNNING", "start_ms": STARTED_MS}
        return {
            "vertex": vertex,
            "vertex_name": NAMES[vertex],
            "subtask": subtask,
            **known,
            **value,
        }

    @staticmethod
    def _samples(restarted: bool) -> list[tuple[float, float]]:
        begun_s = {True: AGAIN_S, False: 1.0}
        return [
            (float(s), max(0.0, (s - begun_s[restarted and s >= AGAIN_S - 2]) * 1000))
            for s in range(2, int(END_S))
        ]

    def judged(self, folder: Path, expect: str) -> CheckResult:
        recorded = Story().at(1, Action.JOB_SUBMITTED, **self.graph)
        for place in ALL:
            placed = self.task(place, attempt=self.placed_attempt)
            recorded.at(2, Action.TASK_CHANGED, **placed)
        if self.fault:
            recorded.at(EFFECT_S, Action.FAULT_IN_EFFECT, **self.fault)
        for at_s, value in self.failures:
            recorded.at(at_s, Action.JOB_FAILING, **value)
        for at_s, value in self.tasks:
            recorded.at(at_s, Action.TASK_CHANGED, **value)
        for at_s, action, value in self.others:
            recorded.at(at_s, action, **value)
        if self.whole_s is not None:
            recorded.at(self.whole_s, Action.JOB_RUNNING)
        if self.drained:
            recorded.at(END_S, Action.DRAINED)
        created: JudgedRun = case(recorded, folder)
        self._write(created.metrics)
        return FailoverScope(expect=expect).check(created)  # type: ignore[arg-type]

    def _write(self, path: Path) -> None:
        metrics = Metrics(path)
        for (vertex, subtask), samples in self.running.items():
            for at_s, running_ms in samples:
                where = f"{NAMES[vertex]}/{subtask}"
                metrics.add(int(at_s * 1e9), "subtask_running_ms", where, running_ms)
        metrics.flush()


def finding_places(result: CheckResult) -> set[tuple[str, str]]:
    return {(finding.what, finding.where) for finding in result.findings}


@pytest.mark.parametrize(
    ("restarted", "regions", "expect", "outcome", "recognised"),
    [
        ([("c", 0)], SINGLE, "task", Outcome.HELD, "task"),
        ([("c", 0)], SINGLE, "region", Outcome.HELD, "task"),
        ([("c", 0)], SINGLE, "job", Outcome.VIOLATED, "task"),
        ([("s", 0), ("c", 0)], SLICES, "region", Outcome.HELD, "region"),
        ([("s", 0), ("c", 0)], SLICES, "task", Outcome.VIOLATED, "region"),
        (ALL, WHOLE, "region", Outcome.HELD, "region"),
        (ALL, SLICES, "job", Outcome.HELD, "job"),
        (ALL, SLICES, "region", Outcome.VIOLATED, "job"),
        ([("c", 0), ("c", 1)], SINGLE, "task", Outcome.VIOLATED, "none of task"),
    ],
)
def test_restarted_subtasks_are_compared_with_the_predicted_ones(
    restarted: list[Subtask],
    regions: Any,
    expect: str,
    outcome: Outcome,
    recognised: str,
    tmp_path: Path,
) -> None:
    result = Failover(restarted, regions=regions).judged(tmp_path, expect)

    assert result.outcome == outcome, result
    assert f"recognised as {recognised}" in result.summary
    assert result.counts["restarted"] == result.counts["restarts"] == len(restarted)
    assert result.counts["blast_radius"] == len(restarted) / 4
    assert result.counts["all"] == 4
    assert result.counts["survivors_watched"] == result.counts["survivors"] == 4 - len(restarted)


@pytest.mark.parametrize(("ship", "fed"), [("HASH", [("c", 0), ("c", 1)]), ("FORWARD", [("c", 0)])])
def test_subtasks_downstream_of_a_failed_source_are_recognised(
    ship: str, fed: list[Subtask], tmp_path: Path
) -> None:
    failover = Failover([("s", 0), *fed], ship=ship, nodes=("tm-1",))

    result = failover.judged(tmp_path, "task")

    assert result.outcome == Outcome.VIOLATED
    assert "recognised as downstream" in result.summary
    assert finding_places(result) == {
        ("restarted, not predicted", f"Count -> Sink ({n})") for _, n in fed
    }


def test_another_attempt_of_a_survivor_is_detected(tmp_path: Path) -> None:
    failover = Failover([("c", 0)])
    failover.tasks.append((25.0, failover.task(("s", 1), attempt=1, start_ms=STARTED_MS + 23_000)))
    failover.whole_s = 26.0

    result = failover.judged(tmp_path, "task")

    assert result.outcome == Outcome.VIOLATED
    assert finding_places(result) == {("restarted, not predicted", "Source: input (1)")}


def test_a_new_start_under_the_same_number_is_another_attempt(tmp_path: Path) -> None:
    failover = Failover([])
    for place in ALL:
        failover.tasks += [
            (23.0, failover.task(place, state="SCHEDULED", start_ms=-1, node="")),
            (24.0, failover.task(place, start_ms=STARTED_MS + 23_000)),
        ]

    result = failover.judged(tmp_path, "job")

    assert (result.outcome, result.counts["restarted"], result.counts["restarts"]) == (
        Outcome.HELD,
        4,
        4,
    )
    failover.tasks[1][1]["start_ms"] = STARTED_MS
    changed = failover.judged(tmp_path, "job")
    assert changed.outcome == Outcome.VIOLATED
    assert finding_places(changed) == {("predicted, not restarted", "Source: input (0)")}


def test_a_survivor_on_another_node_restarted(tmp_path: Path) -> None:
    failover = Failover([("c", 0)])
    failover.tasks.append((25.0, failover.task(("s", 1), node="tm-6")))

    result = failover.judged(tmp_path, "task")

    assert result.outcome == Outcome.VIOLATED
    assert finding_places(result) == {("node changed", "Source: input (1)")}


def test_a_survivor_cancelled_for_good_ended(tmp_path: Path) -> None:
    failover = Failover([("c", 0)])
    failover.tasks.append((25.0, failover.task(("s", 1), state="CANCELED")))

    result = failover.judged(tmp_path, "task")

    assert finding_places(result) == {("ended", "Source: input (1)")}


@pytest.mark.parametrize(
    ("missing", "begun_s"),
    [((), 29.0), (range(21, 35), 34.0), ((), 39.0)],
    ids=["fell", "fell unseen", "fell at the end"],
)
def test_a_running_time_that_stops_growing_shows_an_unrecorded_restart(
    missing: Sequence[int], begun_s: float, tmp_path: Path
) -> None:
    """The running time starts again at zero, at its new start or at the end of the gap."""
    failover = Failover([("c", 0)])
    anew_s = max(begun_s, 21.0)
    failover.running["s", 1] = [
        (at_s, (at_s - begun_s) * 1000 if at_s >= anew_s else value)
        for at_s, value in failover.running["s", 1]
        if at_s not in missing
    ]

    result = failover.judged(tmp_path, "task")

    assert result.outcome == Outcome.VIOLATED
    assert finding_places(result) == {("duration fell", "Source: input (1)")}
    assert result.counts["survivors"] == 2


def test_one_late_sample_is_no_restart(tmp_path: Path) -> None:
    failover = Failover([("c", 0)])
    at_s, value = failover.running["s", 1][-2]
    failover.running["s", 1][-2] = (at_s + 0.5, value)
    failover.running["s", 1][-1] = (at_s + 5.0, value + 1000)

    assert failover.judged(tmp_path, "task").outcome == Outcome.HELD


def test_a_subtask_that_restarts_again_counts_once(tmp_path: Path) -> None:
    failover = Failover([("c", 0)])
    failover.tasks.append((30.0, failover.task(("c", 0), attempt=2, start_ms=STARTED_MS + 29_000)))
    failover.whole_s = 31.0

    result = failover.judged(tmp_path, "task")

    assert result.outcome == Outcome.HELD
    assert (result.counts["restarted"], result.counts["restarts"]) == (1, 2)


THROWN = {
    "job": "j",
    "cause": "RuntimeException: thrown",
    "task": "Count -> Sink (1/2) - execution #0",
}


def exception(restarted: list[Subtask]) -> Failover:
    """An exception in counter 0, on a node that also runs a source."""
    failover = Failover(restarted, nodes=("tm-3",), fault="throw_in_task")
    failover.failures.append((21.0, THROWN))
    return failover


@pytest.fixture
def same_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source 0 runs on the counter's node."""
    monkeypatch.setitem(PLACES, ("s", 0), "tm-3")


@pytest.mark.usefixtures("same_node")
def test_an_exception_affects_one_subtask_and_not_others_on_its_node(tmp_path: Path) -> None:
    result = exception([("c", 0)]).judged(tmp_path, "task")

    assert (result.outcome, result.counts["affected"]) == (Outcome.HELD, 1)
    killed = Failover([("c", 0)], nodes=("tm-3",)).judged(tmp_path, "task")
    assert (killed.outcome, killed.counts["affected"]) == (Outcome.VIOLATED, 2)


@pytest.mark.usefixtures("same_node")
def test_the_faults_own_evidence_names_the_subtask_where_no_failure_does(tmp_path: Path) -> None:
    failover = exception([("c", 0)])
    failover.failures.clear()
    failover.fault["evidence"] = {"watched": "agent", "tm-3": {"at": ["Count subtask 0"]}}
    assert failover.judged(tmp_path, "task").outcome == Outcome.HELD

    failover.fault["evidence"]["tm-3"]["at"] = ["Source: input subtask 0"]
    assert failover.judged(tmp_path, "task").outcome == Outcome.VIOLATED

    del failover.fault["evidence"]
    assert failover.judged(tmp_path, "task").outcome == Outcome.UNDECIDED


@pytest.mark.usefixtures("same_node")
def test_only_failures_of_the_same_cause_name_affected_subtasks(tmp_path: Path) -> None:
    failover = exception([("c", 0), ("s", 0)])
    again: Mapping[str, Any] = {**THROWN, "task": "Source: input (1/2) - execution #0"}
    failover.failures.append((22.0, {**again, "cause": "Connection lost"}))
    assert failover.judged(tmp_path, "task").outcome == Outcome.VIOLATED

    failover.failures[1] = (22.0, dict(again))
    assert failover.judged(tmp_path, "task").outcome == Outcome.HELD


def test_a_global_failure_is_counted_and_named(tmp_path: Path) -> None:
    failover = Failover(ALL, regions=SLICES)
    failover.failures.append((23.0, {"job": "j", "cause": "Checkpoint expired", "task": None}))

    result = failover.judged(tmp_path, "region")

    assert result.outcome == Outcome.VIOLATED
    assert result.counts["global_failures"] == 1
    assert "1 global failures, the first: Checkpoint expired" in result.summary
    assert ("global failure", "") in finding_places(result)


@pytest.mark.parametrize(("failed_s", "count"), [(EFFECT_S, 1), (EFFECT_S - 0.1, 0)])
def test_a_global_failure_counts_from_when_the_fault_was_called(
    failed_s: float, count: int, tmp_path: Path
) -> None:
    failover = Failover(ALL, regions=SLICES)
    failover.failures.append((failed_s, {"job": "j", "cause": "lost", "task": None}))
    assert failover.judged(tmp_path, "region").counts["global_failures"] == count


def test_two_faults_affect_the_subtasks_of_both(tmp_path: Path) -> None:
    failover = Failover([("c", 0), ("c", 1)])
    second = {"step": 1, "fault": "kill", "nodes": ["tm-4"], "seen_ns": 22 * 10**9}
    failover.others.append((22.0, Action.FAULT_IN_EFFECT, second))

    assert failover.judged(tmp_path, "task").outcome == Outcome.HELD


def test_a_kill_without_a_restart_is_a_violation_with_its_reason(tmp_path: Path) -> None:
    failover = Failover([])
    failover.others.append((23.0, Action.FAULT_HEALED, {"step": 0}))

    result = failover.judged(tmp_path, "task")

    assert result.outcome == Outcome.VIOLATED
    assert finding_places(result) == {("predicted, not restarted", "Count -> Sink (0)")}
    assert "never detected: the fault was healed after 3.0 s" in result.summary


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (Action.FAULT_HEALED, "undecided"),
        (Action.OUTPUTS_NOT_QUIET, "violated"),
        (Action.DRAINED, "violated"),
    ],
)
def test_an_interrupted_run_leaves_no_time_to_detect_a_failure(
    tmp_path: Path, last: Action, expected: str
) -> None:
    failover = Failover([])
    failover.drained, failover.whole_s = False, None
    about = {"step": 0, "reason": "outputs quiet"}
    failover.others.append((21.5, last, about))

    result = failover.judged(tmp_path, "region")

    assert str(result.outcome) == expected
    undecided = "the record ends 1.5 s after the fault" in result.summary
    assert undecided == (expected == "undecided"), result.summary


def test_a_failure_of_an_interrupted_run_was_detected(tmp_path: Path) -> None:
    failover = Failover([])
    failover.drained, failover.whole_s = False, None
    failed = (21.0, Action.JOB_FAILING, {"cause": "lost", "task": "c"})
    failover.others += [failed, (21.5, Action.FAULT_HEALED, {"step": 0})]

    result = failover.judged(tmp_path, "region")

    assert "the record ends" not in result.summary, result.summary
    assert result.outcome == Outcome.UNDECIDED
    assert "not every task was seen to run again" in result.summary, result.summary


def test_a_failure_before_the_fault_is_not_its_detection(tmp_path: Path) -> None:
    failover = Failover([])
    failover.drained, failover.whole_s = False, None
    failover.others += [
        (5.0, Action.JOB_FAILING, THROWN),
        (9.0, Action.JOB_RUNNING, {"job": "j"}),
        (21.5, Action.FAULT_HEALED, {"step": 0}),
    ]

    result = failover.judged(tmp_path, "region")

    assert result.outcome == Outcome.UNDECIDED
    assert "the record ends 1.5 s after the fault" in result.summary, result.summary


def test_an_interruption_after_the_failover_changes_nothing(tmp_path: Path) -> None:
    """The job failed and ran again, without the restart that was predicted."""
    failover = Failover([])
    failover.drained = False
    failover.failures.append((21.0, THROWN))

    result = failover.judged(tmp_path, "task")

    assert result.outcome == Outcome.VIOLATED, result.summary


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ([], "; the failure was never detected"),
        (
            [
                (5.0, Action.FAULT_HEALED),
                (9.0, Action.JOB_FAILING),
                (9.0, Action.JOB_RESTARTING),
                (9.5, Action.JOB_RUNNING),
            ],
            "; the failure was never detected",
        ),
        ([(23.0, Action.JOB_FAILING), (26.0, Action.FAULT_HEALED)], "no failover"),
        ([(23.0, Action.JOB_RESTARTING), (26.0, Action.FAULT_HEALED)], "no failover"),
    ],
)
def test_later_events_show_whether_a_failure_was_detected(
    tmp_path: Path, others: list[tuple[float, Action]], message: str
) -> None:
    failover = Failover([])
    failover.others += [
        (at_s, action, {"step": 1, "cause": "lost", "task": "c"}) for at_s, action in others
    ]

    result = failover.judged(tmp_path, "task")

    assert result.outcome == Outcome.VIOLATED
    assert result.summary.endswith(message), result.summary


@pytest.mark.parametrize(
    ("whole_s", "others"),
    [
        (22.0, []),
        (25.0, [(30.0, Action.JOB_RESTARTING)]),
        (25.0, [(30.0, Action.JOB_FAILING)]),
        (None, [(3.0, Action.JOB_RUNNING)]),
    ],
)
def test_a_job_that_has_not_run_completely_since_may_restart_more(
    tmp_path: Path, whole_s: float | None, others: list[tuple[float, Action]]
) -> None:
    """A full run before the first observed restart proves nothing either."""
    failover = Failover([("c", 0)], regions=SLICES)
    failover.whole_s = whole_s
    failover.others += [(at_s, action, {"cause": "lost", "task": "c"}) for at_s, action in others]

    result = failover.judged(tmp_path, "region")

    assert result.outcome == Outcome.UNDECIDED
    assert finding_places(result) == {("predicted, not restarted", "Source: input (0)")}


@pytest.mark.parametrize(
    ("until_s", "outcome"),
    [(21, Outcome.VIOLATED), (19, Outcome.UNDECIDED), (20, Outcome.UNDECIDED)],
)
def test_one_sample_after_the_fault_proves_that_tasks_were_sampled(
    tmp_path: Path, until_s: int, outcome: Outcome
) -> None:
    failover = Failover([])
    failover.whole_s = None
    seen = [at_s for at_s in (17, 18, 19, 20, 21) if at_s <= until_s]
    failover.running = {place: [(at_s, at_s * 1000.0) for at_s in seen] for place in ALL}
    assert failover.judged(tmp_path, "task").outcome == outcome


@pytest.mark.parametrize(
    ("running_s", "outcome"), [(EFFECT_S + 0.1, Outcome.VIOLATED), (EFFECT_S, Outcome.UNDECIDED)]
)
def test_one_event_after_the_fault_proves_that_tasks_were_observed(
    running_s: float, outcome: Outcome, tmp_path: Path
) -> None:
    failover = Failover([])
    failover.whole_s = running_s
    failover.running.clear()
    assert failover.judged(tmp_path, "job").outcome == outcome


def test_a_predicted_subtask_without_events_is_named_too(tmp_path: Path) -> None:
    region = [["c", 0], ["c", 2], ["s", 1]]
    failover = Failover([("c", 0)], regions=[region, [["c", 1]], [["s", 0]]])

    result = failover.judged(tmp_path, "region")

    assert result.outcome == Outcome.VIOLATED
    assert [(each.what, each.where) for each in result.findings] == [
        ("predicted, not restarted", "c (2)"),
        ("predicted, not restarted", "Source: input (1)"),
    ]


def test_a_restart_counts_from_when_the_fault_was_called(tmp_path: Path) -> None:
    """The engine may be faster than the verification of the effect."""
    failover = Failover([("c", 0)])
    failover.fault["seen_ns"] = int((AGAIN_S + 0.5) * 1e9)
    assert failover.judged(tmp_path, "task").outcome == Outcome.HELD


def test_a_fault_that_ends_no_task_beside_one_that_does_predicts_nothing(tmp_path: Path) -> None:
    failover = Failover([("c", 0)])
    slow = {"step": 1, "fault": "cpu_limit", "nodes": ["tm-4"], "seen_ns": int(21e9)}
    failover.others.append((21.0, Action.FAULT_IN_EFFECT, slow))
    assert failover.judged(tmp_path, "task").outcome == Outcome.HELD


def test_a_restart_by_a_fault_that_ends_no_task_is_judged_too(tmp_path: Path) -> None:
    assert Failover([("c", 0)], fault="cpu_limit").judged(tmp_path, "task").outcome == Outcome.HELD


def test_a_failure_of_an_unknown_task_is_no_global_failure(tmp_path: Path) -> None:
    failover = Failover([("c", 0)])
    failover.failures.append((23.0, {"job": "j", "cause": "lost"}))
    assert failover.judged(tmp_path, "task").counts["global_failures"] == 0


def test_a_global_failure_is_expected_where_the_whole_job_restarts(tmp_path: Path) -> None:
    failover = Failover(ALL, regions=WHOLE)
    failover.failures.append((23.0, {"job": "j", "cause": "Checkpoint expired", "task": None}))

    result = failover.judged(tmp_path, "job")

    assert (result.outcome, result.counts["global_failures"]) == (Outcome.HELD, 1)
    assert "global failures" not in result.summary


def _no_fault(failover: Failover) -> None:
    failover.fault = {}


def _no_graph(failover: Failover) -> None:
    del failover.graph["regions"]


def _idle_node(failover: Failover) -> None:
    failover.fault["nodes"] = [SPARE, "tm-6"]


def _a_link(failover: Failover) -> None:
    failover.fault |= {"fault": "slow_link", "nodes": ["sink"]}
    failover.tasks.clear()


def _a_slow_node(failover: Failover) -> None:
    failover.fault |= {"fault": "cpu_limit"}
    failover.tasks.clear()
    failover.running.clear()


def _never_whole(failover: Failover) -> None:
    failover.whole_s = None


def _lost_for_good(failover: Failover) -> None:
    failover.others.append((30, Action.JOB_ENDED, {"job": "j", "state": "LOST"}))


def _never_running(failover: Failover) -> None:
    again_s, task = failover.tasks[0]
    failover.tasks[0] = (again_s, {**task, "state": "INITIALIZING"})


def _failed_for_good(failover: Failover) -> None:
    failover.tasks = [(EFFECT_S + 1, failover.task(("c", 0), state="FAILED"))]


def _survivor_failed(failover: Failover) -> None:
    failed = {"job": "j", "cause": "lost", "task": "Source: input (2/2) - execution #0"}
    failover.failures.append((23.0, failed))


def _whole_job_failed(failover: Failover) -> None:
    failover.failures.append((23.0, {"job": "j", "cause": "Checkpoint expired", "task": None}))


def _unknown_task_failed(failover: Failover) -> None:
    failed = {"cause": "lost", "task": "Count -> Sink[7] (2/2)", "failed_ms": 1}
    failover.failures.append((EFFECT_S + 1, failed))


def _failed(task: str, failover: Failover) -> None:
    failover.failures.append((EFFECT_S + 1, {"cause": "lost", "task": task, "failed_ms": 1}))


def _restarts_counted(failover: Failover) -> None:
    failover.others.append((EFFECT_S + 3, Action.JOB_RESTARTING, {"restart": 2}))


def _restart_numbered(number: int, failover: Failover) -> None:
    failover.others.append((EFFECT_S + 1, Action.JOB_RESTARTING, {"restart": number}))


def _attempts_skipped(failover: Failover, attempt: int = 2) -> None:
    """With the one restart that was recorded."""
    failover.tasks[0][1]["attempt"] = attempt
    _restart_numbered(1, failover)


def _region_of_two(failover: Failover) -> None:
    failover.graph["regions"] = [*SINGLE, [["s", 1]]]


def _wider_vertex(failover: Failover) -> None:
    failover.graph["vertices"][0]["parallelism"] = 3


def _without_vertices(failover: Failover) -> None:
    failover.graph["vertices"] = []


def _another_subtask(failover: Failover) -> None:
    failover.tasks.append((25.0, {**failover.task(("s", 1)), "subtask": 7}))


def _deployed_before(failover: Failover, before_s: float = 1.1) -> None:
    """By their fastest observation, the first attempts were deployed at 2 s."""
    failover.tasks[0][1]["start_ms"] = STARTED_MS + round((EFFECT_S - 2 - before_s) * 1000)


def _survivor_failed_and_ran(failover: Failover) -> None:
    for at_s, state in ((23.5, "FAILED"), (24.5, "RUNNING")):
        failover.tasks.append((at_s, failover.task(("s", 1), state=state)))


def _survivor_initializes(failover: Failover) -> None:
    failover.tasks.append((23.5, failover.task(("s", 1), state="INITIALIZING")))


def _survivor_created(failover: Failover) -> None:
    failover.tasks.append((23.5, failover.task(("s", 1), state="CREATED", start_ms=-1, node="")))


def _not_sampled_since(failover: Failover, last_s: float = 23.9) -> None:
    failover.running[("s", 1)] = [e for e in failover.running[("s", 1)] if e[0] <= last_s]


def _not_sampled_since_failure(failover: Failover) -> None:
    failover.failures.append((24.5, {"cause": "lost", "task": "Count -> Sink (1/2)"}))
    _not_sampled_since(failover, 24.4)


def _not_observed(failover: Failover) -> None:
    failover.tasks.clear()
    failover.running.clear()
    failover.whole_s = None


@pytest.mark.parametrize(
    ("remove_evidence", "why"),
    [
        (_no_fault, "no fault took effect"),
        (_no_graph, "the job's graph was not seen"),
        (_idle_node, "no subtask is known to have been affected on tm-5, tm-6"),
        (_a_link, "no fault was one that ends tasks"),
        (_a_slow_node, "no fault was one that ends tasks"),
        (_never_whole, "not every task was seen to run again"),
        (_lost_for_good, "not every task was seen to run again"),
        (_not_observed, "were not observed"),
        (_never_running, "Count -> Sink (0) was not seen to run again"),
        (_failed_for_good, "Count -> Sink (0) was not seen to run again"),
        (_survivor_failed, "Source: input (1) is recorded as failed, and not as restarted"),
        (_whole_job_failed, "a global failure is recorded, which restarts every subtask"),
        (_unknown_task_failed, "a failure of Count -> Sink[7] is recorded, which is no task of"),
        *(
            (partial(_failed, task), f"a failure of the task {task!r} is recorded, which is no")
            for task in (
                " ",
                "Source: input",
                "Source: input (3/2)",
                "Source: input (0/2) - execution #0",
                "Source: input (2/2) - execution #0 and more",
            )
        ),
        (_region_of_two, "the job's graph has s (1) in 2 regions"),
        (_wider_vertex, "the job's graph has a parallelism of 3 for s, and 2 subtasks in its"),
        (_without_vertices, "the job's graph has no vertex "),
        (_another_subtask, "Source: input (7) was seen, which is no subtask of the job's graph"),
        (
            _deployed_before,
            "Count -> Sink (0) is recorded as deployed again 1.1 s before the fault",
        ),
        (_restarts_counted, "2 restarts were counted by 23.0 s, 0 had been observed before"),
        (partial(_restart_numbered, 0), "the restart at 21.0 s is recorded as number 0"),
        (partial(_restart_numbered, -3), "the restart at 21.0 s is recorded as number -3"),
        (
            _attempts_skipped,
            "Count -> Sink (0) is recorded in attempt 0 and then in attempt 2, and the job with 1 "
            "restarts",
        ),
        (_survivor_failed_and_ran, "Source: input (1) is recorded as FAILED, and then as RUNNING"),
        (_survivor_initializes, "Source: input (1) is recorded as RUNNING, and then as INITIALIZ"),
        (_survivor_created, "Source: input (1) is recorded as RUNNING, and then as CREATED"),
        (_not_sampled_since, "not sampled after the last restart, the first: Source: input (1)"),
        (_not_sampled_since_failure, "not sampled after the last restart, the first: Source: inp"),
    ],
)
def test_without_evidence_there_is_no_verdict(
    remove_evidence: Any, why: str, tmp_path: Path
) -> None:
    failover = Failover([("c", 0)])
    assert failover.judged(tmp_path, "task").outcome == Outcome.HELD

    failover.running[("c", 0)] = failover._samples(restarted=False)
    remove_evidence(failover)
    result = failover.judged(tmp_path, "task")

    assert result.outcome == Outcome.UNDECIDED, result
    assert why in result.summary


def test_a_survivor_that_finished_has_no_later_samples(tmp_path: Path) -> None:
    failover = Failover([("c", 0)])
    failover.tasks.append((23.0, failover.task(("s", 1), state="FINISHED")))
    failover.running[("s", 1)] = [each for each in failover.running[("s", 1)] if each[0] < 23]
    assert failover.judged(tmp_path, "task").outcome == Outcome.HELD


def _failed_twice(failover: Failover) -> None:
    for at_s in (21.0, 21.1):
        failed = {"job": "j", "cause": "lost", "task": "Count -> Sink (1/2)"}
        failover.failures.append((at_s, failed))


def _restarted_later(failover: Failover) -> None:
    """A poll reads the job before its tasks, so the restart of an attempt may be seen after it."""
    failover.others += [
        (AGAIN_S + 0.5, Action.JOB_RESTARTING, {"restart": 2}),
        (AGAIN_S + 1, Action.JOB_RUNNING, {}),
    ]


def _without_restarts(failover: Failover) -> None:
    """As with Flink's adaptive scheduler."""
    failover.others.clear()


@pytest.mark.parametrize("recorded", [_failed_twice, _restarted_later, _without_restarts])
def test_an_attempt_that_no_poll_saw_is_held_where_its_restart_may_be_recorded(
    tmp_path: Path, recorded: Callable[[Failover], None]
) -> None:
    failover = Failover([("c", 0)])
    _attempts_skipped(failover)
    assert failover.judged(tmp_path, "task").outcome == Outcome.UNDECIDED

    recorded(failover)
    result = failover.judged(tmp_path, "task")

    assert result.outcome == Outcome.HELD, result


def test_another_jobmanager_numbers_attempts_anew(tmp_path: Path) -> None:
    failover = Failover([("c", 0)])
    failover.placed_attempt = 4
    _attempts_skipped(failover, attempt=1)
    assert failover.judged(tmp_path, "task").outcome == Outcome.HELD


def test_restarts_that_were_all_observed_are_held(tmp_path: Path) -> None:
    """Also those before the fault, of which the first may be from before the record."""
    failover = Failover([("c", 0)])
    for at_s, count in ((3, 4), (23, 5)):
        failover.others.append((at_s, Action.JOB_RESTARTING, {"restart": count}))
    failover.tasks.append((3.5, failover.task(("c", 0), start_ms=STARTED_MS)))
    failover.others.append((3.6, Action.JOB_RUNNING, {}))
    result = failover.judged(tmp_path, "task")
    assert result.outcome == Outcome.HELD, result


def test_histories_without_start_times_and_edges_are_judged_by_attempts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failover = Failover([("s", 0), ("c", 0)], regions=SLICES)
    monkeypatch.setattr(f"{__name__}.STARTED_MS", None)
    failover.graph = {"regions": SLICES}
    failover.fault = {"step": 0, "nodes": ["tm-3"], "seen_ns": int(EFFECT_S * 1e9), "evidence": {}}
    failover.running.clear()
    for _, value in failover.tasks:
        del value["start_ms"]

    result = failover.judged(tmp_path, "region")

    assert result.outcome == Outcome.HELD
    assert result.counts["survivors_watched"] == 0


def test_a_node_of_null_is_no_other_node(tmp_path: Path) -> None:
    failover = Failover([("c", 0)])
    failover.tasks.append((25.0, failover.task(("s", 1), node=None)))
    assert failover.judged(tmp_path, "task").outcome == Outcome.HELD


@pytest.mark.parametrize("added", [[["c", 2]], [["s", 2], ["c", 2]]])
def test_a_subtask_of_the_graph_not_seen_before_the_fault_may_have_restarted(
    added: list[list[Any]], tmp_path: Path
) -> None:
    failover = Failover([("c", 0)], regions=[*SINGLE, added])

    result = failover.judged(tmp_path, "region")

    assert result.outcome == Outcome.UNDECIDED
    assert f"{len(added)} subtasks of the job were not seen before the fault" in result.summary
    failover.tasks.append((25.0, failover.task(("s", 1), attempt=1)))
    assert failover.judged(tmp_path, "region").outcome == Outcome.VIOLATED


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"start_ms": -1, "state": "SCHEDULED"},  # it is not deployed yet
        {"start_ms": None},
    ],
)
def test_an_attempt_is_deployed_after_the_fault_within_the_tolerance_of_clocks(
    changed: dict[str, Any], tmp_path: Path
) -> None:
    failover = Failover([("c", 0)])
    _deployed_before(failover, before_s=0.9)
    failover.tasks.insert(0, (23.0, {**failover.tasks[0][1], **changed}))
    assert failover.judged(tmp_path, "task").outcome == Outcome.HELD


def test_where_a_fault_moved_the_clocks_no_attempt_shows_when_it_was_deployed(
    tmp_path: Path,
) -> None:
    failover = Failover([("c", 0)])
    _deployed_before(failover)
    failover.others.append((5, Action.FAULT_CALLED, {"step": 1, "fault": "clock_skew"}))
    assert failover.judged(tmp_path, "task").outcome == Outcome.HELD


def test_a_job_that_restarted_as_a_whole_may_have_other_subtasks(tmp_path: Path) -> None:
    failover = Failover(ALL, regions=WHOLE)
    _another_subtask(failover)
    assert failover.judged(tmp_path, "job").outcome == Outcome.HELD


@pytest.mark.parametrize("places", [[("s", 1)], ALL])
def test_a_survivor_without_later_samples_may_have_restarted(
    places: list[Subtask], tmp_path: Path
) -> None:
    failover = Failover([("c", 0)])
    for place in places:
        failover.running[place] = [each for each in failover.running[place] if each[0] <= EFFECT_S]

    result = failover.judged(tmp_path, "task")

    assert result.outcome == Outcome.UNDECIDED
    assert "others were not sampled after the fault" in result.summary
    assert failover.judged(tmp_path, "job").outcome == Outcome.VIOLATED


@pytest.mark.parametrize("places", [[("s", 1)], ALL])
def test_a_survivor_without_any_sample_may_have_restarted(
    places: list[Subtask], tmp_path: Path
) -> None:
    """As in a record whose samples are lost: without rows, or without those of a task."""
    failover = Failover([("c", 0)])
    for place in places:
        failover.running[place] = []

    result = failover.judged(tmp_path, "task")

    assert result.outcome == Outcome.UNDECIDED
    assert "others were not sampled after the fault" in result.summary
    assert failover.judged(tmp_path, "job").outcome == Outcome.VIOLATED


@pytest.mark.parametrize("node", [None, ""])
@pytest.mark.parametrize(
    ("restarted", "expect", "outcome"),
    [
        ([("c", 0)], "task", Outcome.UNDECIDED),
        ([("c", 0), ("c", 1)], "task", Outcome.UNDECIDED),
        ([("c", 0), ("s", 0)], "task", Outcome.VIOLATED),
        ([("c", 1)], "task", Outcome.VIOLATED),
        (ALL, "job", Outcome.HELD),
        ([("c", 0)], "job", Outcome.VIOLATED),
    ],
)
def test_a_subtask_of_which_no_node_is_recorded_may_have_been_affected(
    restarted: list[Subtask],
    expect: str,
    outcome: Outcome,
    node: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The counter 1 may have run on the killed node."""
    monkeypatch.setitem(PLACES, ("c", 1), node)
    result = Failover(restarted).judged(tmp_path, expect)
    assert result.outcome == outcome, result.summary
    unknown = "the nodes of 1 subtasks are not recorded" in result.summary
    assert unknown == (outcome == Outcome.UNDECIDED)
