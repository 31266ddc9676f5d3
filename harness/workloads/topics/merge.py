"""The order in which the records of several loads are sent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def in_order_of_time(after_ns: Sequence[Sequence[int]]) -> list[npt.NDArray[np.int64]]:
    """For each load, the index that each of its records has among those of all loads, from the
    times at which they are sent. At the same time the loads take turns in their order, and the
    records of a load keep theirs."""
    times = np.concatenate([np.asarray(each, np.int64) for each in after_ns])
    indexes = np.empty(len(times), np.int64)
    indexes[np.argsort(times, kind="stable")] = np.arange(len(times))
    ends = np.cumsum([len(each) for each in after_ns])
    return np.split(indexes, ends[:-1])
