"""Classes of anomaly that are judged on request. One file each in `anomalies/`.

The classes of every reconciliation need one pass over both sides (`digest.py`, `row_diff.py`). Each
class here needs a pass of its own, and applies only to data that promises more: numbers without
gaps, one partition for each key.
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
    """The count of one class of anomaly, and a few examples with the identity of their record."""

    count: int
    findings: tuple[Finding, ...] = ()


class Anomaly(ABC):
    """The base class of all classes of anomaly that are judged on request, by `name`."""

    name: ClassVar[str]
    meaning: ClassVar[str]
    requirement: ClassVar[str]
    """What the class needs to be judged, for a message."""

    @abstractmethod
    def judge(self, expected: DataFrame, actual: DataFrame, shape: Shape) -> AnomalyCount | None:
        """Count the anomalies among the readable records; None where the class cannot be judged."""


anomalies: Registry[Anomaly] = Registry(
    "class", "streamquake.harness.reconcile.anomalies", base=Anomaly
)


def unknown_class(names: Sequence[str]) -> str | None:
    """The problem of some names of classes, as a message; None where all names are known."""
    unknown = next((name for name in names if name not in set(anomalies)), None)
    if unknown is None:
        return None
    return f'no class for `--also` is called "{unknown}"{did_you_mean(unknown, anomalies)}'
