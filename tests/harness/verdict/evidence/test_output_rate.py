"""The throughput around a fault, from stamps alone: figures exact to the millisecond."""

from __future__ import annotations

import numpy as np
import pytest

from streamquake.harness.verdict.evidence.output_rate import UsualRateUnknown, output_rate_of


def stamps(*spans: tuple[int, int, int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Records from a moment up to another, one every so many milliseconds."""
    return np.array(
        [ms for begin, end, every in spans for ms in range(begin, end, every)], np.int64
    )


def test_an_outage_lasts_from_the_last_committed_record_to_the_next() -> None:
    flow = output_rate_of(stamps((0, 9_990, 10), (13_000, 20_000, 10)), 10_000, 20_000)
    assert (flow.outage_ms, flow.loaded_outage_from_ms, flow.outage_open) == (3_020, 9_980, False)
    assert (flow.usual_per_s, flow.usual_gap_ms) == (100.0, 10)
    assert (flow.least_share, flow.peak_share, flow.available_share) == (0.0, 1.0, 0.7)


def test_the_order_of_the_stamps_does_not_matter() -> None:
    there = stamps((0, 9_990, 10), (13_000, 20_000, 10))
    assert output_rate_of(there[::-1].copy(), 10_000, 20_000) == output_rate_of(
        there, 10_000, 20_000
    )


def test_an_outage_that_is_not_over_lasts_to_the_end() -> None:
    flow = output_rate_of(stamps((0, 15_000, 10)), 10_000, 20_000)
    assert (flow.outage_ms, flow.loaded_outage_from_ms, flow.outage_open) == (5_010, 14_990, True)
    assert flow.available_share == 0.5


def test_an_outage_counts_beyond_the_end_of_the_interval() -> None:
    flow = output_rate_of(stamps((0, 15_000, 10), (26_000, 30_000, 10)), 10_000, 20_000)
    assert (flow.outage_ms, flow.outage_open) == (11_010, False)
    assert flow.peak_share == 1.0


def test_a_gap_that_ends_with_the_injection_is_not_attributed_to_it() -> None:
    before = output_rate_of(stamps((0, 7_000, 10), (10_000, 20_000, 10)), 10_000, 20_000)
    assert (before.outage_ms, before.usual_gap_ms) == (10, 10)
    across = output_rate_of(stamps((0, 7_000, 10), (10_001, 20_000, 10)), 10_000, 20_000)
    assert across.outage_ms == 3_011
    late = output_rate_of(stamps((0, 20_001, 10), (25_000, 26_000, 10)), 10_000, 20_000)
    assert late.outage_ms == 10, "a gap that begins at the end does not count"


def test_the_usual_rate_is_the_median_of_whole_seconds() -> None:
    flow = output_rate_of(
        stamps((500, 4_500, 5), (4_500, 9_500, 20), (9_500, 12_000, 5)), 9_500, 12_000
    )
    assert flow.usual_per_s == 50.0
    assert flow.usual_gap_ms == 20
    assert (flow.least_share, flow.peak_share) == (4.0, 4.0)


@pytest.mark.parametrize(("first_ms", "whole"), [(4_001, 5), (5_001, 4), (10_001, 0)])
def test_too_little_output_before_a_fault_proves_nothing(first_ms: int, whole: int) -> None:
    there = stamps((first_ms, 10_000, 10), (10_001, 12_000, 10))
    if whole >= 5:
        assert output_rate_of(there, 10_000, 12_000).usual_per_s == 100.0
        return
    with pytest.raises(UsualRateUnknown) as rejected:
        output_rate_of(there, 10_000, 12_000)
    assert str(rejected.value) == (
        f"there was output for {whole} whole seconds before the fault, and at least 5 are needed "
        "to know what is usual; inject it later"
    )


def test_a_single_record_before_a_fault_proves_nothing() -> None:
    """Although it was written long before."""
    with pytest.raises(UsualRateUnknown, match="there was one record before the fault"):
        output_rate_of(stamps((1_000, 1_001, 10), (11_000, 20_000, 10)), 10_000, 20_000)
    two = output_rate_of(stamps((1_000, 1_020, 10), (11_000, 20_000, 10)), 10_000, 20_000)
    assert (two.usual_gap_ms, two.outage_ms) == (10, 9_990)


def test_output_in_few_seconds_is_not_usual() -> None:
    flow = output_rate_of(stamps((0, 1_000, 10), (10_000, 12_000, 10)), 10_000, 12_000)
    assert (flow.usual_per_s, flow.least_share, flow.peak_share) == (0.0, None, None)
    assert flow.usual_gap_ms == 10


def test_an_interval_shorter_than_a_second_counts_as_one_second() -> None:
    flow = output_rate_of(stamps((0, 10_500, 10)), 10_000, 10_500)
    assert (flow.least_share, flow.available_share) == (0.5, 1.0)


def test_another_fault_ends_an_outage_that_is_not_its_own() -> None:
    """Called one second after the interval, and before the output resumed."""
    there = stamps((0, 15_000, 10), (26_000, 30_000, 10))
    flow = output_rate_of(there, 10_000, 20_000, 21_000)
    assert (flow.outage_ms, flow.loaded_outage_from_ms, flow.outage_open) == (6_010, 14_990, True)

    beside = stamps((0, 20_000, 10), (26_000, 30_000, 10))
    flow = output_rate_of(beside, 10_000, 19_995, 20_000)
    assert (flow.outage_ms, flow.outage_open) == (10, False)
    assert output_rate_of(beside, 10_000, 19_995).outage_ms == 6_010

    over = output_rate_of(stamps((0, 12_000, 10), (14_000, 30_000, 10)), 10_000, 20_000, 21_000)
    assert (over.outage_ms, over.outage_open) == (2_010, False)


def test_a_gap_of_unknown_end_is_reported_beside_a_longer_one() -> None:
    there = stamps((0, 10_000, 10), (14_000, 18_000, 10))
    flow = output_rate_of(there, 10_000, 20_000)
    assert (flow.outage_ms, flow.outage_open, flow.open_ms) == (4_010, False, 2_010)
    more = stamps((0, 10_000, 10), (14_000, 18_000, 10), (25_000, 30_000, 10))
    assert output_rate_of(more, 10_000, 20_000).open_ms == 0
    assert output_rate_of(more, 10_000, 20_000, 19_000).open_ms == 1_010


def test_usual_is_what_was_before_the_first_fault() -> None:
    """The kill at 10 s stopped the output for 8 s; the fault that is judged was called at 30 s."""
    there = stamps((0, 10_000, 10), (18_000, 30_000, 20), (32_000, 60_000, 20))
    flow = output_rate_of(there, 30_000, 40_000, first_ms=10_000)
    assert (flow.usual_per_s, flow.usual_gap_ms, flow.outage_ms) == (100.0, 10, 2_000)


def test_after_an_earlier_fault_an_outage_counts_from_the_call() -> None:
    there = stamps((0, 15_000, 10), (31_000, 60_000, 10))
    flow = output_rate_of(there, 30_000, 40_000, first_ms=14_000)
    assert (flow.outage_ms, flow.loaded_outage_from_ms) == (1_000, 30_000)
    assert flow.silent_before_ms == 15_010
    alone = output_rate_of(there, 30_000, 40_000)
    assert (alone.outage_ms, alone.silent_before_ms) == (16_010, 0)


def test_an_outage_without_the_silences_of_the_load() -> None:
    there = stamps((0, 10_000, 10), (20_000, 22_000, 10), (25_000, 40_000, 10))
    flow = output_rate_of(there, 10_000, 30_000, silences=[(0, 500), (10_500, 19_000)])
    assert (flow.outage_ms, flow.unsent_ms) == (10_010, 8_500)
    assert (flow.loaded_outage_ms, flow.loaded_outage_from_ms) == (3_010, 21_990)
    apart = output_rate_of(there, 10_000, 30_000, silences=[(31_000, 35_000)])
    assert (apart.loaded_outage_ms, apart.unsent_ms) == (10_010, 0)
