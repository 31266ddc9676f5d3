"""Contradictions between the samples of a partition's ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from streamquake.reports.record.history import History
from streamquake.reports.record.metrics import Samples
from streamquake.reports.record.run_events import OutputSeen

NAMES = {"stable_end": "stable end", "end": "end"}


def contradicted_at_the_end(series: Mapping[str, Mapping[str, Samples]]) -> dict[str, str]:
    """Partition -> a message where its stable end is beyond its end, or its last `held_back` is not
    the difference of the two."""
    found = {}
    for where, held_back in series.get("held_back", {}).items():
        at_s, held = float(held_back.at_s[-1]), int(held_back.value[-1])
        stable = _newest(series.get("stable_end", {}).get(where), at_s)
        end = _newest(series.get("end", {}).get(where), at_s)
        if stable is None or end is None:
            continue
        if end < stable or end - stable != held:
            found[where] = (
                f"the last end of {where} is {end:,}, its stable end {stable:,}, and {held:,} "
                "offsets are recorded as held back"
            )
    return found


def other_than_read(
    series: Mapping[str, Mapping[str, Samples]], name: str, read: Mapping[str, int], since_s: float
) -> dict[str, str]:
    """Partition -> a message where the stable end that was sampled after the drain, `since_s`, is
    not the one up to which the output was read then (`read`: partition -> offset).

    Nothing writes any more. Only the end of a transaction that held records back moves it on.
    """
    found = {}
    for partition, offset in read.items():
        where = f"{name}/{partition}"
        samples = series.get("stable_end", {}).get(where)
        if samples is None or samples.at_s[-1] < since_s:
            continue
        stable = int(samples.value[-1])
        held_back = _newest(series.get("held_back", {}).get(where), np.inf) or 0
        if stable > offset or (stable < offset and not held_back):
            found[where] = (
                f"the stable end of {where} was {stable:,} after the drain, and it was read up to "
                f"{offset:,}"
            )
    return found


def other_than_seen(series: Mapping[str, Mapping[str, Samples]], history: History) -> Iterator[str]:
    """A message for each output whose last sampled stable ends do not add up to the end to which it
    had been seen to grow: a poll finds both."""
    sampled: dict[str, list[Samples]] = defaultdict(list)
    for where, samples in series.get("stable_end", {}).items():
        sampled[where.rpartition("/")[0]].append(samples)
    for name, partitions in sampled.items():
        until_s = min(float(samples.at_s[-1]) for samples in partitions)
        ends = [
            event.end
            for event in history.of(OutputSeen)
            if event.output == name and event.end is not None and event.at_s <= until_s
        ]
        stable = sum(int(samples.value[-1]) for samples in partitions)
        if ends and stable != ends[-1]:
            yield (
                f"the stable ends of {name} were sampled last as {stable:,} in all, and it had "
                f"been seen to grow to {ends[-1]:,}"
            )


def moved_back(series: Mapping[str, Mapping[str, Samples]]) -> Iterator[str]:
    """A message for each end that went back. A partition that keeps its records only grows."""
    for name, text in NAMES.items():
        for where, samples in series.get(name, {}).items():
            back = np.flatnonzero(np.diff(samples.value) < 0)
            if len(back):
                before, after = samples.value[back[0]], samples.value[back[0] + 1]
                yield (
                    f"the {text} of {where} went back from {int(before):,} to {int(after):,} at "
                    f"{float(samples.at_s[back[0] + 1]):.1f} s"
                )


def _newest(samples: Samples | None, until_s: float) -> int | None:
    """The last value until a moment; None where there is none."""
    if samples is None:
        return None
    until = np.flatnonzero(samples.at_s <= until_s)
    return int(samples.value[until[-1]]) if len(until) else None
