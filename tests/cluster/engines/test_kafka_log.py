"""The truncation of a broker's log to its flushed part."""

from __future__ import annotations

import struct

import pytest

from streamquake.cluster.engines.kafka.log import (
    LogSegment,
    LogTruncation,
    position_of,
    recovery_points,
    segments,
    truncations,
)

FIRST = "input-0/00000000000000000000.log"
LATER = "input-0/00000000000000000900.log"


def batch(first_offset: int, body: int) -> bytes:
    return struct.pack(">qi", first_offset, body) + b"x" * body


LOG = batch(0, 88) + batch(10, 188) + batch(30, 38)


def fail_on_read(path: str) -> bytes:
    raise AssertionError(f"{path} was read without need")


def test_recovery_points_are_read_by_partition_folder() -> None:
    assert recovery_points("0\n2\ninput 0 17\n__consumer_offsets 3 0\n") == {
        "input-0": 17,
        "__consumer_offsets-3": 0,
    }
    assert recovery_points("") == {}


def test_a_checkpoint_file_of_another_version_is_rejected() -> None:
    with pytest.raises(ValueError, match="expected version 0"):
        recovery_points("1\n0\n")


def test_a_listing_is_parsed_into_segments() -> None:
    (found,) = segments(f"./{FIRST} 4711\n")
    assert found == LogSegment(path=FIRST, size=4711)
    assert (found.partition, found.first_offset) == ("input-0", 0)


@pytest.mark.parametrize(
    ("offset", "position"), [(0, 0), (10, 100), (11, 300), (30, 300), (31, 350), (99, 350)]
)
def test_the_position_of_an_offset_is_the_start_of_the_next_batch(
    offset: int, position: int
) -> None:
    assert position_of(offset, LOG) == position


def test_the_position_of_an_incomplete_batch_is_not_beyond_the_file() -> None:
    assert position_of(99, LOG[:-5]) == len(LOG) - 5
    assert position_of(99, LOG + bytes(20)) == len(LOG)


def test_an_unflushed_segment_is_truncated_to_zero_without_reading_it() -> None:
    found = [LogSegment(path=FIRST, size=350)]
    assert truncations(found, {}, fail_on_read) == [LogTruncation(path=FIRST, size=350, new_size=0)]
    assert truncations(found, {"input-0": 0}, fail_on_read) == [
        LogTruncation(path=FIRST, size=350, new_size=0)
    ]


def test_a_flushed_end_inside_a_segment_truncates_it_and_removes_later_segments() -> None:
    found = [LogSegment(path=LATER, size=70), LogSegment(path=FIRST, size=len(LOG))]
    assert truncations(found, {"input-0": 30}, lambda path: LOG) == [
        LogTruncation(path=FIRST, size=350, new_size=300),
        LogTruncation(path=LATER, size=70, new_size=None),
    ]


def test_a_flushed_segment_is_not_truncated() -> None:
    found = [LogSegment(path=FIRST, size=len(LOG)), LogSegment(path=LATER, size=70)]
    (truncation,) = truncations(found, {"input-0": 900}, lambda path: LOG)
    assert truncation == LogTruncation(path=LATER, size=70, new_size=0)


def test_an_empty_segment_is_not_truncated_and_a_first_segment_may_begin_late() -> None:
    assert truncations([LogSegment(path=FIRST, size=0)], {}, fail_on_read) == []
    assert truncations([LogSegment(path=LATER, size=9)], {}, fail_on_read) == [
        LogTruncation(path=LATER, size=9, new_size=0)
    ]


def test_the_metadata_log_is_not_truncated() -> None:
    found = [LogSegment(path="__cluster_metadata-0/00000000000000000000.log", size=500)]
    assert truncations(found, {}, fail_on_read) == []
