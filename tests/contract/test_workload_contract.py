"""The contract of every registered workload before it sends; a new workload is covered
automatically."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from streamquake.harness.experiment.workload import Workload, workloads
from streamquake.reports.record.history import History
from tests.contract.member_rules import (
    accepts_unknown_parameter,
    lost_in_json,
    minimal_member,
    without_docstring,
    wrong_units,
)


@pytest.fixture
def data_set(tmp_path: Path) -> Path:
    file = tmp_path / "records.jsonl"
    file.write_text('{"id": 1}\n')
    return file


def wrong_plan(workload: Workload) -> Iterator[str]:
    """A run waits for the planned duration of the load, and creates the topics that the load
    names."""
    if not workload.seconds > 0:
        yield f"it takes {workload.seconds} s to send"
    if workload.planned is not None and workload.planned < 1:
        yield f"it plans {workload.planned} records"
    topics = workload.topics()
    if not topics or min(topics.values()) < 1:
        yield f"it writes to {dict(topics)}"


def problems_without_sends(workload: Workload) -> Iterator[str]:
    """Of a run that broke off before it sent anything nothing is wrong with the notes."""
    yield from workload.send_problems(History([]))


def violations(kind: type[Workload], data_set: Path) -> list[str]:
    """`data_set` is the file of a load that sends one."""
    given = minimal_member(kind)
    workload = given.with_files(lambda name: data_set)
    return [
        *without_docstring(kind),
        *wrong_units(kind),
        *accepts_unknown_parameter(given),
        *lost_in_json(workload),
        *wrong_plan(workload),
        *problems_without_sends(workload),
    ]


@pytest.mark.parametrize("name", sorted(workloads))
def test_a_workload_fulfils_the_contract(name: str, data_set: Path) -> None:
    assert violations(workloads[name], data_set) == []


class EmptyWorkload(Workload):
    """Sends nothing, to no topic."""

    name: ClassVar[str] = "nothing"

    @property
    def seconds(self) -> float:
        return 0

    @property
    def planned(self) -> int:
        return 0

    def topics(self) -> Mapping[str, int]:
        return {}

    def send_problems(self, history: History) -> Iterator[str]:
        yield "nothing was sent"


def test_a_workload_that_sends_nothing_is_detected(data_set: Path) -> None:
    assert violations(EmptyWorkload, data_set) == [
        "it takes 0 s to send",
        "it plans 0 records",
        "it writes to {}",
        "nothing was sent",
    ]
