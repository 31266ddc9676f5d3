"""Builders of histories and experiments for tests of the checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.workloads.numbered import Numbered
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.history import History, usual_kind
from tests.fakes import TOPOLOGY

NO_DATA = Path("no-data")
"""The data of a run whose load stores nothing."""
KILL = {"fault": "kill", "target": "one of flink/taskmanager", "when": {"after_s": 1.0}}
BEFORE = {"status": "running", "pid": 7, "started_at": "2023-01-01T10:00:00Z"}
DOWN = {"status": "exited", "exit_code": 137, "pid": 0, "oom_killed": False, "signal": "KILL"}
KILLED = {**BEFORE, **DOWN, "before": BEFORE}
"""What is observed of a killed node."""
RESTARTED = {"status": "running", "pid": 8, "started_at": "2026-01-01T10:01:00Z", "before": BEFORE}
"""What is observed of a killed node that was started again."""


class Story:
    """Builds a history: each call adds one event, or the two of a checkpoint, at moments in
    seconds."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def at(self, at_s: float, action: Action, **value: Any) -> Story:
        self._events.append(
            Event(
                index=len(self._events),
                at_ns=round(at_s * 1e9),
                process="test",
                kind=usual_kind(action),
                action=action,
                value=value,
            )
        )
        return self

    def sent(self, at_s: float, count: int, status: str = "acknowledged") -> Story:
        return self.at(at_s, Action.SENT, first=0, last=count - 1, count=count, status=status)

    def effect(self, at_s: float, step: int = 0) -> Story:
        return self.at(
            at_s, Action.FAULT_IN_EFFECT, step=step, seen_ns=int(at_s * 1e9), evidence={}
        )

    def checkpoint(self, number: int, triggered_s: float, completed_s: float) -> Story:
        self.at(triggered_s, Action.CHECKPOINT_TRIGGERED, checkpoint=number)
        return self.at(completed_s, Action.CHECKPOINT_COMPLETED, checkpoint=number)

    def history(self) -> History:
        return History(self._events)


def experiment(faults: int = 1, **fields: Any) -> Experiment:
    """An experiment with a job that takes checkpoints, and `faults` kills."""
    return Experiment(
        name="by-hand",
        topology=TOPOLOGY,
        job={"sql": "SELECT 1", "config": {"execution.checkpointing.interval": "1s"}},  # type: ignore[arg-type]
        workload=Numbered(records=1, rate_per_s=1),
        faults=tuple(KILL for _ in range(faults)),  # type: ignore[misc]
        **fields,
    )


def no_spark() -> Any:
    raise AssertionError("this check needs no Spark")


def case(story: Story, folder: Path, faults: int = 1) -> JudgedRun:
    return JudgedRun(
        experiment=experiment(faults),
        history=story.history(),
        data=folder / "data",
        metrics=folder / "metrics.parquet",
        spark=no_spark,
    )
