"""When records were sent, by the notes of the load: an upper bound, a few tenths of a second wide.

Every note tells of all records that were settled since the one before, in order of the index; so
a stretch of time is a stretch of indexes.
"""

from __future__ import annotations

from typing import NamedTuple

from streamquake.reports.event import Action
from streamquake.reports.history import History


class SentNote(NamedTuple):
    """Records `first` to `last`, both included, were settled at this moment of the run's clock."""

    first: int
    last: int
    at_ns: int


def sent_notes(history: History) -> list[SentNote]:
    """What was acknowledged, in order of the index."""
    return sorted(
        SentNote(event.value["first"], event.value["last"], event.at_ns)
        for event in history.of(Action.SENT)
        if event.value["status"] == "acknowledged"
    )


def noted_between(notes: list[SentNote], start_ns: int, end_ns: int) -> list[SentNote]:
    """The notes of whatever was sent between two moments.

    A record is noted after it was sent, so the first note after the end belongs to it too.
    """
    inside = [note for note in notes if start_ns <= note.at_ns <= end_ns]
    after = next((note for note in notes if note.at_ns > end_ns), None)
    return inside if after is None else [*inside, after]
