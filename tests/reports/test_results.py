"""Results survive their file; other schemas do not pass."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from streamquake.reports.record.expected_outcome import ExpectedOutcome, Written
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome, worst
from streamquake.reports.record.results import Ended, Results
from tests.reports.sample_run import made_results


@pytest.mark.parametrize("outcome", [Outcome.HELD, Outcome.VIOLATED])
def test_results_come_back_as_they_were(outcome: Outcome) -> None:
    results = made_results("run-1", outcome)
    assert Results.from_json(json.loads(json.dumps(results.to_json()))) == results


def test_the_file_holds_the_words_of_the_contract() -> None:
    document = made_results("run-1", Outcome.VIOLATED).to_json()
    assert document["schema"] == 1
    assert document["ended"] == "completed"
    assert document["outcome"] == "violated"
    assert document["checks"][0]["outcome"] == "violated"
    assert document["checks"][0]["findings"][0]["what"] == "duplicated"
    assert document["faults"][0]["in_effect"] is True


@pytest.mark.parametrize("schema", [None, 0, 2, True, 1.0])
def test_another_schema_is_refused(schema: object) -> None:
    document = {**made_results("run-1", Outcome.HELD).to_json(), "schema": schema}
    with pytest.raises(ValueError, match=f"schema {schema}"):
        Results.from_json(document)


def test_the_worst_outcome_is_the_runs_and_nothing_judged_is_undecided() -> None:
    assert worst([Outcome.HELD, Outcome.VIOLATED, Outcome.UNDECIDED]) is Outcome.VIOLATED
    assert worst([Outcome.HELD, Outcome.UNDECIDED]) is Outcome.UNDECIDED
    assert worst([]) is Outcome.UNDECIDED


@pytest.mark.parametrize("run_id", ["../../x", "/etc", "a\nb", "", ".", "a b", "x" * 200])
def test_a_run_that_is_called_like_a_path_is_no_result(run_id: str) -> None:
    document = {**made_results("run-1", Outcome.HELD).to_json(), "run_id": run_id}

    with pytest.raises(ValueError, match="no run can be called"):
        Results.from_json(document)


@pytest.mark.parametrize(
    "changed",
    [{"ended": "nearly"}, {"cause": 3}, {"reason": 5}, {"reason": None}, {"warnings": [{"a": 1}]}],
)
def test_an_end_that_is_no_text_is_refused(changed: dict[str, object]) -> None:
    document = {**made_results("run-1", Outcome.HELD).to_json(), **changed}

    with pytest.raises(ValueError, match="how the run ended"):
        Results.from_json(document)


@pytest.mark.parametrize(("ended", "expected"), [("completed", True), ("failed_to_run", False)])
def test_only_a_run_that_got_to_its_end_is_as_expected(ended: Ended, expected: bool) -> None:
    made = replace(made_results("run-1", Outcome.HELD), ended=ended, checks=(), faults=())
    undecided = replace(made, outcome=Outcome.UNDECIDED, expected=ExpectedOutcome.of("undecided"))
    assert undecided.as_expected == expected


def test_a_record_of_an_older_version_has_no_cause() -> None:
    document = made_results("run-1", Outcome.UNDECIDED).to_json()
    del document["cause"]

    assert Results.from_json(document).cause == ""


def test_a_field_of_a_later_version_is_left_out() -> None:
    results = replace(made_results("run-1", Outcome.UNDECIDED), cause="image failed")

    assert Results.from_json({**results.to_json(), "of_tomorrow": 1}) == results


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.UNDECIDED, "undecided"),
        (Outcome.UNDECIDED, {"exactly_once": ["held", "undecided"]}),
        (Outcome.VIOLATED, "violated"),
        (Outcome.VIOLATED, {"exactly_once": "duplicated"}),
    ],
)
def test_a_run_whose_record_is_not_whole_is_not_as_expected(
    outcome: Outcome, expected: Written
) -> None:
    """What is missing may be why a check is undecided, or found nothing more."""
    found = (Finding(what="duplicated"),) if outcome == Outcome.VIOLATED else ()
    check = CheckResult(check="exactly_once", outcome=outcome, summary="", findings=found)
    whole = replace(
        made_results("run-1", Outcome.HELD),
        outcome=outcome,
        checks=(check,),
        expected=ExpectedOutcome.of(expected),
    )
    damaged = replace(whole, reason="the metrics cannot be read")

    assert (whole.as_expected, whole.unmet) == (True, "")
    assert (damaged.met, damaged.unmet) == (Outcome.UNDECIDED, damaged.reason)
    assert not damaged.as_expected


def test_a_run_without_its_end_says_so() -> None:
    cut = replace(made_results("run-1", Outcome.HELD), ended="interrupted")
    assert (cut.met, cut.unmet) == (Outcome.UNDECIDED, "the run did not come to its end")
