"""A suite against earlier runs: a baseline, and quarantined rows that fail more often."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from junitparser import JUnitXml

from streamquake.harness.run.event_loop import EventLoop
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.run.text import make_console
from streamquake.reports.store.results_store import FILE, ResultsStore, StoreUnreadable
from streamquake.reports.store.stored_run import ELAPSED
from streamquake.reports.suite.suite_results import SuiteResults
from streamquake.reports.suite.suite_text import print_suite
from streamquake.topologies.problems import BadInput
from tests.harness.campaign.suite.fake_suites import (
    SuiteTestbed,
    claim,
    experiment,
    plan_of,
    testbed,
)
from tests.reports.stored_runs import stored

pytestmark = pytest.mark.slow

__all__ = ["testbed"]
HELD, UNDECIDED, VIOLATED = Outcome
DAY = "2026-01-01"
FAST = [1000.0, 1050.0, 950.0, 1020.0, 980.0, 1010.0]
SLOW = [1400.0, 1470.0, 1330.0, 1420.0, 1380.0, 1410.0]
FIGURE = "measure.took_ms"


def add_baseline(
    out: Path, figures: Sequence[float], *, name: str = "a", failures: int = 0
) -> None:
    """Earlier runs of an experiment in the store, of which the first ones failed."""
    ResultsStore(out)._add(
        [
            stored(
                name,
                topology="echo",
                run_id=f"20260101-{number:06d}-abcd",
                started_at=f"{DAY}T01:{number:02d}:00+00:00",
                as_expected=0 if number < failures else 1,
                figures={FIGURE: value},
            )
            for number, value in enumerate(figures)
        ]
    )


def run_against(testbed: SuiteTestbed, values: Sequence[float], against: str = DAY) -> SuiteResults:
    testbed.counts["a"] = list(values)
    plan = plan_of((claim("a"), [experiment("a")]), repeats=len(values))
    results, _ = testbed.run_suite(plan, against=against)
    return results


def test_a_slower_figure_is_a_regression_of_the_suite(testbed: SuiteTestbed) -> None:
    add_baseline(testbed.out, FAST)

    results = run_against(testbed, SLOW)

    assert [row.verdict for row in results.rows] == [HELD]
    assert results.verdict == VIOLATED
    worse = [change for change in results.changes if change.is_worse]
    assert [(change.experiment, change.figure) for change in worse] == [("a", FIGURE)]
    assert worse[0].text.startswith("slower by 4")


def test_an_equal_night_has_no_regression(testbed: SuiteTestbed) -> None:
    add_baseline(testbed.out, FAST)

    results = run_against(testbed, [1008.0, 1042.0, 955.0, 1024.0, 977.0, 1013.0])

    assert results.verdict == HELD
    texts = {change.figure: change.text for change in results.changes}
    assert texts[FIGURE].startswith("no change seen; ")
    assert texts["as expected"].startswith("no change seen: 6 of 6")
    assert ELAPSED not in texts, "the baseline did not record it"


def test_a_faster_night_is_no_regression(testbed: SuiteTestbed) -> None:
    add_baseline(testbed.out, SLOW)

    results = run_against(testbed, FAST)

    assert results.verdict == HELD
    assert any(change.text.startswith("faster by") for change in results.changes)


def test_the_regressions_are_shown_everywhere(testbed: SuiteTestbed) -> None:
    add_baseline(testbed.out, FAST)
    testbed.counts["a"] = list(SLOW)
    plan = plan_of((claim("a"), [experiment("a")]), repeats=len(SLOW))

    results, folder = testbed.run_suite(plan, against=DAY)

    written = io.StringIO()
    print_suite(results, folder, make_console(written))
    pages = (folder.page.read_text("utf-8"), folder.markdown.read_text("utf-8"))
    for text in (written.getvalue(), *pages):
        assert f"against {DAY}" in text
        assert "1 worse" in text
        assert "slower by 4" in text
    (first, *_) = JUnitXml.fromfile(str(folder.junit))
    assert [case.name for case in first if case.result] == [f"a {FIGURE} against {DAY}"]
    document = json.loads(folder.results.read_text("utf-8"))
    assert document["against"] == DAY
    assert [change["is_worse"] for change in document["changes"]].count(True) == 1


def test_a_baseline_without_these_experiments_proves_nothing(testbed: SuiteTestbed) -> None:
    add_baseline(testbed.out, FAST, name="b")

    results = run_against(testbed, FAST)

    assert (results.verdict, results.changes) == (UNDECIDED, ())
    assert results.warnings == (
        f"nothing to compare: no experiment has runs in the baseline {DAY}",
    )


def test_a_bad_baseline_is_rejected_before_anything_runs(testbed: SuiteTestbed) -> None:
    with pytest.raises(BadInput, match="expected a day such as 2026-11-20"):
        run_against(testbed, FAST, against="yesterday")
    assert testbed.clusters == []


@pytest.mark.parametrize("against", ["", DAY])
def test_a_store_that_cannot_be_read(testbed: SuiteTestbed, against: str) -> None:
    """It matters only to a suite with a baseline."""
    (testbed.out / FILE).write_bytes(b"no database" * 100)

    if against:
        with pytest.raises(Exception, match="file is not a database"):
            run_against(testbed, FAST, against)
        assert testbed.clusters == []
        return
    results = run_against(testbed, FAST[:1], against)
    assert results.verdict == HELD
    assert results.warnings[0].startswith("the earlier runs are not known: ")


def test_a_store_that_is_damaged_during_the_night_proves_nothing(testbed: SuiteTestbed) -> None:
    add_baseline(testbed.out, FAST)

    def damage(loop: EventLoop) -> None:
        (testbed.out / FILE).write_bytes(b"no database" * 100)

    testbed.on_load_start["b"] = damage
    testbed.counts["a"] = list(SLOW)
    plan = plan_of(
        (claim("a"), [experiment("a")]), (claim("b"), [experiment("b")]), repeats=len(SLOW)
    )

    results, folder = testbed.run_suite(plan, against=DAY)

    assert results.verdict == UNDECIDED
    assert any(warning.startswith("not compared: ") for warning in results.warnings)
    assert folder.page.exists()


def test_a_damaged_row_of_the_store_matters_only_to_a_baseline(testbed: SuiteTestbed) -> None:
    add_baseline(testbed.out, FAST)
    with closing(sqlite3.connect(testbed.out / FILE)) as store, store:
        store.execute("UPDATE runs SET figures = '{'")

    results = run_against(testbed, FAST[:1], against="")
    assert results.verdict == HELD
    assert "a row is damaged" in results.warnings[0]
    with pytest.raises(StoreUnreadable, match="a row is damaged"):
        run_against(testbed, FAST[:1])


def test_one_run_against_a_long_baseline(testbed: SuiteTestbed) -> None:
    add_baseline(testbed.out, [1000.0 + number for number in range(59)])

    results = run_against(testbed, [1010.0])

    assert results.verdict == HELD
    (figure,) = (change for change in results.changes if change.figure == FIGURE)
    assert "too few runs" in figure.text


def test_undecided_runs_are_no_regression(testbed: SuiteTestbed) -> None:
    add_baseline(testbed.out, FAST)
    testbed.outcomes["a"] = UNDECIDED
    assert run_against(testbed, FAST).verdict == UNDECIDED


def test_a_run_that_does_not_count_is_no_failure_for_a_ci_server(testbed: SuiteTestbed) -> None:
    testbed.outcomes["a"] = VIOLATED
    testbed.outcomes_of_attempts["b"] = [UNDECIDED, HELD]
    plan = plan_of(
        (claim("a", quarantined="it is known"), [experiment("a")]),
        (claim("b"), [experiment("b")]),
    )

    results, folder = testbed.run_suite(plan, attempts=2)

    assert results.verdict == HELD
    document = JUnitXml.fromfile(str(folder.junit))
    assert (document.failures, document.errors, document.skipped) == (0, 0, 1)


def test_attempts_that_were_repeated_are_no_regression(testbed: SuiteTestbed) -> None:
    add_baseline(testbed.out, FAST)
    testbed.outcomes_of_attempts["a"] = [UNDECIDED, HELD] * 6
    plan = plan_of((claim("a"), [experiment("a")]), repeats=6)
    results, _ = testbed.run_suite(plan, against=DAY, attempts=2)
    assert results.verdict == HELD


def quarantined_night(
    testbed: SuiteTestbed, *, before: int, now: int, runs: int = 6
) -> SuiteResults:
    """A quarantined row with as many failures of six runs before and of `runs` now."""
    add_baseline(testbed.out, FAST, failures=before)
    testbed.outcomes_of_attempts["a"] = [VIOLATED] * now + [HELD] * (runs - now)
    testbed.outcomes_of_attempts["b"] = [HELD] * runs
    plan = plan_of(
        (claim("a", quarantined="it is known"), [experiment("a")]),
        (claim("b"), [experiment("b")]),
        repeats=runs,
    )
    results, folder = testbed.run_suite(plan)
    assert JUnitXml.fromfile(str(folder.junit)).skipped == (now > 0 and not results.rows[0].counts)
    return results


def test_a_quarantined_row_that_fails_more_often_than_before_counts(testbed: SuiteTestbed) -> None:
    results = quarantined_night(testbed, before=0, now=6)

    row = results.rows[0]
    assert (row.counts, row.verdict, results.verdict) == (True, VIOLATED, VIOLATED)
    assert row.why.startswith("a is as expected less often: 6 of 6")
    assert row.reliability == ("quarantined, but it fails more often than before: it is known",)


@pytest.mark.parametrize(("before", "now"), [(3, 4), (6, 6), (6, 0), (0, 1)])
def test_a_quarantined_row_that_fails_as_before_does_not_count(
    testbed: SuiteTestbed, before: int, now: int
) -> None:
    results = quarantined_night(testbed, before=before, now=now)

    row = results.rows[0]
    assert (row.counts, results.verdict) == (False, HELD)
    assert "quarantined, does not count: it is known" in row.reliability
