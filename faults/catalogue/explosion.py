"""Explosion: for a while one record makes the job write many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.data import DataFault
from streamquake.faults.mechanisms.workload_change import Copies, LoadUse, WorkloadChange
from streamquake.topologies.limits import Share


@faults.register
class Explosion(DataFault):
    """Let a share of the records carry a list of `copies` numbers, each of which becomes a row.

    It takes a job that unnests them, such as `explode.sql`; an experiment with another is refused.
    """

    name: ClassVar[str] = "explosion"
    touches: ClassVar[str] = "copies"
    drawn: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {"copies": 100, "share": 0.1}
    shows: ClassVar[tuple[str, ...]] = ("exploded", "most_copies")

    copies: Annotated[int, Field(ge=2, le=10_000)]
    """Rows of the output for one such record."""
    share: Share = 0.01
    """Share of the records that explode."""

    @property
    def change(self) -> WorkloadChange:
        return WorkloadChange(copies=Copies(copies=self.copies, share=self.share))

    def unknown_result(self, use: LoadUse) -> str | None:
        if use.reads_copies:
            return None
        return (
            "explosion needs a job that writes a row for each of a record's `copies`, and "
            "the expectation of this one does not speak of them; take explode.sql"
        )

    def took_effect(self, seen: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """A record with so many copies was acknowledged."""
        return bool(seen["most_copies"] >= self.copies)
