"""How the records of two data sets are to be told apart and compared."""

from __future__ import annotations

from dataclasses import dataclass

UNMATCHED = "unmatched_retraction"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Names of columns. Both sides have `identity`, `compare` and what the order needs.

    A record is what its `identity` says, exactly: nothing is trimmed, folded or rounded.
    """

    identity: tuple[str, ...]
    compare: tuple[str, ...] = ()
    sequence: str | None = None
    """Within one value of `key` the records come in the order of this column."""
    key: tuple[str, ...] = ()
    status: str | None = None
    """Expected side: acknowledged, failed or unknown. Without it all were acknowledged."""
    lane: tuple[str, ...] = ()
    """Actual side: where an order exists at all, such as a partition or a file."""
    position: str | None = None
    """Actual side: the place within a lane; grows in the order in which records stand there."""
    malformed: str | None = None
    """Actual side: true for a record that could not be read; it counts as phantom."""
    unread: str | None = None
    """Either side: true for a record that could not be read; it is counted, and not compared."""
    unplaced: str | None = None
    """Actual side: true for a record that stands nowhere in the order."""
    raw: str | None = None
    """Actual side: the record as it was found, shown where it is malformed."""

    partition: str | None = None
    """Actual side: the partition of a topic that a record stands in."""
    expected_partition: str | None = None
    """Expected side: likewise."""
    also: tuple[str, ...] = ()
    """The classes of `anomalies/` that are asked for."""
    retracts: str | None = None
    """Actual side: true for a record that takes back another one (`retractions.py`)."""
    deletes: str | None = None
    """Actual side: true for a record that deletes what its identity stands for. Where it is given,
    the last record of an identity replaces those before it (`upserts.py`)."""

    where: tuple[str, ...] = ()
    """Actual side: what is shown of a record's place, where that is not lane and position."""

    @property
    def judges_order(self) -> bool:
        return self.sequence is not None and self.position is not None

    @property
    def extra_classes(self) -> tuple[str, ...]:
        """The classes of `anomalies/` that are judged: who tells of retractions asks with that
        whether they are matched."""
        return tuple(dict.fromkeys((*self.also, *((UNMATCHED,) if self.retracts else ()))))

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that tell people where an actual record stands."""
        return self.where or self.place

    @property
    def place(self) -> tuple[str, ...]:
        """The columns that order the actual records."""
        return (*self.lane, *((self.position,) if self.position else ()))
