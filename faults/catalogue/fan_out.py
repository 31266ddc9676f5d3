"""Fan-out: some records make the job write many rows each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.data import DataFault
from streamquake.faults.mechanisms.workload_change import Copies, LoadUse, WorkloadChange
from streamquake.faults.requirement import Requirements, less_than
from streamquake.topologies.limits import Share


@faults.register
class FanOut(DataFault):
    """Give a share of the records a list of `copies` numbers, each of which becomes a row.

    The job must unnest the list, as `explode.sql` does; an experiment with another job is rejected.
    """

    name: ClassVar[str] = "fan_out"
    former_names: ClassVar[tuple[str, ...]] = ("explosion",)
    touches: ClassVar[str] = "copies"
    drawn: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {"copies": 100, "share": 0.1}
    shows: ClassVar[tuple[str, ...]] = ("exploded", "most_copies")

    copies: Annotated[int, Field(ge=2, le=10_000)]
    """Output rows for each such record."""
    share: Share = 0.01
    """Share of the records that carry the list."""

    @property
    def change(self) -> WorkloadChange:
        return WorkloadChange(copies=Copies(copies=self.copies, share=self.share))

    def unknown_result(self, use: LoadUse) -> str | None:
        if use.reads_copies:
            return None
        return (
            "fan_out needs a job that writes a row for each of a record's `copies`, and "
            "the expectation of this job does not read that column; take explode.sql"
        )

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {**super().heal_requires(before), "most_copies": less_than(self.copies)}

    def took_effect(self, figures: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """A record with so many copies was acknowledged."""
        return bool(figures["most_copies"] >= self.copies)
