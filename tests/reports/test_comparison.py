"""The results of a comparison: their verdict, their page, their table."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from streamquake.reports.comparison.comparison_html import render_comparison
from streamquake.reports.comparison.comparison_results import (
    ComparedRun,
    ComparisonFolder,
    OutputDifference,
    TopologyComparison,
)
from streamquake.reports.comparison.comparison_text import print_comparison
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.reports.record.results import Results
from streamquake.reports.run.text import make_console
from tests.reports.test_html import HOSTILE, Page

HELD, UNDECIDED, VIOLATED = Outcome


def run(topology: str, outcome: Outcome = HELD, **counts: float) -> ComparedRun:
    check = CheckResult(check="measure", outcome=outcome, summary="measured", counts=counts)
    recovery = {"detected_s": 0.5, "restarted_s": counts.get("restarted_s")}
    results = Results(
        run_id=f"run-{topology}",
        experiment="quick",
        seed=7,
        ended="completed",
        outcome=outcome,
        checks=(check,),
        recovery=recovery,
    )
    return ComparedRun(topology=topology, results=results, why="because")


SAME = OutputDifference(
    output="copy", first="one", other="two", missing=0, added=0, changed=0, outcome=HELD
)
BOTH = TopologyComparison(
    comparison_id="1",
    experiment="quick",
    seed=7,
    differences=(SAME,),
    runs=(run("one", restarted_s=3.0, took_ms=40), run("two", took_ms=50)),
    again="streamquake compare quick",
)


@pytest.mark.parametrize(
    ("comparison", "verdict"),
    [
        (BOTH, HELD),
        (replace(BOTH, differences=(replace(SAME, outcome=None),)), HELD),
        (replace(BOTH, differences=(replace(SAME, outcome=VIOLATED),)), VIOLATED),
        (replace(BOTH, differences=(replace(SAME, outcome=UNDECIDED),)), UNDECIDED),
        (replace(BOTH, runs=(run("one"), run("two", VIOLATED))), VIOLATED),
        (replace(BOTH, runs=(run("one"), run("two", UNDECIDED))), UNDECIDED),
        (
            replace(BOTH, runs=(run("one"), ComparedRun(topology="two", results=None, why=""))),
            UNDECIDED,
        ),
        (replace(BOTH, ended="interrupted"), UNDECIDED),
    ],
)
def test_the_verdict_of_a_comparison_is_that_of_its_worst_part(
    comparison: TopologyComparison, verdict: Outcome
) -> None:
    assert comparison.verdict == verdict


def test_figures_have_the_value_of_each_run_and_figures_without_values_are_left_out() -> None:
    figures = dict(BOTH.figures())
    assert figures["measure.took_ms"] == (40, 50)
    assert figures["recovery.restarted_s"] == (3.0, None)
    without = replace(BOTH, runs=(run("one"), run("two")))
    assert "recovery.restarted_s" not in dict(without.figures())


def test_the_table_shows_each_run_and_the_differences() -> None:
    written = io.StringIO()
    folder = ComparisonFolder(Path("runs/compare-1"))
    changed = replace(SAME, changed=12, outcome=VIOLATED)
    print_comparison(replace(BOTH, differences=(changed,)), folder, make_console(written))
    message = written.getvalue()
    for part in (
        "NOT AS EXPECTED",
        "one",
        "two",
        "recovery: restarted",
        "3 s",
        "measure: took",
        "40 ms",
        "50 ms",
        "12",
        "not the same",
        "streamquake compare quick",
    ):
        assert part in message


def test_the_page_shows_both_runs_and_escapes_hostile_names(tmp_path: Path) -> None:
    folder = ComparisonFolder.create(tmp_path, "1")
    hostile = replace(BOTH, runs=(BOTH.runs[0], replace(BOTH.runs[1], topology=HOSTILE)))
    page = Page(render_comparison(hostile, folder).read_text("utf-8"))
    assert "as expected" in page.text
    assert HOSTILE in page.text
    assert "seconds since the first fault took effect" in page.text
