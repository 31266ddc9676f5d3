"""Samples of a rate."""

from __future__ import annotations

from streamquake.harness.workloads.sending.rate import RateSampler

S = 10**9


def test_a_rate_is_the_growth_per_second() -> None:
    rate = RateSampler(5 * S)
    assert rate.sample(6 * S, 2000) == 2000
    assert rate.sample(int(6.5 * S), 2500) == 1000


def test_records_just_after_a_sample_count_for_the_next_one() -> None:
    rate = RateSampler(0)
    assert rate.sample(S, 1000) == 1000
    assert rate.sample(S + 1_000_000, 1054) is None
    assert rate.sample(2 * S, 2000) == 1000
