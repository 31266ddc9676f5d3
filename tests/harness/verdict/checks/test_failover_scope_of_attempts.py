"""Failover scope of micro-batches: which tasks were repeated, and whether only those had to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.failover_scope import FailoverScope
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.histories import Story, case

EFFECT_S = 10.0
LOST = {"state": "FAILED", "kind": "ExecutorLostFailure"}


class Batches(Story):
    """A history of batches of two tasks, on which worker-1 was killed in batch 3."""

    def __init__(self, node: str = "spark/worker-1") -> None:
        super().__init__()
        self.attempt(2, 0).attempt(2, 1, node="spark/worker-2")
        self.at(
            EFFECT_S,
            Action.FAULT_IN_EFFECT,
            step=0,
            fault="kill",
            nodes=[node],
            seen_ns=int(EFFECT_S * 1e9),
            evidence={},
        )

    def attempt(self, batch: int, task: int, **value: Any) -> Batches:
        return self.ends(EFFECT_S + 1 if batch > 2 else EFFECT_S - 1, batch, task, **value)

    def ends(self, at_s: float, batch: int, task: int, **value: Any) -> Batches:
        known = {
            "batch": batch,
            "stage": batch,
            "stage_attempt": 0,
            "task": task,
            "attempt": 0,
            "node": "spark/worker-1",
            "state": "SUCCESS",
        }
        self.at(at_s, Action.TASK_ATTEMPT, **{**known, **value})
        return self

    def judged(self, expect: Any, folder: Path) -> CheckResult:
        return FailoverScope(expect=expect).check(case(self, folder))


def repeated() -> Batches:
    """Only the task on the killed worker ran again, on the other worker."""
    found = Batches().attempt(3, 0, **LOST).attempt(3, 1, node="spark/worker-2")
    return found.attempt(3, 0, attempt=1, node="spark/worker-2")


def test_only_the_lost_attempt_is_repeated(tmp_path: Path) -> None:
    result = repeated().judged("task", tmp_path)
    assert result.outcome == Outcome.HELD
    assert (result.counts["hit"], result.counts["repeated"], result.counts["all"]) == (1, 1, 2)
    assert result.counts["blast_radius"] == 0.5


@pytest.mark.parametrize(
    ("lost_s", "outcome"), [(60, Outcome.HELD), (40, Outcome.VIOLATED), (40.5, Outcome.VIOLATED)]
)
def test_an_executor_lost_long_after_the_failover_is_not_attributed_to_the_fault(
    lost_s: float, outcome: Outcome, tmp_path: Path
) -> None:
    recorded = repeated()
    recorded.at(12, Action.FAULT_HEALED, step=0).checkpoint(4, 14, 15)
    other = {"node": "spark/worker-2"}
    recorded.ends(lost_s - 1, 20, 0, **other, **LOST).ends(lost_s + 1, 20, 0, attempt=1)
    recorded.at(lost_s, Action.EXECUTOR_LOST, executor="9", **other)

    assert recorded.judged("task", tmp_path).outcome == outcome


def test_a_task_repeated_for_lost_shuffle_output_is_wider_than_a_task(tmp_path: Path) -> None:
    recorded = repeated().attempt(3, 1, stage=9, stage_attempt=1)
    assert recorded.judged("region", tmp_path).outcome == Outcome.HELD
    result = recorded.judged("task", tmp_path)
    assert result.outcome == Outcome.VIOLATED
    assert [f.what for f in result.findings] == ["repeated for lost shuffle output"]


def test_only_what_was_not_predicted_is_found(tmp_path: Path) -> None:
    """Tasks repeated for lost shuffle output are part of a region, and fewer than a job."""
    recorded = repeated().attempt(3, 1, stage=9, stage_attempt=1)
    assert recorded.judged("job", tmp_path).findings == ()
    failed = {"node": "spark/worker-2", "state": "FAILED", "kind": "ExceptionFailure"}
    result = recorded.attempt(3, 1, **failed).judged("region", tmp_path)
    assert result.outcome == Outcome.VIOLATED
    assert [f.what for f in result.findings] == ["failed, not predicted"]


def test_a_batch_may_run_again_before_any_of_its_tasks_ended(tmp_path: Path) -> None:
    """There is no share of tasks that were repeated."""
    recorded = Batches().ends(EFFECT_S + 6, 3, 0, node="spark/worker-2")
    recorded.at(EFFECT_S + 2, Action.CHECKPOINT_FAILED, checkpoint=3)
    recorded.at(EFFECT_S + 4, Action.CHECKPOINT_TRIGGERED, checkpoint=3)
    result = recorded.judged("job", tmp_path)
    assert result.outcome == Outcome.HELD
    assert (result.counts["batches_repeated"], result.counts["blast_radius"]) == (1, None)


@pytest.mark.parametrize(
    ("ended_s", "why"),
    [(EFFECT_S, "no task was seen to end"), (EFFECT_S + 0.001, "nothing was repeated")],
)
def test_an_attempt_that_ended_with_the_call_of_the_fault_proves_nothing(
    ended_s: float, why: str, tmp_path: Path
) -> None:
    result = Batches().ends(ended_s, 3, 0).judged("task", tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert why in result.summary


def test_a_batch_that_ran_again_counts_as_the_job(tmp_path: Path) -> None:
    recorded = repeated()
    recorded.at(EFFECT_S + 2, Action.CHECKPOINT_FAILED, checkpoint=3)
    recorded.at(EFFECT_S + 4, Action.CHECKPOINT_TRIGGERED, checkpoint=3)
    assert recorded.judged("job", tmp_path).outcome == Outcome.HELD
    result = recorded.judged("region", tmp_path)
    assert result.outcome == Outcome.VIOLATED
    assert result.findings[0].where == "batch 3"


@pytest.mark.parametrize(("expect", "outcome"), [("job", "held"), ("task", "violated")])
@pytest.mark.parametrize("triggered_s", [EFFECT_S - 0.5, EFFECT_S + 0.5])
def test_a_batch_triggered_again_after_a_restore_counts_although_its_failure_is_missing(
    triggered_s: float, expect: str, outcome: str, tmp_path: Path
) -> None:
    recorded = repeated()
    recorded.at(triggered_s, Action.CHECKPOINT_TRIGGERED, job="q", checkpoint=3)
    recorded.at(EFFECT_S + 2, Action.JOB_FAILING, job="q", own=False)
    recorded.at(EFFECT_S + 3, Action.JOB_RESTARTING, job="q", restart=1)
    recorded.at(EFFECT_S + 3, Action.JOB_RESTORED, job="q", checkpoint=2)
    recorded.at(EFFECT_S + 4, Action.CHECKPOINT_TRIGGERED, job="q", checkpoint=3)
    recorded.at(EFFECT_S + 6, Action.CHECKPOINT_COMPLETED, job="q", checkpoint=3)
    result = recorded.judged(expect, tmp_path)
    assert str(result.outcome) == outcome, result.summary
    assert result.counts["batches_repeated"] == 1


def test_a_job_expected_to_restart_that_did_not_is_violated(tmp_path: Path) -> None:
    assert repeated().judged("job", tmp_path).outcome == Outcome.VIOLATED


def test_an_attempt_that_failed_elsewhere_was_not_predicted(tmp_path: Path) -> None:
    recorded = repeated().attempt(
        3, 1, node="spark/worker-2", state="FAILED", kind="ExceptionFailure"
    )
    result = recorded.judged("region", tmp_path)
    assert result.outcome == Outcome.VIOLATED
    assert result.counts["unexplained"] == 1


@pytest.mark.parametrize(
    ("reported", "words"),
    [(Batches(), "no task was seen to end"), (Batches().attempt(3, 1), "nothing was repeated")],
)
def test_without_evidence_it_is_undecided(reported: Batches, words: str, tmp_path: Path) -> None:
    result = reported.judged("task", tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert words in result.summary


def test_another_attempt_must_complete_a_lost_task(tmp_path: Path) -> None:
    recorded = Batches().attempt(3, 0, **LOST).attempt(3, 1, node="spark/worker-2")
    result = recorded.judged("task", tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert "1 lost tasks were not seen to succeed" in result.summary


def test_another_attempt_of_the_stage_may_complete_a_lost_task(tmp_path: Path) -> None:
    """Its tasks have new numbers; the partition is the same."""
    recorded = Batches().attempt(3, 2, partition=2, **LOST).attempt(3, 1, node="spark/worker-2")
    recorded.attempt(3, 0, partition=2, stage_attempt=1, node="spark/worker-2")
    assert recorded.judged("region", tmp_path).outcome == Outcome.HELD


def test_a_completed_batch_completes_its_lost_task(tmp_path: Path) -> None:
    recorded = Batches().attempt(3, 0, **LOST)
    recorded.at(EFFECT_S + 2, Action.CHECKPOINT_COMPLETED, checkpoint=3)
    assert recorded.judged("task", tmp_path).outcome == Outcome.HELD


def test_an_executor_lost_without_a_fault_was_not_predicted(tmp_path: Path) -> None:
    recorded = repeated().attempt(3, 1, **{**LOST, "state": "KILLED"}, node="spark/worker-2")
    assert recorded.judged("task", tmp_path).outcome == Outcome.VIOLATED


def test_a_repeated_attempt_without_the_earlier_one_is_undecided(tmp_path: Path) -> None:
    recorded = repeated().attempt(4, 1, attempt=1)
    result = recorded.judged("task", tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert "the earlier ones of the same task were not seen" in result.summary


def test_a_speculative_attempt_may_end_before_the_first_does(tmp_path: Path) -> None:
    recorded = repeated().attempt(4, 1, attempt=1, speculative=True)
    assert recorded.judged("task", tmp_path).outcome == Outcome.HELD


@pytest.mark.parametrize(
    ("copy", "expect", "outcome"),
    [
        ({}, "task", "violated"),
        ({}, "region", "held"),
        ({"speculative": True}, "task", "held"),
        ({"stage": 9}, "task", "undecided"),  # another task, whose first attempt is missing
        ({"state": "KILLED"}, "task", "held"),
    ],
)
def test_a_task_that_succeeded_twice_was_repeated_for_lost_shuffle_output(
    copy: dict[str, Any], expect: str, outcome: str, tmp_path: Path
) -> None:
    """The `Resubmitted` of the first success is missing. A speculative copy may succeed too."""
    recorded = repeated().attempt(3, 1, **{"attempt": 1, "node": "spark/worker-2", **copy})
    result = recorded.judged(expect, tmp_path)
    assert str(result.outcome) == outcome, result.summary
    assert result.counts["shuffle_lost"] == (copy == {})


@pytest.mark.parametrize("speculative", [False, True])
def test_an_original_that_succeeds_after_its_speculative_copy_is_not_repeated(
    speculative: bool, tmp_path: Path
) -> None:
    recorded = repeated()
    recorded.attempt(4, 1, attempt=1, node="spark/worker-2", speculative=speculative)
    recorded.attempt(4, 1)
    outcome = recorded.judged("task", tmp_path).outcome
    assert outcome == (Outcome.HELD if speculative else Outcome.VIOLATED)


def test_tasks_of_a_batch_that_ran_again_whole_are_not_repeated_for_shuffle_output(
    tmp_path: Path,
) -> None:
    """Another driver numbers stages and attempts anew."""
    recorded = repeated()
    recorded.at(EFFECT_S + 2, Action.CHECKPOINT_FAILED, checkpoint=3)
    recorded.at(EFFECT_S + 4, Action.CHECKPOINT_TRIGGERED, checkpoint=3)
    recorded.ends(EFFECT_S + 5, 3, 1, state="FAILED", kind="ExceptionFailure")
    recorded.ends(EFFECT_S + 6, 3, 1, attempt=1)
    result = recorded.judged("job", tmp_path)
    assert (result.outcome, result.counts["shuffle_lost"]) == (Outcome.HELD, 0)


@pytest.mark.parametrize(
    ("at_s", "speculative", "outcome"),
    [(10.5, False, "undecided"), (10.5, True, "held"), (11.5, False, "held")],
)
def test_a_success_from_before_the_loss_is_not_that_of_the_lost_task(
    at_s: float, speculative: bool, outcome: str, tmp_path: Path
) -> None:
    recorded = Batches().ends(at_s, 3, 0, node="spark/worker-2", speculative=speculative)
    recorded.attempt(3, 0, stage_attempt=1, **LOST).attempt(3, 1, node="spark/worker-2")
    result = recorded.judged("region", tmp_path)
    assert str(result.outcome) == outcome, result


@pytest.mark.parametrize(("healed_s", "outcome"), [(14.0, "violated"), (40.0, "held")])
@pytest.mark.parametrize("node", ["spark/worker-1", "spark/worker-1<->spark/driver-1"])
def test_an_executor_may_be_lost_by_an_earlier_fault_only_until_it_was_over(
    node: str, healed_s: float, outcome: str, tmp_path: Path
) -> None:
    recorded = injected_again("task", "task", first_node=node)
    recorded.at(healed_s, Action.FAULT_HEALED, step=0)
    recorded.ends(EFFECT_S + 20, 20, 0, **LOST)
    recorded.ends(EFFECT_S + 21, 20, 0, node="spark/worker-2", attempt=1)
    result = recorded.judged("task", tmp_path)
    assert str(result.outcome) == outcome, result


def injected_again(
    first: str, second: str, *, complete: bool = True, first_node: str = "spark/worker-1"
) -> Batches:
    """A fault is injected on both workers in turn, with or without a batch that begins and
    completes in between."""
    recorded = Batches(first_node)
    for number, kind in ((3, first), (13, second)):
        at_s = EFFECT_S + number
        node, other = ("spark/worker-1", "spark/worker-2")[:: 1 if number == 3 else -1]
        if number == 13:
            ns = {"called_ns": round((at_s - 1) * 1e9), "seen_ns": round(at_s * 1e9)}
            recorded.at(at_s - 1, Action.FAULT_IN_EFFECT, step=1, fault="kill", nodes=[node], **ns)
        recorded.ends(at_s, number, 0, node=node, **LOST)
        recorded.ends(at_s + 1, number, 0, node=other, attempt=1)
        if kind == "job":
            recorded.at(at_s + 1, Action.CHECKPOINT_FAILED, checkpoint=number)
            recorded.at(at_s + 2, Action.CHECKPOINT_TRIGGERED, checkpoint=number)
        if number == 3 and complete:
            recorded.checkpoint(4, at_s + 3, at_s + 4)
    return recorded


@pytest.mark.parametrize(
    ("first", "second", "expect", "outcome", "complete"),
    [
        ("job", "job", "job", "held", True),
        ("job", "task", "job", "violated", True),
        ("task", "job", "job", "violated", True),
        ("job", "task", "job", "held", False),
        ("task", "task", "task", "held", True),
        ("task", "job", "task", "violated", True),
    ],
)
def test_each_of_two_faults_is_judged_by_the_batches_after_it(
    first: str, second: str, expect: str, outcome: str, complete: bool, tmp_path: Path
) -> None:
    """Both are judged together if no batch began and completed in between."""
    result = injected_again(first, second, complete=complete).judged(expect, tmp_path)
    assert str(result.outcome) == outcome, result


def test_a_fault_without_repeated_tasks_proves_nothing_beside_another(
    tmp_path: Path,
) -> None:
    recorded = repeated()
    recorded.checkpoint(4, EFFECT_S + 2, EFFECT_S + 3)
    called_ns = round((EFFECT_S + 8) * 1e9)
    recorded.at(
        EFFECT_S + 8,
        Action.FAULT_IN_EFFECT,
        step=1,
        fault="kill",
        nodes=["hdfs/datanode-1"],
        called_ns=called_ns,
        seen_ns=called_ns,
    )
    recorded.ends(EFFECT_S + 9, 5, 0)
    assert recorded.judged("task", tmp_path).outcome == Outcome.HELD


def test_each_of_several_faults_must_repeat_a_batch_where_the_job_is_expected_to(
    tmp_path: Path,
) -> None:
    recorded = injected_again("job", "job")
    assert recorded.judged("job", tmp_path).outcome == Outcome.HELD
    recorded.checkpoint(14, EFFECT_S + 16, EFFECT_S + 17)
    about = {"step": 2, "fault": "kill", "nodes": ["hdfs/datanode-1"]}
    ns = round((EFFECT_S + 18) * 1e9)
    recorded.at(EFFECT_S + 18, Action.FAULT_IN_EFFECT, **about, called_ns=ns, seen_ns=ns)
    result = recorded.ends(EFFECT_S + 19, 15, 0).judged("job", tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert "nothing was repeated: no task was under way on hdfs/datanode-1" in result.summary


def test_the_counts_are_those_of_the_widest_failover(tmp_path: Path) -> None:
    """The first fault failed a batch before any of its tasks ended: it has no blast radius."""
    recorded = Batches()
    recorded.at(EFFECT_S + 2, Action.CHECKPOINT_FAILED, checkpoint=3)
    recorded.at(EFFECT_S + 3, Action.CHECKPOINT_TRIGGERED, checkpoint=3)
    recorded.ends(EFFECT_S + 4, 3, 0, node="spark/worker-2").checkpoint(4, 15, 16)
    about = {"step": 1, "fault": "kill", "nodes": ["spark/worker-1"], "seen_ns": 20 * 10**9}
    recorded.at(20, Action.FAULT_IN_EFFECT, **about)
    recorded.ends(21, 5, 0, **LOST).ends(21, 5, 1, node="spark/worker-2")
    recorded.at(22, Action.CHECKPOINT_FAILED, checkpoint=5)
    recorded.at(23, Action.CHECKPOINT_TRIGGERED, checkpoint=5)
    result = recorded.ends(24, 5, 0, attempt=1).judged("job", tmp_path)
    assert result.outcome == Outcome.HELD, result
    assert result.counts["blast_radius"] == 0.5


@pytest.mark.parametrize(
    ("lost_s", "expected"), [(10.5, Outcome.UNDECIDED), (5, Outcome.UNDECIDED)]
)
def test_tasks_of_a_query_lost_with_a_sandbox_shortly_before_are_not_of_the_fault(
    tmp_path: Path, lost_s: float, expected: Outcome
) -> None:
    """The sandbox of worker-2 ended at 5 s, before the kill of worker-1 at 10 s, and the driver
    lost its executor at 11 s. Control: at 10.5 s, after the kill."""
    recorded = repeated()
    recorded.attempt(3, 2, node="spark/worker-2", **LOST)
    recorded.attempt(3, 2, attempt=1, node="spark/worker-1")
    recorded.at(lost_s, Action.SANDBOX_DIED, node="spark/worker-2", exit_code=137)
    result = recorded.judged("task", tmp_path)
    assert result.outcome == expected, result.summary
