"""A completed run of a suite, and the figures of its results."""

from __future__ import annotations

from dataclasses import dataclass

from streamquake.harness.campaign.suite.loader import RECOVERY
from streamquake.reports.record.results import Results
from streamquake.reports.suite.suite_results import SuiteRun


@dataclass(frozen=True, kw_only=True)
class CompletedRun:
    """One run: its entry in the table, and its results; None if the run failed to run."""

    run: SuiteRun
    results: Results | None


def figure_of(results: Results | None, figure: str) -> float | None:
    """A figure of one run, by CHECK.COUNT; None if it was not judged or the run did not
    complete."""
    name, _, count = figure.partition(".")
    if results is None or results.ended != "completed":
        return None
    for check in results.checks:
        if check.check == name and check.counts.get(count) is not None:
            return check.counts[count]
    return results.recovery.get(count) if name == RECOVERY else None
