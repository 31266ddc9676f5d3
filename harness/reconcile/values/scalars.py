"""Parses single values: texts that are numbers, dates or timestamps."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.reconcile.json.json_record import numeral

NUMERAL = r"^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,9}))?\z"
"""A JSON number; 007, +7 and .5 are none. Java's `$` would also match before a line end."""
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
MOMENT = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?\z"
)
"""ISO 8601 to the microsecond, the precision of Spark's timestamps; UTC without a zone."""


def parse_date(text: Column) -> Column:
    """The date in a text; null where it is no date."""
    return F.when(text.rlike(DATE), text.try_cast("date"))


def parse_timestamp(text: Column) -> Column:
    """The timestamp in a text; null where it is no timestamp."""
    return F.when(text.rlike(MOMENT), text.try_cast("timestamp"))


def numeral_of(variant: Column) -> Column:
    """The numeral of a JSON number; null for any other value."""
    kind = F.schema_of_variant(variant)
    floating = F.when(kind == "DOUBLE", F.try_variant_get(variant, "$", "double"))
    return F.coalesce(exact_numeral_of(variant), numeral(floating))


def exact_numeral_of(variant: Column) -> Column:
    """The numeral of a JSON number of at most 38 digits; null for any other value. Records are
    written so that Spark reads all other numbers as floating point, and no whole number of 64 bits
    is among those (`json_exact.py`)."""
    kind, text = F.schema_of_variant(variant), F.try_variant_get(variant, "$", "string")
    return F.when((kind == "BIGINT") | F.startswith(kind, F.lit("DECIMAL")), text)


def canonical_number(text: Column) -> Column:
    """A numeral as its digits and a power of ten. Infinities and NaN are unchanged."""
    sign, whole, fraction, power = (F.regexp_extract(text, NUMERAL, n) for n in (1, 2, 3, 4))
    digits = F.ltrim(F.concat(whole, fraction), F.lit("0"))
    significant = F.rtrim(digits, F.lit("0"))
    scale = F.coalesce(power.try_cast("bigint"), F.lit(0)) - F.length(fraction)
    scale = scale + F.length(digits) - F.length(significant)
    number = F.concat(sign, significant, F.lit("e"), scale.cast("string"))
    return F.when(~text.rlike(NUMERAL), text).when(significant == "", F.lit("0")).otherwise(number)
