"""What a data fault changes in a load: the primitives that every such fault combines.

A workload that can be changed applies a `WorkloadChange` without knowing which fault declared it.
So a new data fault that combines these is one file. Where a share of the records is changed, the
workload chooses them by each record's own hash, so that its generator and its counterpart in Spark
choose the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from streamquake.faults.mechanisms.key_shares import Skew


@dataclass(frozen=True, kw_only=True)
class LargePayload:
    """A share of the records carries a payload of another size."""

    payload_bytes: int
    share: float


@dataclass(frozen=True, kw_only=True)
class Lateness:
    """The event time of records is moved back."""

    late_ms: int
    """How far a share of the records is moved, milliseconds."""
    share: float
    out_of_order_ms: int
    """The most by which every record is moved in addition, milliseconds."""


@dataclass(frozen=True, kw_only=True)
class Copies:
    """A share of the records becomes so many rows each."""

    copies: int
    share: float


@dataclass(frozen=True, kw_only=True)
class WorkloadChange:
    """How a load is sent from one record on; omitted fields keep the workload's own values.

    If several changes are active, their rates multiply; of two changes of the same other field, the
    one that began last counts.
    """

    skew: Skew | None = None
    rate_factor: float = 1.0
    """Times the load's own rate."""
    large: LargePayload | None = None
    late: Lateness | None = None
    copies: Copies | None = None
    malformed_records: int = 0
    """How many records from the first one on end in the middle of their JSON."""

    @property
    def changes_only_content(self) -> bool:
        """Whether only the content of the records shows the change; their keys, sizes and rate do
        not."""
        return bool(self.late or self.copies or self.malformed_records)


@dataclass(frozen=True, kw_only=True)
class LoadUse:
    """The properties of a load and of the job that reads it that decide, before the run, whether
    the expected result under a change is known exactly."""

    keys: int | None
    """How many keys the load has; None for a load without keys."""
    has_job: bool
    existing_job: bool
    """Whether the job was not submitted by the run, so that it keeps running after the run."""
    lateness_ms: int | None
    """The job may drop records that are this late, milliseconds; None for a job that drops none."""
    reads_copies: bool
    """Whether the job writes a row for each of a record's `copies`."""
