"""What coordinators reported of a run's transactional ids, each read by itself: one that cannot be
read hides no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import TransactionsSeen

OPEN = "Ongoing"
ENDING = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""The coordinator has decided, and the partitions do not know yet: to readers it is open."""
OVER = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")
ABORTED = ("PrepareEpochFence", "PrepareAbort", "CompleteAbort")
ABORT_SCAN_MS = 10_000
"""How late the coordinator may be to abort one whose time is over: it looks for such every ten
seconds (`transaction.abort.timed.out.transaction.cleanup.interval.ms`)."""
LONGEST_TIMEOUT_MS = 2**31 - 1
"""Producers hand their time-out over in four bytes, with a sign."""
ANSWER_MS = 20_000
"""How long brokers take to answer at most: a transaction may begin after they were asked."""


@dataclass(frozen=True, kw_only=True)
class TransactionalId:
    """One transactional id as its coordinator had it; milliseconds. What cannot be read is None."""

    report: Mapping[str, Any]
    """As it is recorded."""
    asked_ms: float | None
    """When the coordinators were asked, epoch ms."""

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
        """How long its transaction had been going on when its coordinator was asked."""
        started_ms = _whole(self.report.get("started_ms"))
        return None if started_ms is None or self.asked_ms is None else self.asked_ms - started_ms

    @property
    def hangs(self) -> bool:
        """Whether it is open, or not ended everywhere, although the coordinator should have
        aborted it."""
        if self.timeout_ms is None or self.age_ms is None:
            return False
        return (self.is_open or self.is_ending) and self.age_ms > self.timeout_ms + ABORT_SCAN_MS

    @property
    def uncertainty(self) -> str:
        """What is needed to judge it and cannot be read; nothing where all can."""
        if not (self.is_open or self.is_ending or self.state in OVER):
            return f"the state of {self.id} after the drain is {self.state}, whatever that is"
        if self.timeout_ms is None:
            return f"the time-out of {self.id} is recorded as {self.report.get('timeout_ms')} ms"
        if self.state in OVER:
            return ""
        state = "open" if self.is_open else self.state
        if self.age_ms is None:
            return f"{self.id} is {state} after the drain, and since when is not recorded"
        if self.age_ms < -ANSWER_MS:
            return f"{self.id} is {state}, and began {-self.age_ms / 1000:.0f} s after the question"
        return ""


@dataclass(frozen=True, kw_only=True)
class TransactionSample:
    """The ids of a run as the coordinators had them, each asked once."""

    after: Literal["recovery", "drain"]
    asked_ms: float | None
    ids: tuple[TransactionalId, ...]
    unanswered: str
    """Why brokers gave no answer; what those coordinate is not among the ids."""

    @property
    def open(self) -> tuple[TransactionalId, ...]:
        return tuple(each for each in self.ids if each.is_open)

    @property
    def hanging(self) -> tuple[TransactionalId, ...]:
        return tuple(each for each in self.ids if each.hangs)


def samples_of(history: History) -> list[TransactionSample]:
    """Every time that at least one coordinator answered."""
    found = []
    for event in history.of(TransactionsSeen):
        if event.transactions is not None:
            ids = tuple(
                TransactionalId(
                    report=each if isinstance(each, Mapping) else {}, asked_ms=event.asked_ms
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


def not_reported_again(last: TransactionSample, looks: Sequence[TransactionSample]) -> str:
    """That the coordinators reported nothing in the last look of ids which they had named before;
    they forget an id after days (`transactional.id.expiration.ms`). Nothing where they named them
    all."""
    recorded = {each.id for each in last.ids}
    newest = {each.id: each for poll in looks for each in poll.ids}
    if newest and not recorded:
        return "after the drain no transactional id was reported, and before it some were"
    # A coordinator is about to forget one that is dead.
    missing = [
        each for name, each in newest.items() if name not in recorded and each.state != "Dead"
    ]
    if missing:
        first = min(missing, key=lambda each: each.state in OVER)
        was = "over" if first.state in OVER else "not over"
        return f"after the drain nothing was reported of {first.id}, whose transaction was {was}"
    return ""


def timed_out(looks: Sequence[TransactionSample]) -> int | None:
    """How many that were open at one look stood aborted at the next one, when their time was over.

    None with fewer than two looks. One that began and ended in between is not seen, nor one whose
    id was taken by a new producer since.
    """
    if len(looks) < 2:
        return None
    first, last = looks[0], looks[-1]
    states = {each.id: each.state for each in last.ids}
    return sum(states.get(each.id) in ABORTED for each in first.open if _is_over(each, last))


def _is_over(each: TransactionalId, last: TransactionSample) -> bool:
    """Whether its time was over when the coordinators were asked last."""
    later = TransactionalId(report=each.report, asked_ms=last.asked_ms)
    if later.timeout_ms is None or later.age_ms is None:
        return False
    return later.age_ms >= later.timeout_ms


def _whole(value: Any, largest: float = float("inf")) -> int | None:
    return value if type(value) is int and 0 <= value <= largest else None
