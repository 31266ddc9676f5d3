"""`command`: the recorded result of a program is the verdict; no program is started to judge."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.command import Command
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.histories import Story, case

RULE = Command(given_name="rule", run=("judge",))


@pytest.fixture(autouse=True)
def no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **options: pytest.fail("it was run"))


def judged(folder: Path, *results: dict[str, Any], check: str = "rule") -> CheckResult:
    story = Story().sent(1, 400)
    for result in results:
        story.at(9, Action.COMMAND_ENDED, check=check, argv=["judge"], **result)
    return RULE.check(case(story, folder))


def test_status_0_is_held_and_the_last_line_is_the_summary(tmp_path: Path) -> None:
    result = judged(tmp_path, {"exit_code": 0, "last_lines": ["read 400", "all totals add up"]})
    assert (result.check, result.outcome) == ("rule", Outcome.HELD)
    assert result.summary == "all totals add up"

    assert judged(tmp_path, {"exit_code": 0}).summary == "the program ended with status 0"


def test_status_1_is_violated_and_the_lines_are_findings(tmp_path: Path) -> None:
    result = judged(tmp_path, {"exit_code": 1, "last_lines": ["k-1: 7", "x" * 900]})
    assert result.outcome == Outcome.VIOLATED
    assert [finding.what for finding in result.findings] == list(RULE.classes) * 2
    assert result.findings[0].detail == {"line": "k-1: 7"}
    assert result.summary.endswith("… (900 characters)")

    (finding,) = judged(tmp_path, {"exit_code": 1}).findings
    assert finding.what == "reported", "an expectation of this class is met without a line too"


@pytest.mark.parametrize(
    ("result", "summary"),
    [
        (
            {"exit_code": 2, "last_errors": ["usage", "no such file"]},
            "the program ended with status 2: no such file",
        ),
        ({"exit_code": 127}, "the program ended with status 127: it printed no error"),
        ({"exit_code": -9}, "signal 9 ended the program"),
        (
            {"exit_code": None, "reason": "it did not end within 60 s"},
            "the program has no exit status: it did not end within 60 s",
        ),
        ({}, "the program has no exit status: the record does not say why"),
    ],
)
def test_every_other_end_is_undecided(tmp_path: Path, result: dict[str, Any], summary: str) -> None:
    found = judged(tmp_path, result)
    assert (found.outcome, found.summary) == (Outcome.UNDECIDED, summary)


def test_without_a_result_of_its_own_it_is_undecided(tmp_path: Path) -> None:
    for found in (judged(tmp_path), judged(tmp_path, {"exit_code": 0}, check="another")):
        assert found.outcome == Outcome.UNDECIDED
        assert "the record has no result of the program" in found.summary


@pytest.mark.parametrize("argv", [["judge", "-v"], ["judge"], [], ["judge", "--all", "-v"]])
def test_a_result_of_other_arguments_is_undecided(tmp_path: Path, argv: list[str]) -> None:
    rule = Command(given_name="rule", run=("judge", "--all"))
    story = Story().at(9, Action.COMMAND_ENDED, check="rule", argv=argv, exit_code=0)
    result = rule.check(case(story, tmp_path))
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        "the recorded result is of other arguments than those of the plan",
    )


@pytest.mark.parametrize(
    ("run", "argv"),
    [
        (("./judge.py", "--all"), ["/bin/true", "--all"]),
        (("/home/me/judge.py",), ["/home/judge.py/me"]),
        (("judge",), []),
        (("judge",), [""]),
        (("judge",), [1]),
    ],
)
def test_a_result_of_another_program_is_undecided(
    tmp_path: Path, run: tuple[str, ...], argv: list[Any]
) -> None:
    rule = Command(given_name="rule", run=run)
    story = Story().at(9, Action.COMMAND_ENDED, check="rule", argv=argv, exit_code=0)
    result = rule.check(case(story, tmp_path))
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        "the recorded result is of another program than that of the plan",
    )


@pytest.mark.parametrize(
    ("argv", "recorded"),
    [
        (("./judge", "--all"), ["/home/me/judge", "--all"]),
        (("judge", "--password=hunter2"), ["judge", "--password=***"]),
        (("./password=hunter2/judge",), ["***"]),
    ],
    ids=["a path", "a secret", "a hidden path"],
)
def test_a_path_of_the_program_and_a_hidden_secret_are_the_same_command(
    tmp_path: Path, argv: tuple[str, ...], recorded: list[str]
) -> None:
    rule = Command(given_name="rule", run=argv)
    story = Story().at(9, Action.COMMAND_ENDED, check="rule", argv=recorded, exit_code=0)
    assert rule.check(case(story, tmp_path)).outcome == Outcome.HELD


@pytest.mark.parametrize("codes", [(0, 1), (1, 0), (0, 0)])
def test_several_results_of_one_program_are_undecided(
    tmp_path: Path, codes: tuple[int, ...]
) -> None:
    result = judged(tmp_path, *({"exit_code": code} for code in codes))
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        "the record has 2 results of the program, which a run starts once",
    )


@pytest.mark.parametrize("code", [0, 1])
def test_a_status_with_a_reason_for_none_is_undecided(tmp_path: Path, code: int) -> None:
    result = judged(tmp_path, {"exit_code": code, "reason": "it did not end within 60 s"})
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        f"the program is recorded to have ended with status {code}, and to have no status: it did "
        "not end within 60 s",
    )


@pytest.mark.parametrize("phase", ["read", "tear down", "commands"])
@pytest.mark.parametrize(
    ("began_s", "outcome"), [(8, Outcome.HELD), (10, Outcome.UNDECIDED)], ids=["after", "before"]
)
def test_a_program_ends_after_the_outputs_were_read(
    tmp_path: Path, phase: str, began_s: float, outcome: Outcome
) -> None:
    events: list[tuple[float, Action, dict[str, Any]]] = [
        (7, Action.PHASE, {"phase": "disturb"}),
        (began_s, Action.PHASE, {"phase": phase}),
        (9, Action.COMMAND_ENDED, {"check": "rule", "argv": ["judge"], "exit_code": 0}),
    ]
    story = Story()
    for at_s, action, value in sorted(events, key=lambda event: event[0]):
        story.at(at_s, action, **value)
    result = RULE.check(case(story, tmp_path))
    assert result.outcome == outcome
    if outcome == Outcome.UNDECIDED:
        assert result.summary == (
            f"the program ended at 9.0 s, before the phase '{phase}' of the run, which began at "
            "10.0 s"
        )


def test_the_path_of_a_program_is_relative_to_its_document(tmp_path: Path) -> None:
    assert Command(run=("./judge", "a/b")).beside(tmp_path).run == (f"{tmp_path}/judge", "a/b")
    assert Command(run=("/opt/judge",)).beside(tmp_path).run == ("/opt/judge",)
    assert Command(run=("judge", "./a")).beside(tmp_path).run == ("judge", "./a")
