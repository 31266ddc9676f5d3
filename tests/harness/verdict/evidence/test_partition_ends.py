"""Contradictions between the samples of a partition's ends."""

from __future__ import annotations

import numpy as np
import pytest

from streamquake.harness.verdict.evidence.partition_ends import (
    contradicted_at_the_end,
    moved_back,
    other_than_read,
    other_than_seen,
)
from streamquake.reports.record.event import Action
from streamquake.reports.record.metrics import Samples
from tests.harness.histories import Story


def samples(*values: float, first_s: float = 0.0) -> dict[str, Samples]:
    """Samples of one partition, one a second."""
    at_s = np.arange(first_s, first_s + len(values))
    return {"p": Samples(at_s=at_s, value=np.array(values))}


@pytest.mark.parametrize(
    ("stable", "end", "held_back", "contradicted"),
    [
        (samples(5, 6), samples(9, 9), samples(4, 3), False),
        (samples(5, 6), samples(9, 9), samples(4, 0), True),
        (samples(5, 6), samples(9, 6), samples(4, 3), True),
        (samples(5, 6), samples(9, 9), samples(0, 3), False),  # only the last is compared
        (samples(5, 7), samples(9, 6), samples(4, 0), False),
        (samples(5, 6), samples(9), samples(4), False),  # the last end was not sampled
        (samples(5, 6), {}, samples(4, 0), False),
        (samples(6, first_s=2), samples(9, 9), samples(4, 0), False),
    ],
)
def test_offsets_held_back_are_the_difference_of_the_two_ends(
    stable: dict[str, Samples],
    end: dict[str, Samples],
    held_back: dict[str, Samples],
    contradicted: bool,
) -> None:
    found = contradicted_at_the_end({"stable_end": stable, "end": end, "held_back": held_back})
    assert ("p" in found) == contradicted


@pytest.mark.parametrize(
    ("stable_end", "held_back", "read", "differs"),
    [
        (600, 0, 600, False),
        (0, 0, 600, True),
        (601, 0, 600, True),
        (597, 3, 600, False),  # a transaction ended before it was read
        (601, 3, 600, True),
        (597, None, 600, True),
    ],
)
def test_after_the_drain_a_topic_is_read_up_to_its_stable_end(
    stable_end: int, held_back: int | None, read: int, differs: bool
) -> None:
    def last(value: int | None) -> dict[str, Samples]:
        return {} if value is None else {"a/0": samples(5, value)["p"]}

    series = {"stable_end": last(stable_end), "held_back": last(held_back)}
    message = f"the stable end of a/0 was {stable_end:,} after the drain, and it was read up to 600"
    assert other_than_read(series, "a", {"0": read, "1": 7}, 0.5) == (
        {"a/0": message} if differs else {}
    )
    assert other_than_read(series, "a", {"0": read}, 1.5) == {}, "sampled before the drain"


@pytest.mark.parametrize(
    ("seen", "differs"),
    [
        ([(0.5, "a", 3), (1.0, "a", 9), (2.5, "b", 7)], False),
        ([(0.5, "a", 3)], True),
        ([(1.5, "a", 12)], False),  # after the last sample
        ([(0.5, "a", 10)], True),
        ([(0.5, "b", 10), (0.6, "a", None)], False),
    ],
)
def test_the_sampled_ends_add_up_to_the_seen_growth(
    seen: list[tuple[float, str, int | None]], differs: bool
) -> None:
    """Two partitions, sampled last as 4 and 5 records, one second after the begin."""
    story = Story()
    for at_s, output, end in seen:
        story.at(at_s, Action.OUTPUT_SEEN, output=output, end=end, grown=1)
    series = {"stable_end": {"a/0": samples(1, 4)["p"], "a/1": samples(1, 5)["p"]}}
    found = list(other_than_seen(series, story.history()))
    message = "the stable ends of a were sampled last as 9 in all, and it had been seen to grow to "
    assert [line.startswith(message) for line in found] == [True] * differs


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("stable_end", (5, 5, 6), None),
        (
            "stable_end",
            (5000, 10, 6000, 9),
            "the stable end of p went back from 5,000 to 10 at 1.0 s",
        ),
        ("end", (5, 7, 6), "the end of p went back from 7 to 6 at 2.0 s"),
        ("held_back", (5, 4), None),
    ],
)
def test_an_end_never_goes_back(name: str, values: tuple[float, ...], message: str | None) -> None:
    assert next(moved_back({name: samples(*values)}), None) == message
