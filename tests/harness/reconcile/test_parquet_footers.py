"""Spark's own metadata in the footer of a Parquet file does not change its data."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.reports.record.outcome import Outcome
from tests.harness.reconcile.data_sets import comparison_of
from tests.harness.reconcile.test_both_ways import differences_both_ways

FOOTER = "org.apache.spark.sql.parquet.row.metadata"
COLLATED = {"metadata": {"__COLLATIONS": {"v": "spark.UTF8_LCASE"}}}
PADDED = {"metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}}
DEFAULTED = {"metadata": {"EXISTS_DEFAULT": "'x'", "CURRENT_DEFAULT": "'x'"}}


def write_file(path: Path, value: str, **field_properties: Any) -> Path:
    """Write a record of a number and a text, with properties of the text's field in the footer."""
    fields = [{"name": "n", "type": "long"}, {"name": "v", "type": "string", **field_properties}]
    schema = {"type": "struct", "fields": [{"nullable": True, "metadata": {}, **f} for f in fields]}
    table = pyarrow.table({"n": [1], "v": [value]})
    path.parent.mkdir(parents=True, exist_ok=True)
    footer = {FOOTER: json.dumps(schema)}
    pyarrow.parquet.write_table(table.replace_schema_metadata(footer), path)
    return path


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("field_properties", "expected_text", "actual_text"),
    [
        (COLLATED, "a", "A"),
        ({"metadata": {"__COLLATIONS": {"v": "spark.UTF8_BINARY_RTRIM"}}}, "a", "a "),
        (PADDED, "a", "a "),
        ({"type": "char(5)"}, "a", "a "),
    ],
)
def test_texts_are_compared_without_collation_and_padding(
    spark: SparkSession,
    tmp_path: Path,
    field_properties: dict[str, Any],
    expected_text: str,
    actual_text: str,
) -> None:
    expected = write_file(tmp_path / "expected.parquet", expected_text, **field_properties)
    same = write_file(tmp_path / "same.parquet", expected_text)
    actual = write_file(tmp_path / "actual.parquet", actual_text, **field_properties)

    counts = comparison_of(spark, expected, actual, "v").counts
    assert (counts["lost"], counts["phantom"]) == (1, 1)
    assert comparison_of(spark, expected, same, "v").outcome is Outcome.HELD
    assert differences_both_ways(spark, tmp_path, same, actual.read_bytes(), "parquet", ("v",)) == (
        {1},
        {1},
    )


@pytest.mark.nightly
def test_a_missing_field_has_no_default(spark: SparkSession, tmp_path: Path) -> None:
    write_file(tmp_path / "expected" / "0.parquet", "x", **DEFAULTED)
    other = pyarrow.table({"n": [2]})
    pyarrow.parquet.write_table(other, tmp_path / "expected" / "1.parquet")
    actual = pyarrow.table({"n": [1, 2], "v": ["x", "x"]})
    pyarrow.parquet.write_table(actual, tmp_path / "actual.parquet")

    result = comparison_of(
        spark, tmp_path / "expected", tmp_path / "actual.parquet", "n", compare="v"
    )

    assert result.counts["changed"] == 1


def test_no_class_that_a_footer_names_is_imported(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "named_by_a_footer.py").write_text("raise SystemExit")
    monkeypatch.syspath_prepend(str(tmp_path))
    kind = {
        "type": "udt",
        "pyClass": "named_by_a_footer.It",
        "serializedClass": "",
        "sqlType": "string",
    }
    expected = write_file(tmp_path / "output" / "records" / "expected.parquet", "a", type=kind)
    actual = write_file(tmp_path / "actual.parquet", "b")

    result = comparison_of(spark, expected, actual, "n", compare="v")

    assert result.counts["changed"] == 1
    assert (
        StoredOutput(path=tmp_path / "output").frame(spark).schema["v"].dataType.typeName()
        == "string"
    )
    assert "named_by_a_footer" not in sys.modules


@pytest.mark.nightly
def test_a_field_with_the_name_of_sparks_metadata_is_data(
    spark: SparkSession, tmp_path: Path
) -> None:
    field_value = {"file_path": "elsewhere", "row_index": 7}
    table = pyarrow.table({"n": [1], "_metadata": [field_value]})
    pyarrow.parquet.write_table(table, tmp_path / "e.parquet")
    table = pyarrow.table({"n": [1], "_metadata": [{**field_value, "row_index": 8}]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")

    result = comparison_of(
        spark, tmp_path / "e.parquet", tmp_path / "a.parquet", "n", compare="_metadata"
    )

    assert result.counts["changed"] == 1
    assert result.findings[0].where == f"file {tmp_path}/a.parquet, position 0"


def test_intervals_of_months_are_shown(spark: SparkSession, tmp_path: Path) -> None:
    for name, months in (("e", "1-2"), ("a", "1-3")):
        frame = spark.sql(f"SELECT 1 n, INTERVAL '{months}' YEAR TO MONTH v")
        frame.write.parquet(str(tmp_path / name))

    result = comparison_of(spark, tmp_path / "e", tmp_path / "a", "n", compare="v")

    assert result.findings[0].detail["seen"] == [{"v": "INTERVAL '1-3' YEAR TO MONTH"}]
