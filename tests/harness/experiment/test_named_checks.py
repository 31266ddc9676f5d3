"""Several checks of one kind in an experiment: each is judged and expected by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import pytest

from streamquake.harness.experiment.check import JudgedRun, UserCheck, checks
from streamquake.harness.experiment.loader import experiment_document, experiment_of_plan
from streamquake.harness.verdict.judge import checks_of
from streamquake.reports.record.outcome import CheckResult
from tests.harness.experiment.test_loader import GOOD, load, problems_in
from tests.harness.histories import Story, case

TWO = "[{rule: {limit: 1}}, {rule: {name: second}}]"


class Rule(UserCheck):
    """A check with a limit."""

    name: ClassVar[str] = "rule"
    classes: ClassVar[tuple[str, ...]] = ("broken",)

    limit: int = 0
    fault: str | None = None

    def check(self, case: JudgedRun) -> CheckResult:
        return self.held("in the limit") if self.limit else self.violated("no limit")


@pytest.fixture(autouse=True)
def rule(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(checks)  # all members are registered before one more is
    monkeypatch.setitem(checks._members, Rule.name, Rule)


def written(entries: str, expect: str = "held") -> str:
    return f"{GOOD.replace('[progress, {recovery: {within_s: 60}}]', entries)}expect: {expect}\n"


def test_a_check_is_called_by_its_kind_or_by_its_name(tmp_path: Path) -> None:
    plan = load(written(TWO))

    titles = [check.title for check in checks_of(plan)]
    assert titles == ["progress", "effect", "execution", "rule", "second"]
    results = [check.check(case(Story(), tmp_path)) for check in plan.checks]
    assert [result.check for result in results] == ["rule", "second"]


def test_a_plan_keeps_the_names() -> None:
    plan = load(written(TWO))
    recorded = json.loads(json.dumps(experiment_document(plan)))

    assert recorded["checks"] == [{"rule": {"limit": 1}}, {"rule": {"name": "second"}}]
    assert experiment_of_plan(recorded, "run.json") == plan


def test_the_expectation_names_a_check_by_its_name() -> None:
    assert load(written(TWO, "{second: broken}")).expected.found == {"second": ("broken",)}
    assert problems_in(written(TWO, "{second: brocken}")) == [
        'e.yaml:9: expect.second: second finds nothing called "brocken"; did you mean "broken"? '
        "known: broken, held, undecided, violated"
    ]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("[{rule: {limit: 1}}, rule]", 'e.yaml:8: checks[1]: the check "rule" is given twice'),
        (
            "[{rule: {name: a}}, {rule: {name: a}}]",
            'e.yaml:8: checks[1].rule: the check "a" is given twice',
        ),
        (
            "[{rule: {name: progress}}]",
            'e.yaml:8: checks[0].rule.name: "progress" is the name of another check; choose '
            "another one",
        ),
        ("[{rule: {name: A b}}]", "e.yaml:8: checks[0].rule.name: "),
        (
            "[{rule: {fault: kill}}, {rule: {name: b, fault: pause}}]",
            'e.yaml:8: checks[1].rule.fault: the schedule has no "pause"',
        ),
    ],
)
def test_a_wrong_name_is_reported_at_its_place(entries: str, message: str) -> None:
    (problem,) = problems_in(written(entries))
    assert problem.startswith(message)
