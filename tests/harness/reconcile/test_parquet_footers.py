"""What Spark writes into the footer of a Parquet file beside its types is not in the data."""

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
from tests.harness.reconcile.data_sets import compared
from tests.harness.reconcile.test_both_ways import both_ways

FOOTER = "org.apache.spark.sql.parquet.row.metadata"
COLLATED = {"metadata": {"__COLLATIONS": {"v": "spark.UTF8_LCASE"}}}
PADDED = {"metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}}
DEFAULTED = {"metadata": {"EXISTS_DEFAULT": "'x'", "CURRENT_DEFAULT": "'x'"}}


def file_of(path: Path, value: str, **message: Any) -> Path:
    """A record of a number and a text, and what the footer says of the text."""
    fields = [{"name": "n", "type": "long"}, {"name": "v", "type": "string", **message}]
    schema = {"type": "struct", "fields": [{"nullable": True, "metadata": {}, **f} for f in fields]}
    table = pyarrow.table({"n": [1], "v": [value]})
    path.parent.mkdir(parents=True, exist_ok=True)
    footer = {FOOTER: json.dumps(schema)}
    pyarrow.parquet.write_table(table.replace_schema_metadata(footer), path)
    return path


@pytest.mark.parametrize(
    ("message", "sent", "seen"),
    [
        (COLLATED, "a", "A"),
        ({"metadata": {"__COLLATIONS": {"v": "spark.UTF8_BINARY_RTRIM"}}}, "a", "a "),
        (PADDED, "a", "a "),
        ({"type": "char(5)"}, "a", "a "),
    ],
)
def test_texts_are_compared_as_they_are(
    spark: SparkSession, tmp_path: Path, message: dict[str, Any], sent: str, seen: str
) -> None:
    recorded = file_of(tmp_path / "told.parquet", sent, **message)
    same = file_of(tmp_path / "same.parquet", sent)
    arrived = file_of(tmp_path / "came.parquet", seen, **message)

    counts = compared(spark, recorded, arrived, "v").counts
    assert (counts["lost"], counts["phantom"]) == (1, 1)
    assert compared(spark, recorded, same, "v").outcome is Outcome.HELD
    assert both_ways(spark, tmp_path, same, arrived.read_bytes(), "parquet", ("v",)) == ({1}, {1})


def test_a_field_that_is_not_there_has_no_default(spark: SparkSession, tmp_path: Path) -> None:
    file_of(tmp_path / "told" / "0.parquet", "x", **DEFAULTED)
    other = pyarrow.table({"n": [2]})
    pyarrow.parquet.write_table(other, tmp_path / "told" / "1.parquet")
    arrived = pyarrow.table({"n": [1, 2], "v": ["x", "x"]})
    pyarrow.parquet.write_table(arrived, tmp_path / "came.parquet")

    result = compared(spark, tmp_path / "told", tmp_path / "came.parquet", "n", compare="v")

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
    recorded = file_of(tmp_path / "output" / "records" / "told.parquet", "a", type=kind)
    arrived = file_of(tmp_path / "came.parquet", "b")

    result = compared(spark, recorded, arrived, "n", compare="v")

    assert result.counts["changed"] == 1
    assert (
        StoredOutput(path=tmp_path / "output").frame(spark).schema["v"].dataType.typeName()
        == "string"
    )
    assert "named_by_a_footer" not in sys.modules


def test_a_field_with_the_name_of_sparks_metadata_is_no_place(
    spark: SparkSession, tmp_path: Path
) -> None:
    its_own = {"file_path": "elsewhere", "row_index": 7}
    table = pyarrow.table({"n": [1], "_metadata": [its_own]})
    pyarrow.parquet.write_table(table, tmp_path / "e.parquet")
    table = pyarrow.table({"n": [1], "_metadata": [{**its_own, "row_index": 8}]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")

    result = compared(
        spark, tmp_path / "e.parquet", tmp_path / "a.parquet", "n", compare="_metadata"
    )

    assert result.counts["changed"] == 1
    assert result.findings[0].where == f"file {tmp_path}/a.parquet, position 0"


def test_months_are_shown(spark: SparkSession, tmp_path: Path) -> None:
    for name, months in (("e", "1-2"), ("a", "1-3")):
        frame = spark.sql(f"SELECT 1 n, INTERVAL '{months}' YEAR TO MONTH v")
        frame.write.parquet(str(tmp_path / name))

    result = compared(spark, tmp_path / "e", tmp_path / "a", "n", compare="v")

    assert result.findings[0].detail["seen"] == [{"v": "INTERVAL '1-3' YEAR TO MONTH"}]
