"""What a run is to come out as: by its outcome alone, or by what each check finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from streamquake.reports.record.expected_outcome import Expected
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome, worst

HELD, UNDECIDED, VIOLATED = Outcome


def result(check: str, outcome: Outcome, *classes: str) -> CheckResult:
    findings = tuple(Finding(what=each) for each in classes)
    return CheckResult(check=check, outcome=outcome, summary="said so", findings=findings)


def met(expect: Any, *checks: CheckResult) -> tuple[Outcome, str]:
    return Expected.of(expect).met(worst(each.outcome for each in checks), checks)


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
        ([result("exactly_once", UNDECIDED)], UNDECIDED, "exactly_once is undecided: said so"),
        ([DUPLICATED, result("progress", UNDECIDED)], UNDECIDED, "progress is undecided"),
        ([LATE, result("exactly_once", UNDECIDED)], VIOLATED, "recovery is violated"),
        ([FINE], UNDECIDED, "exactly_once was not judged"),
    ],
)
def test_a_named_class_must_be_found_and_nothing_else(
    checks: Sequence[CheckResult], outcome: Outcome, why: str
) -> None:
    came, said = met({"exactly_once": "duplicated"}, *checks)

    assert came == outcome
    assert why in said
    assert bool(said) == bool(why)


def test_of_several_classes_all_must_be_found() -> None:
    both = {"exactly_once": ["duplicated", "reordered"]}

    assert met(both, result("exactly_once", VIOLATED, "reordered", "duplicated"))[0] == HELD
    assert met(both, DUPLICATED)[0] == VIOLATED


def test_what_is_said_of_a_single_finding_is_no_class() -> None:
    refused = result("exactly_once", VIOLATED, "phantom, though the send was refused")
    assert met({"exactly_once": "phantom"}, refused)[0] == HELD


def test_an_outcome_in_place_of_a_class_asks_for_it_alone() -> None:
    checks = (result("recovery", VIOLATED, "not recovered"), result("execution", UNDECIDED))

    assert met({"recovery": "violated", "execution": "undecided"}, *checks)[0] == HELD
    assert met({"recovery": "violated"}, *checks) == (UNDECIDED, "execution is undecided: said so")
    assert met({"recovery": "undecided", "execution": "undecided"}, *checks)[0] == VIOLATED


def test_a_record_that_is_not_whole_is_never_as_expected() -> None:
    named = Expected.of({"progress": "held"})

    assert named.met(UNDECIDED, (result("progress", HELD),))[0] == UNDECIDED


def test_without_names_any_check_brings_the_outcome_about() -> None:
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
    ],
)
def test_it_is_read_from_what_it_is_written_as(written: Any, text: str, outcome: Outcome) -> None:
    expected = Expected.of(written)

    assert (str(expected), expected.outcome) == (text, outcome)
    assert Expected.of(expected.to_json()) == expected


def test_another_word_is_refused() -> None:
    with pytest.raises(ValueError, match='expected held or undecided or violated, got "wrong"'):
        Expected.of("wrong")


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
        ({"exactly_once": "lost", "latency": "late"}, [FINE],
         "exactly_once was not judged; latency was not judged"),
    ],
)  # fmt: skip
def test_everything_that_is_not_as_expected_is_told(
    expect: Any, checks: Sequence[CheckResult], why: str
) -> None:
    assert met(expect, *checks)[1] == why


def test_a_record_that_is_not_whole_says_so() -> None:
    named = Expected.of({"progress": "held"})
    said = "the run is undecided, and held was expected"
    assert named.met(UNDECIDED, (result("progress", HELD),)) == (UNDECIDED, said)
    assert Expected.of({}) == Expected()
