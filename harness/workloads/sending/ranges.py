"""The result of each send, by ranges of record indexes: acknowledged, failed, unknown.

`PendingRanges` stores one byte for each record in flight. It returns settled records in order of
their index and without gaps, so that the history has a few ranges per second, not one entry for
each record. `sent_ranges` reads them from the history.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from streamquake.reports.record.event import Kind
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import RecordsSent, WorkloadDone


class SendStatus(StrEnum):
    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    UNKNOWN = "unknown"


KINDS = {
    SendStatus.ACKNOWLEDGED: Kind.OK,
    SendStatus.FAILED: Kind.FAIL,
    SendStatus.UNKNOWN: Kind.INFO,
}
_CODES = {status: code for code, status in enumerate(SendStatus, start=1)}
_STATUSES = {code: status for status, code in _CODES.items()}
PART_NS = 300_000_000
"""How far apart the times of one part may be: about the time between two events."""
NEVER = np.iinfo(np.int64).max
_SAME_STATUS = re.compile(rb"(.)\1*", re.DOTALL)


class SentBy(NamedTuple):
    """Records `first` to `last`, both included, had been sent by a moment, in ns of the run's
    clock: they, or records sent after them, were acknowledged then."""

    first: int
    last: int
    at_ns: int


class SendRange(NamedTuple):
    """Records `first` to `last`, both included, whose sends have the same result."""

    first: int
    last: int
    status: SendStatus
    sent_by: tuple[SentBy, ...] = ()
    """Parts of acknowledged records, in order of their index."""

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class PendingRanges:
    """The records in flight. Owned by one thread."""

    def __init__(self) -> None:
        self._base = 0
        self._codes = bytearray()
        self._settled_ns = array("q")
        self.counts = dict.fromkeys(SendStatus, 0)

    def add(self, count: int) -> None:
        """Add the next `count` records to those in flight."""
        self._codes.extend(bytes(count))
        self._settled_ns.frombytes(bytes(self._settled_ns.itemsize * count))

    def settle(self, index: int, status: SendStatus, at_ns: int = 0) -> None:
        """Set the result of a send, and when it was known, in ns of the run's clock."""
        self._codes[index - self._base] = _CODES[status]
        self._settled_ns[index - self._base] = at_ns
        self.counts[status] += 1

    def settle_rest(self, status: SendStatus) -> None:
        """Set the result of all sends still in flight."""
        in_flight = self._codes.count(0)
        self._codes = self._codes.replace(b"\0", bytes([_CODES[status]]))
        self.counts[status] += in_flight

    def take(self) -> list[SendRange]:
        """Remove and return the settled ranges before the first record still in flight."""
        unsettled = self._codes.find(0)
        end = len(self._codes) if unsettled < 0 else unsettled
        if not end:
            return []
        sent_by_ns = self._sent_by_ns()
        taken = [
            self._range(m.start(), m.end(), _STATUSES[m[0][0]], sent_by_ns)
            for m in _SAME_STATUS.finditer(self._codes[:end])
        ]
        del self._codes[:end], self._settled_ns[:end]
        self._base += end
        return taken

    def _sent_by_ns(self) -> npt.NDArray[np.int64]:
        """By when each record had been sent. Records are sent in order of their index, so that it
        is the earliest acknowledgement of it and of all records after it: an acknowledgement may be
        late where the broker of one partition does not answer."""
        acknowledged = (
            np.frombuffer(bytes(self._codes), np.uint8) == _CODES[SendStatus.ACKNOWLEDGED]
        )
        settled_ns = np.array(self._settled_ns, np.int64)
        return np.minimum.accumulate(np.where(acknowledged, settled_ns, NEVER)[::-1])[::-1]

    def _range(
        self, start: int, end: int, status: SendStatus, sent_by_ns: npt.NDArray[np.int64]
    ) -> SendRange:
        first, last = self._base + start, self._base + end - 1
        if status != SendStatus.ACKNOWLEDGED or not sent_by_ns[start]:
            return SendRange(first, last, status)
        parts: list[SentBy] = []
        at_ns = sent_by_ns[start:end]
        while start < end:
            stop = end - len(at_ns) + int(np.searchsorted(at_ns, at_ns[0] + PART_NS, "right"))
            part = at_ns[: stop - start]
            parts.append(SentBy(self._base + start, self._base + stop - 1, int(part[-1])))
            start, at_ns = stop, at_ns[stop - start :]
        return SendRange(first, last, status, tuple(parts))


def sent_values(ranges: Iterable[SendRange]) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """The value of a `records sent` event for each status: `first`, `last`, `status`, `count`, and
    `ranges` [[first, last], ...] if not all records between `first` and `last` have the status."""
    by_status: dict[SendStatus, list[SendRange]] = {}
    for sent in ranges:
        by_status.setdefault(sent.status, []).append(sent)
    for status, same in by_status.items():
        value: dict[str, Any] = {
            "first": same[0].first,
            "last": same[-1].last,
            "status": str(status),
            "count": sum(sent.size for sent in same),
        }
        if len(same) > 1:
            value["ranges"] = [[sent.first, sent.last] for sent in same]
        if parts := [part for sent in same for part in sent.sent_by]:
            value["sent_by"] = [list(part) for part in _joined(parts)]
        yield KINDS[status], value


def _joined(parts: Sequence[SentBy]) -> Iterator[SentBy]:
    """Parts less than `PART_NS` apart as one, also over records with another result."""
    joined, began_ns = parts[0], parts[0].at_ns
    for part in parts[1:]:
        if part.at_ns - began_ns <= PART_NS:
            joined = joined._replace(last=part.last, at_ns=part.at_ns)
            continue
        yield joined
        joined, began_ns = part, part.at_ns
    yield joined


def sent_ranges(history: History, records: int) -> list[SendRange]:
    """The result of every send in the history, in order of the index; adjacent ranges are merged.

    If the history lacks the end of the workload, the harness stopped early and may have sent
    records that it had not recorded yet: the rest up to `records` is unknown. Records that are
    missing in a damaged history (`send_problems`) are unknown too; if it contains a record twice,
    the first entry counts.
    """
    known: list[SendRange] = []
    for sent in _recorded_ranges(history):
        next_index = _end(known)
        if sent.first > next_index:
            known.append(SendRange(next_index, sent.first - 1, SendStatus.UNKNOWN))
        if sent.last >= next_index:
            known.append(sent._replace(first=max(sent.first, next_index)))
    done = history.first(WorkloadDone)
    end = records if done is None else _settled(done) or 0
    if _end(known) < end:
        known.append(SendRange(_end(known), end - 1, SendStatus.UNKNOWN))
    return list(_merged(known))


def send_problems(history: History) -> Iterator[str]:
    """Which records a damaged history contains twice or not at all, and which counts differ;
    `PendingRanges` itself leaves no gap."""
    next_index = 0
    for sent in _recorded_ranges(history):
        if sent.first > next_index:
            yield f"the history does not contain the records {next_index:,} to {sent.first - 1:,}"
        elif sent.first < next_index:
            end = min(sent.last, next_index - 1)
            yield f"the history contains twice the records {sent.first:,} to {end:,}"
        next_index = max(next_index, sent.last + 1)
    done = history.first(WorkloadDone)
    if done is not None and (settled := _settled(done)) not in (None, next_index):
        yield f"{settled:,} records were settled, and the history contains {next_index:,}"
    elif done is not None:
        yield from _different_counts(done, history)
    yield from _impossible_times(history)
    for event in history.of(RecordsSent):
        if event.count != sum(sent.size for sent in _ranges_of(event)):
            yield f"event {event.index} counts {event.count:,} records, and its ranges differ"


def _impossible_times(history: History) -> Iterator[str]:
    """Events whose acknowledgements are later than the event."""
    for event in history.of(RecordsSent):
        moments = [event.acknowledged_until_ns or 0]
        moments += [until_ns for _, until_ns in event.pauses_ns or ()]
        moments += [at_ns for _, _, at_ns in event.sent_by or ()]
        if max(moments) > event.at_ns or min(moments) < 0:
            yield f"event {event.index} has acknowledgements that are later than itself"


def _different_counts(done: WorkloadDone, history: History) -> Iterator[str]:
    """The results that the workload counted differently from the recorded ranges."""
    ranges = _recorded_ranges(history)
    if sum(sent.size for sent in ranges) != _settled(done):
        return  # reported as missing or duplicate records
    for status in SendStatus:
        recorded = sum(sent.size for sent in ranges if sent.status == status)
        if (counted := done.counts[status]) != recorded:
            yield f"{counted:,} sends were {status}, and the history contains {recorded:,}"


def _recorded_ranges(history: History) -> list[SendRange]:
    """The ranges of all `records sent` events, in order of the index."""
    return sorted(sent for event in history.of(RecordsSent) for sent in _ranges_of(event))


def _end(known: Sequence[SendRange]) -> int:
    """The index after the last known record."""
    return known[-1].last + 1 if known else 0


def _merged(ranges: Iterable[SendRange]) -> Iterator[SendRange]:
    """Adjacent ranges with the same status, merged."""
    last: SendRange | None = None
    for sent in ranges:
        if last is not None and last.status == sent.status and last.last + 1 == sent.first:
            last = last._replace(last=sent.last)
            continue
        if last is not None:
            yield last
        last = sent
    if last is not None:
        yield last


def _settled(done: WorkloadDone) -> int | None:
    """How many records were settled at the end of the workload; None if the history lacks it."""
    counts = list(done.counts.values())
    return None if None in counts else sum(count for count in counts if count is not None)


def _ranges_of(event: RecordsSent) -> Iterator[SendRange]:
    """The ranges of an event; a range that ends before it begins contains no record."""
    status = SendStatus(event.status)
    recorded = [[event.first, event.last]] if event.ranges is None else event.ranges
    ranges = (SendRange(int(first), int(last), status) for first, last in recorded)
    yield from (sent for sent in ranges if sent.size > 0)
