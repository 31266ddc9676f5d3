"""The counts of a stored output are those of the files that Spark reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamquake.harness.reconcile.reading.stored_output import StoredOutput


def store(stored: StoredOutput, name: str, **columns: list[Any]) -> None:
    path = stored.path / "records" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.fixture
def stored(tmp_path: Path) -> StoredOutput:
    stored = StoredOutput(path=tmp_path)
    store(stored, "committed/part-0.parquet", value=["a", "b"], committed=[True, True])
    store(stored, "uncommitted/part-0.parquet", value=["c"], committed=[False])
    return stored


def finish(stored: StoredOutput, **facts: int | None) -> None:
    stored.finish({"kind": "kafka", **facts})


def test_records_that_were_all_stored_are_no_miscount(stored: StoredOutput) -> None:
    finish(stored, records=2, uncommitted=1)
    assert stored.miscount() == ""


def test_a_read_that_did_not_count_is_no_miscount(stored: StoredOutput) -> None:
    finish(stored, records=None)
    assert stored.miscount() == ""


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"records": 3}, "3 records were read, "),
        ({"records": 2}, "2 records were read, "),
        ({"records": 1, "uncommitted": 2}, "1 records and 2 uncommitted ones were read, "),
    ],
)
def test_other_counts_than_those_of_the_read_are_a_miscount(
    stored: StoredOutput, facts: dict[str, int], message: str
) -> None:
    finish(stored, **facts)
    holds = "and the record holds 2 records and 1 uncommitted ones"
    assert stored.miscount() == message + holds


def test_a_null_flag_is_no_committed_record(stored: StoredOutput) -> None:
    store(stored, "more.parquet", value=["d"], committed=pa.array([None], pa.bool_()))
    finish(stored, records=3, uncommitted=1)
    assert stored.miscount().endswith("holds 2 records and 2 uncommitted ones")


@pytest.mark.parametrize("name", ["_part-1.parquet", "_old/part-1.parquet", ".part-1.parquet"])
def test_a_file_that_spark_ignores_is_not_counted(stored: StoredOutput, name: str) -> None:
    store(stored, name, value=["d"], committed=[True])
    finish(stored, records=3, uncommitted=1)
    assert stored.miscount().endswith("holds 2 records and 1 uncommitted ones")


def test_a_file_that_spark_reads_under_another_suffix_is_counted(stored: StoredOutput) -> None:
    store(stored, "part-1", value=["d"], committed=[True])
    finish(stored, records=2, uncommitted=1)
    assert stored.miscount().endswith("holds 3 records and 1 uncommitted ones")


def test_files_without_the_flag_count_whole(tmp_path: Path) -> None:
    stored = StoredOutput(path=tmp_path)
    store(stored, "json/part-0.parquet", value=["a", "b"])
    finish(stored, records=2)
    assert stored.miscount() == ""


def test_records_at_the_place_of_another_one_are_counted(stored: StoredOutput) -> None:
    places = {"partition": [0, 0, 1, 1, 1, 2, 2], "offset": [5, 5, 5, 7, 7, 9, 9]}
    flags = [True, True, True, True, False, False, None]
    folder = stored.path / "records"
    for path in folder.rglob("*.parquet"):
        path.unlink()
    store(stored, "committed/part-0.parquet", **places, committed=flags)
    assert stored.repeated_records() == 2  # not the two of which no copy is committed
    store(stored, "committed/part-1.parquet", partition=[0], offset=[5], committed=[True])
    assert stored.repeated_records() == 3


def test_records_of_files_repeat_a_place_of_the_same_file(tmp_path: Path) -> None:
    stored = StoredOutput(path=tmp_path)
    store(stored, "json/part-0.parquet", file=["a", "b", "a"], position=[1, 1, 2])
    assert stored.repeated_records() == 0
    store(stored, "json/part-1.parquet", file=["a", "a"], position=[1, 1])
    assert stored.repeated_records() == 2


def test_a_link_in_the_record_is_an_error(stored: StoredOutput, tmp_path: Path) -> None:
    """Spark would read what is behind it."""
    finish(stored, records=2, uncommitted=1)
    (stored.path / "records" / "more").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="more is a link"):
        stored.miscount()


@pytest.mark.parametrize(
    ("offset", "starts", "message"),
    [
        (4, {}, ""),
        (5, {}, "a record is stored at offset 5 of partition 1, of which 0 to 5 were read"),
        (3, {"1": 3}, ""),
        (2, {"1": 3}, "a record is stored at offset 2 of partition 1, of which 3 to 5 were read"),
    ],
)
def test_records_are_stored_only_where_they_were_read(
    tmp_path: Path, offset: int, starts: dict[str, int], message: str
) -> None:
    stored = StoredOutput(path=tmp_path)
    places: dict[str, list[Any]] = {"partition": [0, 1], "offset": [0, offset]}
    store(stored, "committed/part-0.parquet", **places, committed=[True, True])
    stored.finish({"kind": "kafka", "ends": {"0": 1, "1": 5}, "starts": starts})
    assert stored.misplaced() == message


@pytest.mark.parametrize(
    ("offsets", "flags", "stable_end", "message"),
    [
        ([0, 1, 2], [True, True, False], 2, ""),
        ([0, 1, 2], [True, False, None], 1, ""),
        ([0, 1], [True, True], 1, "a committed record is stored at offset 1 of partition 0"),
        ([0], [True], 0, "a committed record is stored at offset 0 of partition 0"),
        ([0, None], [True, True], 9, "1 records have no offset of partition 0"),
    ],
)
def test_committed_records_are_stored_before_the_last_stable_offset(
    tmp_path: Path, offsets: list[Any], flags: list[Any], stable_end: int, message: str
) -> None:
    stored = StoredOutput(path=tmp_path)
    committed = pa.array(flags, pa.bool_())
    places: dict[str, list[Any]] = {"partition": [0] * len(offsets), "offset": offsets}
    store(stored, "committed/part-0.parquet", **places, committed=committed)
    stored.finish({"kind": "kafka", "ends": {"0": 9}, "stable_ends": {"0": stable_end}})
    assert stored.misplaced().startswith(message) if message else stored.misplaced() == ""


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"kind": "kafka", "topic": "totals"}, ""),
        ({"kind": "kafka", "topic": "other"}, "other was read, and the output is totals"),
        ({"kind": "files", "source": "/out"}, "/out was read, and the output is totals"),
        ({"kind": "kafka"}, ""),
    ],
)
def test_the_read_is_of_the_output(tmp_path: Path, facts: dict[str, Any], message: str) -> None:
    stored = StoredOutput(path=tmp_path)
    stored.finish(facts)
    assert stored.of_another("totals") == message


@pytest.mark.parametrize(
    ("partition", "offset", "shared"),
    [([0, 0, 1], [1, 2, 1], False), ([0, 1, 0], [7, 7, 7], True), ([0, 0], [None, None], False)],
)
def test_records_that_share_an_offset_are_noticed(
    tmp_path: Path, partition: list[Any], offset: list[Any], shared: bool
) -> None:
    stored = StoredOutput(path=tmp_path)
    flags = [True, False, None][: len(offset)]
    offsets = pa.array(offset, pa.int64())
    committed = pa.array(flags, pa.bool_())
    store(stored, "committed/a.parquet", partition=partition, offset=offsets, committed=committed)
    assert stored.repeats_places() == shared


def test_a_partition_that_was_not_read_has_no_records(tmp_path: Path) -> None:
    stored = StoredOutput(path=tmp_path)
    store(stored, "committed/part-0.parquet", partition=[2], offset=[0], committed=[True])
    stored.finish({"kind": "kafka", "ends": {"0": 1}})
    assert "of partition 2, of which 0 to 0 were read" in stored.misplaced()
    assert stored.unplaced() == 1


def topic(stored: StoredOutput, places: list[tuple[int, int | None]], **facts: Any) -> StoredOutput:
    """The same with records of a topic at some places."""
    offsets = pa.array([offset for _, offset in places], pa.int64())
    columns = {"topic": ["totals"] * len(places), "partition": [number for number, _ in places]}
    path = stored.path / "records" / "committed" / "part-0.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.table({**columns, "offset": offsets, "committed": [True] * len(places)}), path
    )
    stored.finish({"kind": "kafka", **facts})
    return stored


def test_records_without_a_place_that_was_read_are_counted(tmp_path: Path) -> None:
    places = [(0, 0), (0, None), (0, 2), (1, 4), (1, 5), (1, 9)]
    stored = topic(StoredOutput(path=tmp_path), places, ends={"0": 3, "1": 6}, starts={"1": 5})
    assert stored.unplaced() == 3


@pytest.mark.parametrize(("read", "wrong"), [("totals", False), (None, False), ("other", True)])
def test_records_of_another_topic_are_misplaced(
    tmp_path: Path, read: str | None, wrong: bool
) -> None:
    stored = topic(StoredOutput(path=tmp_path), [(0, 0)], ends={"0": 1}, topic=read)
    message = "a record is stored as one of totals, and other was read"
    assert stored.misplaced() == (message if wrong else "")


@pytest.mark.parametrize(
    ("places", "ends", "message"),
    [
        ([(0, 0), (0, 1), (1, 5)], {"0": 2, "1": 6}, ""),
        (
            [(0, 0), (0, 1), (1, 5)],
            {"0": 7, "1": 6},
            "no record of partition 0 is stored behind offset 1, and it was read up to 7",
        ),
        (
            [(0, 0), (0, 1)],
            {"0": 2, "1": 6},
            "no record of partition 1 is stored behind offset 4, and it was read up to 6",
        ),
        ([(0, 0), (0, 2), (1, 5)], {"0": 7, "1": 6}, ""),  # others are missing: a transaction's end
        ([(0, 1), (1, 5)], {"0": 7, "1": 6}, ""),
        ([(0, None), (1, 5)], {"0": 7, "1": 6}, ""),
        ([(0, 0), (0, 1), (1, 5)], None, ""),
    ],
)
def test_a_topic_whose_offsets_all_hold_records_ends_with_the_last_one(
    tmp_path: Path, places: list[Any], ends: Any, message: str
) -> None:
    stored = topic(StoredOutput(path=tmp_path), places, ends=ends, starts={"1": 5})
    assert stored.ends_without_records() == message


def test_a_read_without_ends_or_offsets_has_no_misplaced_records(tmp_path: Path) -> None:
    stored = StoredOutput(path=tmp_path)
    store(stored, "part-0.parquet", file=["a"], position=[0])
    stored.finish({"kind": "files"})
    assert stored.misplaced() == ""
