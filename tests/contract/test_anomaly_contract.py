"""The contract of every optional class of anomaly; a new class is covered automatically."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from streamquake.harness.reconcile.anomaly import Anomaly, AnomalyCount, anomalies
from streamquake.harness.reconcile.result import VIOLATIONS
from streamquake.harness.reconcile.shape import Shape
from tests.contract.member_rules import without_docstring


class UnreadableRecords:
    """Records that must not be read."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"`{name}` of the records was read")


def counts_without_evidence(anomaly: Anomaly) -> Iterator[str]:
    """Data with only an identity cannot be judged: the count is None, not zero."""
    records: Any = UnreadableRecords()
    counted = anomaly.judge(records, records, Shape(identity=("key",)))
    if counted is not None:
        yield f"it counts {counted.count} without {anomaly.requirement}"


def violations(kind: type[Anomaly]) -> list[str]:
    found = [*without_docstring(kind), *counts_without_evidence(kind())]
    if not kind.meaning or not kind.requirement:
        found.append("`meaning` or `requirement` is empty")
    if kind.name in VIOLATIONS:
        found.append(f"{kind.name} is always judged")
    return found


@pytest.mark.parametrize("name", sorted(anomalies))
def test_an_anomaly_fulfils_the_contract(name: str) -> None:
    assert violations(anomalies[name]) == []


class IncompleteAnomaly(Anomaly):
    name: ClassVar[str] = "lost"
    meaning: ClassVar[str] = ""
    requirement: ClassVar[str] = "nothing"

    def judge(self, expected: Any, actual: Any, shape: Shape) -> AnomalyCount:
        return AnomalyCount(count=0)


def test_every_violation_of_the_contract_is_detected() -> None:
    assert violations(IncompleteAnomaly) == [
        "IncompleteAnomaly has no docstring of its own, so `list` shows nothing",
        "it counts 0 without nothing",
        "`meaning` or `requirement` is empty",
        "lost is always judged",
    ]
