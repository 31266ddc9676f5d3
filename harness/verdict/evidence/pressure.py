"""Back-pressure as proven by samples: the share of its time in which a vertex could not emit
records.

The samples are Flink's `backPressuredTimeMsPerSecond` of every subtask, about once a second; a
ratio is a share of time, 0 to 1. The levels and their limits are those of Flink's
`JobVertexBackPressureHandler`, which judges a vertex by its worst subtask as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from streamquake.reports.record.metrics import HOLE_S, Samples

Series = Mapping[str, Mapping[str, Samples]]
"""series -> vertex name -> samples, as `reports.metrics.by_series` gives them."""

BACK_PRESSURED = "back_pressured_ms_per_s"
LOW_ABOVE, HIGH_ABOVE = 0.10, 0.50
MARGIN_S = 2.0
"""A window is widened by two sampling intervals: a gauge covers the second before it, and a
checkpoint may be over between two samples."""


class PressureLevel(StrEnum):
    """Flink's levels of back-pressure."""

    OK = "ok"
    LOW = "low"
    HIGH = "high"


def level_of(ratio: float) -> PressureLevel:
    """The level of a share of time: ok up to 0.10, low up to 0.50, high above."""
    if ratio <= LOW_ABOVE:
        return PressureLevel.OK
    return PressureLevel.LOW if ratio <= HIGH_ABOVE else PressureLevel.HIGH


@dataclass(frozen=True, kw_only=True)
class Ratios:
    """Shares of a vertex's time in a window, as means over the window's samples."""

    mean: float
    """The mean over the vertex's subtasks."""
    max: float
    """The worst subtask at each sample; `level` uses it, as Flink does."""
    samples: int

    @property
    def level(self) -> PressureLevel:
        return level_of(self.max)


def ratios_of(
    series: Series, vertex: str, start_s: float, end_s: float, kind: str = BACK_PRESSURED
) -> Ratios | None:
    """The ratios of one vertex from `start_s` to `end_s` on the run's clock, both included.

    `kind` may be another series in ms per second, such as `busy_ms_per_s`. None where the window
    has no sample: an unknown ratio is not zero.
    """
    mean = _values_in(series, kind, vertex, start_s, end_s)
    highest = _values_in(series, f"{kind}_max", vertex, start_s, end_s)
    if not mean or not highest:
        return None
    return Ratios(
        mean=sum(mean) / len(mean) / 1000,
        max=sum(highest) / len(highest) / 1000,
        samples=len(highest),
    )


def max_upper_bound(series: Series, vertex: str, start_s: float, end_s: float) -> float:
    """The upper bound of `Ratios.max` of a vertex: its worst subtask may have been back-pressured
    throughout the holes of its samples."""
    found = ratios_of(series, vertex, start_s, end_s)
    if found is None:
        return 1.0
    unsampled = _unsampled_share(series, vertex, start_s, end_s)
    return found.max * (1 - unsampled) + unsampled


def _max_lower_bound(series: Series, vertex: str, start_s: float, end_s: float) -> float | None:
    """The lower bound of `Ratios.max` of a vertex: it may have been free of back-pressure
    throughout the holes of its samples. None where it was not sampled."""
    found = ratios_of(series, vertex, start_s, end_s)
    if found is None:
        return None
    return found.max * (1 - _unsampled_share(series, vertex, start_s, end_s))


def _unsampled_share(series: Series, vertex: str, start_s: float, end_s: float) -> float:
    """The share of a window that lies in holes of a vertex's samples."""
    samples = series[f"{BACK_PRESSURED}_max"][vertex]
    inside = samples.at_s[(samples.at_s >= start_s) & (samples.at_s <= end_s)]
    gaps_s = np.diff([start_s, *inside, end_s])
    return float(gaps_s[gaps_s > HOLE_S].sum()) / (end_s - start_s)


def worst_vertex(
    series: Series, start_s: float, end_s: float, *, margin_s: float = MARGIN_S
) -> tuple[str, float] | None:
    """The vertex whose worst subtask was back-pressured most in a window that is widened by
    `margin_s` on either side, with the ratio that its samples prove; None where none was
    sampled."""
    window = (max(0.0, start_s - margin_s), end_s + margin_s)
    vertices = series.get(f"{BACK_PRESSURED}_max", {})
    found = ((vertex, _max_lower_bound(series, vertex, *window)) for vertex in vertices)
    known = [(vertex, ratio) for vertex, ratio in found if ratio is not None]
    return max(known, key=lambda each: each[1], default=None)


def worst_upper_bound(series: Series, start_s: float, end_s: float) -> float:
    """The upper bound of the ratio of any vertex: it may have been back-pressured throughout the
    holes of its samples. 1 where none was sampled."""
    window = (max(0.0, start_s - MARGIN_S), end_s + MARGIN_S)
    # A vertex without samples, beside sampled ones, did not belong to the job at that time.
    vertices = [v for v in series.get(f"{BACK_PRESSURED}_max", {}) if ratios_of(series, v, *window)]
    return max((max_upper_bound(series, vertex, *window) for vertex in vertices), default=1.0)


def _values_in(series: Series, name: str, vertex: str, start_s: float, end_s: float) -> list[float]:
    samples = series.get(name, {}).get(vertex)
    if samples is None:
        return []
    inside = (samples.at_s >= start_s) & (samples.at_s <= end_s)
    return [float(value) for value in samples.value[inside]]
