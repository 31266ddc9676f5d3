"""Failover scope with several faults: each is judged separately, overlapping ones together.

Two pipelines of a source and a sink are a region each, and run on a node each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.failover_scope import FailoverScope
from streamquake.harness.verdict.evidence.failovers import failovers
from streamquake.reports.record.event import Action
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.histories import Story, case

Subtask = tuple[str, int]
FIRST: tuple[Subtask, ...] = (("a", 0), ("b", 0))
OTHER: tuple[Subtask, ...] = (("a", 1), ("b", 1))
ALL = FIRST + OTHER
GRAPH: dict[str, Any] = {
    "vertices": [{"id": vertex, "name": vertex, "parallelism": 2} for vertex in "ab"],
    "edges": [{"from": "a", "to": "b", "ship": "FORWARD"}],
    "regions": [[list(place) for place in region] for region in (FIRST, OTHER)],
}
END_S = 60


class Failovers(Story):
    """A history of a job that runs from 1 s on; every task is sampled to the end."""

    def __init__(self) -> None:
        super().__init__()
        self._attempts = dict.fromkeys(ALL, 0)
        self._nodes = {place: f"tm-{place[1]}" for place in ALL}
        self._begun_s: dict[Subtask, list[float]] = {place: [1.0] for place in ALL}
        self._job: dict[str, str] = {}
        self.at(0.5, Action.JOB_SUBMITTED, **GRAPH)
        self.run(1, ALL)

    def run(self, at_s: float, places: Collection[Subtask]) -> Failovers:
        """These subtasks run in their current attempt, and then the whole job runs."""
        for place in places:
            self.at(
                at_s,
                Action.TASK_CHANGED,
                vertex=place[0],
                vertex_name=place[0],
                subtask=place[1],
                attempt=self._attempts[place],
                node=self._nodes[place],
                state="RUNNING",
                start_ms=round(at_s * 1000),
                **self._job,
            )
        self.at(at_s, Action.JOB_RUNNING)
        return self

    def injected(self, at_s: float, step: int, node: str, fault: str = "kill") -> Failovers:
        called_ns = round(at_s * 1e9)
        self.at(
            at_s + 0.1,
            Action.FAULT_IN_EFFECT,
            step=step,
            fault=fault,
            nodes=[node],
            called_ns=called_ns,
            seen_ns=called_ns + 10**8,
        )
        return self

    def healed(self, at_s: float, step: int) -> Failovers:
        self.at(at_s, Action.FAULT_HEALED, step=step)
        return self

    def failed(self, at_s: float, task: str = "") -> Failovers:
        self.at(at_s, Action.JOB_FAILING, cause="lost", task=task)
        self.at(at_s, Action.JOB_RESTARTING, restart=1)
        return self

    def restarted(
        self, at_s: float, places: Collection[Subtask], moved: Mapping[Subtask, str] | None = None
    ) -> Failovers:
        self._nodes |= moved or {}
        for place in places:
            self._attempts[place] += 1
            self._begun_s[place].append(at_s)
        return self.run(at_s, places)

    def widened(self, at_s: float, width: int) -> Failovers:
        """All subtasks run in a new attempt, `width` of each vertex."""
        places = [(vertex, number) for vertex in "ab" for number in range(width)]
        for place in places:
            self._attempts.setdefault(place, -1)
            self._nodes.setdefault(place, "tm-2")
            self._begun_s.setdefault(place, [1.0])
        return self.restarted(at_s, places)

    def submitted(self, at_s: float, width: int) -> Failovers:
        """The job is replaced by another one, whose tasks have one region."""
        self._job = {"job": f"of {at_s} s"}
        region = [[vertex, number] for vertex in "ab" for number in range(width)]
        vertices = [{"id": vertex, "parallelism": width} for vertex in "ab"]
        self.at(at_s, Action.JOB_SUBMITTED, vertices=vertices, regions=[region], **self._job)
        return self

    def judged(
        self,
        folder: Path,
        expect: Any = "region",
        until_s: int = END_S,
        late: Mapping[int, float] | None = None,
    ) -> CheckResult:
        """The running times are sampled until a moment. A sample recorded some seconds late delays
        the next one."""
        self.at(END_S, Action.DRAINED)._events.sort(key=lambda event: event.at_ns)
        created = case(self, folder, faults=2)
        metrics = Metrics(created.metrics)
        for (vertex, subtask), started in self._begun_s.items():
            for at_s in range(2, until_s):
                since_s = max(each for each in started if each <= at_s)
                if any(each < at_s < each + by_s for each, by_s in (late or {}).items()):
                    continue
                noted_ns = round((at_s + (late or {}).get(at_s, 0)) * 1e9)
                metrics.add(
                    noted_ns, "subtask_running_ms", f"{vertex}/{subtask}", (at_s - since_s) * 1000
                )
        metrics.flush()
        return FailoverScope(expect=expect).check(created)


def one_after_the_other(first: Collection[Subtask], second: Collection[Subtask]) -> Failovers:
    """Both nodes are killed, the second after the job recovered; these tasks restart."""
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, first).healed(14, 0)
    recorded.injected(30, 1, "tm-1").healed(34, 1)
    return recorded.failed(31).restarted(33, second) if second else recorded


@pytest.mark.parametrize(
    ("first", "second", "expect", "outcome", "message"),
    [
        (FIRST, OTHER, "region", Outcome.HELD, "kill (faults[1]): 2 of 4"),
        (ALL, ALL, "job", Outcome.HELD, "kill (faults[1]): 4 of 4"),
        (ALL, OTHER, "region", Outcome.VIOLATED, "kill (faults[0]): 4 of 4"),
        (FIRST, ALL, "region", Outcome.VIOLATED, "kill (faults[1]): 4 of 4"),
        (ALL, (), "region", Outcome.VIOLATED, "kill (faults[0]): 4 of 4"),
        (ALL, (), "job", Outcome.VIOLATED, "kill (faults[1]): 0 of 4"),
        (FIRST, (), "region", Outcome.VIOLATED, "kill (faults[1]): 0 of 4"),
        (ALL, OTHER, "job", Outcome.VIOLATED, "kill (faults[1]): 2 of 4"),
    ],
)
def test_each_of_two_kills_is_judged_by_the_restarts_after_it(
    first: Collection[Subtask],
    second: Collection[Subtask],
    expect: str,
    outcome: Outcome,
    message: str,
    tmp_path: Path,
) -> None:
    result = one_after_the_other(first, second).judged(tmp_path, expect)

    assert result.outcome == outcome, result
    assert message in result.summary


def test_the_widest_of_several_held_failovers_gives_the_figures(tmp_path: Path) -> None:
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, FIRST).healed(14, 0)
    recorded.injected(20, 1, "tm-0", "throw_in_task").failed(20.5, "a (1/2)")
    recorded.restarted(21, FIRST[:1]).healed(22, 1)

    result = recorded.judged(tmp_path, "task")

    assert (result.outcome, result.counts["restarted"]) == (Outcome.HELD, 2)
    assert "throw_in_task (faults[1]): 1 of 4" in result.summary


def crashed_again(at_s: float, healed_s: float = 14) -> Failovers:
    """A kill whose region restarts; much later, the other region fails by itself. The end of a task
    is observed before its failure."""
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, FIRST)
    recorded.healed(healed_s, 0).restarted(at_s, OTHER).failed(at_s + 1)
    return recorded.run(at_s + 3, ())


@pytest.mark.parametrize(
    ("recorded", "outcome"),
    [
        (crashed_again(44), Outcome.HELD),
        (crashed_again(42), Outcome.VIOLATED),  # soon after the heal
        (crashed_again(44, healed_s=30), Outcome.VIOLATED),
        (crashed_again(30).failed(62).run(64, ()), Outcome.VIOLATED),
        (crashed_again(44).injected(56, 1, "tm-1").failed(57).restarted(58, OTHER), Outcome.HELD),
    ],
)
def test_a_failure_long_after_the_failover_is_not_attributed_to_its_fault(
    recorded: Failovers, outcome: Outcome, tmp_path: Path
) -> None:
    result = recorded.judged(tmp_path)

    assert result.outcome == outcome, result.summary


@pytest.mark.parametrize(
    ("node", "ended_s", "fault", "expect", "outcome"),
    [
        ("tm-0", 15, "kill", "region", "undecided"),
        ("tm-0", 9, "kill", "region", "violated"),
        ("tm-0", 15, "power_off", "region", "violated"),
        ("tm-0", 15, "kill", "job", "undecided"),
        ("hdfs", 15, "kill", "region", "undecided"),
        ("hdfs", 15, "kill", "job", "held"),
        ("tm-1", 9, "kill", "region", "undecided"),
        ("hdfs", 9, "kill", "region", "violated"),
    ],
)
@pytest.mark.parametrize(
    ("action", "fields"),
    [(Action.SANDBOX_DIED, {"exit_code": 137}), (Action.NODE_REVIVED, {"lost_network": True})],
)
def test_a_sandbox_that_no_fault_ended_makes_a_failover_undecided(
    action: Action,
    fields: dict[str, Any],
    node: str,
    ended_s: float,
    fault: str,
    expect: str,
    outcome: str,
    tmp_path: Path,
) -> None:
    """Where no task ran on its node, it explains only restarts that were not predicted. Shortly
    before the fault it explains those of its own node: `OTHER` ran on tm-1. A restart of a node
    without network proves that its sandbox ended."""
    recorded = Failovers().injected(10, 0, "tm-0", fault).failed(11).restarted(13, FIRST)
    recorded.at(ended_s, action, node=node, **fields)

    result = recorded.failed(16).restarted(18, OTHER).healed(19, 0).judged(tmp_path, expect)

    assert str(result.outcome) == outcome, result.summary
    lost = f"the sandbox of {node} ended, which no fault did"
    assert (lost in result.summary) == (outcome == "undecided")


@pytest.mark.parametrize(
    ("action", "node", "exit_code", "outcome", "what"),
    [
        (Action.CONTAINER_DIED, "tm-1", 137, "undecided", "tm-1 was ended by SIGKILL"),
        (Action.CONTAINER_DIED, "jm", 143, "undecided", "jm was ended by SIGTERM"),
        (Action.CONTAINER_OOM, "tm-1", None, "undecided", "tm-1 was out of memory"),
        (Action.CONTAINER_DIED, "tm-1", 1, "violated", ""),  # the failure of tm-0 ended it
        (Action.CONTAINER_DIED, "tm-0", 137, "violated", ""),  # the kill did
        (Action.CONTAINER_OOM, "tm-0", None, "undecided", "tm-0 was out of memory"),
    ],
)
def test_a_node_that_was_ended_from_outside_may_explain_other_restarts(
    action: Action, node: str, exit_code: int | None, outcome: str, what: str, tmp_path: Path
) -> None:
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, FIRST)
    recorded.at(15, action, node=node, exit_code=exit_code).at(15.5, action, node="tm-0")

    result = recorded.failed(16).restarted(18, OTHER).healed(19, 0).judged(tmp_path, "region")

    assert str(result.outcome) == outcome, result.summary
    assert (f"{what}, which no fault did" in result.summary) == bool(what)


@pytest.mark.parametrize(
    ("early", "expect", "fault", "outcome"),
    [
        ((), "region", "kill", "held"),
        (OTHER, "region", "kill", "violated"),
        (OTHER, "task", "kill", "violated"),
        (OTHER, "job", "kill", "held"),
        (OTHER, "region", "slow_link", "undecided"),
    ],
)
def test_a_later_fault_does_not_explain_restarts_from_before_its_call(
    early: Collection[Subtask], expect: str, fault: str, outcome: str, tmp_path: Path
) -> None:
    """A fault that need not end tasks may have ended any."""
    recorded = Failovers().injected(10, 0, "tm-0", fault).failed(11).restarted(11.5, early)
    recorded.failed(11.7).injected(12, 1, "tm-1").failed(13).restarted(16, ALL)

    result = recorded.healed(17, 0).healed(18, 1).judged(tmp_path, expect)

    assert str(result.outcome) == outcome, result.summary
    if outcome == "violated":
        assert {finding.where for finding in result.findings} == {"a (1)", "b (1)"}
        assert "2 restarted before the fault that had to end them" in result.summary


def overlapping(restarted: Collection[Subtask]) -> Failovers:
    """The second node is killed before the job recovered."""
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).injected(12, 1, "tm-1").failed(13)
    return recorded.restarted(16, restarted).healed(17, 0).healed(18, 1)


@pytest.mark.parametrize(("restarted", "outcome"), [(ALL, "held"), (FIRST, "violated")])
def test_a_fault_before_the_recovery_is_judged_with_the_fault_before(
    restarted: Collection[Subtask], outcome: str, tmp_path: Path
) -> None:
    result = overlapping(restarted).judged(tmp_path)

    assert str(result.outcome) == outcome
    assert result.counts["affected"] == 4


@pytest.mark.parametrize(
    ("healed_s", "expect", "outcome"),
    [(14, "region", "undecided"), (35, "region", "held"), (14, "job", "held")],
)
def test_a_fault_that_was_over_before_a_failure_may_not_be_its_cause(
    healed_s: float, expect: str, outcome: str, tmp_path: Path
) -> None:
    recorded = Failovers().injected(10, 0, "tm-0").healed(healed_s, 0).injected(30, 1, "tm-1")

    result = recorded.failed(31).restarted(33, ALL).judged(tmp_path, expect)

    assert str(result.outcome) == outcome, result
    assert ("which of the two" in result.summary) == (outcome == "undecided")


def test_a_fault_that_affected_no_task_is_inconclusive(tmp_path: Path) -> None:
    recorded = Failovers().injected(5, 0, "kafka-1").healed(8, 0)
    recorded.injected(10, 1, "tm-0").failed(11).restarted(13, FIRST).injected(30, 2, "kafka-1")
    result = recorded.judged(tmp_path)
    assert result.outcome == Outcome.HELD
    assert result.summary.startswith("kill (faults[1]): 2 of 4")
    assert result.summary.endswith(
        "kill (faults[0]): it affected no task; kill (faults[2]): it affected no task"
    )

    recorded.failed(31).restarted(33, [("a", 1)])
    assert recorded.judged(tmp_path).outcome == Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("expect", "again", "outcome"),
    [
        ("job", (), "held"),
        ("job", ALL, "held"),
        ("job", FIRST, "undecided"),
        ("region", (), "held"),
        ("region", ALL, "undecided"),
    ],
)
def test_a_fault_that_affected_no_task_may_restart_the_whole_job_as_expected(
    expect: str, again: Collection[Subtask], outcome: str, tmp_path: Path
) -> None:
    """The job failed after the kill of a broker, 20 s after that of a TaskManager."""
    first = ALL if expect == "job" else FIRST
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, first).healed(14, 0)
    recorded.injected(30, 1, "kafka-1")
    if again:
        recorded.failed(31).restarted(33, again)
    result = recorded.healed(34, 1).judged(tmp_path, expect)
    assert str(result.outcome) == outcome, result.summary
    assert ("kill (faults[1]): it affected no task" in result.summary) == (outcome == "held")


def test_a_restart_by_its_running_time_shows_that_a_fault_affected_tasks(tmp_path: Path) -> None:
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, FIRST).healed(14, 0)
    recorded.injected(30, 1, "kafka-1").healed(34, 1)
    recorded._begun_s["a", 1].append(33)
    result = recorded.judged(tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert "no subtask is known to have been affected on kafka-1" in result.summary


def test_a_fault_that_still_acts_may_only_end_tasks_that_ran_on_its_nodes(
    tmp_path: Path,
) -> None:
    """The first kill is not healed: no task runs on its node, so the second kill causes all later
    restarts."""
    away = dict.fromkeys(FIRST, "tm-2")
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, FIRST, moved=away)
    recorded.injected(30, 1, "tm-1").failed(31).restarted(33, ALL)
    assert recorded.judged(tmp_path).outcome == Outcome.VIOLATED

    recorded = Failovers().injected(10, 0, "tm-0", "throw_in_task").failed(10.5, "a (1/2)")
    recorded.restarted(13, FIRST).injected(30, 1, "tm-1").failed(31).restarted(33, ALL)
    assert recorded.judged(tmp_path).outcome == Outcome.HELD


def test_a_failover_is_judged_by_the_running_times_in_its_own_interval(tmp_path: Path) -> None:
    """There are no samples after the second kill."""
    recorded = one_after_the_other(FIRST, OTHER)
    result = recorded.judged(tmp_path, until_s=30)
    assert result.outcome == Outcome.UNDECIDED
    assert "kill (faults[1])" in result.summary
    assert "the running times of 2 others were not sampled" in result.summary


def test_a_failover_that_had_begun_when_the_run_ended_is_undecided(tmp_path: Path) -> None:
    recorded = one_after_the_other(FIRST, ()).failed(31)
    result = recorded.judged(tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert "kill (faults[1])" in result.summary
    assert "not every task was seen to run again" in result.summary


@pytest.mark.parametrize(("first", "outcome"), [(FIRST, "held"), (ALL, "violated")])
def test_late_samples_before_the_next_fault_are_no_restart(
    first: Collection[Subtask], outcome: str, tmp_path: Path
) -> None:
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, first).healed(14, 0)
    recorded.injected(17, 1, "tm-1").failed(18).restarted(20, OTHER).healed(21, 1)
    result = recorded.judged(tmp_path, late={9: 3.5, 13: 3.5, 17: 3.5})
    assert str(result.outcome) == outcome, result


def test_a_restart_that_only_the_running_times_show_completes_a_failover(tmp_path: Path) -> None:
    """Otherwise both faults would be judged together."""
    place, *others = FIRST
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, others).healed(14, 0)
    recorded._begun_s[place].append(13)
    recorded.injected(30, 1, "tm-1").failed(31).restarted(33, OTHER).healed(34, 1)
    result = recorded.judged(tmp_path)
    assert result.outcome == Outcome.HELD, result
    assert "; kill (faults[1]): 2 of 4 subtasks restarted" in result.summary


@pytest.mark.parametrize(
    ("fault", "node", "healed_s", "restarted", "outcome"),
    [
        ("partition", "tm-0<->jm-1", 50, ALL, "held"),
        ("partition", "tm-0<->jm-1", 25, ALL, "undecided"),
        ("partition", "tm-0<->jm-1", 50, OTHER, "held"),
        ("partition_link", "sink", 50, ALL, "undecided"),
        ("partition_link", "sink", 25, ALL, "undecided"),
        ("partition_link", "sink", 50, OTHER, "held"),
        ("partition_link", "sink", 50, FIRST, "violated"),
        ("memory_limit", "tm-0", 50, ALL, "undecided"),
    ],
)
def test_a_fault_that_still_acts_may_have_ended_more_than_the_next_one(
    fault: str,
    node: str,
    healed_s: float,
    restarted: Collection[Subtask],
    outcome: str,
    tmp_path: Path,
) -> None:
    recorded = Failovers().injected(20, 0, node, fault).injected(30, 1, "tm-1").healed(healed_s, 0)
    result = recorded.failed(31).restarted(33, restarted).judged(tmp_path)
    assert str(result.outcome) == outcome, result
    assert ("not known which of these restarts" in result.summary) == (outcome == "undecided")


@pytest.mark.parametrize(("healed_s", "outcome"), [(10, "violated"), (10.1, "undecided")])
@pytest.mark.parametrize(("fault", "node"), [("slow_link", "sink"), ("kill", "jm-1")])
def test_a_fault_that_is_over_for_a_while_ended_no_tasks(
    fault: str, node: str, healed_s: float, outcome: str, tmp_path: Path
) -> None:
    """It was healed 30 s, or a little less, before the next one was called."""
    recorded = Failovers().injected(5, 0, node, fault).healed(healed_s, 0)
    recorded.injected(40, 1, "tm-1").failed(41).restarted(43, ALL).healed(44, 1)
    assert str(recorded.judged(tmp_path).outcome) == outcome


def test_every_fault_that_may_have_caused_a_restart_is_named(tmp_path: Path) -> None:
    recorded = Failovers().injected(10, 0, "sink", "partition_link")
    recorded.injected(20, 1, "tm-0", "memory_limit").injected(30, 2, "tm-1")
    recorded.healed(50, 0).healed(50, 1).failed(31).restarted(33, ALL)
    assert recorded.judged(tmp_path).summary.endswith(
        "not known which of these restarts partition_link (faults[0]), memory_limit (faults[1]) "
        "caused"
    )


@pytest.mark.parametrize(("called_s", "outcome"), [(12, "undecided"), (14, "violated")])
def test_a_fault_does_not_cause_restarts_before_its_call(
    called_s: float, outcome: str, tmp_path: Path
) -> None:
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, FIRST + OTHER[:1])
    recorded.failed(13.5).injected(called_s, 1, "sink", "slow_link").restarted(17, FIRST)
    result = recorded.judged(tmp_path)
    assert str(result.outcome) == outcome, result


@pytest.mark.parametrize(
    ("fault", "node", "outcome"),
    [
        ("slow_link", "sink", "held"),
        ("memory_limit", "tm-0", "undecided"),
        ("kill", "kafka-1", "undecided"),
    ],
)
def test_only_faults_that_may_end_tasks_make_the_cause_ambiguous(
    fault: str, node: str, outcome: str, tmp_path: Path
) -> None:
    recorded = Failovers().injected(20, 0, "tm-0").healed(25, 0).injected(26, 1, node, fault)
    result = recorded.healed(28, 1).failed(31).restarted(33, FIRST).judged(tmp_path)
    assert str(result.outcome) == outcome, result


def places(width: int) -> list[Subtask]:
    return [(vertex, number) for vertex in "ab" for number in range(width)]


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("expect", ["region", "job"])
@pytest.mark.parametrize(("but", "outcome"), [(0, "held"), (1, "violated")])
def test_after_a_replacement_the_graph_and_tasks_of_the_newest_job_count(
    width: int, expect: str, but: int, outcome: str, tmp_path: Path
) -> None:
    recorded = Failovers().injected(10, 0, "the job", "restart_job").submitted(11, width)
    recorded.widened(13, width).healed(14, 0)
    recorded.injected(30, 1, "tm-0").failed(31).restarted(33, places(width)[but:]).healed(34, 1)
    result = recorded.judged(tmp_path, expect)
    assert str(result.outcome) == outcome, result
    assert "restart_job (faults[0]): the job was ordered to restart" in result.summary or but


@pytest.mark.parametrize("healed", [False, True])
@pytest.mark.parametrize(
    ("width", "expect", "but", "outcome"),
    [
        (3, "job", 0, "held"),
        (1, "job", 0, "held"),
        (3, "region", 0, "undecided"),
        (1, "region", 0, "undecided"),
        (3, "job", 1, "undecided"),
        (2, "job", 0, "held"),
        (2, "job", 1, "violated"),
    ],
)
def test_the_graph_of_a_rescaled_job_does_not_predict_restarts(
    width: int, expect: str, but: int, outcome: str, healed: bool, tmp_path: Path
) -> None:
    """The heal alone restarts nothing here."""
    recorded = Failovers().injected(10, 0, "the job", "rescale").widened(13, width)
    if healed:
        recorded.at(14, Action.HEAL_CALLED, step=0)
        recorded.healed(15, 0)
    recorded.injected(30, 1, "tm-0").failed(31).restarted(33, places(width)[but:]).healed(34, 1)
    result = recorded.judged(tmp_path, expect)
    assert str(result.outcome) == outcome, result


@pytest.mark.parametrize(("fault", "outcome"), [("rescale", "undecided"), ("kill", "violated")])
def test_a_kill_before_a_rescaled_job_recovered_ignores_removed_subtasks(
    fault: str, outcome: str, tmp_path: Path
) -> None:
    recorded = Failovers().injected(10, 0, "tm-0", fault).injected(12, 1, "tm-0").failed(12.5)
    recorded.widened(14, 1)
    result = recorded.judged(tmp_path, "job")
    assert str(result.outcome) == outcome, result


@pytest.mark.parametrize(("calls", "outcome"), [(True, "undecided"), (False, "violated")])
def test_a_rescale_healed_during_a_failover_removes_subtasks(
    calls: bool, outcome: str, tmp_path: Path
) -> None:
    recorded = Failovers().injected(10, 0, "the job", "rescale").widened(13, 2)
    recorded.injected(30, 1, "tm-0").failed(31)
    if calls:
        recorded.at(32, Action.HEAL_CALLED, step=0)
    result = recorded.widened(33, 1).judged(tmp_path, "job")
    assert str(result.outcome) == outcome, result


def test_a_fault_before_the_job_was_submitted_is_undecided(tmp_path: Path) -> None:
    recorded = Failovers().injected(0.1, 0, "tm-0").injected(0.2, 1, "kafka-1")
    result = recorded.failed(0.3).judged(tmp_path)
    assert result.outcome == Outcome.UNDECIDED


def test_the_heal_of_an_earlier_attempt_does_not_count_for_a_later_one() -> None:
    recorded = (
        Failovers()
        .injected(5, 0, "tm-0")
        .healed(7, 0)
        .injected(10, 0, "tm-0")
        .injected(30, 1, "tm-1")
    )
    *_, last = failovers(recorded.history(), lambda _: True)
    assert [fault.start_ns for fault in last.active_faults] == [10 * 10**9]


@pytest.mark.parametrize(("lost_s", "outcome"), [(40, "undecided"), (39.9, "violated")])
def test_a_sandbox_lost_long_before_the_fault_explains_nothing(
    lost_s: float, outcome: str, tmp_path: Path
) -> None:
    recorded = Failovers().injected(70, 0, "tm-0").failed(71).restarted(73, FIRST)
    recorded.at(lost_s, Action.SANDBOX_DIED, node="tm-1", exit_code=137)

    result = recorded.failed(76).restarted(78, OTHER).healed(79, 0).judged(tmp_path, "region")

    assert str(result.outcome) == outcome, result.summary


@pytest.mark.parametrize(
    ("back_s", "outcome"), [(9.5, "held"), (12.0, "undecided"), (None, "undecided")]
)
def test_a_job_that_was_down_before_the_fault_shows_no_failover(
    back_s: float | None, outcome: str, tmp_path: Path
) -> None:
    """The restarts after the call may be of the failure before it."""
    recorded = Failovers().failed(8)
    if back_s is not None:
        recorded.run(back_s, ())
    recorded.injected(10, 0, "tm-0").failed(11).restarted(13, FIRST)

    result = recorded.healed(19, 0).judged(tmp_path, "region")

    assert str(result.outcome) == outcome, result.summary
    message = "the job had failed by itself at 8.0 s and did not run when the fault was called"
    assert (message in result.summary) == (outcome == "undecided")


@pytest.mark.parametrize("node", [None, "kafka/broker-1", "tm-1"])
def test_a_sandbox_that_ended_long_after_the_failover_explains_no_restart_of_it(
    tmp_path: Path, node: str | None
) -> None:
    """The kill of tm-0 restarts four subtasks at 13 s instead of two; a sandbox ends at 55 s."""
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, ALL).healed(14, 0)
    if node is not None:
        recorded.at(55, Action.SANDBOX_DIED, node=node, exit_code=137)
    result = recorded.judged(tmp_path, "region")
    assert result.outcome == Outcome.VIOLATED, result.summary


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("node", [None, "kafka/broker-1", "tm-1"])
def test_a_sandbox_that_ended_long_after_the_failover_unsettles_no_held_one(
    tmp_path: Path, node: str | None, fails: bool
) -> None:
    """As predicted; the sandbox ends at 55 s, and its failure at 57 s, if there is one, is not of
    the fault."""
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, FIRST).healed(14, 0)
    if node is not None:
        recorded.at(55, Action.SANDBOX_DIED, node=node, exit_code=137)
        if fails:
            recorded.failed(57)
    result = recorded.judged(tmp_path, "region")
    assert result.outcome == Outcome.HELD, result.summary


@pytest.mark.parametrize("ended_s", [None, 15])
def test_a_sandbox_may_explain_a_part_of_the_restarts_that_were_not_predicted(
    ended_s: float | None, tmp_path: Path
) -> None:
    """A kill of tm-0 restarts a subtask too many at 13 s, and another one restarts at 18 s."""
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, [*FIRST, ("a", 1)])
    recorded.failed(16).restarted(18, [("b", 1)]).healed(19, 0)
    if ended_s is not None:
        recorded.at(ended_s, Action.SANDBOX_DIED, node="hdfs", exit_code=137)
    result = recorded.judged(tmp_path, "region")
    expected = Outcome.VIOLATED if ended_s is None else Outcome.UNDECIDED
    assert result.outcome == expected, result.summary


@pytest.mark.parametrize(("again", "outcome"), [(True, "undecided"), (False, "held")])
def test_a_sandbox_may_explain_another_restart_of_predicted_subtasks(
    again: bool, outcome: str, tmp_path: Path
) -> None:
    """The region of the killed tm-0 restarts at 13 s, its sandbox ends at 15 s, and the same region
    restarts at 18 s."""
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, FIRST).healed(14, 0)
    recorded.at(15, Action.SANDBOX_DIED, node="tm-0", exit_code=137)
    if again:
        recorded.failed(16).restarted(18, FIRST)
    result = recorded.judged(tmp_path, "region")
    assert str(result.outcome) == outcome, result.summary


@pytest.mark.parametrize("called", [False, True])
def test_restarts_after_the_call_of_a_fault_without_verified_effect(
    tmp_path: Path, called: bool
) -> None:
    """tm-0 is killed at 10 s, and its region runs at 13 s. A second kill, of tm-1, is called at
    20 s and not verified; the region of tm-1 restarts at 23 s."""
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, FIRST).healed(14, 0)
    if called:
        about = {"step": 1, "fault": "kill", "target": "tm-1", "nodes": ["tm-1"]}
        recorded.at(20, Action.FAULT_CALLED, **about)
        recorded.at(30, Action.FAULT_NOT_IN_EFFECT, **about, reason="docker did not answer")
        recorded.failed(21).restarted(23, set(ALL) - set(FIRST))
    result = recorded.judged(tmp_path, "region")
    assert result.outcome != Outcome.VIOLATED, result.summary


@pytest.mark.parametrize(
    ("called_s", "outcome"),
    [
        (1, "undecided"),
        (9.9, "undecided"),
        (10, "undecided"),
        (29.9, "undecided"),
        (30, "violated"),
        (50, "violated"),
    ],
)
def test_a_fault_without_verified_effect_only_unsettles_the_failover_it_may_have_caused(
    called_s: float, outcome: str, tmp_path: Path
) -> None:
    """A kill of tm-0 at 10 s restarts too many subtasks; one of tm-1 at 30 s, as predicted."""
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, ALL).healed(14, 0)
    recorded.injected(30, 1, "tm-1").failed(31).restarted(33, OTHER).healed(34, 1)
    about = {"step": 2, "fault": "pause", "target": "tm-1", "nodes": ["tm-1"]}
    recorded.at(called_s, Action.FAULT_CALLED, **about)
    recorded.at(called_s + 1, Action.FAULT_NOT_IN_EFFECT, **about, reason="it was not seen")
    result = recorded.judged(tmp_path, "region")
    assert str(result.outcome) == outcome, result.summary
    doubt = f"pause was called at {called_s:.1f} s, and its effect not verified"
    assert (doubt in result.summary) == (outcome == "undecided")


def test_a_fault_without_verified_effect_on_other_nodes_caused_nothing_later(
    tmp_path: Path,
) -> None:
    """The region of tm-1 restarts too; the other fault was called before on tm-0."""
    about = {"step": 2, "fault": "pause", "target": "tm-0", "nodes": ["tm-0"]}
    recorded = Failovers().at(8, Action.FAULT_CALLED, **about)
    recorded.at(9, Action.FAULT_NOT_IN_EFFECT, **about, reason="it was not seen")
    assert isinstance(recorded, Failovers)
    recorded.injected(10, 0, "tm-0").failed(11).restarted(13, ALL).healed(14, 0)
    assert recorded.judged(tmp_path).outcome == Outcome.VIOLATED


@pytest.mark.parametrize(
    ("fault", "healed_s", "restarted", "outcome"),
    [
        ("sigstop", 15.5, (), "undecided"),
        ("partition", 15.5, (), "undecided"),
        ("sigstop", 20.9, (), "undecided"),
        ("sigstop", 21.1, (), "violated"),
        ("sigstop", 15.5, FIRST, "held"),
        ("sigstop", 15.5, ALL, "violated"),
        ("kill", 12, (), "violated"),
    ],
)
def test_a_silence_shorter_than_the_time_out_need_not_be_noticed(
    fault: str, healed_s: float, restarted: Collection[Subtask], outcome: str, tmp_path: Path
) -> None:
    """Flink regards a TaskManager as lost 10 s after its last heartbeat, which may be 1 s old."""
    recorded = Failovers().injected(10, 0, "tm-0", fault).healed(healed_s, 0)
    if restarted:
        recorded.failed(12).restarted(14, restarted)
    result = recorded.judged(tmp_path)
    assert str(result.outcome) == outcome, result.summary
    acted = f"{fault} (faults[0]) acted for {healed_s - 10:.1f} s, and a silent node need not"
    assert (acted in result.summary) == (outcome == "undecided")


def test_a_fault_that_ended_early_acted_until_it_was_last_verified(tmp_path: Path) -> None:
    about = {"step": 0, "fault": "sigstop", "nodes": ["tm-0"], "last_seen_ns": int(10.2e9)}
    recorded = Failovers().injected(10, 0, "tm-0", "sigstop")
    recorded.at(30, Action.FAULT_ENDED_EARLY, **about, reason="running")
    result = recorded.healed(40, 0).judged(tmp_path)
    assert result.outcome == Outcome.UNDECIDED, result.summary


def test_a_brief_silence_beside_a_kill_excuses_only_its_own_tasks(tmp_path: Path) -> None:
    """Both nodes' tasks had to restart, and those of the killed node did not."""
    for fault, outcome in (("sigstop", Outcome.UNDECIDED), ("kill", Outcome.VIOLATED)):
        other = {"sigstop": "kill", "kill": "sigstop"}[fault]
        recorded = Failovers().injected(10, 0, "tm-0", fault).injected(11, 1, "tm-1", other)
        recorded.healed(15, 0).healed(15, 1).failed(12).restarted(14, OTHER)
        result = recorded.judged(tmp_path)
        assert result.outcome == outcome, result.summary


def test_a_failure_from_before_the_call_is_not_that_of_the_fault(tmp_path: Path) -> None:
    """The first region fails again at 29 s, by the engine's stamp, which is observed at 30.3 s."""
    recorded = Failovers().injected(10, 0, "tm-0")
    recorded.at(11, Action.JOB_FAILING, cause="lost", task="", failed_ms=11_000)
    recorded.restarted(13, FIRST).healed(14, 0)
    recorded.at(30, Action.FAULT_CALLED, step=1, fault="sigstop", target="tm-1", nodes=["tm-1"])
    recorded.injected(30, 1, "tm-1", "sigstop")
    recorded.at(30.3, Action.JOB_FAILING, cause="lost", task="", failed_ms=29_000)
    recorded.restarted(33, ALL).healed(45, 1)
    result = recorded.judged(tmp_path)
    assert result.outcome == Outcome.UNDECIDED, result.summary
    assert "the job had failed 1.0 s before the call" in result.summary


UNKNOWN = dict.fromkeys(OTHER, "")


@pytest.mark.parametrize(
    ("moved", "message"),
    [
        (UNKNOWN, "no subtask is known to have been affected on tm-1"),
        (dict.fromkeys(OTHER, "tm-2"), "it affected no task"),
    ],
)
def test_a_fault_where_tasks_may_have_run_is_judged(
    moved: Mapping[Subtask, str], message: str, tmp_path: Path
) -> None:
    """After the first kill the second region runs on nodes that are not recorded, or on tm-2."""
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, ALL, moved)
    result = recorded.healed(14, 0).injected(30, 1, "tm-1").judged(tmp_path, "job")
    undecided = moved == UNKNOWN
    assert result.outcome == (Outcome.UNDECIDED if undecided else Outcome.HELD), result.summary
    assert message in result.summary


@pytest.mark.parametrize(("moved", "outcome"), [(UNKNOWN, "undecided"), ({}, "violated")])
def test_a_restart_of_tasks_that_may_have_run_there_is_not_early(
    moved: Mapping[Subtask, str], outcome: str, tmp_path: Path
) -> None:
    """The second region restarts after the kill of tm-0 and before that of tm-1."""
    recorded = Failovers().restarted(3, OTHER, moved)
    recorded.injected(10, 0, "tm-0").failed(11).restarted(11.5, OTHER).failed(11.7)
    recorded.injected(12, 1, "tm-1").failed(13).restarted(16, ALL, dict.fromkeys(OTHER, "tm-1"))
    result = recorded.healed(17, 0).healed(18, 1).judged(tmp_path, "region")
    assert str(result.outcome) == outcome, result.summary


@pytest.mark.parametrize(
    ("node", "lost_s", "outcome"),
    [
        ("tm-1", 40.5, "undecided"),
        ("tm-1", 39.8, "undecided"),
        ("tm-1", 10, "undecided"),
        ("tm-1", 9.9, "held"),
        ("tm-0", 39.8, "undecided"),
        ("hdfs", 39.8, "held"),
        ("tm-1", 40, "undecided"),
    ],
)
def test_a_sandbox_lost_shortly_before_the_fault_unsettles_a_held_failover(
    node: str, lost_s: float, outcome: str, tmp_path: Path
) -> None:
    """The restarts are as predicted, and may be of the node that lost its network."""
    recorded = Failovers().injected(40, 0, "tm-0").failed(41).restarted(43, FIRST).healed(49, 0)
    recorded.at(lost_s, Action.SANDBOX_DIED, node=node, exit_code=137)
    result = recorded.judged(tmp_path, "region")
    assert str(result.outcome) == outcome, result.summary
    lost = f"the sandbox of {node} ended, which no fault did"
    assert (lost in result.summary) == (outcome == "undecided")


@pytest.mark.parametrize(
    ("calls", "restarted", "outcome"),
    [
        ({10: ["tm-0"]}, FIRST, "held"),
        ({10: ["tm-0"]}, OTHER, "violated"),
        ({10: ["tm-1"]}, FIRST, "undecided"),
        ({10: ["tm-1"]}, OTHER, "undecided"),
        ({5: ["tm-1"], 10: ["tm-0"]}, FIRST, "held"),
        ({10: ["tm-0"], 20: ["tm-1"]}, FIRST, "held"),
        ({10: None}, FIRST, "held"),
        ({}, FIRST, "held"),
    ],
)
def test_a_fault_in_effect_on_other_nodes_than_called_is_undecided(
    calls: Mapping[float, list[str] | None],
    restarted: Collection[Subtask],
    outcome: str,
    tmp_path: Path,
) -> None:
    """Its last call before the effect counts: a step may be called again, for another node."""
    recorded = Failovers()
    recorded.injected(10, 0, "tm-0").failed(11).restarted(13, restarted).healed(14, 0)
    for at_s, nodes in calls.items():
        recorded.at(at_s, Action.FAULT_CALLED, step=0, fault="kill", nodes=nodes)
    result = recorded.judged(tmp_path)
    assert str(result.outcome) == outcome, result.summary
    doubt = "kill (faults[0]) was called on tm-1 and in effect on tm-0"
    assert (doubt in result.summary) == (outcome == "undecided")


def test_all_nodes_of_a_call_and_of_its_effect_are_named(tmp_path: Path) -> None:
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, FIRST).healed(14, 0)
    recorded.at(10, Action.FAULT_CALLED, step=0, fault="kill", nodes=["tm-1", "tm-2"])
    about = {"step": 1, "fault": "kill", "nodes": ["tm-0", "tm-1"], "called_ns": 3 * 10**10}
    recorded.at(30, Action.FAULT_CALLED, step=1, fault="kill", nodes=["tm-0"])
    recorded.at(30.1, Action.FAULT_IN_EFFECT, **about, seen_ns=301 * 10**8)
    summary = recorded.judged(tmp_path).summary
    assert "kill (faults[0]) was called on tm-1, tm-2 and in effect on tm-0" in summary
    recorded._events = [event for event in recorded._events if event.value.get("step") != 0]
    summary = recorded.failed(31).restarted(33, ALL).judged(tmp_path).summary
    assert "kill (faults[1]) was called on tm-0 and in effect on tm-0, tm-1" in summary


@pytest.mark.parametrize(
    ("lost_s", "outcome"), [(29.9, "undecided"), (30, "violated"), (30.5, "violated")]
)
def test_a_sandbox_that_ended_after_the_next_fault_was_called_explains_nothing_before(
    lost_s: float, outcome: str, tmp_path: Path
) -> None:
    """The kill of tm-0 at 10 s restarts two more subtasks at 29 s; tm-1 is killed at 30 s."""
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, FIRST).healed(14, 0)
    recorded.failed(28.5).restarted(29, OTHER)
    recorded.injected(30, 1, "tm-1").failed(31).restarted(33, OTHER).healed(34, 1)
    recorded.at(lost_s, Action.SANDBOX_DIED, node="hdfs", exit_code=137)
    result = recorded.judged(tmp_path)
    assert str(result.outcome) == outcome, result.summary


@pytest.mark.parametrize(("again_s", "outcome"), [(14.5, "undecided"), (12.5, "violated")])
def test_restarts_may_be_seen_shortly_before_the_end_of_the_sandbox_that_caused_them(
    again_s: float, outcome: str, tmp_path: Path
) -> None:
    """The end of the sandbox is recorded at 15 s."""
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(12, FIRST)
    recorded.failed(again_s - 0.2).restarted(again_s, OTHER).healed(19, 0)
    recorded.at(15, Action.SANDBOX_DIED, node="hdfs", exit_code=137)
    result = recorded.judged(tmp_path)
    assert str(result.outcome) == outcome, result.summary


def test_a_sandbox_explains_restarts_of_the_node_that_subtasks_left(tmp_path: Path) -> None:
    recorded = Failovers().injected(10, 0, "tm-0").failed(11).restarted(13, FIRST)
    recorded.at(9, Action.SANDBOX_DIED, node="tm-1", exit_code=137)
    recorded.failed(16).restarted(18, OTHER, dict.fromkeys(OTHER, "tm-2")).healed(19, 0)
    result = recorded.judged(tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert "the sandbox of tm-1 ended, which no fault did" in result.summary
