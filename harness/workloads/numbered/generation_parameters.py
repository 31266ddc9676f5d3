"""How the records of a segment are generated under the active disturbances.

A disturbance of only a share of the records selects them by bits of the record's own hash, so that
Python and Spark select the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streamquake.harness.workloads.numbered.workload_changes import ScheduledChange

CHANCES = 1 << 16
"""Shares are stored as whole numbers of this many parts."""
JITTER_BIT, LARGE_BIT, LATE_BIT, COPIES_BIT = 0, 16, 32, 48
"""The lowest of the sixteen bits of a record's hash that select it for each disturbance."""


@dataclass(frozen=True, kw_only=True)
class GenerationParameters:
    """How records are generated; the defaults generate an undisturbed load."""

    payload_bytes: int
    large_bytes: int = 0
    large_chance: int = 0
    late_ms: int = 0
    late_chance: int = 0
    jitter_ms: int = 0
    poison_until: int = 0
    """Records before this index are malformed."""
    copies: int = 1
    copies_chance: int = 0

    @property
    def undisturbed(self) -> bool:
        return self == GenerationParameters(payload_bytes=self.payload_bytes)

    def size(self, hashed: int) -> int:
        """Bytes of the payload."""
        large = bits(hashed, LARGE_BIT) < self.large_chance
        return self.large_bytes if large else self.payload_bytes

    def behind_ms(self, hashed: int) -> int:
        """How far event time is moved back, milliseconds."""
        jitter = bits(hashed, JITTER_BIT) * (self.jitter_ms + 1) // CHANCES
        late = bits(hashed, LATE_BIT) < self.late_chance
        return jitter + (self.late_ms if late else 0)

    def copies_of(self, hashed: int) -> int:
        """How many rows the job writes for the record."""
        return self.copies if bits(hashed, COPIES_BIT) < self.copies_chance else 1


def bits(hashed: int, lowest: int) -> int:
    return hashed >> lowest & CHANCES - 1


def generation_parameters_of(
    payload_bytes: int, scheduled_changes: Iterable[ScheduledChange]
) -> GenerationParameters:
    """The generation parameters of a load with this payload under the active changes."""
    fields: dict[str, Any] = {"payload_bytes": payload_bytes}
    for workload_change in scheduled_changes:
        change = workload_change.change
        if (large := change.large) is not None:
            fields["large_bytes"], fields["large_chance"] = (
                large.payload_bytes,
                _chance(large.share),
            )
        if (late := change.late) is not None:
            fields["late_ms"], fields["jitter_ms"] = late.late_ms, late.out_of_order_ms
            fields["late_chance"] = _chance(late.share)
        if (copies := change.copies) is not None:
            fields["copies"], fields["copies_chance"] = copies.copies, _chance(copies.share)
        if change.malformed_records:
            fields["poison_until"] = workload_change.at_record + change.malformed_records
    return GenerationParameters(**fields)


def _chance(share: float) -> int:
    return max(1, round(share * CHANCES))
