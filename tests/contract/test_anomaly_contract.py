"""What every class of anomaly that is asked for must do; a new one is covered by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from streamquake.harness.reconcile.anomaly import Anomaly, AnomalyCount, anomalies
from streamquake.harness.reconcile.result import VIOLATIONS
from streamquake.harness.reconcile.shape import Shape
from tests.contract.member_rules import undescribed


class Unread:
    """Records that must not be looked at."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the records were asked for {name}")


def judged_without_needs(anomaly: Anomaly) -> Iterator[str]:
    """Of data that promises no more than an identity nothing can be judged: no count, not zero."""
    unread: Any = Unread()
    counted = anomaly.judge(unread, unread, Shape(identity=("key",)))
    if counted is not None:
        yield f"it counts {counted.count} without {anomaly.needs}"


def broken(kind: type[Anomaly]) -> list[str]:
    found = [*undescribed(kind), *judged_without_needs(kind())]
    if not kind.means or not kind.needs:
        found.append("`means` or `needs` is empty")
    if kind.name in VIOLATIONS:
        found.append(f"{kind.name} is always judged")
    return found


@pytest.mark.parametrize("name", sorted(anomalies))
def test_a_class_keeps_the_contract(name: str) -> None:
    assert broken(anomalies[name]) == []


class Hasty(Anomaly):
    name: ClassVar[str] = "lost"
    means: ClassVar[str] = ""
    needs: ClassVar[str] = "nothing"

    def judge(self, expected: Any, actual: Any, shape: Shape) -> AnomalyCount:
        return AnomalyCount(count=0)


def test_a_class_that_keeps_nothing_of_it_is_found_out() -> None:
    assert broken(Hasty) == [
        "Hasty has no docstring of its own, so `list` shows nothing",
        "it counts 0 without nothing",
        "`means` or `needs` is empty",
        "lost is always judged",
    ]
