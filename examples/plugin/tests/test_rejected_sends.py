"""The check, on histories of a few events: each of its three outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamquake_example.rejected_sends import RejectedSends

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.loader import load_experiment
from streamquake.reports.record.event import Action, Event, Kind
from streamquake.reports.record.history import History
from streamquake.reports.record.outcome import Outcome

EXPERIMENT = Path(__file__).parents[1] / "interrupted-broker.yaml"


def no_spark() -> Any:
    raise AssertionError("this check needs no Spark")


def case(folder: Path, *statuses: str) -> JudgedRun:
    """A run that sent ten records of each status."""
    events = [
        Event(
            index=number,
            at_ns=number,
            process="test",
            kind=Kind.INFO,
            action=Action.SENT,
            value={"first": 10 * number, "last": 10 * number + 9, "count": 10, "status": status},
        )
        for number, status in enumerate(statuses)
    ]
    return JudgedRun(
        experiment=load_experiment(str(EXPERIMENT)),
        history=History(events),
        data=folder / "data",
        metrics=folder / "metrics.parquet",
        spark=no_spark,
    )


def test_a_run_without_rejected_sends_is_held(tmp_path: Path) -> None:
    assert RejectedSends().check(case(tmp_path, "acknowledged", "unknown")).outcome == Outcome.HELD


def test_more_rejected_sends_than_allowed_are_a_violation(tmp_path: Path) -> None:
    run = case(tmp_path, "acknowledged", "failed")

    found = RejectedSends(at_most=9).check(run)

    assert (found.outcome, found.counts) == (Outcome.VIOLATED, {"rejected": 10})
    assert [finding.where for finding in found.findings] == ["records 10 to 19"]
    assert RejectedSends(at_most=10).check(run).outcome == Outcome.HELD


def test_a_history_without_sends_is_undecided(tmp_path: Path) -> None:
    assert RejectedSends().check(case(tmp_path)).outcome == Outcome.UNDECIDED
