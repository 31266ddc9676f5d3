"""Typed values as JSON text that can be read again."""

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
"""By default Spark writes milliseconds, although its timestamps have microseconds."""


def json_text(value: Column) -> Column:
    """A struct, list or map as JSON, with null fields and with times in microseconds."""
    return F.to_json(value, _EXACT)


def base64_text(value: Column) -> Column:
    """Bytes as base64 text in one line; Spark's own function breaks lines after 76 characters."""
    return F.replace(F.base64(value), F.lit("\r\n"), F.lit(""))
