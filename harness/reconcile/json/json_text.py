"""Typed values as JSON text from which they can be read again."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

WITH_NULLS: Mapping[str, str] = {"ignoreNullFields": "false"}
_MICROSECONDS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_EXACT = {
    **WITH_NULLS,
    "timestampFormat": f"{_MICROSECONDS}XXX",
    "timestampNTZFormat": _MICROSECONDS,
}
"""Spark writes milliseconds unless it is told otherwise, and holds microseconds."""


def json_text(value: Column) -> Column:
    """A struct, list or map as JSON: null fields are there, times are in microseconds."""
    return F.to_json(value, _EXACT)


def base64_text(value: Column) -> Column:
    """Bytes as JSON has them: Spark's own function breaks them into lines of 76 characters."""
    return F.replace(F.base64(value), F.lit("\r\n"), F.lit(""))
