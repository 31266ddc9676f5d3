"""Throughput of an output in whole seconds around a fault, and its longest outage.

It is "reliable" throughput, as failure benchmarks count it: only committed records, by the broker's
append times. Records that a failed attempt wrote after its last checkpoint do not count, so an
outage begins with the last record that was committed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamquake.topologies.errors import ErrorKind, StreamquakeError

BIN_MS = 1000
LEAST_BEFORE = 5
"""With fewer whole seconds of output before the fault the usual rate is unknown."""

Stamps = npt.NDArray[np.int64]


class UsualRateUnknown(StreamquakeError, LookupError):
    """The throughput before the fault is not known; the message has the reason."""

    kind = ErrorKind.UNDECIDED


@dataclass(frozen=True, kw_only=True)
class OutputRate:
    """The output around a fault."""

    usual_per_s: float
    """Records per second, median over the whole seconds before the fault; 0 where most of them are
    empty, as with batches that take several seconds."""
    usual_gap_ms: int
    """The longest time between two records before the fault."""
    outage_ms: int
    """The longest time between two records that overlaps the interval, cut off at the call of
    another fault."""
    outage_from_ms: int
    """The stamp of the last record before it."""
    outage_open: bool
    """Whether no record ended it, or none before another fault: its true length is unknown, and at
    least `outage_ms`."""
    open_ms: int
    """The longest gap that overlaps the interval and has no known end; 0 without one."""
    least_share: float | None
    """The worst whole second of the interval, as a share of the usual rate; None if that is 0."""
    peak_share: float | None
    """The best whole second since the fault, as a share of the usual rate; None if that is 0."""
    available_share: float
    """Share of the whole seconds of the interval with at least one record."""


def output_rate_of(
    stamps: Stamps, injected_ms: int, end_ms: int, cut_ms: int | None = None
) -> OutputRate:
    """The throughput around the interval from `injected_ms` to `end_ms` (epoch milliseconds);
    another fault was called at `cut_ms`. `stamps` are the append times of all records, in any
    order. Raises UsualRateUnknown."""
    stamps = np.sort(stamps)
    before, since = stamps[stamps < injected_ms], stamps[stamps >= injected_ms]
    usual = _usual_rate(before, injected_ms)
    seconds = max(1, (end_ms - injected_ms) // BIN_MS)
    bins = np.bincount((since - injected_ms) // BIN_MS, minlength=seconds)
    gap_ms, from_ms, is_open, open_ms = _outage(stamps, injected_ms, end_ms, cut_ms)
    return OutputRate(
        usual_per_s=usual,
        usual_gap_ms=int(np.diff(before).max()),
        outage_ms=gap_ms,
        outage_from_ms=from_ms,
        outage_open=is_open,
        open_ms=open_ms,
        least_share=float(bins[:seconds].min() / usual) if usual else None,
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
    return float(np.median(np.bincount(seconds_before, minlength=seconds)[:seconds]))


def _outage(
    stamps: Stamps, injected_ms: int, end_ms: int, cut_ms: int | None
) -> tuple[int, int, bool, int]:
    """(the longest gap that overlaps the interval, its start, whether its end is unknown, the
    longest gap of unknown end). A gap that lasts beyond the interval counts until the next record,
    or until the interval's end without one, but never beyond the call of another fault."""
    next_stamps = np.append(stamps[1:], max(int(stamps[-1]), end_ms))
    if cut_ms is not None:
        next_stamps = np.minimum(next_stamps, cut_ms)
    overlapping = (stamps < end_ms) & (next_stamps > injected_ms)
    gaps = np.where(overlapping, next_stamps - stamps, 0)
    longest = int(gaps.argmax())
    is_open = next_stamps == cut_ms if cut_ms is not None else np.zeros(len(stamps), np.bool_)
    is_open[-1] = True
    open_ms = int(gaps[is_open].max())
    return int(gaps[longest]), int(stamps[longest]), bool(is_open[longest]), open_ms
