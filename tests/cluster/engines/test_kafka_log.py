"""Where a broker's log is cut back to what was flushed."""

from __future__ import annotations

import struct

import pytest

from streamquake.cluster.engines.kafka.log import (
    LogSegment,
    LogTruncation,
    cuts,
    position_of,
    recovery_points,
    segments,
)

FIRST = "input-0/00000000000000000000.log"
LATER = "input-0/00000000000000000900.log"


def batch(first_offset: int, body: int) -> bytes:
    return struct.pack(">qi", first_offset, body) + b"x" * body


LOG = batch(0, 88) + batch(10, 188) + batch(30, 38)


def unread(path: str) -> bytes:
    raise AssertionError(f"{path} need not be read")


def test_recovery_points_are_read_by_partition_folder() -> None:
    assert recovery_points("0\n2\ninput 0 17\n__consumer_offsets 3 0\n") == {
        "input-0": 17,
        "__consumer_offsets-3": 0,
    }
    assert recovery_points("") == {}


def test_a_checkpoint_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="expected version 0"):
        recovery_points("1\n0\n")


def test_a_listing_gives_segments() -> None:
    (found,) = segments(f"./{FIRST} 4711\n")
    assert found == LogSegment(path=FIRST, size=4711)
    assert (found.partition, found.first_offset) == ("input-0", 0)


@pytest.mark.parametrize(
    ("offset", "position"), [(0, 0), (10, 100), (11, 300), (30, 300), (31, 350), (99, 350)]
)
def test_a_position_is_where_the_next_batch_begins(offset: int, position: int) -> None:
    assert position_of(offset, LOG) == position


def test_a_batch_that_was_never_finished_is_no_place_beyond_the_file() -> None:
    assert position_of(99, LOG[:-5]) == len(LOG) - 5
    assert position_of(99, LOG + bytes(20)) == len(LOG)


def test_what_was_never_flushed_goes_whole_and_needs_no_reading() -> None:
    found = [LogSegment(path=FIRST, size=350)]
    assert cuts(found, {}, unread) == [LogTruncation(path=FIRST, size=350, keeps=0)]
    assert cuts(found, {"input-0": 0}, unread) == [LogTruncation(path=FIRST, size=350, keeps=0)]


def test_a_flushed_end_inside_a_segment_cuts_it_and_removes_those_behind() -> None:
    found = [LogSegment(path=LATER, size=70), LogSegment(path=FIRST, size=len(LOG))]
    assert cuts(found, {"input-0": 30}, lambda path: LOG) == [
        LogTruncation(path=FIRST, size=350, keeps=300),
        LogTruncation(path=LATER, size=70, keeps=None),
    ]


def test_what_is_flushed_stays() -> None:
    found = [LogSegment(path=FIRST, size=len(LOG)), LogSegment(path=LATER, size=70)]
    (cut,) = cuts(found, {"input-0": 900}, lambda path: LOG)
    assert cut == LogTruncation(path=LATER, size=70, keeps=0)


def test_an_empty_segment_loses_nothing_and_old_records_may_be_deleted_already() -> None:
    assert cuts([LogSegment(path=FIRST, size=0)], {}, unread) == []
    assert cuts([LogSegment(path=LATER, size=9)], {}, unread) == [
        LogTruncation(path=LATER, size=9, keeps=0)
    ]


def test_the_quorums_own_log_is_left_alone() -> None:
    found = [LogSegment(path="__cluster_metadata-0/00000000000000000000.log", size=500)]
    assert cuts(found, {}, unread) == []
