"""The texts that a constant of SQL consists of: itself, or those within its list, mapping, struct
or variant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.sql.sql_tree import elements

TEXT = re.compile("string|variant")
"""Types that are or may hold a text."""
EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"


def texts_of(spark: SparkSession, constant: Any) -> Iterator[str]:
    """The texts of a foldable expression; none where it fails, since it fails for every record."""
    kind = str(constant.dataType().catalogString())
    if not TEXT.search(kind):
        return
    is_text = kind.startswith("string")
    try:
        value = (constant if is_text else _as_json(spark, constant)).eval(None)
    except Py4JJavaError:
        return
    if value is not None:
        yield from [str(value)] if is_text else _texts_within(json.loads(str(value)))


def texts_of_rows(spark: SparkSession, relation: Any) -> Iterator[str]:
    """The texts of a relation that is written into the SQL."""
    kinds = [attribute.dataType() for attribute in elements(relation.output())]
    columns = [at for at, kind in enumerate(kinds) if TEXT.search(str(kind.catalogString()))]
    literal = getattr(spark._jvm, f"{EXPRESSIONS}.Literal")
    for row in elements(relation.data()):
        for at in columns:
            yield from texts_of(spark, literal(row.get(at, kinds[at]), kinds[at]))


def _as_json(spark: SparkSession, constant: Any) -> Any:
    """The expression of a constant as JSON."""
    jvm: Any = spark._jvm
    options = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})
    zone = jvm.scala.Option.apply("UTC")
    return getattr(jvm, f"{EXPRESSIONS}.StructsToJson")(options, constant, zone)


def _texts_within(value: object) -> Iterator[str]:
    """The texts in a value of JSON, with the keys of mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from _texts_within(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts_within(each)
