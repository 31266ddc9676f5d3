"""The failure of a run, and what the tries say about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streamquake.harness.campaign.shrinking.failure import Failure
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from streamquake.reports.record.results import Results
from streamquake.topologies.problems import BadInput

LOST = Finding(what="lost, 3 of them")
TWICE = Finding(what="duplicated")


def check(name: str, outcome: Outcome, *findings: Finding) -> CheckResult:
    return CheckResult(check=name, outcome=outcome, summary="judged", findings=findings)


def results(*checks: CheckResult, **fields: Any) -> Results:
    whole = {"run_id": "r", "experiment": "e", "seed": 1, "ended": "completed", **fields}
    outcome = max((each.outcome for each in checks), default=Outcome.UNDECIDED)
    return Results(outcome=outcome, checks=checks, **whole)


VIOLATED = results(
    check("progress", Outcome.HELD),
    check("exactly_once", Outcome.VIOLATED, LOST, LOST, TWICE),
    check("recovery", Outcome.VIOLATED),
)


def test_the_first_violated_check_and_its_first_class_are_the_failure() -> None:
    assert Failure.of(VIOLATED, "r") == Failure(check="exactly_once", found="lost")
    assert str(Failure.of(VIOLATED, "r", found="duplicated")) == "exactly_once finds duplicated"
    assert str(Failure.of(VIOLATED, "r", "recovery")) == "recovery is violated"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("progress", ""), '--check: no violated check is called "progress".*known: exactly_once'),
        (("", "phantom"), '--class: exactly_once found nothing called "phantom".*duplicated, lost'),
    ],
)
def test_another_check_or_class_is_bad_input(options: tuple[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Failure.of(VIOLATED, "r", *options)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (results(check("recovery", Outcome.HELD)), "nothing to shrink: the run is held"),
        (
            results(check("effect", Outcome.UNDECIDED)),
            r"the run is undecided, and no check is violated \(effect: judged\)",
        ),
        (
            results(ended="failed_to_run", reason="no Docker"),
            r"the run failed to run, and no check is violated \(failed to run: no Docker\)",
        ),
        (results(ended="interrupted", reason="stopped"), "the run interrupted, and no check"),
    ],
)
def test_a_run_without_a_violated_check_has_nothing_to_shrink(run: Results, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Failure.of(run, "runs/r")


@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        (results(check("exactly_once", Outcome.VIOLATED, LOST)), "fails"),
        (results(check("exactly_once", Outcome.VIOLATED, TWICE)), "passes"),
        (results(check("exactly_once", Outcome.HELD)), "passes"),
        (results(check("exactly_once", Outcome.UNDECIDED)), "undecided"),
        (results(check("recovery", Outcome.HELD)), "undecided"),
        (results(ended="failed_to_run"), "undecided"),
        (
            results(check("effect", Outcome.UNDECIDED), check("exactly_once", Outcome.HELD)),
            "undecided",
        ),
        (
            results(
                check("effect", Outcome.UNDECIDED), check("exactly_once", Outcome.VIOLATED, LOST)
            ),
            "fails",
        ),
        (
            results(check("recovery", Outcome.UNDECIDED), check("exactly_once", Outcome.HELD)),
            "passes",
        ),
    ],
)
def test_a_try_passes_only_where_the_run_shows_it(run: Results, outcome: str) -> None:
    failure = Failure(check="exactly_once", found="lost")
    assert failure.try_of(run).outcome == outcome


def test_an_interrupted_run_passes_nothing() -> None:
    run = replace(results(check("exactly_once", Outcome.HELD)), ended="interrupted")
    assert Failure(check="exactly_once").try_of(run).outcome == "undecided"


def test_a_check_without_classes_fails_by_its_outcome() -> None:
    run = results(check("recovery", Outcome.VIOLATED))
    assert Failure(check="recovery").try_of(run).outcome == "fails"
