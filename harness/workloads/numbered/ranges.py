"""The known result of each send, by index range: acknowledged, failed, unknown.

`PendingRanges` stores one byte for each record in flight and returns settled records in order of
the index and without holes, so that the history holds a few ranges per second and never a ledger.
`sent_ranges` reads them back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

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
_RUN = re.compile(rb"(.)\1*", re.DOTALL)


class SendRange(NamedTuple):
    """Records `first` to `last`, both included, whose sends ended the same way."""

    first: int
    last: int
    status: SendStatus

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class PendingRanges:
    """The records in flight. Owned by one thread."""

    def __init__(self) -> None:
        self._base = 0
        self._codes = bytearray()
        self.counts = dict.fromkeys(SendStatus, 0)

    def sending(self, count: int) -> None:
        """The next `count` records are in flight."""
        self._codes.extend(bytes(count))

    def settle(self, index: int, status: SendStatus) -> None:
        self._codes[index - self._base] = _CODES[status]
        self.counts[status] += 1

    def settle_rest(self, status: SendStatus) -> None:
        """All records still in flight get this status."""
        left = self._codes.count(0)
        self._codes = self._codes.replace(b"\0", bytes([_CODES[status]]))
        self.counts[status] += left

    def take(self) -> list[SendRange]:
        """The ranges settled since the last call, up to the first record still in flight."""
        unsettled = self._codes.find(0)
        end = len(self._codes) if unsettled < 0 else unsettled
        taken = [
            SendRange(self._base + run.start(), self._base + run.end() - 1, _STATUSES[run[0][0]])
            for run in _RUN.finditer(self._codes[:end])
        ]
        del self._codes[:end]
        self._base += end
        return taken


def notes_of(ranges: Iterable[SendRange]) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """One value of a `records sent` event for each status: [first, last, status, count], and
    `ranges` [[first, last], ...] where the records between do not all have this status."""
    by_status: dict[SendStatus, list[SendRange]] = {}
    for run in ranges:
        by_status.setdefault(run.status, []).append(run)
    for status, runs in by_status.items():
        value: dict[str, Any] = {
            "first": runs[0].first,
            "last": runs[-1].last,
            "status": str(status),
            "count": sum(run.size for run in runs),
        }
        if len(runs) > 1:
            value["ranges"] = [[run.first, run.last] for run in runs]
        yield KINDS[status], value


def sent_ranges(history: History, records: int) -> list[SendRange]:
    """What the history contains about every send, in order of the index, adjacent ranges merged.

    When the workload's end is not in the history, the harness stopped early: records that it had
    not recorded yet may have been sent, so the rest up to `records` is unknown. So are records
    missing from a damaged history (`note_problems`); of a record that it contains twice, the first
    entry counts.
    """
    known: list[SendRange] = []
    for run in _noted(history):
        beyond = _beyond(known)
        if run.first > beyond:
            known.append(SendRange(beyond, run.first - 1, SendStatus.UNKNOWN))
        if run.last >= beyond:
            known.append(run._replace(first=max(run.first, beyond)))
    done = history.first(WorkloadDone)
    end = records if done is None else _settled(done) or 0
    if _beyond(known) < end:
        known.append(SendRange(_beyond(known), end - 1, SendStatus.UNKNOWN))
    return list(_joined(known))


def note_problems(history: History) -> Iterator[str]:
    """Where the history contains a record twice or not at all: `PendingRanges` leaves no hole."""
    beyond = 0
    for run in _noted(history):
        if run.first > beyond:
            yield f"the history does not contain the records {beyond:,} to {run.first - 1:,}"
        elif run.first < beyond:
            end = min(run.last, beyond - 1)
            yield f"the history contains twice the records {run.first:,} to {end:,}"
        beyond = max(beyond, run.last + 1)
    done = history.first(WorkloadDone)
    if done is not None and (settled := _settled(done)) not in (None, beyond):
        yield f"{settled:,} records were settled, and the history contains {beyond:,}"
    elif done is not None:
        yield from _other_results(done, history)
    for event in history.of(RecordsSent):
        if event.count != sum(run.size for run in _runs(event)):
            yield f"event {event.index} counts {event.count:,} records, and names others"


def _other_results(done: WorkloadDone, history: History) -> Iterator[str]:
    """Where the workload's counts of results differ from those of the recorded ranges."""
    ranges = _noted(history)
    if sum(run.size for run in ranges) != _settled(done):
        return  # reported as missing or duplicate records
    for status in SendStatus:
        noted = sum(run.size for run in ranges if run.status == status)
        if (counted := done.counts[status]) != noted:
            yield f"{counted:,} sends were {status}, and the history contains {noted:,}"


def _noted(history: History) -> list[SendRange]:
    """The ranges of all `records sent` events, in order of the index."""
    return sorted(run for event in history.of(RecordsSent) for run in _runs(event))


def _beyond(known: Sequence[SendRange]) -> int:
    return known[-1].last + 1 if known else 0


def _joined(ranges: Iterable[SendRange]) -> Iterator[SendRange]:
    """Adjacent ranges with the same status, merged."""
    last: SendRange | None = None
    for run in ranges:
        if last is not None and last.status == run.status and last.last + 1 == run.first:
            last = last._replace(last=run.last)
            continue
        if last is not None:
            yield last
        last = run
    if last is not None:
        yield last


def _settled(done: WorkloadDone) -> int | None:
    """How many records the workload had settled at its end; None where the history does not contain
    it."""
    counts = list(done.counts.values())
    return None if None in counts else sum(count for count in counts if count is not None)


def _runs(event: RecordsSent) -> Iterator[SendRange]:
    """The ranges of an event; a range that ends before it begins contains no record."""
    status = SendStatus(event.status)
    recorded = [[event.first, event.last]] if event.ranges is None else event.ranges
    ranges = (SendRange(int(first), int(last), status) for first, last in recorded)
    yield from (run for run in ranges if run.size > 0)
