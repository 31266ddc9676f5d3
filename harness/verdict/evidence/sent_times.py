"""When records were sent, by the events of the load.

The load sends evenly, in order of the index, and lists its records in that order. So an interval of
time is an interval of indexes. An event says by when each part of its records had been sent; in
records of older versions the event itself has to do, although it may have waited for an earlier
record that was not settled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import RecordsSent, WorkloadDone

LEAST_SILENCE_NS = 10**9
"""The load records its sends a few times a second: a shorter pause is no silence."""


class SentRange(NamedTuple):
    """Records `first` to `last`, both included, were sent between two moments of the run's
    clock."""

    first: int
    last: int
    since_ns: int
    at_ns: int


def sent_ranges_of(history: History) -> list[SentRange]:
    """The acknowledged records, in order of their index. Between `first` and `last` there may be
    records with another result."""
    parts = sorted(part for event in _acknowledged(history) for part in _parts(event))
    before = [at_ns for _, _, at_ns in parts[:1] + parts[:-1]]
    return [
        SentRange(first, last, min(since_ns, at_ns), at_ns)
        for since_ns, (first, last, at_ns) in zip(before, parts, strict=True)
    ]


def _parts(event: RecordsSent) -> Iterator[tuple[int, int, int]]:
    """(first, last, by when it had been sent) of the parts of an event."""
    if event.sent_by:
        yield from (
            (int(first), int(last), min(int(at_ns), event.at_ns))
            for first, last, at_ns in event.sent_by
        )
    else:
        yield event.first, event.last, event.at_ns


def load_ended_ns(history: History) -> int | None:
    """When the load ended: when its last record was acknowledged. Later it may have waited for
    sends whose result remained unknown. Without acknowledged records, when it was seen to be done;
    None where it was not."""
    acknowledged = [
        event.at_ns
        if event.acknowledged_until_ns is None
        else min(event.acknowledged_until_ns, event.at_ns)
        for event in _acknowledged(history)
    ]
    ends_ns = acknowledged or [event.at_ns for event in history.of(WorkloadDone)]
    return max(ends_ns, default=None)


class Silence(NamedTuple):
    """Nothing was acknowledged between two moments of the run's clock."""

    since_ns: int
    until_ns: int

    @property
    def lasted_ns(self) -> int:
        return self.until_ns - self.since_ns


def silences_of(history: History, usual_until_ns: int) -> list[Silence]:
    """When the load sent nothing for a second or more, and for more than twice as long as ever
    until a moment, as it does while a broker does not answer."""
    pauses = list(_pauses(history))
    usual_ns = max((p.lasted_ns for p in pauses if p.until_ns <= usual_until_ns), default=0)
    least_ns = max(LEAST_SILENCE_NS, 2 * usual_ns + 1)
    return [pause for pause in pauses if pause.lasted_ns >= least_ns]


def _pauses(history: History) -> Iterator[Silence]:
    """The pauses that the load measured; in a record without them, the time between two events."""
    measured = [event.pauses_ns for event in _acknowledged(history)]
    if any(pauses is None for pauses in measured):
        yield from (Silence(sent.since_ns, sent.at_ns) for sent in sent_ranges_of(history))
    for pauses in measured:
        yield from (Silence(int(since), int(until)) for since, until in pauses or ())


def _acknowledged(history: History) -> list[RecordsSent]:
    return [event for event in history.of(RecordsSent) if event.status == "acknowledged"]


def recorded_between(ranges: list[SentRange], start_ns: int, end_ns: int) -> list[SentRange]:
    """The ranges with all records that were sent between two moments.

    A record is acknowledged after its send, so the first range after the end is included.
    """
    inside = [sent_range for sent_range in ranges if start_ns <= sent_range.at_ns <= end_ns]
    after = next((sent_range for sent_range in ranges if sent_range.at_ns > end_ns), None)
    return inside if after is None else [*inside, after]


def sent_per_s(ranges: list[SentRange], start_ns: int, end_ns: int) -> float:
    """Records a second that were sent between two moments; those of a range evenly."""
    records = sum(
        (sent.last - sent.first + 1) * _overlap(sent, start_ns, end_ns) for sent in ranges
    )
    return records / ((end_ns - start_ns) / 1e9)


def _overlap(sent: SentRange, start_ns: int, end_ns: int) -> float:
    """The share of a range that was sent between two moments."""
    if sent.at_ns == sent.since_ns:
        return float(start_ns <= sent.at_ns < end_ns)
    both_ns = min(sent.at_ns, end_ns) - max(sent.since_ns, start_ns)
    return max(0, both_ns) / (sent.at_ns - sent.since_ns)
