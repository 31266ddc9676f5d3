"""Which part of a micro-batch makes it slow: the time of each part, against what is usual.

Spark's driver measures some parts itself, and the tasks of a stage say when they ran. Together:

- `source`: asking for the newest offsets, planning what is read, and the first stage, whose tasks
  read it, where others follow;
- `operators and sink`: the other stages, without the commit of state. Rows go through operators and
  sink one by one, so that what a task does in the one cannot be distinguished from what it does in
  the other; in a job without an exchange its one stage is `source, operators and sink`;
- `checkpoint store`: the logs of offsets and of commits, and the commit of state, by its share of
  the last stage's time;
- `driver`: all other time of the batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from streamquake.harness.verdict.evidence.batches import Batch, behind, settled
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskAttempt

SOURCE, SINK, STORE, DRIVER = "source", "operators and sink", "checkpoint store", "driver"
ALL_IN_ONE = f"{SOURCE}, {SINK}"
LEAST_SHARE = 0.5
"""Of what batches took longer, the part that makes them slow has to have more than this."""
LEAST_USUAL = 2
Parts = Mapping[str, float]
"""Part -> how long it took, in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class BatchWindow:
    """The batches around a time in which a query may have been slow."""

    usual: tuple[Batch, ...]
    """Those that had ended before it."""
    during: tuple[Batch, ...]
    """Those of which half or more lies in it."""
    fell_behind: tuple[Batch, ...]
    """Those of `during` that fell behind the load."""

    @property
    def uncertainty(self) -> str:
        """Why they prove nothing; empty where they do."""
        if len(self.usual) < LEAST_USUAL:
            return (
                f"{len(self.usual)} batches had ended before it, without the first one, and at "
                f"least {LEAST_USUAL} are needed to compare with; inject it later"
            )
        if not self.during:
            return "no batch ran in that time and was committed"
        if not self.fell_behind:
            return (
                f"no back-pressure is proven: none of {len(self.during)} batches fell behind the "
                "load, with more and more records waiting"
            )
        return ""


@dataclass(frozen=True, kw_only=True)
class SlowestPart:
    """The part that grew most, against the median of usual batches; milliseconds a batch."""

    part: str
    longer_ms: float
    share: float
    """Of what all parts together took longer."""
    longer: Parts
    """Of every part, below zero where it took less."""

    @property
    def proven(self) -> bool:
        return self.share > LEAST_SHARE


def parts_of(batch: Batch, attempts: Iterable[TaskAttempt]) -> Parts:
    """How long each part of a batch took; `attempts` are the ends of its own task attempts."""
    stages: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for attempt in attempts:
        stages[attempt.stage].append((attempt.start_ms, attempt.end_ms))
    walls = [_wall(times) for _, times in sorted(stages.items())]
    first, rest = (walls[0], walls[1:]) if walls else (0, [])
    at_work = sum(end - start for start, end in stages[max(stages)]) if stages else 0
    last = rest[-1] if rest else first
    state = last * min(1.0, batch.state_commit_ms / at_work) if at_work else 0.0
    requested = batch.durations_ms
    source = requested.get("latestOffset", 0) + requested.get("getBatch", 0)
    store = requested.get("walCommit", 0) + requested.get("commitOffsets", 0) + state
    known = source + store - state + first + sum(rest)
    stage = {SOURCE: source + first, SINK: sum(rest) - state}
    one = {ALL_IN_ONE: source + first - state}
    return {**(stage if rest else one), STORE: store, DRIVER: max(0.0, batch.took_ms - known)}


def attempts_of(batch: Batch, history: History) -> list[TaskAttempt]:
    """The ends of the task attempts that ran while it did, without those of an earlier driver."""
    return [
        event
        for event in history.of(TaskAttempt)
        if event.batch == batch.number and batch.began_ms <= event.start_ms <= batch.ended_ms
    ]


def seen(batches: Sequence[Batch], start_s: float, end_s: float) -> BatchWindow:
    """The batches of a run around an interval of it."""
    known, late = settled(batches), behind(batches)
    during = tuple(
        each
        for each in known
        if 2 * (min(each.ended_s, end_s) - max(each.began_s, start_s)) >= each.took_ms / 1000
    )
    usual = tuple(each for each in known if each.ended_s <= start_s)
    return BatchWindow(
        usual=usual, during=during, fell_behind=tuple(e for e in during if e in late)
    )


def slowest(usual: Sequence[Parts], slow: Sequence[Parts]) -> SlowestPart | None:
    """The part that grew most from the usual batches to the slow ones; None where none grew."""
    names = {name: None for parts in (*usual, *slow) for name in parts}
    longer = {name: _median(slow, name) - _median(usual, name) for name in names}
    grown = sum(each for each in longer.values() if each > 0)
    if not grown:
        return None
    part = max(longer, key=lambda name: longer[name])
    return SlowestPart(part=part, longer_ms=longer[part], share=longer[part] / grown, longer=longer)


def _median(batches: Sequence[Parts], part: str) -> float:
    return median(parts.get(part, 0.0) for parts in batches)


def _wall(times: Sequence[tuple[int, int]]) -> int:
    return max(end for _, end in times) - min(start for start, _ in times)
