"""`probe`: outages of an HTTP interface, by the recorded answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from streamquake.harness.experiment.check import CheckProbe, CommandQuestion, HttpQuestion
from streamquake.harness.verdict.checks.probe import OUTAGE, STILL_OUT, Probe
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.histories import Story, case

URL = "http://localhost:8080/health"
RULE = Probe(ask=URL, outage_within_s=5)
Answer = tuple[float, bool]
"""When it came, and whether it was the expected one."""


def story(
    *answers: Answer,
    ends: bool = True,
    gap_s: float = 0.5,
    check: str = "probe",
    counted: bool = False,
) -> Story:
    """Answers of one result each; each was asked 0.1 s before, and the one before it 0.5 s
    before. Runs count them since a later version."""
    told = Story().sent(1, 400)
    for number, (at_s, met) in enumerate(answers):
        before_met = None if number == 0 else answers[number - 1][1]
        told.at(
            at_s,
            Action.PROBE_ANSWERED,
            nth=number + 1 if counted else None,
            before_met=before_met if counted else None,
            check=check,
            met=met,
            reason=None if met else "HTTP 503, 200 expected",
            asked_s=at_s - 0.1,
            before_asked_s=None if number == 0 else at_s - 0.6,
            before_at_s=None if number == 0 else at_s - 0.5,
            longest_gap_s=gap_s,
            is_last=ends and number == len(answers) - 1,
        )
    return told


def with_fault(told: Story, at_s: float = 10) -> Story:
    nodes = ["kafka/broker-1"]
    return told.at(
        at_s, Action.FAULT_CALLED, step=0, fault="kill", target=nodes[0], nodes=nodes, params={}
    )


def judged(folder: Path, told: Story, rule: Probe = RULE) -> CheckResult:
    return rule.check(case(told, folder))


def test_the_expected_answer_all_the_time_is_held(tmp_path: Path) -> None:
    result = judged(tmp_path, story((2, True), (60, True)))
    assert (result.outcome, result.counts["outages"]) == (Outcome.HELD, 0)
    assert result.summary == "answered as expected for 58 s"


def test_a_short_outage_is_held(tmp_path: Path) -> None:
    told = with_fault(story((2, True), (12, False), (15, True), (60, True)))
    result = judged(tmp_path, told)
    assert (result.outcome, result.counts) == (
        Outcome.HELD,
        {"outages": 1, "longest_outage_s": 3.6},
    )
    assert result.summary == "one outage of up to 3.6 s; 5 s allowed"


def test_a_long_outage_is_violated(tmp_path: Path) -> None:
    told = with_fault(
        story((2, True), (12, False), (18, True), (30, False), (31, True), (60, True))
    )
    result = judged(tmp_path, told)
    (finding,) = result.findings
    assert (result.outcome, finding.what, finding.where) == (Outcome.VIOLATED, OUTAGE, "12.0 s")
    assert finding.detail == {"at_least_s": 5.4, "reason": "HTTP 503, 200 expected"}


def test_an_outage_of_the_length_of_the_limit_is_undecided(tmp_path: Path) -> None:
    """The answers prove 4.4 s, and exclude no more than 5.6 s."""
    told = with_fault(story((2, True), (12, False), (17, True), (60, True)))
    result = judged(tmp_path, told)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == (
        "an outage took between 4.4 and 5.6 s, and 5 s are allowed; ask more often"
    )


def test_an_outage_of_exactly_the_limit_is_not_proven_to_be_longer(tmp_path: Path) -> None:
    told = with_fault(story((2, True), (12, False), (17.6, True), (60, True)))
    assert judged(tmp_path, told).outcome == Outcome.UNDECIDED


def test_a_first_answer_that_is_unexpected_begins_when_it_was_asked(tmp_path: Path) -> None:
    told = with_fault(story((12, False), (14, True), (60, True)), 11.95)
    assert judged(tmp_path, told).counts["longest_outage_s"] == 2.1
    alone = with_fault(story((12, False)), 11.95)
    assert judged(tmp_path, alone).outcome == Outcome.VIOLATED


def test_an_unexpected_last_answer_is_violated_however_short(tmp_path: Path) -> None:
    result = judged(tmp_path, with_fault(story((2, True), (59, False), (60, False))))
    (finding,) = result.findings
    assert (result.outcome, finding.what) == (Outcome.VIOLATED, STILL_OUT)


def test_an_outage_that_is_cut_off_counts_as_far_as_it_was_seen(tmp_path: Path) -> None:
    short = judged(tmp_path, with_fault(story((2, True), (12, False), ends=False)))
    assert short.outcome == Outcome.UNDECIDED
    assert short.summary == "the record does not have the last answer"
    told = with_fault(story((2, True), (12, False), (20, True), (40, False), ends=False))
    assert judged(tmp_path, told).outcome == Outcome.VIOLATED


def without(told: Story, *answers: int) -> Story:
    """The story without some of its answers, by their numbers."""
    left, number = Story(), 0
    for event in told.history():
        if event.action == Action.PROBE_ANSWERED:
            number += 1
            if number - 1 in answers:
                continue
        left.at(event.at_s, event.action, **event.value)
    return left


LONG = ((2, True), (12, False), (25, True), (60, True))
SHORT = ((2, True), (12, False), (13, True), (30, False), (31, True), (60, True))


@pytest.mark.parametrize(
    ("answers", "missing", "reason"),
    [
        (SHORT, (0,), "the record does not have the first answer"),
        (LONG, (0, 1), "the record does not have the first answer"),
        (LONG, (1,), "the answers at 2.0 s and 25.0 s do not follow from each other"),
        (SHORT, (5,), "the record does not have the last answer"),
        (SHORT, (2,), "the answers at 12.0 s and 30.0 s do not follow from each other"),
    ],
    ids=["first", "first two", "unexpected", "last", "expected"],
)
def test_a_missing_answer_makes_it_undecided(
    tmp_path: Path, answers: Sequence[Answer], missing: tuple[int, ...], reason: str
) -> None:
    whole = judged(tmp_path, with_fault(story(*answers)))
    assert whole.outcome == (Outcome.VIOLATED if answers == LONG else Outcome.HELD)
    result = judged(tmp_path, with_fault(without(story(*answers), *missing)))
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.startswith(reason)


@pytest.mark.parametrize(
    ("answers", "drained_s", "reason"),
    [
        (((2, True), (9, True)), None, "the record does not have the last answer"),
        (((2, True), (50, True)), 99, "the record does not have the last answer"),
        (((52, True), (99, True)), 98, "the record does not have the first answer"),
    ],
    ids=["last before the fault", "last before the drain", "first after the fault"],
)
def test_answers_that_do_not_span_the_fault_and_the_drain_are_undecided(
    tmp_path: Path, answers: Sequence[Answer], drained_s: float | None, reason: str
) -> None:
    told = with_fault(story(*answers))
    if drained_s is not None:
        told.at(drained_s, Action.DRAINED)
    result = judged(tmp_path, told)
    assert (result.outcome, result.summary) == (Outcome.UNDECIDED, reason)


def test_the_last_answer_is_asked_after_the_drain(tmp_path: Path) -> None:
    told = with_fault(story((2, True), (60, True))).at(59.9, Action.DRAINED)
    assert judged(tmp_path, told).outcome == Outcome.HELD


@pytest.mark.parametrize("wrong", [{"is_last": True}, {"before_asked_s": None}])
def test_a_first_or_last_answer_between_others_contradicts_the_record(
    tmp_path: Path, wrong: dict[str, bool | None]
) -> None:
    told = Story()
    for number, event in enumerate(with_fault(story(*SHORT)).history()):
        told.at(event.at_s, event.action, **{**event.value, **(wrong if number == 3 else {})})
    result = judged(tmp_path, told)
    assert result.outcome == Outcome.UNDECIDED
    assert "do not follow from each other" in result.summary


BRIEF = ((2, True), (12, False), (13, True), (60, True))


@pytest.mark.parametrize(
    ("answers", "missing", "outcome"),
    [
        (LONG, (), Outcome.VIOLATED),
        (LONG, (1, 2), Outcome.UNDECIDED),
        (LONG, (0,), Outcome.VIOLATED),
        (BRIEF, (), Outcome.HELD),
        (BRIEF, (2,), Outcome.UNDECIDED),
        (BRIEF, (1, 2), Outcome.UNDECIDED),
        (BRIEF, (0, 1), Outcome.UNDECIDED),
        (BRIEF, (3,), Outcome.UNDECIDED),
    ],
)
def test_counted_answers_show_which_are_missing(
    tmp_path: Path, answers: Sequence[Answer], missing: Sequence[int], outcome: Outcome
) -> None:
    told = with_fault(story(*answers, counted=True))
    for number in reversed(missing):
        told = without(told, number)
    assert judged(tmp_path, told).outcome == outcome


def test_an_outage_that_is_proven_is_violated_though_an_answer_is_missing(tmp_path: Path) -> None:
    """What is missing may not hide it, and may not add to it."""
    told = with_fault(without(story(*SHORT[:-1], (40, False), (50, True), (60, True)), 2))
    result = judged(tmp_path, told)
    (finding,) = result.findings
    assert (result.outcome, finding.where) == (Outcome.VIOLATED, "40.0 s")


@pytest.mark.parametrize("called_s", [None, 20])
def test_an_outage_before_any_fault_is_undecided(tmp_path: Path, called_s: float | None) -> None:
    told = story((2, True), (12, False), (13, True), (60, True))
    result = judged(tmp_path, told if called_s is None else with_fault(told, called_s))
    when = "in a run without a fault" if called_s is None else "before any fault"
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == f"the answer was an unexpected one {when}: HTTP 503, 200 expected"


def test_a_time_without_questions_is_undecided(tmp_path: Path) -> None:
    result = judged(tmp_path, story((2, True), (60, True), gap_s=7))
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        "nothing was asked for 7.0 s, so an outage may have been missed",
    )


@pytest.mark.parametrize(("before_s", "outcome"), [(55, Outcome.HELD), (54, Outcome.UNDECIDED)])
def test_a_time_without_questions_before_the_last_answer_is_undecided(
    tmp_path: Path, before_s: float, outcome: Outcome
) -> None:
    """Though the recorded longest time says otherwise."""
    told = changed(story((2, True), (60, True)), 2, before_asked_s=before_s, before_at_s=before_s)
    result = judged(tmp_path, told)
    assert result.outcome == outcome
    if outcome == Outcome.UNDECIDED:
        assert result.summary == "nothing was asked for 5.9 s, so an outage may have been missed"


@pytest.mark.parametrize(
    ("number", "moments"),
    [
        (1, {"asked_s": -1.0}),
        (1, {"longest_gap_s": -0.5}),
        (1, {"asked_s": 2.1}),
        (2, {"before_asked_s": -1.0}),
        (2, {"before_asked_s": 12.0, "before_at_s": None}),
        (2, {"before_at_s": 12.0}),
        (2, {"before_asked_s": 11.7}),
    ],
)
@pytest.mark.parametrize("answers", [SHORT, LONG], ids=["short", "long"])
def test_moments_that_contradict_each_other_are_undecided(
    tmp_path: Path, answers: Sequence[Answer], number: int, moments: dict[str, float | None]
) -> None:
    result = judged(tmp_path, changed(with_fault(story(*answers)), number, **moments))
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        f"the moments of the answer at {answers[number - 1][0]:.1f} s contradict each other",
    )


def changed(told: Story, number: int, **value: float | None) -> Story:
    """The story with other values in one of its answers, counted from 1."""
    other, answers = Story(), 0
    for event in told.history():
        answers += event.action == Action.PROBE_ANSWERED
        is_it = event.action == Action.PROBE_ANSWERED and answers == number
        other.at(event.at_s, event.action, **{**event.value, **(value if is_it else {})})
    return other


def test_answers_of_another_check_do_not_count(tmp_path: Path) -> None:
    result = judged(tmp_path, story((2, True), (60, True), check="other"))
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        "the record has no answer, which only a run asks for",
    )


def test_a_node_of_the_cluster_is_asked_at_its_port() -> None:
    node = "flink/jobmanager-1"
    for ask, path in ((f"{node}:8081/jobs?x=1", "/jobs?x=1"), (f"{node}:8081", "/")):
        assert Probe(ask=ask, outage_within_s=5).probe().question == HttpQuestion(
            url=None, node=node, port=8081, path=path, status=200
        )
    page = HttpQuestion(url=URL, node=None, port=0, path="/", status=200)
    assert RULE.probe() == CheckProbe(question=page, values={}, every_s=0.5, timeout_s=2)


def test_a_node_runs_a_command() -> None:
    given = {"ask": "db/server-1", "run": ["psql", "-c", "SELECT 1"], "prints": "1"}
    rule = Probe.model_validate({**given, "outage_within_s": 5})
    assert rule.probe().question == CommandQuestion(
        node="db/server-1", argv=("psql", "-c", "SELECT 1"), output="1"
    )


@pytest.mark.parametrize(
    "ask",
    ["http://token-service:8080/health", "http://h/secrets/?page=1&token=", "http://h/?at=a@b"],
)
def test_a_url_without_a_secret_is_accepted(ask: str) -> None:
    assert Probe(ask=ask, outage_within_s=5).ask == ask


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ask": "localhost:8080"}, "expected a URL such as"),
        (
            {"ask": "http://me:secret@localhost/"},
            r'got "http://\*\*\*@localhost/"; it is recorded, so it takes no user and no password',
        ),
        ({"ask": "http://me:a/secret@localhost/"}, r'got "http://\*\*\*@localhost/"'),
        ({"ask": "http://localhost/?a=b&token=x"}, 'takes no secret; leave "token" out'),
        ({"ask": "http://localhost/p;password=x"}, 'takes no secret; leave "password" out'),
        ({"ask": "http://localhost/?api%5Fkey=x"}, 'takes no secret; leave "api_key" out'),
        ({"ask": "http://localhost/?to=http://u:p@h/"}, 'takes no secret; leave "to" out'),
        ({"ask": "flink/jobmanager-1:8081/x?token=x"}, 'takes no secret; leave "token" out'),
        ({"ask": "ftp://localhost/"}, "expected a URL such as"),
        ({"ask": "http://a b/"}, "expected a URL such as"),
        ({"every_s": 5}, "with a question every 5 s no outage of 5 s is seen; ask more often"),
        ({"timeout_s": 60}, "less than or equal to 8"),
        ({"status": 7}, "greater than or equal to 100"),
        ({"ask": "db/server-1"}, "`run` is a command for a node"),
        ({"run": ["true"]}, "`run` is a command for a node"),
        ({"ask": "db/server-1:80", "run": ["true"]}, "`run` is a command for a node"),
        ({"prints": "1"}, "prints: only a command prints"),
        ({"ask": "a/b-1", "run": ["true"], "status": 200}, "status: a command has no HTTP status"),
    ],
)
def test_wrong_parameters_are_rejected(parameters: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Probe.model_validate({"ask": URL, "outage_within_s": 5, **parameters})
