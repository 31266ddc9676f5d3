"""Damage of the record of an output: its stored records are not those that were read."""

from __future__ import annotations

from dataclasses import dataclass

from streamquake.harness.reconcile.reading.stored_output import StoredOutput


@dataclass(frozen=True, kw_only=True)
class RecordDamage:
    """The damage that was found; `message` is empty where there is none."""

    message: str
    repeated: int
    """Stored records at the place of another one. They were not read, and count as duplicated."""
    unplaced: int = 0
    """Stored records without a place that was read. Each may make two records count as reordered:
    itself, and the one that follows it."""


def reading_problem(stored: StoredOutput, place: str) -> str:
    """Why the stored records of an output are not those of its `place`, a topic, a folder or a
    table; empty where nothing shows that. For checks that decide nothing by a damaged record."""
    return (
        stored.of_another(place)
        or stored.lost_files()
        or damage_of(stored, duplicated=False).message
    )


def damage_of(stored: StoredOutput, *, duplicated: bool) -> RecordDamage:
    """The damage of an output's record. Repeated places are counted, at the cost of a pass over
    all records, only where records were found `duplicated`, or share an offset."""
    repeated = stored.repeated_records() if duplicated or stored.repeats_places() else 0
    misplaced = stored.misplaced()
    messages = [stored.miscount(), misplaced]
    if repeated:
        messages.append(
            f"{repeated:,} records have the position of another record and were not read"
        )
    unplaced = stored.unplaced() if misplaced else 0
    message = "; ".join(filter(None, messages))
    return RecordDamage(message=message, repeated=repeated, unplaced=unplaced)
