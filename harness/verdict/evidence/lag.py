"""When the lag returned to normal after a fault.

Lag counts the records that were sent and are not committed as read. It is a sawtooth: it rises
until a commit and drops at it. Checkpoints are short and many: their lag is normal at or below its
95th percentile from before the fault. Micro-batches are few and long, and each reads everything
that arrived during the one before: the lowest sample of an interval between two commits is what
arrived during one batch, and the highest is about twice that. So the lag of micro-batches is normal
from the first commit on after which every interval has a usual lowest sample, and a highest sample
of no more than twice that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, pairwise
from math import inf
from pathlib import Path

from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.history import History
from streamquake.reports.record.metrics import read_metrics

SPREAD = 1.5
"""How much longer than the longest batch before a fault a usual batch may be: there are few batches
before a fault, and undisturbed batches of one run differed by as much."""

Sample = tuple[float, float]
"""(seconds on the run's clock, number of records)"""


@dataclass(frozen=True, kw_only=True)
class LagInterval:
    """The lag from one commit to the next."""

    at_s: float
    """When the commit was observed."""
    lowest: float
    highest: float


def lag_normal_s(history: History, metrics: Path, effect_s: float) -> float | None:
    """Seconds from the effect until the lag stayed normal, or None."""
    if not metrics.exists():
        return None
    table = read_metrics(metrics).to_pylist()
    lag = sorted((row["at_s"], row["value"]) for row in table if row["series"] == "lag")
    batches = (event for event in history.of(CheckpointCompleted) if event.is_micro_batch)
    commits = [event.at_s for event in dropwhile(lambda e: not e.input_rows, batches)]
    before = [sample for sample in lag if sample[0] < effect_s]
    after = [sample for sample in lag if sample[0] >= effect_s]
    if commits:
        lowest = [
            interval.lowest
            for interval in _lag_intervals(before, [at_s for at_s in commits if at_s < effect_s])
        ]
        intervals = list(_lag_intervals(after, [at_s for at_s in commits if at_s >= effect_s]))
        normal_s = _normal_by_batches(lowest, intervals)
    else:
        normal_s = _normal_by_checkpoints([value for _, value in before], after, effect_s)
    return None if normal_s is None else normal_s - effect_s


def percentile(values: Sequence[float], share: float) -> float:
    """The percentile of the values at this share, 0 to 1 (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _normal_by_checkpoints(
    before: Sequence[float], after: Sequence[Sample], effect_s: float
) -> float | None:
    if not before or not after:
        return None
    usual = percentile(before, 0.95)
    high = [at_s for at_s, value in after if value > usual]
    if not high:
        return effect_s
    return next((at_s for at_s, _ in after if at_s > high[-1]), None)


def _normal_by_batches(before: Sequence[float], after: Sequence[LagInterval]) -> float | None:
    """`before` are lowest samples. The first one is of the first batch with records, which compiles
    plans and starts processes: it counts only, and without `SPREAD`, where it is the only one."""
    if not before:
        return None
    usual = max(before[1:]) * SPREAD if before[1:] else before[0]
    normal_s = None
    for interval in reversed(after):
        if interval.lowest > usual or interval.highest > 2 * usual:
            break
        normal_s = interval.at_s
    return normal_s


def _lag_intervals(lag: Sequence[Sample], commits: Sequence[float]) -> Iterator[LagInterval]:
    """The intervals with samples of the lag: a batch may be shorter than the sampling interval."""
    for begin_s, end_s in pairwise([*commits, inf]):
        values = [value for at_s, value in lag if begin_s <= at_s < end_s]
        if values:
            yield LagInterval(at_s=begin_s, lowest=min(values), highest=max(values))
