"""Stalls of a partition, where samples of one of the two series are missing."""

from __future__ import annotations

import numpy as np
import pytest

from streamquake.harness.verdict.evidence.stalls import (
    Stall,
    longest_possible_stall,
    longest_stalls,
    unsampled_begins,
)
from streamquake.reports.record.metrics import Samples


def samples(values: dict[float, float]) -> Samples:
    return Samples(at_s=np.array([*values], float), value=np.array([*values.values()], float))


def stalls(stable: dict[float, float], end: dict[float, float]) -> tuple[Stall, float]:
    """The longest stall, and the longest possible one in seconds."""
    series = {"stable_end": {"p": samples(stable)}, "end": {"p": samples(end)}}
    possible = longest_possible_stall(series, None)
    assert possible is not None
    return longest_stalls(series)[0], possible.at_most_s


STABLE = dict.fromkeys(map(float, range(20)), 5.0)


def test_an_end_from_behind_a_hole_proves_no_stall_before_it() -> None:
    """The end grew at some time in the hole from 2 s to 17 s."""
    end = {at_s + 0.1: 5.0 for at_s in range(3)} | {at_s + 0.1: 9.0 for at_s in range(17, 20)}
    found, at_most_s = stalls(STABLE, end)
    # The sample of the end at 17.1 s is within the length of a hole of that at 15 s.
    assert (found.start_s, found.seconds, found.hidden) == (15.0, 4.0, 4)
    assert at_most_s == 17.0


def test_an_end_from_before_a_hole_proves_records_but_not_their_absence() -> None:
    """After 10 s the end was not sampled."""
    before = {at_s + 0.1: 5.0 for at_s in range(11)}
    found, at_most_s = stalls(STABLE, before)
    assert (found.seconds, found.hidden) == (0.0, 0)
    assert at_most_s == 6.0, "14 s is more than the length of a hole after 10.1 s, 13 s is not"
    found, at_most_s = stalls(STABLE, {at_s: end + 1 for at_s, end in before.items()})
    assert (found.seconds, found.hidden, at_most_s) == (19.0, 1, 19.0)


@pytest.mark.parametrize(("sampled_s", "seconds"), [(4.0, 0.5), (4.6, 0.0)])
def test_samples_within_the_length_of_a_hole_are_paired(sampled_s: float, seconds: float) -> None:
    found, at_most_s = stalls({1.0: 5.0, 1.5: 5.0}, {sampled_s: 6.0})
    assert (found.seconds, at_most_s) == (seconds, 0.5)


@pytest.mark.parametrize(
    ("stable_s", "end_s", "at_most_s"),
    [
        ((1.0, 1.5), 4.0, 0.0),
        ((1.0, 1.5), 4.6, 0.5),
        ((1.0, 4.0), 1.0, 0.0),
        ((1.0, 4.1), 1.0, 3.1),
    ],
)
def test_an_end_within_the_length_of_a_hole_shows_that_nothing_was_hidden(
    stable_s: tuple[float, ...], end_s: float, at_most_s: float
) -> None:
    found, possible_s = stalls(dict.fromkeys(stable_s, 5.0), {end_s: 5.0})
    assert found.seconds == 0.0
    assert possible_s == pytest.approx(at_most_s)


@pytest.mark.parametrize(
    ("end", "late_s"),
    [
        ({1.0: 0.0, 10.0: 1.0, 11.0: 2.0}, 9.0),
        ({10.0: 0.0, 11.0: 2.0}, None),
        ({20.0: 0.0}, None),
        ({9.9: 0.0}, 9.0),  # it may have grown by 10 s
    ],
)
def test_a_stall_before_the_first_sample_needs_records(
    end: dict[float, float], late_s: float | None
) -> None:
    """The stable end is first sampled at 10 s, 9 s after the load began."""
    series = {"stable_end": {"p": samples({10.0: 0.0})}, "end": {"p": samples(end)}}
    assert unsampled_begins(series, 1.0).get("p") == late_s


@pytest.mark.parametrize(("since_s", "at_most_s"), [(None, 2.0), (-3.0, 5.0), (1.0, 2.0)])
def test_records_hidden_at_the_first_sample_may_be_hidden_since_the_load_began(
    since_s: float | None, at_most_s: float
) -> None:
    stable = {0.0: 1.0, 1.0: 1.0, 2.0: 5.0}
    series = {
        "stable_end": {"p": samples(stable)},
        "end": {"p": samples(dict.fromkeys(stable, 5.0))},
    }
    possible = longest_possible_stall(series, None, since_s)
    assert possible is not None
    assert possible.at_most_s == at_most_s


@pytest.mark.parametrize(("until_s", "at_most_s"), [(None, 2.0), (1.0, 2.0), (9.0, 9.0)])
def test_records_hidden_at_the_last_sample_may_be_hidden_until_all_is_written(
    until_s: float | None, at_most_s: float
) -> None:
    stable = {0.0: 1.0, 1.0: 1.0, 2.0: 1.0}
    series = {
        "stable_end": {"p": samples(stable)},
        "end": {"p": samples(dict.fromkeys(stable, 5.0))},
    }
    possible = longest_possible_stall(series, until_s)
    assert possible is not None
    assert possible.at_most_s == at_most_s
