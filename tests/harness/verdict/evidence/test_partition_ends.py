"""Contradictions between the samples of a partition's ends."""

from __future__ import annotations

import numpy as np
import pytest

from streamquake.harness.verdict.evidence.partition_ends import contradicted_at_the_end, moved_back
from streamquake.reports.record.metrics import Samples


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
