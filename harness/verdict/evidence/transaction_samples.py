"""The reports of coordinators about a run's transactional ids. Each id is parsed separately: an
unreadable one hides no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import TransactionsSeen

OPEN = "Ongoing"
ENDING = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""The coordinator has decided, and not all partitions have the marker yet: for readers the
transaction is open."""
OVER = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")
ABORTED = ("PrepareEpochFence", "PrepareAbort", "CompleteAbort")
ABORT_SCAN_MS = 10_000
"""How late the coordinator may abort a transaction after its time-out: it scans every ten seconds
(`transaction.abort.timed.out.transaction.cleanup.interval.ms`)."""
LONGEST_TIMEOUT_MS = 2**31 - 1
"""The protocol has the time-out as a signed integer of four bytes."""
ANSWER_MS = 20_000
"""How long brokers take to answer at most: a transaction may begin after the request was sent."""


@dataclass(frozen=True, kw_only=True)
class TransactionalId:
    """One transactional id as its coordinator reported it; milliseconds. An unreadable value is
    None."""

    report: Mapping[str, Any]
    """The report as it is recorded."""
    asked_ms: float | None
    """When the coordinators were queried, epoch ms."""
    clock_moved: bool = False
    """Whether a fault moved the clock of a broker, maybe that of its coordinator."""

    @property
    def id(self) -> str:
        return str(self.report.get("id"))

    @property
    def state(self) -> str:
        return str(self.report.get("state"))

    @property
    def timeout_ms(self) -> int | None:
        return _whole(self.report.get("timeout_ms"), LONGEST_TIMEOUT_MS)

    @property
    def is_open(self) -> bool:
        return self.state == OPEN

    @property
    def is_ending(self) -> bool:
        return self.state in ENDING

    @property
    def age_ms(self) -> float | None:
        """How long its transaction had lasted when its coordinator was queried: by the
        coordinator's clock, which a fault may not have moved."""
        started_ms = _whole(self.report.get("started_ms"))
        if started_ms is None or self.asked_ms is None or self.clock_moved:
            return None
        return self.asked_ms - started_ms

    @property
    def is_hanging(self) -> bool:
        """Whether it is open, or not ended in all partitions, although the coordinator should have
        aborted it."""
        if self.timeout_ms is None or self.age_ms is None:
            return False
        return (self.is_open or self.is_ending) and self.age_ms > self.timeout_ms + ABORT_SCAN_MS

    @property
    def uncertainty(self) -> str:
        """The unreadable value without which it cannot be judged; empty where there is none."""
        if not (self.is_open or self.is_ending or self.state in OVER):
            return f"the state of {self.id} after the drain is {self.state}, an unknown state"
        if self.timeout_ms is None:
            return f"the time-out of {self.id} is recorded as {self.report.get('timeout_ms')} ms"
        if self.state in OVER:
            return ""
        state = "open" if self.is_open else self.state
        if self.clock_moved:
            return f"{self.id} is {state} after the drain, and a fault moved a broker's clock"
        if self.age_ms is None:
            return f"{self.id} is {state} after the drain, and since when is not recorded"
        if self.age_ms < -ANSWER_MS:
            return f"{self.id} is {state}, and began {-self.age_ms / 1000:.0f} s after the query"
        return ""


@dataclass(frozen=True, kw_only=True)
class TransactionSample:
    """The ids of a run in one query of all coordinators."""

    after: Literal["recovery", "drain"]
    asked_ms: float | None
    ids: tuple[TransactionalId, ...]
    unanswered: str
    """Why brokers were unreachable; the ids that they coordinate are missing."""

    @property
    def open(self) -> tuple[TransactionalId, ...]:
        return tuple(each for each in self.ids if each.is_open)

    @property
    def hanging(self) -> tuple[TransactionalId, ...]:
        return tuple(each for each in self.ids if each.is_hanging)


def samples_of(history: History, *, clock_moved: bool = False) -> list[TransactionSample]:
    """Every query that at least one coordinator answered. `clock_moved` tells whether a fault moved
    a broker's clock: then no age of a transaction is known."""
    found = []
    for event in history.of(TransactionsSeen):
        if event.transactions is not None:
            ids = tuple(
                TransactionalId(
                    report=each if isinstance(each, Mapping) else {},
                    asked_ms=event.asked_ms,
                    clock_moved=clock_moved,
                )
                for each in event.transactions
            )
            found.append(
                TransactionSample(
                    after=event.after,
                    asked_ms=event.asked_ms,
                    ids=ids,
                    unanswered=event.unanswered or "",
                )
            )
    return found


def unreported_ids(last: TransactionSample, samples: Sequence[TransactionSample]) -> str:
    """A message if the last sample lacks ids that coordinators had reported before; else empty.
    Coordinators forget an id only after days (`transactional.id.expiration.ms`)."""
    recorded = {each.id for each in last.ids}
    newest = {each.id: each for sample in samples for each in sample.ids}
    if newest and not recorded:
        return "after the drain no transactional id was reported, and before it some were"
    # A coordinator soon forgets a dead id.
    missing = [
        each for name, each in newest.items() if name not in recorded and each.state != "Dead"
    ]
    if missing:
        first = min(missing, key=lambda each: each.state in OVER)
        state = "over" if first.state in OVER else "not over"
        return f"after the drain nothing was reported of {first.id}, whose transaction was {state}"
    return ""


def timed_out(samples: Sequence[TransactionSample]) -> int | None:
    """How many transactions open in the first sample were aborted in the last one, after their
    time-out.

    None with fewer than two samples, or where the age of one of those transactions is not known. It
    misses transactions that began and ended in between, and ids that a new producer took over.
    """
    if len(samples) < 2:
        return None
    first, last = samples[0], samples[-1]
    if any(each.clock_moved for each in first.open):
        return None
    states = {each.id: each.state for each in last.ids}
    return sum(
        states.get(each.id) in ABORTED for each in first.open if _is_past_timeout(each, last)
    )


def _is_past_timeout(each: TransactionalId, last: TransactionSample) -> bool:
    """Whether its time-out had passed when the coordinators were queried last."""
    later = TransactionalId(report=each.report, asked_ms=last.asked_ms)
    if later.timeout_ms is None or later.age_ms is None:
        return False
    return later.age_ms >= later.timeout_ms


def _whole(value: Any, largest: float = float("inf")) -> int | None:
    return value if type(value) is int and 0 <= value <= largest else None
