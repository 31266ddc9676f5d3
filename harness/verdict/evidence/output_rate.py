"""Throughput of an output in whole seconds around a fault, and the longest time nothing came.

"Reliable" throughput, as benchmarks of failures count it: of a sink with transactions only what was
committed, by the broker's own stamps of when it was appended. What a failed attempt had written
since its last checkpoint is not in it, so that an outage begins with the last record that stayed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamquake.topologies.errors import ErrorKind, StreamquakeError

BIN_MS = 1000
LEAST_BEFORE = 5
"""With fewer whole seconds of output before the fault nothing says what is usual."""

Stamps = npt.NDArray[np.int64]


class UsualRateUnknown(StreamquakeError, LookupError):
    """Nothing says what the throughput was before the fault; the message says why."""

    kind = ErrorKind.UNDECIDED


@dataclass(frozen=True, kw_only=True)
class OutputRate:
    """The output around a fault."""

    usual_per_s: float
    """Median over the whole seconds before the fault; 0 where in most of them nothing came, as
    with batches that take several seconds."""
    usual_gap_ms: int
    """The longest time between two records before the fault."""
    outage_ms: int
    """The longest time between two records that touches the interval, as far as no other fault is
    the cause."""
    outage_from_ms: int
    """The stamp of the last record before it."""
    outage_open: bool
    """Whether no record came after it, or none before another fault: it lasted at least so long,
    and it is not known how long."""
    open_ms: int
    """The longest of the gaps that touch the interval whose end is not known; 0 without one."""
    least_share: float | None
    """The worst whole second of the interval, as a share of the usual; None of a usual of 0."""
    peak_share: float | None
    """The best whole second since the fault, as a share of the usual; None of a usual of 0."""
    available_share: float
    """Share of the whole seconds of the interval in which anything came."""


def flow_of(stamps: Stamps, injected_ms: int, end_ms: int, cut_ms: int | None = None) -> OutputRate:
    """The flow of records that were appended at these moments, in any order, around the interval
    from `injected_ms` to `end_ms` (epoch milliseconds); another fault was called at `cut_ms`.
    Raises UsualRateUnknown."""
    stamps = np.sort(stamps)
    before, since = stamps[stamps < injected_ms], stamps[stamps >= injected_ms]
    usual = _usual(before, injected_ms)
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


def _usual(before: Stamps, injected_ms: int) -> float:
    """Counted back from the injection; the first second, which is a part of one, is left out."""
    back = (injected_ms - before) // BIN_MS
    whole = int(back.max()) if len(before) else 0
    if whole < LEAST_BEFORE:
        raise UsualRateUnknown(
            f"output came for {whole} whole seconds before the fault, and at least {LEAST_BEFORE} "
            "are needed to know what is usual; inject it later"
        )
    return float(np.median(np.bincount(back, minlength=whole)[:whole]))


def _outage(
    stamps: Stamps, injected_ms: int, end_ms: int, cut_ms: int | None
) -> tuple[int, int, bool, int]:
    """The longest gap that touches the interval, when it began, whether its end is not known, and
    the longest of which it is not; one that lasts beyond the end counts until the next record, or
    until the end without one, and until another fault was called at the longest."""
    nexts = np.append(stamps[1:], max(int(stamps[-1]), end_ms))
    if cut_ms is not None:
        nexts = np.minimum(nexts, cut_ms)
    touching = (stamps < end_ms) & (nexts > injected_ms)
    gaps = np.where(touching, nexts - stamps, 0)
    longest = int(gaps.argmax())
    is_open = nexts == cut_ms if cut_ms is not None else np.zeros(len(stamps), np.bool_)
    is_open[-1] = True
    open_ms = int(gaps[is_open].max())
    return int(gaps[longest]), int(stamps[longest]), bool(is_open[longest]), open_ms
