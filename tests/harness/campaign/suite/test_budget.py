"""A suite with a budget of time, and one that ends after too many failures."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest

from streamquake.harness.campaign.shared_resources import RunAttempt, SharedResources
from streamquake.harness.campaign.suite import durations
from streamquake.harness.campaign.suite import plan as planning
from streamquake.harness.campaign.suite.durations import Durations
from streamquake.harness.campaign.suite.knowledge import Knowledge
from streamquake.harness.campaign.suite.plan import SuitePlan
from streamquake.harness.campaign.suite.todays_key import todays_key
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.store.results_store import ResultsStore
from streamquake.reports.store.stored_run import ELAPSED
from tests.harness.campaign.suite.fake_suites import (
    SuiteTestbed,
    claim,
    experiment,
    plan_of,
    plan_without_claims,
    testbed,
)
from tests.reports.stored_runs import stored

pytestmark = pytest.mark.slow

__all__ = ["testbed"]
HELD, UNDECIDED, VIOLATED = Outcome
BEGUN = re.compile(r"\d (\w) \(row.*?(?:, repeat (\d+))?, seed")
RUN_S = 6.0
"""More than a run on the fakes takes, by their clock."""


@pytest.fixture
def loadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every experiment can be loaded by its name, and is expected to take 7 s; `d` is on another
    topology."""

    def load(name: str, *, seed: int) -> Experiment:
        made = experiment(name, "other" if name == "d" else "echo")
        return made.model_copy(update={"seed": seed})

    monkeypatch.setattr(planning, "load_experiment", load)
    monkeypatch.setattr(durations, "OVERHEAD_S", 5.0)


def plan(*names: str) -> SuitePlan:
    return plan_without_claims(
        *(experiment(name, "other" if name == "d" else "echo") for name in names)
    )


def runs_made(testbed: SuiteTestbed) -> list[str]:
    """The runs in the order in which they began, as experiment and repeat."""
    begun = [BEGUN.search(line) for line in testbed.messages]
    testbed.messages.clear()
    return [f"{line[1]}{int(line[2] or 1) - 1}" for line in begun if line is not None]


def add_known(testbed: SuiteTestbed, name: str, outcomes: Sequence[Outcome]) -> None:
    """Add runs of an experiment on the software of today to the store."""
    key = todays_key(experiment(name), testbed.runtime.images())
    marks = {HELD: 1, VIOLATED: 0, UNDECIDED: None}
    store = ResultsStore(testbed.out)
    first = len(store.runs())
    store._add(
        [
            stored(name, run_id=f"20260101-{number:06d}-abcd", key=key, as_expected=marks[outcome])
            for number, outcome in enumerate(outcomes, first)
        ]
    )


def test_a_budget_repeats_the_rows_until_it_is_used(testbed: SuiteTestbed, loadable: None) -> None:
    results, _ = testbed.run_suite(plan("a", "b"), budget_s=20.0)

    assert any(line.endswith("of the budget left") for line in testbed.messages)
    assert runs_made(testbed)[:5] == ["a0", "b0", "a1", "b1", "a2"]
    a, b = (len(row.runs) for row in results.rows)
    assert a - b in (0, 1), "of both it is known equally much"
    assert 20 - RUN_S < results.elapsed_s <= 20
    assert (results.ended, results.verdict) == ("completed", HELD)
    assert {run.seed for run in results.rows[0].runs} == {*range(a)}


def test_a_budget_begins_where_least_is_known(testbed: SuiteTestbed, loadable: None) -> None:
    add_known(testbed, "a", [HELD] * 6)
    add_known(testbed, "b", [HELD, UNDECIDED, HELD, VIOLATED, HELD, HELD])

    testbed.run_suite(plan("a", "b", "c"), budget_s=8.0)

    begun = runs_made(testbed)
    assert begun == [f"c{number}" for number in range(len(begun))], "b alone is as wide after six"
    known = Knowledge.of(
        ResultsStore(testbed.out).runs(),
        [experiment(name) for name in "ab"],
        testbed.runtime.images(),
    )
    assert known.counts == {"a": (6, 6), "b": (4, 6)}
    assert known.width("b") > known.width("a") > 0
    assert known.width("new") == 1


def test_a_row_for_which_no_time_was_left_does_not_count(
    testbed: SuiteTestbed, loadable: None
) -> None:
    results, folder = testbed.run_suite(plan("a", "b"), budget_s=8.0)

    assert [row.outcome_word for row in results.rows] == ["held", "not run"]
    assert results.verdict == HELD
    document = json.loads(folder.results.read_text("utf-8"))
    assert (document["budget_s"], document["verdict"]) == (8.0, "held")


def test_a_budget_in_which_no_run_fits_is_undecided(testbed: SuiteTestbed, loadable: None) -> None:
    results, _ = testbed.run_suite(plan("a", "b"), budget_s=6.0)

    assert runs_made(testbed) == []
    assert (results.ended, results.verdict) == ("completed", UNDECIDED)


def test_a_violated_run_within_a_budget_counts(testbed: SuiteTestbed, loadable: None) -> None:
    testbed.outcomes["b"] = VIOLATED

    results, _ = testbed.run_suite(plan("a", "b"), budget_s=16.0)

    assert results.verdict == VIOLATED


def test_a_budget_runs_a_claim_with_its_control_and_keeps_the_cluster(
    testbed: SuiteTestbed, loadable: None
) -> None:
    rows = plan_of(
        (claim("d", "c", figures=("measure.took_ms",)), [experiment("d"), experiment("c")]),
        (claim("a"), [experiment("a")]),
        (claim("b"), [experiment("b")]),
    )

    results, _ = testbed.run_suite(rows, budget_s=26.0)

    order = runs_made(testbed)
    assert order[:4] == ["d0", "c0", "a0", "b0"]
    assert len(results.rows[0].runs) % 2 == 0, "a claim and its control are one repeat"
    assert results.deployments == len(results.rows[0].runs), "a and b follow on the cluster of c"


def test_an_expected_duration_is_that_of_the_recorded_runs(
    testbed: SuiteTestbed, loadable: None
) -> None:
    add_known(testbed, "a", [HELD])
    recorded = Durations.of(ResultsStore(testbed.out).runs())
    assert recorded.expected_s(experiment("a")) == 7.0, "its duration is not recorded"

    testbed.run_suite(plan("a"), budget_s=8.0)

    recorded = Durations.of(ResultsStore(testbed.out).runs())
    assert 0 < recorded.expected_s(experiment("a")) < RUN_S


@pytest.mark.parametrize(
    ("limit", "outcomes", "ran", "ended"),
    [
        (1, {"a": VIOLATED}, ["a0"], "stopped after 1 runs not as expected"),
        (2, {"a": VIOLATED}, ["a0", "b0", "c0"], ""),
        (2, {"a": VIOLATED, "b": VIOLATED}, ["a0", "b0"], "stopped after 2 runs not as expected"),
        (1, {"a": UNDECIDED}, ["a0", "b0", "c0"], ""),
    ],
)
def test_a_suite_ends_after_too_many_failures(
    testbed: SuiteTestbed,
    limit: int,
    outcomes: dict[str, Outcome],
    ran: list[str],
    ended: str,
) -> None:
    testbed.outcomes.update(outcomes)

    results, folder = testbed.run_suite(plan("a", "b", "c"), max_failures=limit)

    assert (runs_made(testbed), results.reason, results.ended) == (ran, ended, "completed")
    assert results.verdict == max(outcomes.values())
    assert json.loads(folder.results.read_text("utf-8"))["reason"] == ended
    assert testbed.leftover_count() == 0


def test_a_quarantined_row_is_no_failure(testbed: SuiteTestbed) -> None:
    testbed.outcomes["a"] = VIOLATED
    rows = plan_of(
        (claim("a", quarantined="known"), [experiment("a")]), (claim("b"), [experiment("b")])
    )

    results, _ = testbed.run_suite(rows, max_failures=1)

    assert runs_made(testbed) == ["a0", "b0"]
    assert results.verdict == HELD


def test_attempts_do_not_exceed_the_budget(testbed: SuiteTestbed, loadable: None) -> None:
    testbed.outcomes["a"] = UNDECIDED

    results, _ = testbed.run_suite(plan("a"), budget_s=12.0, attempts=20)

    assert 1 < len(results.rows[0].runs) < 20
    assert results.elapsed_s <= 12.0
    assert results.verdict == UNDECIDED


def test_a_machine_on_which_nothing_runs_ends_the_budget(
    testbed: SuiteTestbed, loadable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = RunAttempt(error="the engine is down", error_kind="machine unsuitable")
    monkeypatch.setattr(SharedResources, "run", lambda *args: down)

    results, _ = testbed.run_suite(plan("a", "b"), budget_s=3600.0)

    assert results.runs_made == 3
    assert (results.ended, results.verdict) == ("failed_to_run", UNDECIDED)
    assert results.reason == "3 runs in a row failed to run"
    assert Durations.of(ResultsStore(testbed.out).runs()).known == {}


def test_with_new_software_every_night_no_row_is_left_out(
    testbed: SuiteTestbed, loadable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is known on new software, so the row whose last run is the oldest comes first."""
    yesterday = "2026-01-01T01:00:00+00:00"
    old = stored("a", run_id="20260101-000000-abcd", key="older", started_at=yesterday)
    ResultsStore(testbed.out)._add([old])

    results, _ = testbed.run_suite(plan("a", "b"), budget_s=8.0)

    assert runs_made(testbed)[0] == "b0"
    assert len(results.rows[0].runs) == 0
    results, _ = testbed.run_suite(plan("a", "b"), budget_s=8.0)
    assert runs_made(testbed)[0] == "a0"


def test_a_row_that_is_longer_than_the_budget_is_undecided(
    testbed: SuiteTestbed, loadable: None
) -> None:
    long = stored("b", run_id="20260101-000000-abcd", key="x", figures={ELAPSED: 150.0})
    ResultsStore(testbed.out)._add([long])

    results, _ = testbed.run_suite(plan("a", "b"), budget_s=16.0)

    assert [row.verdict for row in results.rows] == [HELD, UNDECIDED]
    assert results.rows[1].why == "not run: it takes longer than the budget"
    assert results.verdict == UNDECIDED
    assert results.warnings == ("the budget of 16 s is too short for b: about 2 min",)
