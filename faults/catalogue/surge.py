"""Surge: for a while the load has a higher rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.data import DataFault
from streamquake.faults.mechanisms.workload_change import WorkloadChange

WATCH_S = 0.5
"""Over a shorter time a rate is not significant."""


@faults.register
class Surge(DataFault):
    """Send at a multiple of the rate. The number of records stays the same: the load ends
    earlier."""

    name: ClassVar[str] = "surge"
    touches: ClassVar[str] = "rate"
    example: ClassVar[Mapping[str, Any]] = {"factor": 3}
    shows: ClassVar[tuple[str, ...]] = ("watched_s", "records_per_s")

    factor: Annotated[float, Field(gt=1, le=100)]
    """Times the workload's own `rate_per_s`."""

    @property
    def change(self) -> WorkloadChange:
        return WorkloadChange(rate_factor=self.factor)

    def took_effect(self, figures: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """The rate of acknowledgements rose by at least a third of the requested increase: a busy
        machine reaches only part of it. Where the broker accepts no higher rate, the fault is not
        in effect."""
        threshold = before.get("records_per_s", 0.0) * (2 + self.factor) / 3
        return bool(figures["watched_s"] >= WATCH_S and figures["records_per_s"] > threshold)
