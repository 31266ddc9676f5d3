"""Which part of a micro-batch makes it slow: the time of each part, compared with its usual time.

Spark's driver measures some parts itself; the others follow from the times of a stage's tasks:

- `source`: querying the newest offsets, planning the read, and the first stage, which reads, if
  others follow;
- `operators and sink`: the other stages, without the commit of state. Rows go through operators and
  sink one by one, so the time of a task cannot be split between the two; in a job without an
  exchange its one stage is `source, operators and sink`;
- `checkpoint store`: the logs of offsets and of commits, and the commit of state, by its share of
  the last stage's time;
- `driver`: all other time of the batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from streamquake.harness.verdict.evidence.batches import Batch, batches_behind, settled_batches
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskAttempt

SOURCE, SINK, STORE, DRIVER = "source", "operators and sink", "checkpoint store", "driver"
ALL_IN_ONE = f"{SOURCE}, {SINK}"
LEAST_SHARE = 0.5
"""The slowest part must have more than this share of the time that batches took longer."""
LEAST_USUAL = 2
Parts = Mapping[str, float]
"""Part -> how long it took, in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class BatchWindow:
    """The batches around a time in which a query may have been slow."""

    usual: tuple[Batch, ...]
    """The batches that had ended before it."""
    during: tuple[Batch, ...]
    """The batches with at least half of their time in it."""
    fell_behind: tuple[Batch, ...]
    """The batches of `during` that fell behind the load."""

    @property
    def uncertainty(self) -> str:
        """Why they prove no back-pressure; empty where they do."""
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
    """The part that grew most over the median of usual batches; milliseconds per batch."""

    part: str
    growth_ms: float
    share: float
    """Its share of the growth of all parts together."""
    growth: Parts
    """The growth of every part; negative where it took less."""

    @property
    def is_proven(self) -> bool:
        return self.share > LEAST_SHARE


def parts_of(batch: Batch, attempts: Iterable[TaskAttempt]) -> Parts:
    """The duration of each part of a batch; `attempts` are the ends of its own task attempts."""
    stages: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for attempt in attempts:
        stages[attempt.stage].append((attempt.start_ms, attempt.end_ms))
    walls = [_wall(times) for _, times in sorted(stages.items())]
    first, rest = (walls[0], walls[1:]) if walls else (0, [])
    working_ms = sum(end - start for start, end in stages[max(stages)]) if stages else 0
    last = rest[-1] if rest else first
    state = last * min(1.0, batch.state_commit_ms / working_ms) if working_ms else 0.0
    durations = batch.durations_ms
    source = durations.get("latestOffset", 0) + durations.get("getBatch", 0)
    store = durations.get("walCommit", 0) + durations.get("commitOffsets", 0) + state
    other_parts = source + store - state + first + sum(rest)
    stage = {SOURCE: source + first, SINK: sum(rest) - state}
    one = {ALL_IN_ONE: source + first - state}
    return {**(stage if rest else one), STORE: store, DRIVER: max(0.0, batch.took_ms - other_parts)}


def attempts_of(batch: Batch, history: History) -> list[TaskAttempt]:
    """The ends of the task attempts that ran during the batch, without those of an earlier
    driver."""
    return [
        event
        for event in history.of(TaskAttempt)
        if event.batch == batch.number and batch.began_ms <= event.start_ms <= batch.ended_ms
    ]


def batches_around(batches: Sequence[Batch], start_s: float, end_s: float) -> BatchWindow:
    """The batches of a run around an interval of it."""
    settled, late = settled_batches(batches), batches_behind(batches)
    during = tuple(
        each
        for each in settled
        if 2 * (min(each.ended_s, end_s) - max(each.began_s, start_s)) >= each.took_ms / 1000
    )
    usual = tuple(each for each in settled if each.ended_s <= start_s)
    return BatchWindow(
        usual=usual, during=during, fell_behind=tuple(e for e in during if e in late)
    )


def find_slowest_part(usual: Sequence[Parts], slow: Sequence[Parts]) -> SlowestPart | None:
    """The part that grew most from the usual batches to the slow ones; None where none grew."""
    names = {name: None for parts in (*usual, *slow) for name in parts}
    growth = {name: _median(slow, name) - _median(usual, name) for name in names}
    grown = sum(each for each in growth.values() if each > 0)
    if not grown:
        return None
    part = max(growth, key=lambda name: growth[name])
    return SlowestPart(part=part, growth_ms=growth[part], share=growth[part] / grown, growth=growth)


def _median(batches: Sequence[Parts], part: str) -> float:
    return median(parts.get(part, 0.0) for parts in batches)


def _wall(times: Sequence[tuple[int, int]]) -> int:
    return max(end for _, end in times) - min(start for start, _ in times)
