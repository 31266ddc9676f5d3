"""Poison: records that the job cannot parse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.data import DataFault
from streamquake.faults.mechanisms.workload_change import LoadUse, WorkloadChange
from streamquake.faults.requirement import Requirements, one_of


@faults.register
class Poison(DataFault):
    """Send records that end in the middle of their JSON.

    They are sent and acknowledged, and expected in no output. The effect depends on the job: the
    shipped jobs fail on a record that they cannot parse, restart, read it again, and never recover,
    so that `recovery` is violated and `exactly_once` undecided (declare `expect: violated`). With
    `'json.ignore-parse-errors' = 'true'` in the source's options a job skips them, and its result
    is exact. After the heal no more are sent; those in the topic stay there, as in production.
    """

    name: ClassVar[str] = "poison"
    touches: ClassVar[str] = "format"
    lasts: ClassVar[bool] = False
    drawn: ClassVar[bool] = False
    shows: ClassVar[tuple[str, ...]] = ("unreadable",)

    records: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """How many records in a row; the next ones are ordinary again."""

    @property
    def change(self) -> WorkloadChange:
        return WorkloadChange(malformed_records=self.records)

    def unknown_result(self, use: LoadUse) -> str | None:
        if not use.has_job:
            return "poison needs a job that reads it; without a job nothing is disturbed"
        if use.existing_job:
            return (
                "poison stays in the topic, and an existing job could fail on it "
                "permanently; submit the job with the run, or choose another data fault"
            )
        return None

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {**super().heal_requires(before), "unreadable": one_of(0)}

    def took_effect(self, figures: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """At least one of them was acknowledged."""
        return bool(figures["unreadable"])
