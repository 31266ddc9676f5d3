"""When records were sent, by the notes of the load.

Every event of sends has all records that were settled since the one before, in order of the
index; so an interval of time is an interval of indexes. The load sends evenly, many times between
two events.
"""

from __future__ import annotations

from typing import NamedTuple

from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import RecordsSent


class SentRange(NamedTuple):
    """Records `first` to `last`, both included, were settled between two moments of the run's
    clock."""

    first: int
    last: int
    since_ns: int
    at_ns: int


def sent_ranges_of(history: History) -> list[SentRange]:
    """What was acknowledged, in order of the index."""
    notes = sorted(
        (event.first, event.last, event.at_ns)
        for event in history.of(RecordsSent)
        if event.status == "acknowledged"
    )
    before = [at_ns for _, _, at_ns in notes[:1] + notes[:-1]]
    return [
        SentRange(first, last, min(since_ns, at_ns), at_ns)
        for since_ns, (first, last, at_ns) in zip(before, notes, strict=True)
    ]


def noted_between(notes: list[SentRange], start_ns: int, end_ns: int) -> list[SentRange]:
    """The notes of whatever was sent between two moments.

    A record is noted after it was sent, so the first note after the end belongs to it too.
    """
    inside = [note for note in notes if start_ns <= note.at_ns <= end_ns]
    after = next((note for note in notes if note.at_ns > end_ns), None)
    return inside if after is None else [*inside, after]
