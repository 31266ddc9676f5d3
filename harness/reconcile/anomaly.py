"""Classes of anomaly that are judged where they are asked for. One file each in `anomalies/`.

What every reconciliation judges comes out of one pass over both sides (`digest.py`, `drill.py`).
The classes here take a pass of their own, and hold only for data that promises more: numbers
without gaps, one partition for each key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from streamquake.reports.record.outcome import Finding
from streamquake.topologies.problems import did_you_mean
from streamquake.topologies.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streamquake.harness.reconcile.shape import Shape


@dataclass(frozen=True, kw_only=True)
class AnomalyCount:
    """How many there are, and a few examples; each says its record's identity."""

    count: int
    findings: tuple[Finding, ...] = ()


class Anomaly(ABC):
    """The base of every such class, by `name`."""

    name: ClassVar[str]
    means: ClassVar[str]
    needs: ClassVar[str]
    """Without what it cannot be judged."""

    @abstractmethod
    def judge(self, expected: DataFrame, actual: DataFrame, shape: Shape) -> AnomalyCount | None:
        """What there is in the records that could be read; None where that cannot be judged."""


anomalies: Registry[Anomaly] = Registry("class", "streamquake.harness.reconcile.anomalies")


def unknown_class(names: Sequence[str]) -> str | None:
    """What is wrong with the names of some classes, or None."""
    unknown = next((name for name in names if name not in set(anomalies)), None)
    if unknown is None:
        return None
    return (
        f'no class that must be asked for is called "{unknown}"{did_you_mean(unknown, anomalies)}'
    )
