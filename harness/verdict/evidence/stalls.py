"""Stalls: times in which a partition's last stable offset did not move, with records beyond it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamquake.reports.record.metrics import HOLE_S, Samples


@dataclass(frozen=True, kw_only=True)
class Stall:
    """A time in which a partition's stable end did not move, and readers could not read the records
    beyond it.

    It lasts from the first sample with records beyond the stable end to the last one with the same
    stable end. That is a lower bound: it may have begun right after the sample before, and ended
    right before the sample after.
    """

    where: str
    start_s: float
    end_s: float
    stable_end: int
    hidden: int
    """How many offsets were beyond the stable end at the last sample."""
    at_most_s: float
    """Its upper bound: from the sample before to the sample after."""

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


def longest_stalls(series: Mapping[str, Mapping[str, Samples]]) -> list[Stall]:
    """Each sampled partition's longest stall, the longest first; of zero seconds where it had
    none."""
    found = [
        max(stalls, key=lambda stall: stall.seconds)
        for stalls in _stalls_by_partition(series, None)
    ]
    return sorted(found, key=lambda stall: -stall.seconds)


def longest_possible_stall(
    series: Mapping[str, Mapping[str, Samples]],
    until_s: float | None,
    since_s: float | None = None,
) -> Stall | None:
    """The stall with the largest upper bound; None where nothing was sampled. `until_s` is when the
    job had written everything: the stall may last from the last sample to it. `since_s` is when it
    began to write: records hidden at the first sample may have been hidden since then."""
    possible = (
        stall for stalls in _stalls_by_partition(series, until_s, since_s) for stall in stalls
    )
    return max(possible, key=lambda stall: stall.at_most_s, default=None)


def unsampled_begins(
    series: Mapping[str, Mapping[str, Samples]], since_s: float
) -> dict[str, float]:
    """Partition -> the seconds from `since_s` to its first sample. Any stall may have begun and
    ended before that sample, unless the partition was still empty."""
    ends = series.get("end", {})
    found = {}
    for where, stable in series.get("stable_end", {}).items():
        if where in ends:
            # An end from before that sample may have grown.
            later = np.flatnonzero(ends[where].at_s >= stable.at_s[0])
            if len(later) == 0 or ends[where].value[later[0]] > 0:
                found[where] = float(stable.at_s[0]) - since_s
    return found


def _stalls_by_partition(
    series: Mapping[str, Mapping[str, Samples]],
    until_s: float | None,
    since_s: float | None = None,
) -> Iterator[list[Stall]]:
    ends = series.get("end", {})
    for where, stable in series.get("stable_end", {}).items():
        if where in ends:
            yield list(_stalls(where, stable, ends[where], until_s, since_s))


def _stalls(
    where: str, stable: Samples, end: Samples, until_s: float | None, since_s: float | None
) -> Iterator[Stall]:
    """One stall for each value of the stable end."""
    moves = np.flatnonzero(np.diff(stable.value)) + 1
    ends, is_hidden, may_be_hidden = _hidden_records(stable, end)
    first_s, last_s = float(stable.at_s[0]), float(stable.at_s[-1])
    before_s = first_s if since_s is None else min(since_s, first_s)
    at_s = [*stable.at_s.tolist(), last_s if until_s is None else max(until_s, last_s)]
    for first, after in zip([0, *moves], [*moves, len(stable.value)], strict=True):
        hidden = first + np.flatnonzero(is_hidden[first:after])
        possible = first + np.flatnonzero(may_be_hidden[first:after])
        start = int(hidden[0]) if len(hidden) else after - 1
        begun = int(possible[0]) if len(possible) else after - 1
        # Records hidden at a sample may have been hidden since the sample before it.
        sample_before_s = at_s[begun - 1] if begun else before_s
        begun_s = sample_before_s if len(possible) else at_s[begun]
        yield Stall(
            where=where,
            start_s=at_s[start],
            end_s=at_s[after - 1],
            stable_end=int(stable.value[first]),
            hidden=int(ends[hidden[-1]] - stable.value[first]) if len(hidden) else 0,
            at_most_s=at_s[after] - begun_s,
        )


def _hidden_records(
    stable: Samples, end: Samples
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """For each sample of the stable end: the end, whether records were beyond the stable end, and
    whether there may have been some.

    The two series are sampled a moment apart: each sample of the stable end is paired with the
    sample of the end at that moment or right after it. Behind a hole, the end may have grown since,
    so it proves nothing; one from before the hole may have grown, and never shrinks.
    """
    known = np.minimum(np.searchsorted(end.at_s, stable.at_s), len(end.at_s) - 1)
    later_s = end.at_s[known] - stable.at_s
    beyond = end.value[known] > stable.value
    return (
        end.value[known],
        beyond & (later_s <= HOLE_S),
        beyond | (later_s > HOLE_S) | (later_s < -HOLE_S),
    )
