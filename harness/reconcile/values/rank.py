"""Sequences and orders in a form that sorts, for a run and for the `reconcile` command.

Text that is a number sorts by its number, then text that is a timestamp by its moment, then other
text by its code points. Values of other types sort as they are.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType

from streamquake.harness.reconcile.values.scalars import parse_timestamp

NUMBER_PATTERN = r"^(-?)([0-9]+)(?:[.]([0-9]+))?(?:[eE]([+-]?[0-9]{1,9}))?\z"
MAX_DIGITS = 38
"""Digits of Spark's largest decimal."""


def rank_of(value: Column, kind: DataType) -> Column:
    """A value of this type in the form that sorts."""
    return rank_of_text(value) if isinstance(kind, StringType) else value


def rank_of_text(text: Column) -> Column:
    """A text in the form that sorts."""
    moment = F.unix_micros(parse_timestamp(text))
    parts = {
        **_number_parts(text),
        "moment": moment,
        "other": F.when(~text.rlike(NUMBER_PATTERN) & moment.isNull(), text),
    }
    # Nulls sort first, so a number for the kind comes before the parts: number, moment, text.
    kind = F.when(text.rlike(NUMBER_PATTERN), 0).when(moment.isNotNull(), 1).otherwise(2)
    ranked = (value.alias(name) for name, value in parts.items())
    return F.when(text.isNotNull(), F.struct(kind.alias("kind"), *ranked))


def _number_parts(text: Column) -> dict[str, Column]:
    """A number of any size as parts that sort as it does, the same in any spelling. The parts of a
    negative number are inverted. Where 38 digits hold the number, `number` and `fraction` are its
    value."""
    is_number = text.rlike(NUMBER_PATTERN)
    sign, whole, fraction, power = (F.regexp_extract(text, NUMBER_PATTERN, n) for n in (1, 2, 3, 4))
    written = F.concat(whole, fraction)
    without_zeros = F.ltrim(written, F.lit("0"))
    digits = F.rtrim(without_zeros, F.lit("0"))
    size = F.coalesce(power.try_cast("bigint"), F.lit(0)) + F.length(whole)
    size += F.length(without_zeros) - F.length(written)
    negative = (sign == "-") & (digits != "")
    direction = F.when(digits == "", 0).otherwise(F.when(negative, -1).otherwise(1))
    # Inverted digits end in a character above all digits: fewer digits sort after more digits.
    inverted = F.concat(F.translate(digits, "0123456789", "9876543210"), F.lit("~"))
    places = F.length(digits) - size
    fits = is_number & ((digits == "") | ((size <= MAX_DIGITS) & (places <= MAX_DIGITS)))
    before = F.rpad(digits, _bounded(size), F.lit("0"))
    behind = F.lpad(F.substr(digits, _bounded(size) + 1), _bounded(places), F.lit("0"))
    return {
        "sign": F.when(is_number, direction),
        "size": F.when(is_number, F.when(digits != "", direction * size)),
        "digits": F.when(is_number, F.when(negative, inverted).otherwise(digits)),
        "number": F.when(fits, F.concat(sign, F.lit("0"), before).try_cast("decimal(38,0)")),
        "fraction": F.when(fits, F.concat(sign, F.lit("0."), behind).try_cast("decimal(38,38)")),
    }


def _bounded(count: Column) -> Column:
    """A number of digits, from zero to `MAX_DIGITS`."""
    return F.least(F.greatest(count, F.lit(0)), F.lit(MAX_DIGITS)).cast("int")
