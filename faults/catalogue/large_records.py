"""Large records: for a while some records need many network buffers each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.data import DataFault
from streamquake.faults.mechanisms.workload_change import LargePayload, WorkloadChange
from streamquake.faults.requirement import Requirements, less_than
from streamquake.topologies.limits import Share


@faults.register
class LargeRecords(DataFault):
    """Give a share of the records a payload of `payload_bytes`, up to just below the largest
    message that a broker accepts by default (1 MiB, `message.max.bytes`)."""

    name: ClassVar[str] = "large_records"
    touches: ClassVar[str] = "payload"
    example: ClassVar[Mapping[str, Any]] = {"payload_bytes": 200_000, "share": 0.02}
    shows: ClassVar[tuple[str, ...]] = ("bytes_per_record", "largest_bytes")

    payload_bytes: Annotated[int, Field(ge=1000, le=980_000)]
    """Payload of a large record, bytes; its other fields add about 150."""
    share: Share = 0.01
    """Share of the records that are large; share times size times rate gives the bytes per
    second."""

    @property
    def change(self) -> WorkloadChange:
        return WorkloadChange(
            large=LargePayload(payload_bytes=self.payload_bytes, share=self.share)
        )

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {**super().heal_requires(before), "largest_bytes": less_than(self.payload_bytes)}

    def took_effect(self, figures: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """A record of that size was acknowledged, and none was before the injection."""
        former = before.get("largest_bytes", 0)
        return bool(former < self.payload_bytes <= figures["largest_bytes"])
