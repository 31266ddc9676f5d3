"""Late events: for a while event time does not run in the order of arrival."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.data import DataFault
from streamquake.faults.mechanisms.workload_change import Lateness, LoadUse, WorkloadChange
from streamquake.faults.requirement import Requirements, one_of
from streamquake.topologies.limits import Share


@faults.register
class LateEvents(DataFault):
    """Move the event time of records back; they are sent at the same time as before.

    A job that drops late records (`lateness_ms` in the promise of its SQL) may be given only
    records that are less late than that: then the result is exactly known. Which later records it
    drops depends on when its watermark moved, so an experiment that requests them is rejected.
    """

    name: ClassVar[str] = "late_events"
    touches: ClassVar[str] = "event time"
    example: ClassVar[Mapping[str, Any]] = {"late_ms": 1000, "share": 0.2, "out_of_order_ms": 500}
    shows: ClassVar[tuple[str, ...]] = ("moved_back", "furthest_back_ms")

    late_ms: Annotated[int, Field(ge=0, le=86_400_000)] = 0
    """How far the late records are moved back, milliseconds."""
    share: Share = 0.1
    """Share of the records that are late."""
    out_of_order_ms: Annotated[int, Field(ge=0, le=60_000)] = 0
    """Every record is moved back by up to this much in addition, milliseconds."""

    @model_validator(mode="after")
    def _moves_something(self) -> LateEvents:
        if not self.furthest_ms:
            raise ValueError("late_events needs `late_ms`, `out_of_order_ms`, or both")
        return self

    @property
    def furthest_ms(self) -> int:
        """The most that a record is moved back, milliseconds."""
        return self.late_ms + self.out_of_order_ms

    @property
    def change(self) -> WorkloadChange:
        late = Lateness(
            late_ms=self.late_ms, share=self.share, out_of_order_ms=self.out_of_order_ms
        )
        return WorkloadChange(late=late)

    def unknown_result(self, use: LoadUse) -> str | None:
        if use.lateness_ms is None or self.furthest_ms < use.lateness_ms:
            return None
        return (
            f"the job may drop records that are {use.lateness_ms} ms late (`lateness_ms` in the "
            "head of its SQL), and which ones it drops cannot be known; expected late_ms + "
            f"out_of_order_ms below {use.lateness_ms}, got {self.furthest_ms}, or a job without "
            "windows"
        )

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {**super().heal_requires(before), "moved_back": one_of(0)}

    def took_effect(self, figures: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """Records were acknowledged whose event time is earlier than normal; of the late ones by at
        least `late_ms`."""
        return bool(figures["moved_back"] and figures["furthest_back_ms"] >= max(1, self.late_ms))
