"""Fields of records with declared types, by their paths."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.reading.custom_shape import Tree
from streamquake.harness.reconcile.values.declared import declared_fields


def test_a_path_leads_through_structs_maps_and_lists(spark: SparkSession) -> None:
    """A field that the record lacks is null, at any level."""
    frame = spark.sql(
        "SELECT named_struct('s', named_struct('a', 1), 'm', map('a', 2), "
        "'l', array(named_struct('a', 3)), 'n', 4) AS record"
    )
    kind = frame.schema["record"].dataType
    tree: Tree = {
        "s": {"a": None, "b": None},
        "m": {"a": None},
        "l": {"a": None, "b": None},
        "n": {"a": None},
        "x": None,
    }

    fields, fits = declared_fields(F.col("record"), kind, tree)

    columns = [value.alias(name) for name, value in fields.items()]
    row = frame.select(*columns, fits.alias("fits")).collect()[0]
    assert row.asDict(recursive=True) == {
        "s": {"a": 1, "b": None},
        "m": {"a": 2},
        "l": {"a": [3], "b": None},
        "n": {"a": None},
        "x": None,
        "fits": True,
    }
