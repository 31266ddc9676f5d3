"""When the lag was normal again after a fault.

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
"""How much longer than the longest batch before a fault a usual one may be, since these are few:
undisturbed batches of one run differed by as much."""

Sample = tuple[float, float]
"""When, in seconds on the run's clock, and how many records."""


@dataclass(frozen=True, kw_only=True)
class LagInterval:
    """The lag from one commit to the next."""

    at_s: float
    """When the commit was seen."""
    foot: float
    tip: float


def lag_normal_s(history: History, metrics: Path, effect_s: float) -> float | None:
    """Seconds after the effect from which on lag stayed normal, or None."""
    if not metrics.exists():
        return None
    table = read_metrics(metrics).to_pylist()
    lag = sorted((row["at_s"], row["value"]) for row in table if row["series"] == "lag")
    batches = (event for event in history.of(CheckpointCompleted) if event.is_micro_batch)
    commits = [event.at_s for event in dropwhile(lambda e: not e.input_rows, batches)]
    before = [sample for sample in lag if sample[0] < effect_s]
    after = [sample for sample in lag if sample[0] >= effect_s]
    if commits:
        feet = [
            interval.foot
            for interval in _lag_intervals(before, [at_s for at_s in commits if at_s < effect_s])
        ]
        intervals = list(_lag_intervals(after, [at_s for at_s in commits if at_s >= effect_s]))
        back_s = _back_of_batches(feet, intervals)
    else:
        back_s = _back_of_checkpoints([value for _, value in before], after, effect_s)
    return None if back_s is None else back_s - effect_s


def percentile(values: Sequence[float], share: float) -> float:
    """The value below or at which this share of the values lies (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _back_of_checkpoints(
    before: Sequence[float], after: Sequence[Sample], effect_s: float
) -> float | None:
    if not before or not after:
        return None
    usual = percentile(before, 0.95)
    high = [at_s for at_s, value in after if value > usual]
    if not high:
        return effect_s
    return next((at_s for at_s, _ in after if at_s > high[-1]), None)


def _back_of_batches(before: Sequence[float], after: Sequence[LagInterval]) -> float | None:
    """The first foot is that of the first batch with records, which makes plans and starts
    processes; where there is no other before the fault, nothing is added to it."""
    if not before:
        return None
    usual = max(before[1:]) * SPREAD if before[1:] else before[0]
    back_s = None
    for interval in reversed(after):
        if interval.foot > usual or interval.tip > 2 * usual:
            break
        back_s = interval.at_s
    return back_s


def _lag_intervals(lag: Sequence[Sample], commits: Sequence[float]) -> Iterator[LagInterval]:
    """Those in which lag was sampled: batches may be shorter than the time between two samples."""
    for begin_s, end_s in pairwise([*commits, inf]):
        values = [value for at_s, value in lag if begin_s <= at_s < end_s]
        if values:
            yield LagInterval(at_s=begin_s, foot=min(values), tip=max(values))
