"""The expected outcome of a run: one outcome, or the findings of each check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from streamquake.harness.experiment.check import checks as check_registry
from streamquake.reports.record.expected_outcome import OUTCOMES, ExpectedOutcome
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome, worst

HELD, UNDECIDED, VIOLATED = Outcome


def result(check: str, outcome: Outcome, *classes: str) -> CheckResult:
    findings = tuple(Finding(what=each) for each in classes)
    return CheckResult(check=check, outcome=outcome, summary="the reason", findings=findings)


def met(expect: Any, *checks: CheckResult) -> tuple[Outcome, str]:
    return ExpectedOutcome.of(expect).met(worst(each.outcome for each in checks), checks)


DUPLICATED = result("exactly_once", VIOLATED, "duplicated", "duplicated")
LATE = result("recovery", VIOLATED, "too late")
FINE = result("recovery", HELD)


@pytest.mark.parametrize(
    ("checks", "outcome", "why"),
    [
        ([DUPLICATED, FINE], HELD, ""),
        ([result("exactly_once", HELD), FINE], VIOLATED, "exactly_once is held, expected"),
        ([result("exactly_once", HELD), LATE], VIOLATED, "exactly_once is held"),
        ([DUPLICATED, LATE], VIOLATED, "recovery is violated, expected held"),
        ([result("exactly_once", VIOLATED, "lost")], VIOLATED, "exactly_once found lost, expected"),
        (
            [result("exactly_once", VIOLATED, "duplicated", "lost")],
            VIOLATED,
            "found duplicated and lost, expected duplicated",
        ),
        ([result("exactly_once", VIOLATED)], VIOLATED, "exactly_once found nothing"),
        ([result("exactly_once", UNDECIDED)], UNDECIDED, "exactly_once is undecided: the reason"),
        ([DUPLICATED, result("progress", UNDECIDED)], UNDECIDED, "progress is undecided"),
        ([LATE, result("exactly_once", UNDECIDED)], VIOLATED, "recovery is violated"),
        ([FINE], UNDECIDED, "exactly_once was not judged"),
    ],
)
def test_a_named_class_must_be_found_and_nothing_else(
    checks: Sequence[CheckResult], outcome: Outcome, why: str
) -> None:
    actual, message = met({"exactly_once": "duplicated"}, *checks)

    assert actual == outcome
    assert why in message
    assert bool(message) == bool(why)


def test_all_named_classes_must_be_found() -> None:
    both = {"exactly_once": ["duplicated", "reordered"]}

    assert met(both, result("exactly_once", VIOLATED, "reordered", "duplicated"))[0] == HELD
    assert met(both, DUPLICATED)[0] == VIOLATED


@pytest.mark.parametrize("classes", [("duplicated",), ("duplicated", "lost"), ("lost",)])
def test_classes_in_doubt_are_not_those_that_were_expected(classes: tuple[str, ...]) -> None:
    """A record that is missing in a reading may be of any class."""
    sure = result("exactly_once", Outcome.VIOLATED, *classes)
    doubted = replace(sure, doubt="9 records were read, and the record holds 8")
    message = f"the classes of exactly_once are in doubt: {doubted.doubt}"
    assert met({"exactly_once": "duplicated"}, doubted) == (Outcome.UNDECIDED, message)
    assert met({"exactly_once": "duplicated"}, sure)[0] != Outcome.UNDECIDED
    assert met({"exactly_once": "violated"}, doubted) == (Outcome.HELD, "")
    assert met({"exactly_once": "held"}, doubted)[0] == Outcome.VIOLATED


def test_the_detail_of_a_finding_is_no_part_of_its_class() -> None:
    rejected = result("exactly_once", VIOLATED, "phantom, though the send was rejected")
    assert met({"exactly_once": "phantom"}, rejected)[0] == HELD


def test_an_expected_outcome_of_a_check_allows_only_this_outcome() -> None:
    checks = (result("recovery", VIOLATED, "not recovered"), result("execution", UNDECIDED))

    assert met({"recovery": "violated", "execution": "undecided"}, *checks)[0] == HELD
    assert met({"recovery": "violated"}, *checks) == (
        UNDECIDED,
        "execution is undecided: the reason",
    )
    assert met({"recovery": "undecided", "execution": "undecided"}, *checks)[0] == VIOLATED


EITHER: Any = {"execution": ["held", "undecided"]}


@pytest.mark.parametrize(
    ("expect", "checks", "outcome", "why"),
    [
        (EITHER, [result("execution", HELD), FINE], HELD, ""),
        (EITHER, [result("execution", UNDECIDED), FINE], HELD, ""),
        (
            EITHER,
            [result("execution", VIOLATED, "lost")],
            VIOLATED,
            "execution is violated, expected held or undecided",
        ),
        (EITHER, [FINE], UNDECIDED, "execution was not judged"),
        (
            EITHER,
            [result("execution", UNDECIDED), LATE],
            VIOLATED,
            "recovery is violated, expected held",
        ),
        (
            EITHER,
            [result("execution", HELD), result("recovery", UNDECIDED)],
            UNDECIDED,
            "recovery is undecided: the reason",
        ),
        ({"execution": ["undecided", "violated"]}, [result("execution", UNDECIDED)], HELD, ""),
        ({"execution": ["undecided", "violated"]}, [result("execution", VIOLATED, "x")], HELD, ""),
        (
            {"execution": ["undecided", "violated"]},
            [result("execution", HELD)],
            VIOLATED,
            "execution is held, expected undecided or violated",
        ),
    ],
)
def test_any_one_of_several_expected_outcomes_is_enough(
    expect: Any, checks: Sequence[CheckResult], outcome: Outcome, why: str
) -> None:
    assert met(expect, *checks) == (outcome, why)


@pytest.mark.parametrize("execution", [HELD, UNDECIDED])
@pytest.mark.parametrize("exactly_once", [HELD, UNDECIDED])
def test_alternatives_of_one_check_do_not_apply_to_other_checks(
    execution: Outcome, exactly_once: Outcome
) -> None:
    expect = {**EITHER, "exactly_once": ["held", "undecided"], "checkpoints": "expired"}
    either = (result("execution", execution), result("exactly_once", exactly_once))

    assert met(expect, *either, result("checkpoints", VIOLATED, "expired")) == (HELD, "")
    assert met(expect, *either, result("checkpoints", HELD))[0] == VIOLATED
    assert met(expect, *either, result("checkpoints", VIOLATED, "stuck"))[0] == VIOLATED
    assert met(expect, *either, result("checkpoints", UNDECIDED))[0] == UNDECIDED


def test_alternatives_do_not_cover_an_outcome_that_no_check_caused() -> None:
    """The checks may be held or undecided, but the run is undecided for another reason."""
    expected = ExpectedOutcome.of(EITHER)
    message = "the run is undecided, and its checks are held"
    assert expected.met(UNDECIDED, (result("execution", HELD),)) == (UNDECIDED, message)
    assert expected.met(HELD, (result("execution", UNDECIDED),))[0] == UNDECIDED


def test_a_check_that_was_judged_twice_must_be_as_expected_twice() -> None:
    assert met("held", LATE, FINE)[0] == VIOLATED
    assert met({"recovery": "held"}, LATE, FINE)[0] == VIOLATED
    assert met({"progress": "held"}, result("progress", HELD), LATE, FINE)[0] == VIOLATED


def test_a_run_with_an_incomplete_record_never_has_its_expected_outcome() -> None:
    named = ExpectedOutcome.of({"progress": "held"})

    assert named.met(UNDECIDED, (result("progress", HELD),))[0] == UNDECIDED


def test_without_named_checks_any_check_may_cause_the_outcome() -> None:
    assert met("violated", LATE) == (HELD, "")
    assert met("violated", FINE) == (VIOLATED, "violated was expected")
    assert met("held", result("recovery", UNDECIDED)) == (UNDECIDED, "held was expected")
    assert met("undecided", FINE)[0] == VIOLATED


@pytest.mark.parametrize(
    ("written", "text", "outcome"),
    [
        ("held", "held", HELD),
        ("violated", "violated", VIOLATED),
        ({"exactly_once": "lost"}, "exactly_once: lost", VIOLATED),
        ({"exactly_once": ["lost", "changed"]}, "exactly_once: lost and changed", VIOLATED),
        ({"execution": "undecided"}, "execution: undecided", UNDECIDED),
        ({"progress": "held", "latency": "late"}, "progress: held, latency: late", VIOLATED),
        ({"execution": ["held", "undecided"]}, "execution: held or undecided", UNDECIDED),
        ({"execution": ["violated", "undecided"]}, "execution: violated or undecided", VIOLATED),
        (
            {"execution": ["held", "undecided"], "checkpoints": "expired"},
            "execution: held or undecided, checkpoints: expired",
            VIOLATED,
        ),
    ],
)
def test_an_expected_outcome_is_read_from_its_own_json(
    written: Any, text: str, outcome: Outcome
) -> None:
    expected = ExpectedOutcome.of(written)

    assert (str(expected), expected.outcome) == (text, outcome)
    assert ExpectedOutcome.of(expected.to_json()) == expected


@pytest.mark.parametrize(
    ("written", "wording"),
    [
        ([], "expected an outcome or classes, got an empty list"),
        (["lost", "violated"], "expected either outcomes or classes, got lost, violated"),
        (["held", "lost"], "expected either outcomes or classes, got held, lost"),
        (["held", "violated"], "expected held or violated, got both, which no run could fail"),
        (
            ["undecided", "violated", "held"],
            "expected held or violated, got both, which no run could fail",
        ),
    ],
)
def test_an_empty_or_contradictory_list_is_rejected(written: Any, wording: str) -> None:
    with pytest.raises(ValueError, match=f"^{wording}$"):
        ExpectedOutcome.of({"exactly_once": written})


def test_no_finding_class_has_the_name_of_an_outcome() -> None:
    classes = {each for name in check_registry for each in check_registry[name].classes}
    assert classes
    assert not classes & set(OUTCOMES)


def test_an_unknown_outcome_is_rejected() -> None:
    with pytest.raises(ValueError, match='expected held or undecided or violated, got "wrong"'):
        ExpectedOutcome.of("wrong")


@pytest.mark.parametrize(
    ("expect", "checks", "why"),
    [
        (
            {"exactly_once": ["lost", "reordered"]},
            [result("exactly_once", HELD)],
            "exactly_once is held, expected lost and reordered",
        ),
        (
            {"exactly_once": ["lost", "reordered"]},
            [DUPLICATED],
            "exactly_once found duplicated, expected lost and reordered",
        ),
        (
            {"exactly_once": "lost"},
            [DUPLICATED, LATE],
            "exactly_once found duplicated, expected lost; recovery is violated, expected held",
        ),
        (
            {"exactly_once": "lost", "latency": "late"},
            [FINE],
            "exactly_once was not judged; latency was not judged",
        ),
    ],
)
def test_the_message_lists_every_difference_from_the_expected_outcome(
    expect: Any, checks: Sequence[CheckResult], why: str
) -> None:
    assert met(expect, *checks)[1] == why


def test_the_message_says_that_the_checks_did_not_cause_the_outcome() -> None:
    named = ExpectedOutcome.of({"progress": "held"})
    message = "the run is undecided, and its checks are held"
    assert named.met(UNDECIDED, (result("progress", HELD),)) == (UNDECIDED, message)
    assert ExpectedOutcome.of({}) == ExpectedOutcome()
