"""Undecided runs are tried again; flaky and quarantined rows."""

from __future__ import annotations

import io
import json

import pytest
from junitparser import JUnitXml, Skipped

from streamquake.harness.interrupts import Interrupted
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.run.text import make_console
from streamquake.reports.suite.suite_text import print_suite
from tests.harness.campaign.suite.fake_suites import (
    SuiteTestbed,
    claim,
    experiment,
    plan_of,
    plan_without_claims,
    testbed,
)

pytestmark = pytest.mark.slow

__all__ = ["testbed"]
HELD, UNDECIDED, VIOLATED = Outcome
PLAN = plan_without_claims(experiment("a"), experiment("b"))


@pytest.mark.parametrize(
    ("attempts", "outcomes", "ran", "verdict"),
    [
        (1, [UNDECIDED, HELD], 1, UNDECIDED),
        (2, [UNDECIDED, HELD], 2, HELD),
        (3, [UNDECIDED, UNDECIDED, HELD], 3, HELD),
        (2, [UNDECIDED, UNDECIDED, HELD], 2, UNDECIDED),
        (3, [UNDECIDED, VIOLATED, HELD], 2, VIOLATED),
        (3, [VIOLATED, HELD], 1, VIOLATED),
        (3, [HELD, VIOLATED], 1, HELD),
    ],
)
def test_an_undecided_run_is_tried_until_it_is_decided(
    testbed: SuiteTestbed, attempts: int, outcomes: list[Outcome], ran: int, verdict: Outcome
) -> None:
    testbed.outcomes_of_attempts["a"] = list(outcomes)

    results, _ = testbed.run_suite(PLAN, attempts=attempts)

    row = results.rows[0]
    assert [run.outcome for run in row.runs] == outcomes[:ran]
    assert [run.attempt for run in row.runs] == [*range(1, ran + 1)]
    assert len({run.run for run in row.runs}) == ran
    assert {run.seed for run in row.runs} == {0}
    assert (row.verdict, results.runs_made) == (verdict, ran + 1)
    assert len(results.rows[1].runs) == 1


def test_a_row_whose_attempts_differ_is_flaky_with_its_rate(testbed: SuiteTestbed) -> None:
    testbed.outcomes_of_attempts["a"] = [UNDECIDED, HELD]

    results, folder = testbed.run_suite(PLAN, attempts=2)

    flaky, steady = results.rows
    assert (flaky.is_flaky, str(flaky.rate)) == (True, "1 of 2 (9% to 91%)")
    assert (steady.is_flaky, str(steady.rate)) == (False, "1 of 1 (21% to 100%)")
    assert (results.verdict, results.counted) == (HELD, "2 rows: 2 as expected; 1 flaky")
    written = io.StringIO()
    print_suite(results, folder, make_console(written))
    assert "a: flaky: 1 of 2 (9% to 91%) of its runs as expected" in written.getvalue()
    assert "1 of 2 (9% to 91%) of its runs as expected" in folder.page.read_text("utf-8")
    assert "flaky: 1 of 2 (9% to 91%)" in folder.markdown.read_text("utf-8")
    row = json.loads(folder.results.read_text("utf-8"))["rows"][0]
    assert (row["flaky"], row["rate"]["count"], row["rate"]["n"]) == (True, 1, 2)


def test_the_figures_of_a_row_are_of_the_attempts_that_count(testbed: SuiteTestbed) -> None:
    testbed.counts["a"] = [1.0, 2.0, 4.0]
    testbed.outcomes_of_attempts["a"] = [UNDECIDED, HELD, HELD]
    plan = plan_of((claim("a", figures=("measure.took_ms",)), [experiment("a")]), repeats=2)

    results, _ = testbed.run_suite(plan, attempts=2)

    (row,) = results.rows
    figure = row.figures["measure.took_ms"]
    assert figure is not None
    assert figure.values == (2.0, 4.0)
    assert (row.verdict, len(row.runs)) == (HELD, 3)


def test_an_interrupted_run_is_not_tried_again(testbed: SuiteTestbed) -> None:
    def stop(loop: object) -> None:
        raise Interrupted("SIGINT")

    testbed.on_load_start["a"] = stop
    results, _ = testbed.run_suite(PLAN, attempts=5)
    assert (results.ended, len(results.rows[0].runs)) == ("interrupted", 1)


@pytest.mark.parametrize("outcome", [HELD, UNDECIDED, VIOLATED])
def test_a_quarantined_row_is_run_and_does_not_count(
    testbed: SuiteTestbed, outcome: Outcome
) -> None:
    testbed.outcomes["a"] = outcome
    rows = [
        (claim("a", quarantined="it depends on the disk"), [experiment("a")]),
        (claim("b"), [experiment("b")]),
    ]

    results, folder = testbed.run_suite(plan_of(*rows))

    row = results.rows[0]
    assert (row.verdict, row.quarantined) == (outcome, "it depends on the disk")
    assert results.verdict == HELD
    assert results.counted.endswith("; 1 quarantined")
    written = io.StringIO()
    print_suite(results, folder, make_console(written))
    assert "quarantined, does not count: it depends on the disk" in written.getvalue()
    assert "does not count: it depends on the disk" in folder.page.read_text("utf-8")
    assert "quarantined, does not count" in folder.markdown.read_text("utf-8")
    case = next(iter(next(iter(JUnitXml.fromfile(str(folder.junit))))))
    assert [type(each) for each in case.result] == ([] if outcome == HELD else [Skipped])


def test_a_suite_of_quarantined_rows_proves_nothing(testbed: SuiteTestbed) -> None:
    plan = plan_of((claim("a", quarantined="a reason"), [experiment("a")]))
    results, _ = testbed.run_suite(plan)
    assert results.verdict == UNDECIDED
