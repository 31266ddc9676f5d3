"""One run in the table of a suite, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.suite.suite_results import SuiteRun

SAMPLE = SuiteRun(
    experiment="e",
    role="claim",
    repeat=0,
    seed=0,
    expected=ExpectedOutcome(),
    met=Outcome.HELD,
    run="r",
    ended="completed",
    outcome=Outcome.HELD,
    why="",
)


def suite_run(**fields: Any) -> SuiteRun:
    """A run that held, as expected; `fields` are those that differ."""
    return replace(SAMPLE, **fields)
