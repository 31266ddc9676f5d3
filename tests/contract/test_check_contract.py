"""The contract of every registered check; a new check is covered automatically."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar

import pytest
from pydantic import BaseModel, Field

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.workloads.numbered import Numbered
from streamquake.reports.record.history import History
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.topologies.limits import Limit
from tests.contract.member_rules import (
    accepts_unknown_parameter,
    lost_in_json,
    minimal_member,
    without_docstring,
    wrong_units,
)
from tests.harness.histories import experiment, no_spark


def empty_run(folder: Path) -> JudgedRun:
    """A run with an empty record, with a fault in its plan and a topic as its output."""
    promise = JobPromise(outputs={"copy": Output(kafka="copy")}, expected="SELECT * FROM sent")
    plan = experiment()
    assert plan.job is not None
    details = {
        "job": plan.job.model_copy(update={"promise": promise}),
        "workload": Numbered(records=1000, rate_per_s=100),
    }
    return JudgedRun(
        experiment=Experiment.model_validate(plan.model_copy(update=details)),
        history=History([]),
        data=folder / "data",
        metrics=folder / "metrics.parquet",
        spark=no_spark,
    )


def decided_without_evidence(check: Check, folder: Path) -> Iterator[str]:
    """Without evidence the outcome is undecided, with a reason. Errors of the check are raised: a
    check that crashes on an incomplete record hides what is missing."""
    result = check.check(empty_run(folder))
    if result.outcome != Outcome.UNDECIDED:
        yield f"{result.outcome} on an empty record: {result.summary}"
    if not result.summary:
        yield "undecided without a reason"


def violations(kind: type[Check], folder: Path) -> list[str]:
    check = minimal_member(kind)
    return [
        *without_docstring(kind),
        *wrong_units(kind),
        *accepts_unknown_parameter(check),
        *lost_in_json(check),
        *decided_without_evidence(check, folder),
    ]


@pytest.mark.parametrize("name", sorted(checks))
def test_a_check_fulfils_the_contract(name: str, tmp_path: Path) -> None:
    assert violations(checks[name], tmp_path) == []


class IncompleteCheck(Check, extra="ignore"):
    name: ClassVar[str] = "careless"

    within: Limit
    at_least: Annotated[int, Field(ge=3, exclude=True)] = 3

    def check(self, case: JudgedRun) -> CheckResult:
        return self.held("")


def test_every_violation_of_the_contract_is_detected(tmp_path: Path) -> None:
    assert violations(IncompleteCheck, tmp_path) == [
        "IncompleteCheck has no docstring of its own, so `list` shows nothing",
        "within is a time and does not end in _s",
        "an unknown parameter is accepted",
        "held on an empty record: ",
        "undecided without a reason",
    ]


def test_parameters_that_json_loses_are_detected() -> None:
    class Lossy(BaseModel):
        kept: int = 1
        left_out: int = Field(default=2, exclude=True)

    assert list(lost_in_json(Lossy())) == []
    assert len(list(lost_in_json(Lossy(left_out=3)))) == 1
