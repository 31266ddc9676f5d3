"""Failover scope of micro-batches: which tasks were repeated, and whether only those had to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.checks.failover_scope import FailoverScope
from streamquake.reports.event import Action
from streamquake.reports.outcome import CheckResult, Outcome
from tests.harness.histories import Story, case

EFFECT_S = 10.0
LOST = {"state": "FAILED", "kind": "ExecutorLostFailure"}


class Batches(Story):
    """A history of batches of two tasks, on which worker-1 was killed in batch 3."""

    def __init__(self) -> None:
        super().__init__()
        self.attempt(2, 0).attempt(2, 1, node="spark/worker-2")
        self.at(
            EFFECT_S, Action.FAULT_IN_EFFECT, step=0, fault="kill", nodes=["spark/worker-1"],
            seen_ns=int(EFFECT_S * 1e9), evidence={},
        )  # fmt: skip

    def attempt(self, batch: int, task: int, **value: Any) -> Batches:
        known = {
            "batch": batch, "stage": batch, "stage_attempt": 0, "task": task, "attempt": 0,
            "node": "spark/worker-1", "state": "SUCCESS",
        }  # fmt: skip
        at_s = EFFECT_S + 1 if batch > 2 else EFFECT_S - 1
        self.at(at_s, Action.TASK_ATTEMPT, **{**known, **value})
        return self

    def judged(self, expect: Any, folder: Path) -> CheckResult:
        return FailoverScope(expect=expect).check(case(self, folder))


def repeated() -> Batches:
    """The task on the killed worker alone was run again, on the other one."""
    found = Batches().attempt(3, 0, **LOST).attempt(3, 1, node="spark/worker-2")
    return found.attempt(3, 0, attempt=1, node="spark/worker-2")


def test_the_lost_attempt_alone_was_repeated(tmp_path: Path) -> None:
    result = repeated().judged("task", tmp_path)
    assert result.outcome == Outcome.HELD
    assert (result.counts["hit"], result.counts["repeated"], result.counts["all"]) == (1, 1, 2)
    assert result.counts["blast_radius"] == 0.5


def test_a_task_repeated_for_lost_shuffle_output_is_wider_than_a_task(tmp_path: Path) -> None:
    told = repeated().attempt(3, 1, stage=9, stage_attempt=1)
    assert told.judged("region", tmp_path).outcome == Outcome.HELD
    result = told.judged("task", tmp_path)
    assert result.outcome == Outcome.VIOLATED
    assert [f.what for f in result.findings] == ["repeated for lost shuffle output"]


def test_a_batch_that_ran_again_whole_is_the_job(tmp_path: Path) -> None:
    told = repeated()
    told.at(EFFECT_S + 2, Action.CHECKPOINT_FAILED, checkpoint=3)
    told.at(EFFECT_S + 4, Action.CHECKPOINT_TRIGGERED, checkpoint=3)
    assert told.judged("job", tmp_path).outcome == Outcome.HELD
    result = told.judged("region", tmp_path)
    assert result.outcome == Outcome.VIOLATED
    assert result.findings[0].where == "batch 3"


def test_a_job_expected_to_start_again_that_did_not(tmp_path: Path) -> None:
    assert repeated().judged("job", tmp_path).outcome == Outcome.VIOLATED


def test_an_attempt_that_failed_elsewhere_was_not_predicted(tmp_path: Path) -> None:
    told = repeated().attempt(3, 1, node="spark/worker-2", state="FAILED", kind="ExceptionFailure")
    result = told.judged("region", tmp_path)
    assert result.outcome == Outcome.VIOLATED
    assert result.counts["unexplained"] == 1


@pytest.mark.parametrize(
    ("told", "words"),
    [(Batches(), "no task was seen to end"), (Batches().attempt(3, 1), "nothing was repeated")],
)
def test_without_evidence_it_is_undecided(told: Batches, words: str, tmp_path: Path) -> None:
    result = told.judged("task", tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert words in result.summary
