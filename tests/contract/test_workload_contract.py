"""What every registered workload must do before it sends; a new one is covered by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import pytest

from streamquake.harness.experiment.workload import Workload, workloads
from streamquake.reports.record.history import History
from tests.contract.member_rules import least, lost_in_json, takes_unknown, undescribed, wrong_units


def wrong_plan(workload: Workload) -> Iterator[str]:
    """A run waits as long as the load takes, and makes the topics that it names."""
    if not workload.seconds > 0:
        yield f"it takes {workload.seconds} s to send"
    if workload.planned is not None and workload.planned < 1:
        yield f"it plans {workload.planned} records"
    topics = workload.topics()
    if not topics or min(topics.values()) < 1:
        yield f"it writes to {dict(topics)}"


def wrong_notes(workload: Workload) -> Iterator[str]:
    """Of a run that broke off before it sent anything nothing is wrong with the notes."""
    yield from workload.send_problems(History([]))


def broken(kind: type[Workload]) -> list[str]:
    made = least(kind)
    return [
        *undescribed(kind),
        *wrong_units(kind),
        *takes_unknown(made),
        *lost_in_json(made),
        *wrong_plan(made),
        *wrong_notes(made),
    ]


@pytest.mark.parametrize("name", sorted(workloads))
def test_a_workload_keeps_the_contract(name: str) -> None:
    assert broken(workloads[name]) == []


class Nothing(Workload):
    """Sends nothing to nowhere."""

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


def test_a_workload_that_sends_nothing_is_found_out() -> None:
    assert broken(Nothing) == [
        "it takes 0 s to send",
        "it plans 0 records",
        "it writes to {}",
        "nothing was sent",
    ]
