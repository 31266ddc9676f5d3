"""Throughput of an output in whole seconds around a fault, and its longest outage.

It is "reliable" throughput, as failure benchmarks count it: only committed records, by the broker's
append times. Records that a failed attempt wrote after its last checkpoint do not count, so an
outage begins with the last record that was committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamquake.topologies.errors import ErrorKind, StreamquakeError

BIN_MS = 1000
LEAST_BEFORE = 5
"""With fewer whole seconds of output before the fault the usual rate is unknown."""
LEAST_RECORDS = 2
"""A single record before the fault has no gap."""

Stamps = npt.NDArray[np.int64]

Silence = tuple[int, int]
"""The load sent nothing from the one moment to the other, in epoch milliseconds."""


class UsualRateUnknown(StreamquakeError, LookupError):
    """The throughput before the fault is not known; the message has the reason."""

    kind = ErrorKind.UNDECIDED


@dataclass(frozen=True, kw_only=True)
class OutputRate:
    """The output around a fault."""

    usual_per_s: float
    """Records per second, median over the whole seconds before any fault; 0 where most of them are
    empty, as with batches that take several seconds."""
    usual_gap_ms: int
    """The longest time between two records before any fault."""
    outage_ms: int
    """The longest time between two records that overlaps the interval, cut off at the call of
    another fault; after an earlier fault it counts from `injected_ms` on."""
    loaded_outage_ms: int
    """The longest one without the time in which the load sent nothing."""
    loaded_outage_from_ms: int
    """When that one began: the stamp of the last record before it, or the call of the fault."""
    unsent_ms: int
    """For how long the load sent nothing, in silences that overlap the interval or the outage."""
    silent_before_ms: int
    """After an earlier fault: for how long it was silent already when the judged one was called."""
    outage_open: bool
    """Whether no record ended it, or none before another fault: its true length is unknown, and at
    least `outage_ms`."""
    open_ms: int
    """The longest gap that overlaps the interval and has no known end; 0 without one."""
    least_share: float | None
    """The worst whole second of the interval, as a share of the usual rate; None if that is 0."""
    worst_from_ms: int
    """When the worst second began."""
    peak_share: float | None
    """The best whole second since the fault, as a share of the usual rate; None if that is 0."""
    available_share: float
    """Share of the whole seconds of the interval with at least one record."""


def output_rate_of(
    stamps: Stamps,
    injected_ms: int,
    end_ms: int,
    cut_ms: int | None = None,
    *,
    first_ms: int | None = None,
    silences: Sequence[Silence] = (),
) -> OutputRate:
    """The throughput around the interval from `injected_ms` to `end_ms` (epoch milliseconds).

    `stamps` are the append times of all records, in any order. Outages from `cut_ms` on have
    another cause. The first fault of the run was called at `first_ms`, or at `injected_ms` without
    it. In the `silences` the load sent nothing. Raises UsualRateUnknown.
    """
    stamps = np.sort(stamps)
    usual_until_ms = injected_ms if first_ms is None else first_ms
    before, since = stamps[stamps < usual_until_ms], stamps[stamps >= injected_ms]
    usual = _usual_rate(before, usual_until_ms)
    seconds = max(1, (end_ms - injected_ms) // BIN_MS)
    bins = np.bincount((since - injected_ms) // BIN_MS, minlength=seconds)
    starts = stamps if usual_until_ms == injected_ms else np.maximum(stamps, injected_ms)
    ends = _gap_ends(stamps, end_ms, cut_ms)
    gaps = np.where((stamps < end_ms) & (ends > injected_ms), ends - starts, 0)
    longest = int(gaps.argmax())
    loaded = _without(silences, starts, gaps)
    until_ms = max(end_ms, int(ends[longest]))
    is_open = ends == cut_ms if cut_ms is not None else np.zeros(len(stamps), np.bool_)
    is_open[-1] = True
    return OutputRate(
        usual_per_s=usual,
        usual_gap_ms=int(np.diff(before).max()),
        outage_ms=int(gaps[longest]),
        loaded_outage_ms=int(loaded.max()),
        loaded_outage_from_ms=int(starts[loaded.argmax()]),
        unsent_ms=sum(b - a for a, b in silences if a < until_ms and b > injected_ms),
        silent_before_ms=int((starts - stamps)[stamps < injected_ms].min()),
        outage_open=bool(is_open[longest]),
        open_ms=int(gaps[is_open].max()),
        least_share=float(bins[:seconds].min() / usual) if usual else None,
        worst_from_ms=injected_ms + BIN_MS * int(bins[:seconds].argmin()),
        peak_share=float(bins.max() / usual) if usual else None,
        available_share=float(np.count_nonzero(bins[:seconds]) / seconds),
    )


def _usual_rate(before: Stamps, injected_ms: int) -> float:
    """Records per second, counted back from the injection; the first second, an incomplete one, is
    left out."""
    seconds_before = (injected_ms - before) // BIN_MS
    seconds = int(seconds_before.max()) if len(before) else 0
    if seconds < LEAST_BEFORE:
        raise UsualRateUnknown(
            f"there was output for {seconds} whole seconds before the fault, and at least "
            f"{LEAST_BEFORE} are needed to know what is usual; inject it later"
        )
    if len(before) < LEAST_RECORDS:
        raise UsualRateUnknown(
            "there was one record before the fault, and two are needed to know what is usual; send "
            "more often, or inject it later"
        )
    return float(np.median(np.bincount(seconds_before, minlength=seconds)[:seconds]))


def _gap_ends(stamps: Stamps, end_ms: int, cut_ms: int | None) -> Stamps:
    """When the gap after each stamp ends: with the next record, also beyond the interval, or at the
    interval's end without one, but never beyond the cut."""
    ends = np.append(stamps[1:], max(int(stamps[-1]), end_ms))
    return ends if cut_ms is None else np.minimum(ends, cut_ms)


def _without(silences: Sequence[Silence], starts: Stamps, gaps: Stamps) -> Stamps:
    """The lengths of the gaps without the silences of the load."""
    ends, loaded = starts + gaps, gaps
    for since_ms, until_ms in silences:
        both = np.minimum(ends, until_ms) - np.maximum(starts, since_ms)
        loaded = loaded - np.maximum(both, 0)
    return loaded
