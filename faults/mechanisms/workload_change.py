"""What a fault of the data changes in a load: the primitives of which every such fault is made.

A workload that can be steered applies a `WorkloadChange` without knowing which fault declared it.
So a new fault of the data that combines these is one file. Where a share of the records is
changed, the workload chooses them by each record's own hash, so that its generator and its twin in
Spark choose the same ones.
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
    """How far that of a share of them is moved."""
    share: float
    out_of_order_ms: int
    """The most by which that of every record is moved beyond this."""


@dataclass(frozen=True, kw_only=True)
class Copies:
    """A share of the records becomes so many rows each."""

    copies: int
    share: float


@dataclass(frozen=True, kw_only=True)
class WorkloadChange:
    """How a load is sent from one record on; what is left out stays as the workload has it.

    Where several are in force the rates multiply; of two that change anything else of the same
    kind, the one that began last counts.
    """

    skew: Skew | None = None
    rate_factor: float = 1.0
    """Times the load's own rate."""
    large: LargePayload | None = None
    late: Lateness | None = None
    copies: Copies | None = None
    malformed_records: int = 0
    """How many records from the first one on break off in the middle of their JSON."""

    @property
    def seen_inside(self) -> bool:
        """Whether only a look into the records shows it; their keys, sizes and rate do not."""
        return bool(self.late or self.copies or self.malformed_records)


@dataclass(frozen=True, kw_only=True)
class LoadUse:
    """What is known ahead of a load and of the job that reads it, as far as it decides whether the
    result under a change stays exactly known."""

    keys: int | None
    """How many keys the load has; None for a load without keys."""
    has_job: bool
    existing_job: bool
    """Whether Streamquake did not submit the job, which then continues after the run."""
    lateness_ms: int | None
    """The job may leave out what is this late; None for a job that leaves out nothing."""
    reads_copies: bool
    """Whether the job writes a row for each of a record's `copies`."""
