"""A comparison on the fakes: its runs, its verdict, how it ends, and the files that it writes."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from streamquake.harness.campaign.comparison import comparison_runner
from streamquake.harness.campaign.comparison.comparison_runner import conduct
from streamquake.harness.campaign.shared_resources import SharedResources
from streamquake.harness.campaign.suite.suite_progress import CompactView
from streamquake.reports.comparison.comparison_results import (
    ComparisonFolder,
    OutputDifference,
    TopologyComparison,
)
from streamquake.reports.record.outcome import Outcome
from tests.harness.campaign.suite.fake_suites import SuiteTestbed, experiment, testbed

pytestmark = pytest.mark.slow

__all__ = ["testbed"]


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outputs of the fakes have no records. `test_output_diff.py` tests the differences."""
    same = OutputDifference(output="copy", first="one", other="two", outcome=Outcome.HELD)
    monkeypatch.setattr(comparison_runner, "_differences", lambda *args: (same,))


def compare(testbed: SuiteTestbed, **fields: Any) -> tuple[TopologyComparison, ComparisonFolder]:
    resources = SharedResources(
        out=testbed.out,
        argv=["streamquake"],
        again="streamquake compare x",
        runtime=testbed.runtime,
        clock=testbed.clock,
        view=CompactView(testbed.messages.append),
        show_message=testbed.messages.append,
    )
    return conduct([experiment("quick", on, **fields) for on in ("one", "two")], resources)


def test_both_runs_are_executed_and_written(testbed: SuiteTestbed) -> None:
    testbed.counts["quick"] = [40.0, 50.0]
    comparison, folder = compare(testbed)

    assert comparison.verdict == Outcome.HELD, testbed.messages
    written = json.loads(folder.results.read_text("utf-8"))
    assert [run["topology"] for run in written["runs"]] == ["one", "two"]
    assert written["figures"]["measure.took_ms"] == [40.0, 50.0]
    assert (written["ended"], written["verdict"]) == ("completed", "held")
    assert "took" in folder.page.read_text("utf-8")
    assert testbed.leftover_count() == 0


def test_a_run_with_an_unexpected_outcome_is_not_as_expected(testbed: SuiteTestbed) -> None:
    testbed.outcomes["quick"] = Outcome.VIOLATED
    assert compare(testbed)[0].verdict == Outcome.VIOLATED
    assert compare(testbed, expect="violated")[0].verdict == Outcome.HELD


def test_a_failed_run_does_not_affect_the_other_run(
    testbed: SuiteTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_measurement = testbed.with_measurement
    calls: list[str] = []

    def second_fails(results: Any) -> Any:
        calls.append(results.run_id)
        if len(calls) == 1:
            raise RuntimeError("no room")
        return with_measurement(results)

    monkeypatch.setattr(testbed, "with_measurement", second_fails)
    comparison, _ = compare(testbed)
    assert [run.ended for run in comparison.runs] == ["failed_to_run", "completed"]
    assert (comparison.verdict, comparison.cause) == (Outcome.UNDECIDED, "internal error")
    assert "no room" in comparison.runs[0].why


def test_an_interruption_ends_the_run_and_the_comparison(testbed: SuiteTestbed) -> None:
    testbed.on_load_start["quick"] = lambda loop: signal.raise_signal(signal.SIGINT)
    comparison, folder = compare(testbed)
    assert comparison.ended == "interrupted"
    assert [run.ended for run in comparison.runs] == ["interrupted"]
    assert json.loads(folder.results.read_text("utf-8"))["ended"] == "interrupted"
    assert testbed.leftover_count() == 0
