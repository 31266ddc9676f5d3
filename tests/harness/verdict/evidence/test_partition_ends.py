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
        (samples(5, 7), samples(9, 6), samples(4, 0), True),  # a stable end is no later one
        (samples(5, 7), samples(9, 6), samples(4, -1), True),
        (samples(5, 7), samples(9, 7), samples(4, 0), False),
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


def test_the_message_has_both_ends_and_what_is_recorded_as_held_back() -> None:
    series = {"stable_end": samples(5, 6000), "end": samples(9, 9000), "held_back": samples(4, 2)}
    assert contradicted_at_the_end(series) == {
        "p": "the last end of p is 9,000, its stable end 6,000, and 2 offsets are recorded as held "
        "back"
    }


@pytest.mark.parametrize("missing", ["stable_end", "end", "held_back"])
def test_a_series_that_was_not_sampled_contradicts_nothing(missing: str) -> None:
    series = {"stable_end": samples(5, 6), "end": samples(9, 9), "held_back": samples(4, 0)}
    del series[missing]
    assert contradicted_at_the_end(series) == {}


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
        return {} if value is None else {"a/0": samples(5, 6, value)["p"]}

    series = {"stable_end": last(stable_end), "held_back": last(held_back)}
    message = f"the stable end of a/0 was {stable_end:,} after the drain, and it was read up to 600"
    # The other partition comes first, and was not sampled.
    for since_s in (0.5, 2.0):
        assert other_than_read(series, "a", {"1": 7, "0": read}, since_s) == (
            {"a/0": message} if differs else {}
        )
    assert other_than_read(series, "a", {"0": read}, 2.5) == {}, "sampled before the drain"
    assert other_than_read({}, "a", {"0": read}, 0.5) == {}
    del series["held_back"]
    assert ("a/0" in other_than_read(series, "a", {"0": read}, 0.5)) == (stable_end != read)


@pytest.mark.parametrize(
    ("seen", "differs"),
    [
        ([(0.5, "a", 3), (1.0, "a", 9), (2.5, "b", 7)], False),
        ([(0.5, "a", 3)], True),
        ([(0.5, "a", 3), (1.8, "a", 9)], False),
        ([(2.5, "a", 12)], False),  # after the last sample
        ([(0.5, "a", 10)], True),
        ([(0.5, "b", 10), (0.6, "a", None)], False),
    ],
)
def test_the_sampled_ends_add_up_to_the_seen_growth(
    seen: list[tuple[float, str, int | None]], differs: bool
) -> None:
    """Two partitions of a topic with a slash in its name, sampled last as 4 and 5 records: two
    seconds after the begin, and three."""
    story = Story()
    for at_s, output, end in seen:
        story.at(at_s, Action.OUTPUT_SEEN, output=f"s/{output}", end=end, grown=1)
    both = {"s/a/0": samples(1, 3, 4)["p"], "s/a/1": samples(1, 2, 5, 5)["p"]}
    series = {"stable_end": both}
    found = list(other_than_seen(series, story.history()))
    message = (
        "the stable ends of s/a were sampled last as 9 in all, and it had been seen to grow to "
    )
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
