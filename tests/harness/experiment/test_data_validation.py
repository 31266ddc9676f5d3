"""Data faults that make the correct result unknown are rejected, with the next step."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.faults.fault import faults
from streamquake.harness.experiment.data_validation import data_problem
from streamquake.harness.experiment.model import Experiment, Job
from streamquake.harness.experiment.outputs import JobPromise
from streamquake.harness.workloads.numbered import Numbered
from tests.fakes import TOPOLOGY

WINDOWS = JobPromise(lateness_ms=2000, expected="SELECT key, COUNT(*) FROM sent GROUP BY key")
ROWS = JobPromise(expected="SELECT * FROM sent LATERAL VIEW explode(sequence(1, copies)) AS copy")


def problems_found(
    name: str, promise: JobPromise | None, keys: int = 8, **params: Any
) -> list[str]:
    job = None if promise is None else Job(sql="SELECT 1", promise=promise)
    workload = Numbered(records=10, rate_per_s=1, keys=keys)
    experiment = Experiment(name="sample", topology=TOPOLOGY, job=job, workload=workload)
    return list(data_problem(faults[name](**params), experiment))


@pytest.mark.parametrize(
    ("name", "promise", "params", "why"),
    [
        ("late_events", WINDOWS, {"late_ms": 2000}, "expected late_ms + out_of_order_ms below"),
        ("late_events", WINDOWS, {"late_ms": 1500, "out_of_order_ms": 500}, "got 2000"),
        ("fan_out", WINDOWS, {"copies": 5}, "take explode.sql"),
        ("fan_out", None, {"copies": 5}, "take explode.sql"),
        ("poison", None, {}, "needs a job that reads it"),
        ("skew", WINDOWS, {"hot_share": 0.5, "keys": 1}, "raise `keys`"),
    ],
)
def test_a_data_fault_with_an_unknown_correct_result_is_rejected(
    name: str, promise: JobPromise | None, params: dict[str, Any], why: str
) -> None:
    (role_problem,) = problems_found(name, promise, **params)

    assert why in role_problem


@pytest.mark.parametrize(
    ("name", "promise", "params"),
    [
        ("late_events", WINDOWS, {"late_ms": 1500, "out_of_order_ms": 499}),
        ("late_events", ROWS, {"late_ms": 60_000}),
        ("late_events", None, {"late_ms": 60_000}),
        ("fan_out", ROWS, {"copies": 5}),
        ("poison", WINDOWS, {}),
        ("skew", WINDOWS, {"hot_share": 0.5}),
        ("surge", None, {"factor": 2}),
    ],
)
def test_a_data_fault_with_a_known_correct_result_is_accepted(
    name: str, promise: JobPromise | None, params: dict[str, Any]
) -> None:
    assert problems_found(name, promise, **params) == []
