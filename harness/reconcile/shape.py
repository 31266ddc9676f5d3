"""The shape of a comparison: which columns identify, order and compare records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

UNMATCHED = "unmatched_retraction"
DETAILS = frozenset(
    ("absent", "after", "before", "cause", "extra_copies", "home", "seen", "sent", "source")
)
"""Names in the detail of a finding beside the names of columns."""


def shown_name(name: str) -> str:
    """The name of a column as a finding shows it: in backticks where the finding has a detail of
    the same name."""
    return f"`{name}`" if name in DETAILS else name


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Names of columns. Both sides have `identity` and `compare`.

    Records are the same where their `identity` is exactly equal: nothing is trimmed, folded or
    rounded.
    """

    identity: tuple[str, ...]
    compare: tuple[str, ...] = ()
    sequence: str | None = None
    """Records with one `key` must arrive in the order of this column."""
    key: tuple[str, ...] = ()
    status: str | None = None
    """Expected side: acknowledged, failed or unknown. Without it all were acknowledged."""
    lane: tuple[str, ...] = ()
    """Actual side: the unit within which an order exists, such as a partition or a file."""
    position: str | None = None
    """Actual side: the place of a record within its lane, in ascending order."""
    malformed: str | None = None
    """Actual side: true for a record that could not be read; it counts as phantom."""
    unreadable: str | None = None
    """Either side: true for a record that could not be read; it is counted, and not compared."""
    unplaced: str | None = None
    """Actual side: true for a record that has no place in the order."""
    raw: str | None = None
    """Actual side: the raw text of the record, shown where it is malformed."""

    partition: str | None = None
    """Actual side: the topic partition of a record."""
    expected_partition: str | None = None
    """Expected side: the topic partition of a record."""
    also: tuple[str, ...] = ()
    """The requested classes of `anomalies/`."""
    retracts: str | None = None
    """Actual side: true for a retraction (`retractions.py`)."""
    deletes: str | None = None
    """Actual side: true for a record that deletes its identity. Where this column is given, the
    last record of an identity replaces the earlier ones (`upserts.py`)."""

    display_columns: tuple[str, ...] = ()
    """Actual side: the columns shown as the place of a record, if not lane and position."""

    names: Mapping[str, str] = field(default_factory=dict)
    """Column -> its name in the data, where the frames have another name for it: a column of the
    data may be called as one that the comparison adds."""

    @property
    def judges_order(self) -> bool:
        """Whether the order of records can be judged."""
        return self.sequence is not None and self.position is not None

    @property
    def extra_classes(self) -> tuple[str, ...]:
        """The classes of `anomalies/` to judge: the requested ones, and `unmatched_retraction`
        where there are retractions."""
        return tuple(dict.fromkeys((*self.also, *((UNMATCHED,) if self.retracts else ()))))

    @property
    def displayed_place(self) -> tuple[str, ...]:
        """The columns that show the place of an actual record."""
        return self.display_columns or self.place

    @property
    def place(self) -> tuple[str, ...]:
        """The columns that order the actual records."""
        return (*self.lane, *((self.position,) if self.position else ()))

    def title(self, column: str) -> str:
        """The name of a column for people."""
        if column in self.names:
            return shown_name(self.names[column])
        return column.removeprefix("_")
