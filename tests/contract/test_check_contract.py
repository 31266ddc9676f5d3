"""What every registered check must do; a new check is covered by itself."""

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
from tests.contract.member_rules import least, lost_in_json, takes_unknown, undescribed, wrong_units
from tests.harness.histories import experiment, no_spark


def empty(folder: Path) -> JudgedRun:
    """A run of which nothing was recorded, with a fault in its plan and a topic as its output."""
    promise = JobPromise(outputs={"copy": Output(kafka="copy")}, expected="SELECT * FROM sent")
    plan = experiment()
    assert plan.job is not None
    whole = {
        "job": plan.job.model_copy(update={"promise": promise}),
        "workload": Numbered(records=1000, rate_per_s=100),
    }
    return JudgedRun(
        experiment=Experiment.model_validate(plan.model_copy(update=whole)),
        history=History([]),
        data=folder / "data",
        metrics=folder / "metrics.parquet",
        spark=no_spark,
    )


def decided_without_evidence(check: Check, folder: Path) -> Iterator[str]:
    """Too little evidence is undecided, with what is missing. Raises what the check raises: a check
    that crashes over a record that broke off hides what is missing."""
    result = check.check(empty(folder))
    if result.outcome != Outcome.UNDECIDED:
        yield f"{result.outcome} on an empty record: {result.summary}"
    if not result.summary:
        yield "undecided without a reason"


def broken(kind: type[Check], folder: Path) -> list[str]:
    made = least(kind)
    return [
        *undescribed(kind),
        *wrong_units(kind),
        *takes_unknown(made),
        *lost_in_json(made),
        *decided_without_evidence(made, folder),
    ]


@pytest.mark.parametrize("name", sorted(checks))
def test_a_check_keeps_the_contract(name: str, tmp_path: Path) -> None:
    assert broken(checks[name], tmp_path) == []


class Careless(Check, extra="ignore"):
    name: ClassVar[str] = "careless"

    within: Limit
    at_least: Annotated[int, Field(ge=3, exclude=True)] = 3

    def check(self, case: JudgedRun) -> CheckResult:
        return self.held("")


def test_a_check_that_keeps_nothing_of_it_is_found_out(tmp_path: Path) -> None:
    assert broken(Careless, tmp_path) == [
        "Careless has no docstring of its own, so `list` shows nothing",
        "within is a time and does not end in _s",
        "an unknown parameter is taken",
        "held on an empty record: ",
        "undecided without a reason",
    ]


def test_parameters_that_json_loses_are_found_out() -> None:
    class Lossy(BaseModel):
        kept: int = 1
        left_out: int = Field(default=2, exclude=True)

    assert list(lost_in_json(Lossy())) == []
    assert len(list(lost_in_json(Lossy(left_out=3)))) == 1
