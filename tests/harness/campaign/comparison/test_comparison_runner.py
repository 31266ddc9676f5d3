"""A comparison on the fakes: its runs, its verdict, its ends, and what it leaves on disk."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from streamquake.harness.campaign.comparison import comparison_runner as conducting
from streamquake.harness.campaign.comparison.comparison_runner import conduct
from streamquake.harness.campaign.shared_resources import SharedResources
from streamquake.harness.campaign.suite.suite_progress import CompactView
from streamquake.reports.comparison.comparison_results import (
    ComparisonFolder,
    OutputDifference,
    TopologyComparison,
)
from streamquake.reports.record.outcome import Outcome
from tests.harness.campaign.suite.acting import Theatre, experiment, theatre

__all__ = ["theatre"]


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outputs of the fakes hold no records; the differences have tests of their own."""
    same = OutputDifference(output="copy", first="one", other="two", outcome=Outcome.HELD)
    monkeypatch.setattr(conducting, "_differences", lambda *args: (same,))


def compared(theatre: Theatre, **fields: Any) -> tuple[TopologyComparison, ComparisonFolder]:
    means = SharedResources(
        out=theatre.out,
        argv=["streamquake"],
        again="streamquake compare x",
        runtime=theatre.runtime,
        clock=theatre.clock,
        view=CompactView(theatre.messages.append),
        show_message=theatre.messages.append,
    )
    return conduct([experiment("quick", on, **fields) for on in ("one", "two")], means)


def test_both_runs_are_made_and_written(theatre: Theatre) -> None:
    theatre.counts["quick"] = [40.0, 50.0]
    comparison, folder = compared(theatre)

    assert comparison.verdict == Outcome.HELD, theatre.messages
    written = json.loads(folder.results.read_text("utf-8"))
    assert [run["topology"] for run in written["runs"]] == ["one", "two"]
    assert written["figures"]["measure.took_ms"] == [40.0, 50.0]
    assert (written["ended"], written["verdict"]) == ("completed", "held")
    assert "took" in folder.page.read_text("utf-8")
    assert theatre.left() == 0


def test_a_run_that_came_out_otherwise_is_not_as_expected(theatre: Theatre) -> None:
    theatre.outcomes["quick"] = Outcome.VIOLATED
    assert compared(theatre)[0].verdict == Outcome.VIOLATED
    assert compared(theatre, expect="violated")[0].verdict == Outcome.HELD


def test_a_run_that_fails_costs_its_column_not_the_other(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = theatre.measured
    calls: list[str] = []

    def second_fails(results: Any) -> Any:
        calls.append(results.run_id)
        if len(calls) == 1:
            raise RuntimeError("no room")
        return whole(results)

    monkeypatch.setattr(theatre, "measured", second_fails)
    comparison, _ = compared(theatre)
    assert [run.ended for run in comparison.runs] == ["failed_to_run", "completed"]
    assert (comparison.verdict, comparison.cause) == (Outcome.UNDECIDED, "internal error")
    assert "no room" in comparison.runs[0].why


def test_an_interruption_ends_the_run_and_the_comparison(theatre: Theatre) -> None:
    theatre.during["quick"] = lambda loop: signal.raise_signal(signal.SIGINT)
    comparison, folder = compared(theatre)
    assert comparison.ended == "interrupted"
    assert [run.ended for run in comparison.runs] == ["interrupted"]
    assert json.loads(folder.results.read_text("utf-8"))["ended"] == "interrupted"
    assert theatre.left() == 0
