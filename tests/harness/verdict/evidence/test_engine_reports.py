"""The engine's own reports of what a fault made it do."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.verdict.evidence.engine_reports import unreported_by_engine
from streamquake.harness.verdict.evidence.step_attempts import last_attempt
from streamquake.reports.record.event import Action
from tests.harness.histories import Story

EPOCH_MS = 1_767_225_600_000
JOB = "the job"


def messages(fault: str = "savepoint", **completed: Any) -> list[str]:
    """A savepoint 16 that was called at 9 s and completed at 11 s; `completed` are fields of the
    engine's report."""
    story = Story()
    checkpoint = {"job": "a", "type": "CHECKPOINT", "trigger_ms": EPOCH_MS + 2000}
    story.at(2, Action.CHECKPOINT_TRIGGERED, checkpoint=15, **checkpoint)
    story.at(3, Action.CHECKPOINT_COMPLETED, checkpoint=15, **checkpoint)
    story.at(9, Action.FAULT_CALLED, step=0, fault=fault)
    report = {"job": "a", "checkpoint": 16, "type": "SAVEPOINT", "trigger_ms": EPOCH_MS + 9100}
    story.at(11, Action.CHECKPOINT_COMPLETED, **{**report, **completed})
    evidence = {"watched": "accepted", JOB: {"number": 16}}
    seen = {"called_ns": 9 * 10**9, "seen_ns": 11 * 10**9, "evidence": evidence}
    story.at(12, Action.FAULT_IN_EFFECT, step=0, fault=fault, **seen)
    history = story.history()
    return list(unreported_by_engine(last_attempt(history, 0), history))


@pytest.mark.parametrize(
    ("completed", "message"),
    [
        ({}, ""),
        ({"type": "SYNC_SAVEPOINT"}, ""),
        ({"trigger_ms": EPOCH_MS + 8000}, ""),  # the two clocks are related by an observation
        ({"trigger_ms": None}, ""),
        ({"type": "CHECKPOINT"}, "the engine did not report that savepoint 16 completed"),
        ({"type": None}, "the engine did not report that savepoint 16 completed"),
        ({"checkpoint": 17}, "the engine did not report that savepoint 16 completed"),
        (
            {"trigger_ms": EPOCH_MS + 4000},
            "savepoint 16 was triggered 5.0 s before the injection's call",
        ),
    ],
)
def test_the_engine_reports_the_savepoint(completed: dict[str, Any], message: str) -> None:
    assert messages(**completed) == [message] * bool(message)


def test_another_fault_takes_no_savepoint() -> None:
    assert messages("restart_job", checkpoint=3) == []


WORKER, OTHER = "spark/worker-1", "spark/worker-2"


@pytest.mark.parametrize(
    ("lost", "reported"),
    [
        ({"node": WORKER, "lost_ms": EPOCH_MS + 9100}, True),
        ({"node": WORKER, "lost_ms": EPOCH_MS + 8000}, True),  # related by an observation
        ({"node": WORKER, "lost_ms": None}, True),
        ({"node": WORKER, "lost_ms": EPOCH_MS + 7900}, False),
        ({"node": OTHER, "lost_ms": EPOCH_MS + 9100}, False),
        ({"node": None, "lost_ms": EPOCH_MS + 9100}, False),
        (None, False),
    ],
)
def test_the_engine_reports_the_lost_executor(lost: dict[str, Any] | None, reported: bool) -> None:
    """Executors of two workers are killed by a call at 9 s; the other worker lost its executor."""
    story = Story().at(2, Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=EPOCH_MS + 2000)
    story.at(9, Action.FAULT_CALLED, step=0, fault="kill_executor")
    seen = {"called_ns": 9 * 10**9, "seen_ns": 10 * 10**9, "nodes": [WORKER, OTHER]}
    story.at(10, Action.FAULT_IN_EFFECT, step=0, fault="kill_executor", **seen)
    story.at(11, Action.EXECUTOR_LOST, job="q", node=OTHER, lost_ms=EPOCH_MS + 9200)
    if lost is not None:
        story.at(11, Action.EXECUTOR_LOST, job="q", **lost)
    history = story.history()
    found = list(unreported_by_engine(last_attempt(history, 0), history))
    message = f"the engine did not report that {WORKER} lost an executor since the injection's call"
    assert found == [message] * (not reported)
