"""Files of data sets: JSON lines, CSV, Parquet and Avro become the same lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamquake.harness.workloads.data_sets import source_file
from streamquake.harness.workloads.data_sets.data_set import LINES, DataSet, read_data_set
from streamquake.harness.workloads.data_sets.source_file import lines_of
from streamquake.harness.workloads.recorded import Recorded

ROW = {
    "id": 9007199254740993,
    "price": Decimal("1.10"),
    "weight": 0.1,
    "day": date(2026, 2, 28),
    "at": datetime(2026, 2, 28, 1, 2, 3, 500_000),
    "seen": datetime(2026, 2, 28, 1, 2, 3, tzinfo=UTC),
    "tags": ["a", None],
    "of": {"x": True},
}
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.decimal128(9, 2)),
        ("weight", pa.float64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("seen", pa.timestamp("ms", tz="Europe/Berlin")),
        ("tags", pa.list_(pa.string())),
        ("of", pa.map_(pa.string(), pa.bool_())),
    ]
)
LINE = (
    b'{"id":9007199254740993,"price":1.10,"weight":0.1,"day":"2026-02-28",'
    b'"at":"2026-02-28 01:02:03.500000","seen":"2026-02-28 01:02:03Z","tags":["a",null],'
    b'"of":{"x":true}}'
)
AVRO = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "id", "type": "long"},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "weight", "type": "double"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "seen", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "of", "type": {"type": "map", "values": "boolean"}},
    ],
}


def parquet(folder: Path, table: pa.Table) -> Path:
    file = folder / "rows.parquet"
    pq.write_table(table, file)
    return file


def csv_file(folder: Path, *lines: str) -> Path:
    file = folder / "rows.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def avro_file(folder: Path, schema: Any, rows: Sequence[Any]) -> Path:
    file = folder / "rows.avro"
    with file.open("wb") as content:
        fastavro.writer(content, schema, rows)
    return file


def test_rows_of_parquet_have_exact_values(tmp_path: Path) -> None:
    file = parquet(tmp_path, pa.Table.from_pylist([ROW, {"id": 2}], schema=SCHEMA))
    first, second = lines_of(file, {})
    assert first == LINE
    assert json.loads(second) == dict.fromkeys(ROW) | {"id": 2}


def test_records_of_avro_have_exact_values(tmp_path: Path) -> None:
    assert lines_of(avro_file(tmp_path, AVRO, [ROW]), {}) == [LINE]


def test_fields_of_csv_are_text_unless_their_type_is_given(tmp_path: Path) -> None:
    file = csv_file(tmp_path, "id,price,paid,note", '007,1.10,true,"a, ""b"""', "8,,,")
    assert lines_of(file, {})[0] == rb'{"id":"007","price":"1.10","paid":"true","note":"a, \"b\""}'
    columns = {"id": "BIGINT", "price": "DECIMAL(9,2)", "paid": "BOOLEAN"}
    assert lines_of(file, columns) == [
        rb'{"id":7,"price":1.10,"paid":true,"note":"a, \"b\""}',
        b'{"id":8,"price":null,"paid":null,"note":""}',
    ]


def test_json_in_csv_is_its_value(tmp_path: Path) -> None:
    file = csv_file(tmp_path, "id,of", '1,"{""k"": [1.10, null]}"', "2,5", "3,")
    assert lines_of(file, {"of": "JSON"}) == [
        b'{"id":"1","of":{"k":[1.10,null]}}',
        b'{"id":"2","of":5}',
        b'{"id":"3","of":null}',
    ]


def test_a_long_field_of_csv_is_read(tmp_path: Path) -> None:
    (line,) = lines_of(csv_file(tmp_path, "a", "x" * 200_000), {})
    assert len(line) > 200_000


def test_times_in_nanoseconds_are_read_where_they_are_whole_microseconds(tmp_path: Path) -> None:
    kinds = {"at": pa.timestamp("ns", "UTC"), "of": pa.time64("ns")}
    columns = {name: pa.array([1_500_000], kind) for name, kind in kinds.items()}
    (line,) = lines_of(parquet(tmp_path, pa.table(columns)), {})
    assert json.loads(line) == {"at": "1970-01-01 00:00:00.001500Z", "of": "00:00:00.001500"}
    finer = pa.table({"at": pa.array([1_500_001], pa.timestamp("ns"))})
    with pytest.raises(ValueError, match="would lose data"):
        lines_of(parquet(tmp_path, finer), {})


def test_old_timestamps_of_spark_are_read(tmp_path: Path) -> None:
    days = [datetime(1600, 1, 1), datetime(9999, 12, 31)]
    file = tmp_path / "rows.parquet"
    table = pa.table({"at": pa.array(days, pa.timestamp("us"))})
    pq.write_table(table, file, use_deprecated_int96_timestamps=True)
    assert [json.loads(line)["at"][:4] for line in lines_of(file, {})] == ["1600", "9999"]


def test_a_column_that_is_there_twice_is_rejected(tmp_path: Path) -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["id", "id"])
    with pytest.raises(ValueError, match='the column "id" is there twice'):
        lines_of(parquet(tmp_path, table), {})


def test_a_file_of_lines_without_a_line_is_rejected(tmp_path: Path) -> None:
    table = pa.table({"line": pa.array([b"{}", None], pa.binary())})
    with pytest.raises(ValueError, match="record 2: it has no line"):
        lines_of(parquet(tmp_path, table), {})


def test_a_load_of_each_kind_of_file_has_types_and_checksum(tmp_path: Path) -> None:
    file = csv_file(tmp_path, "id,price", "7,1.10")
    load = Recorded(file=str(file), rate_per_s=1, columns={"id": "BIGINT"}).with_files(Path)
    assert (load.records, load.columns) == (1, {"id": "BIGINT", "price": "STRING"})
    load.store(tmp_path, 1)
    assert load.with_stored(tmp_path).data_set(1).lines == [b'{"id":7,"price":"1.10"}']

    rows = parquet(tmp_path, pa.Table.from_pylist([ROW], schema=SCHEMA))
    of_rows = Recorded(file=str(rows), rate_per_s=1, key="id").with_files(Path)
    assert (of_rows.columns["id"], of_rows.columns["of"]) == ("BIGINT", "JSON")


def test_stored_lines_are_read_as_they_were(tmp_path: Path) -> None:
    found = DataSet.of([b'{"line": 1}', b'{ "line": 2 }'])
    found.store(tmp_path, {"line": "BIGINT"})
    assert read_data_set(tmp_path / LINES) == found


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a,b", "1"], "line 2: 1 fields, and the first line names 2"),
        (["a,a", "1,2"], "expected a first line with a name for each field, no name twice"),
        (["a,", "1,2"], "expected a first line with a name for each field"),
        (["a,n", "1,x"], "line 2: expected BIGINT, got 'x'"),
        (["a,d", "1,1/2"], "line 2: expected DECIMAL(9,2), got '1/2'"),
        (["a,b", '1,"x"y'], "line 2: ',' expected after '\"'"),
        (["a,n", "1,1_000"], "line 2: expected BIGINT, got '1_000'"),
        (["a,n", "1,٧"], "line 2: expected BIGINT, got '٧'"),
        (["a,n", "1, 7 "], "line 2: expected BIGINT, got ' 7 '"),
        (["a,d", "1,1_000.5"], "line 2: expected DECIMAL(9,2), got '1_000.5'"),
        (["a,j", "1,{"], "line 2: expected JSON, got '{'"),
        (["a,d", "1,nan"], "line 2: expected DECIMAL(9,2), got 'nan'"),
    ],
)
def test_wrong_csv_is_rejected_with_its_line(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    with pytest.raises(ValueError) as rejected:
        lines_of(csv_file(tmp_path, *lines), {"n": "BIGINT", "d": "DECIMAL(9,2)", "j": "JSON"})
    assert message in str(rejected.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([b"x"]), "row 1: bytes b'x' has no form in JSON; convert it"),
        (pa.array([float("nan")]), "row 1: float nan has no form"),
        (pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64())), "row 1: dict {1: 2} has no form"),
        (pa.array([[("a", 2), ("a", 3)]], pa.map_(pa.string(), pa.int64())), "no readable Parquet"),
    ],
)
def test_values_that_json_does_not_hold_are_rejected(
    tmp_path: Path, values: pa.Array, message: str
) -> None:
    with pytest.raises(ValueError) as rejected:
        lines_of(parquet(tmp_path, pa.table({"it": values})), {})
    assert message in str(rejected.value)


@pytest.mark.parametrize("name", ["rows.parquet", "rows.avro"])
@pytest.mark.parametrize("content", [b"", b"{}\n", b"PAR1 and more", b"Obj\x01\x02\x04"])
def test_a_file_of_another_format_is_rejected(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match="it is no readable"):
        lines_of(tmp_path / name, {})


def test_a_damaged_avro_file_is_rejected(tmp_path: Path) -> None:
    file = avro_file(tmp_path, AVRO, [ROW] * 50)
    whole = file.read_bytes()
    for cut in range(1, len(whole), 37):
        file.write_bytes(whole[:-cut])
        try:
            lines = lines_of(file, {})
        except ValueError:
            continue
        assert lines == []  # the header alone is a file without records


def test_records_of_avro_have_fields(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="record 1: expected fields, got 7"):
        lines_of(avro_file(tmp_path, "long", [7]), {})


def test_a_small_file_of_large_records_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_file, "MAX_BYTES", 10_000)
    file = parquet(tmp_path, pa.table({"it": ["x" * 100] * 100}))
    with pytest.raises(ValueError, match="its records are more than 10,000 bytes"):
        lines_of(file, {})
