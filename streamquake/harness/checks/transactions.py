"""Transactions: none left hanging, and what was committed came in sight of readers in time.

A reader of committed records may read up to the *last stable offset*: where the oldest open
transaction of a partition begins. So a transaction that nobody ends hides everything that others
commit behind it, until the coordinator aborts it when its time is over (`transaction.timeout.ms`
of the producer; Kafka, KIP-98). The job itself runs on as if nothing were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from streamquake.harness.check import Case, Check, checks
from streamquake.harness.evidence.drained import not_drained
from streamquake.harness.evidence.transactions import writes_transactions
from streamquake.reports.event import Action, Event
from streamquake.reports.metrics import Samples, by_series, read_metrics
from streamquake.reports.outcome import CheckResult, Finding
from streamquake.topologies.limits import Limit

OPEN = "Ongoing"
ENDING = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""The coordinator has decided, and the partitions do not know yet: to readers it is open."""
OVER = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")
ABORTED = ("PrepareEpochFence", "PrepareAbort", "CompleteAbort")
ABORT_SCAN_MS = 10_000
"""How late the coordinator may be to abort one whose time is over: it looks for such every ten
seconds (`transaction.abort.timed.out.transaction.cleanup.interval.ms`)."""

Seconds = Limit


@dataclass(frozen=True, kw_only=True)
class Stall:
    """A time in which a partition's stable end stood still although its end grew.

    From the first sample that shows growth to the last one that shows the stable end in its place:
    it lasted at least so long, and up to a period of the samples longer at either end.
    """

    where: str
    start_s: float
    end_s: float
    stable_end: int
    grown: int

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


@checks.register
class Transactions(Check):
    """Held when no transaction is left hanging and nothing stays out of readers' sight."""

    name: ClassVar[str] = "transactions"
    classes: ClassVar[tuple[str, ...]] = (
        "hanging transaction", "held back after the drain", "invisible for too long",
        "time-out too short",
    )  # fmt: skip

    hanging: Annotated[int, Field(ge=0)] = 0
    """How many transactions may be left after the drain, open beyond their time-out or hiding what
    lies behind them."""
    invisible_at_most_s: Seconds | None = None
    """How long a partition's last stable offset may stand still while its end grows. Without it,
    not judged."""
    timeout_at_least_s: Seconds | None = None
    """The shortest time-out that a transaction of the job may have: one shorter than an outage
    loses what a checkpoint counts on. Without it, not judged."""

    def check(self, case: Case) -> CheckResult:
        if not writes_transactions(case.experiment):
            return self.undecided("the job has no exactly-once sink into Kafka")
        looks = [e for e in case.history.of(Action.TRANSACTIONS_SEEN) if "transactions" in e.value]
        series = by_series(read_metrics(case.metrics))
        held_back = series.get("held_back", {})
        if not looks and not held_back:
            return self.undecided(
                "no coordinator told its transactions, and the ends of the outputs were not sampled"
            )
        last = next((look for look in looks if look.value["after"] == "drain"), None)
        left = _left_behind(held_back, case.history.first(Action.DRAINED))
        stalls = _longest(series)
        counts = _counts(last, looks, held_back, stalls)
        wrong = [
            *self._hanging(last),
            *self._hidden(last, left),
            *self._invisible(stalls),
            *self._too_short(looks),
        ]
        if wrong:
            said = "; ".join(dict.fromkeys(_say(finding) for finding in wrong[:3]))
            return self.violated(said, tuple(wrong), **counts)
        if why := self._unknown(case, last, left, stalls, looks):
            return self.undecided(why, (), **counts)
        return self.held(self._story(last, left, stalls), **counts)

    def _hanging(self, last: Event | None) -> Iterator[Finding]:
        found = _hanging(last)
        if len(found) > self.hanging:
            for each in found:
                yield Finding(
                    what="hanging transaction",
                    where=str(each["id"]),
                    detail={**each, "open_for_s": round(_age_ms(last, each) / 1000, 1)},
                )

    def _hidden(self, last: Event | None, left: Mapping[str, int]) -> Iterator[Finding]:
        if 0 < len(_open(last)) <= self.hanging:
            return  # what may be left open may hide something
        for where, offsets in left.items():
            if offsets > 0:
                detail = {"offsets": offsets}
                yield Finding(what="held back after the drain", where=where, detail=detail)

    def _invisible(self, stalls: Sequence[Stall]) -> Iterator[Finding]:
        limit_s = self.invisible_at_most_s
        for stall in stalls:
            if limit_s is not None and stall.seconds > limit_s:
                yield Finding(
                    what="invisible for too long",
                    where=stall.where,
                    detail={
                        "from_s": round(stall.start_s, 1),
                        "to_s": round(stall.end_s, 1),
                        "stable_end": stall.stable_end,
                        "offsets_grown": stall.grown,
                        "allowed_s": limit_s,
                    },
                )

    def _too_short(self, looks: Sequence[Event]) -> Iterator[Finding]:
        if self.timeout_at_least_s is not None:
            for name, timeout_ms in _timeouts(looks).items():
                if timeout_ms < self.timeout_at_least_s * 1000:
                    detail = {"timeout_ms": timeout_ms, "needed_s": self.timeout_at_least_s}
                    yield Finding(what="time-out too short", where=name, detail=detail)

    def _unknown(
        self, case: Case, last: Event | None, left: Mapping[str, int], stalls: Sequence[Stall],
        looks: Sequence[Event],
    ) -> str | None:  # fmt: skip
        """What was to be judged and was not seen."""
        if not_drained(case.history):
            return "the job was not drained, so what is open now may yet be committed"
        if untold := _untold(last):
            return untold
        if last is None and not left:
            return "after the drain no coordinator answered, and the ends were not sampled"
        if looks and not any(look.value["transactions"] for look in looks):
            return "no transactional id of the run was seen, so no transaction was judged"
        if missing := _not_told_again(last, looks):
            return missing
        if self.invisible_at_most_s is not None and not stalls:
            return "the stable ends of the outputs were not sampled"
        if self.timeout_at_least_s is not None and not _timeouts(looks):
            return "no coordinator told the time-out of a transaction"
        return None

    def _story(self, last: Event | None, left: Mapping[str, int], stalls: Sequence[Stall]) -> str:
        said = []
        if last is not None:
            ids = len(last.value["transactions"])
            said.append(f"of {ids} transactional ids {len(_hanging(last))} hung after the drain")
        if left:
            said.append(f"{len(left)} partitions readable to their end")
        if stalls:
            said.append(f"the longest stall took {stalls[0].seconds:.1f} s")
        return ", ".join(said)


def _open(look: Event | None) -> list[Mapping[str, Any]]:
    return [] if look is None else [t for t in look.value["transactions"] if t["state"] == OPEN]


def _hanging(look: Event | None) -> list[Mapping[str, Any]]:
    """Those that are open, or not ended everywhere, although the coordinator should have aborted
    them."""
    found = [] if look is None else look.value["transactions"]
    unended = [t for t in found if t["state"] in (OPEN, *ENDING)]
    return [t for t in unended if _age_ms(look, t) > t["timeout_ms"] + ABORT_SCAN_MS]


def _not_told_again(last: Event | None, looks: Sequence[Event]) -> str | None:
    """That the coordinators told nothing after the drain of ids which they had told before. They
    forget an id after days (`transactional.id.expiration.ms`), and one that is over may be left
    out."""
    if last is None:
        return None
    told = {each["id"] for each in last.value["transactions"]}
    newest = {each["id"]: each["state"] for look in looks for each in look.value["transactions"]}
    if newest and not told:
        return "after the drain no transactional id was told, and before it some were"
    missing = [
        str(name) for name, state in newest.items() if state not in OVER and name not in told
    ]
    if missing:
        return f"after the drain nothing was told of {missing[0]}, whose transaction was not over"
    return None


def _untold(look: Event | None) -> str:
    """What of a transaction is needed to judge it and was not told; nothing where all was."""
    for each in look.value["transactions"] if look is not None else ():
        if each["state"] not in (OPEN, *ENDING, *OVER):
            return f"the state of {each['id']} after the drain is {each['state']}, whatever that is"
        if each["state"] == OPEN and each.get("started_ms") is None:
            return f"{each['id']} is open after the drain, and nobody told since when"
    return ""


def _age_ms(look: Event | None, transaction: Mapping[str, Any]) -> int:
    """How long it had been open when asked; 0 where its begin was not told."""
    started_ms = transaction.get("started_ms")
    return 0 if look is None or started_ms is None else int(look.value["asked_ms"] - started_ms)


def _left_behind(held_back: Mapping[str, Samples], drained: Event | None) -> dict[str, int]:
    """Partition -> offsets held back at its last sample after the drain, when nobody writes."""
    if drained is None:
        return {}
    return {
        where: int(samples.value[-1])
        for where, samples in held_back.items()
        if samples.at_s[-1] >= drained.at_s
    }


def _longest(series: Mapping[str, Mapping[str, Samples]]) -> list[Stall]:
    """Each sampled partition's longest stall, the longest first; of no seconds where none was."""
    ends = series.get("end", {})
    found = [
        max(_stalls(where, stable, ends[where]), key=lambda stall: stall.seconds)
        for where, stable in series.get("stable_end", {}).items()
        if where in ends
    ]
    return sorted(found, key=lambda stall: -stall.seconds)


def _stalls(where: str, stable: Samples, end: Samples) -> Iterator[Stall]:
    """One for each time the stable end stood in one place."""
    moved = np.flatnonzero(np.diff(stable.value)) + 1
    # The two series are sampled a moment apart: of the end, what was known at each sample of
    # the other, or right after it, counts.
    known = np.minimum(np.searchsorted(end.at_s, stable.at_s), len(end.at_s) - 1)
    ends = end.value[known]
    for first, after in zip([0, *moved], [*moved, len(stable.value)], strict=True):
        growing = np.flatnonzero(ends[first:after] > ends[first])
        start = first + growing[0] if len(growing) else after - 1
        yield Stall(
            where=where,
            start_s=float(stable.at_s[start]),
            end_s=float(stable.at_s[after - 1]),
            stable_end=int(stable.value[first]),
            grown=int(ends[after - 1] - ends[first]),
        )


def _timeouts(looks: Sequence[Event]) -> dict[str, int]:
    return {t["id"]: t["timeout_ms"] for look in looks for t in look.value["transactions"]}


def _timed_out(looks: Sequence[Event]) -> int | None:
    """How many that were open at one look stood aborted at the next one, when their time was over.

    None with fewer than two looks. One that began and ended in between is not seen, nor one whose
    id was taken by a new producer since.
    """
    if len(looks) < 2:
        return None
    over = {
        t["id"]
        for t in _open(looks[0])
        if t.get("started_ms") is not None
        and t["started_ms"] + t["timeout_ms"] <= looks[-1].value["asked_ms"]
    }
    states = {t["id"]: t["state"] for t in looks[-1].value["transactions"]}
    return sum(states.get(name) in ABORTED for name in over)


def _counts(
    last: Event | None, looks: Sequence[Event], held_back: Mapping[str, Samples],
    stalls: Sequence[Stall],
) -> dict[str, int | float | None]:  # fmt: skip
    """None where nothing was seen to count; `open` and `hanging` are those after the drain."""
    most = [int(samples.value.max()) for samples in held_back.values()]
    timeouts = _timeouts(looks)
    return {
        "ids": None if last is None else len(last.value["transactions"]),
        "open": None if last is None else len(_open(last)),
        "hanging": None if last is None else len(_hanging(last)),
        "longest_stall_s": round(stalls[0].seconds, 1) if stalls else None,
        "max_held_back": max(most, default=None),
        "timeouts_aborted": _timed_out(looks),
        "shortest_timeout_s": min(timeouts.values()) / 1000 if timeouts else None,
    }


def _say(finding: Finding) -> str:
    detail = finding.detail
    match finding.what:
        case "hanging transaction":
            return f"{finding.where} was open {detail['open_for_s']} s after it began"
        case "held back after the drain":
            return f"{finding.where} hides {detail['offsets']:,} offsets though nobody writes"
        case "invisible for too long":
            took_s = detail["to_s"] - detail["from_s"]
            return (
                f"{finding.where} stood still at {detail['stable_end']:,} for {took_s:.1f} s, "
                f"{detail['allowed_s']:g} s allowed"
            )
        case _:
            return f"{finding.where} times out after {detail['timeout_ms'] / 1000:g} s"
