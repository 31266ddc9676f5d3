"""Fewer points for a chart, without losing its peaks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from streamquake.reports.record.metrics import Samples

Numbers = npt.NDArray[np.float64]

MAX_POINTS = 2000
MAX_CELLS = 600
MAX_AGE_CELLS = 3
"""A cell of a grid shows the newest sample before it, unless that is older than this many cells."""


def downsample(samples: Samples, limit: int = MAX_POINTS) -> tuple[Numbers, Numbers]:
    """Reduce samples to about `limit` points: the lowest and highest of each interval, to keep
    peaks."""
    count = len(samples.at_s)
    if count <= limit:
        return samples.at_s, samples.value
    kept: set[int] = {0, count - 1}
    filled = np.nan_to_num(samples.value)
    for interval in np.array_split(np.arange(count), limit // 2):
        kept.add(int(interval[np.argmin(filled[interval])]))
        kept.add(int(interval[np.argmax(filled[interval])]))
    places = np.array(sorted(kept))
    return samples.at_s[places], samples.value[places]


def resample_to_grid(lines: Mapping[str, Samples]) -> tuple[Numbers, list[Numbers]]:
    """Resample lines to rows of one evenly spaced grid of seconds; NaN is a gap."""
    every = np.concatenate([samples.at_s for samples in lines.values()])
    begin_s, end_s = float(every.min()), float(every.max())
    step_s = max(_usual_step_s(lines), (end_s - begin_s) / MAX_CELLS)
    grid_s = np.arange(begin_s, end_s + step_s, step_s)
    return grid_s, [_newest_before(samples, grid_s, step_s) for samples in lines.values()]


def _usual_step_s(lines: Mapping[str, Samples]) -> float:
    steps = np.concatenate([np.diff(samples.at_s) for samples in lines.values()])
    positive = steps[steps > 0]
    return float(np.median(positive)) if len(positive) else 1.0


def _newest_before(samples: Samples, grid_s: Numbers, step_s: float) -> Numbers:
    cell_ends_s = grid_s + step_s / 2
    places = np.searchsorted(samples.at_s, cell_ends_s, side="right") - 1
    newest = np.clip(places, 0, None)
    is_old = cell_ends_s - samples.at_s[newest] > MAX_AGE_CELLS * step_s
    return np.where((places < 0) | is_old, np.nan, samples.value[newest])
