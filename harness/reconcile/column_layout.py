"""The two sides laid out for the comparison: columns by number, so that any expression will do.

k0, k1, ...   the key          s          the sequence      c0, c1, ...   what is compared
k0_missing    whether a JSON record has no such field (beside each column where that matters)
rank          the sequence as it is ordered; order, and what stands in the table's place
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamquake.harness.reconcile.expressions import Expression
from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.reading.table import MALFORMED, RAW, Table
from streamquake.harness.reconcile.row_hashes import ACKNOWLEDGED, FAILED, UNKNOWN
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.reconcile.upserts import deletes_without_key
from streamquake.harness.reconcile.values.operand import SEVERAL, Operand, operand
from streamquake.harness.reconcile.values.pairing import Pair, pair_operands
from streamquake.harness.reconcile.values.scalars import numeral_of, parse_timestamp
from streamquake.topologies.problems import bad_input

MISSING = "_missing"
RANK, ORDER, UNPLACED = "rank", "order", "unplaced"
RETRACTS, DELETES = "retracts", "deletes"
STATUS, STATUS_TEXT = "status", "said"
ACKS = {
    ACKNOWLEDGED: ("ok", "true", ACKNOWLEDGED),
    FAILED: ("fail", "false", FAILED),
    UNKNOWN: ("unknown",),
}
"""What `--ack` may say of a send."""
NUMBER = r"^(-?)([0-9]+)(?:[.]([0-9]+))?(?:[eE]([+-]?[0-9]{1,9}))?\z"
MAX_DIGITS = 38
"""Digits that Spark's decimals hold."""


@dataclass(frozen=True, kw_only=True)
class ParsedExpressions:
    """The parsed expressions of both sides; those of one place belong together."""

    key: tuple[tuple[Expression, Expression], ...]
    sequence: tuple[tuple[Expression, Expression], ...]
    compare: tuple[tuple[Expression, Expression], ...]
    order: tuple[Expression, ...] = ()
    ack: Expression | None = None
    retracts: Expression | None = None
    also: tuple[str, ...] = ()
    upsert: bool = False

    @property
    def columns(self) -> dict[str, tuple[Expression, Expression]]:
        """Column -> its expressions over the expected and over the actual side."""
        numbered = {f"k{change}": pair for change, pair in enumerate(self.key)}
        numbered |= dict(zip("s", self.sequence, strict=False))
        return numbered | {f"c{change}": pair for change, pair in enumerate(self.compare)}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Both sides as frames of the same columns, and how to compare them."""

    expected: DataFrame
    actual: DataFrame
    shape: Shape
    titles: Mapping[str, str]
    """Column -> the expression as it was written."""
    tagged: frozenset[str]
    """Columns whose values are canonical texts."""
    notes: tuple[str, ...]


def lay_out(asking: ParsedExpressions, expected: Table, actual: Table) -> Layout:
    """Bring two tables to one form. Raises BadInput for expressions that do not fit them."""
    operands = {
        name: (operand(one, expected, "expected"), operand(other, actual, "actual"))
        for name, (one, other) in asking.columns.items()
    }
    texts = {name: one.text for name, (one, _) in asking.columns.items()}
    pairs = {
        name: pair_operands(*operands[name], texts[name], asking.columns[name][0].option)
        for name in operands
    }
    ranked = _rank(operands["s"][1]) if asking.sequence else F.lit(None)
    ordering = [_rank(operand(each, actual, "actual")) for each in asking.order]
    deletes = F.col(actual.deletes) if asking.upsert and actual.deletes else F.lit(False)
    keys = (pair.actual for name, pair in pairs.items() if name.startswith("k"))
    malformed = F.col(MALFORMED) | deletes_without_key(deletes, keys)
    return Layout(
        expected=expected.frame.select(
            *_value_columns(pairs, 0),
            *_ack_columns(asking, expected),
            *map(quote_name, expected.place),
            MALFORMED,
            RAW,
        ),
        actual=actual.frame.select(
            *_value_columns(pairs, 1),
            *_order_columns(ordering, ranked),
            _retraction_column(asking, actual),
            deletes.alias(DELETES),
            *map(quote_name, actual.place),
            malformed.alias(MALFORMED),
            RAW,
        ),
        shape=_shape(asking, pairs, expected, actual),
        titles=texts,
        tagged=frozenset(name for name, pair in pairs.items() if pair.tagged),
        notes=tuple(dict.fromkeys(pair.never for pair in pairs.values() if pair.never)),
    )


def _value_columns(pairs: Mapping[str, Pair], side: int) -> list[Column]:
    """The columns of one side, 0 the expected and 1 the actual."""
    found = []
    for name, pair in pairs.items():
        found.append((pair.expected, pair.actual)[side].alias(name))
        if pair.missing is not None:
            found.append(pair.missing[side].alias(name + MISSING))
    return found


def _order_columns(ordering: Sequence[Column], ranked: Column) -> list[Column]:
    """Where a record stands in the order that was asked for, and whether it stands nowhere."""
    nowhere = reduce(or_, map(F.isnull, ordering), F.lit(False))
    # Of records that came at the same moment nobody can say that they came in the wrong order.
    moment = F.struct(*ordering, ranked) if ordering else F.lit(None)
    return [ranked.alias(RANK), moment.alias(ORDER), nowhere.alias(UNPLACED)]


def _ack_columns(asking: ParsedExpressions, expected: Table) -> list[Column]:
    if asking.ack is None:
        return [F.lit(ACKNOWLEDGED).alias(STATUS), F.lit(None).cast("string").alias(STATUS_TEXT)]
    given = operand(asking.ack, expected, "expected")
    if given.family not in ("text", "boolean", "nothing", SEVERAL):
        message = f"expected text or a boolean, got {given.type.simpleString()}"
        raise bad_input(asking.ack.option, message)
    wording = given.value.cast("string")
    words = [F.when(wording.isin(*known), F.lit(status)) for status, known in ACKS.items()]
    return [F.coalesce(*words).alias(STATUS), wording.alias(STATUS_TEXT)]


def _retraction_column(asking: ParsedExpressions, actual: Table) -> Column:
    """Whether a record takes another one back."""
    if asking.retracts is None:
        return F.lit(False).alias(RETRACTS)
    given = operand(asking.retracts, actual, "actual")
    if given.family not in ("boolean", "nothing"):
        message = f"expected a condition, got {given.type.simpleString()}; write one, as op = 'd'"
        raise bad_input(asking.retracts.option, message)
    return given.value.cast("boolean").alias(RETRACTS)


def _rank(side: Operand) -> Column:
    """A sequence or an order as it is ordered: text that is a number by its number, then text that
    is a moment by its moment, then other text by its code points. Of JSON each value is ordered by
    what stands there, as a type of them all may hold it less exactly."""
    variant = side.variant if side.family == "floating-point" else None
    if side.family == SEVERAL:
        variant = side.value if side.variant is None else side.variant
    plain = ("number", "floating-point", "boolean", "date", "timestamp", "nothing")
    if variant is None and side.family in plain:
        return side.value
    text = side.value.cast("string")
    if variant is not None:
        text = F.coalesce(numeral_of(variant), F.try_variant_get(variant, "$", "string"))
    moment = F.unix_micros(parse_timestamp(text))
    parts = {
        **_number_parts(text),
        "moment": moment,
        "other": F.when(~text.rlike(NUMBER) & moment.isNull(), text),
    }
    # Nulls come first, so what is null stands behind a mark: numbers, moments, texts.
    change = F.when(text.rlike(NUMBER), 0).when(moment.isNotNull(), 1).otherwise(2)
    ranked = (value.alias(name) for name, value in parts.items())
    return F.when(text.isNotNull(), F.struct(change.alias("turn"), *ranked))


def _number_parts(text: Column) -> dict[str, Column]:
    """A number of any size as parts that are ordered as it is, of those below zero each part turned
    round; and where 38 digits hold it, `number` and `fraction`."""
    is_number = text.rlike(NUMBER)
    sign, whole, fraction, power = (F.regexp_extract(text, NUMBER, n) for n in (1, 2, 3, 4))
    written = F.concat(whole, fraction)
    behind_zeros = F.ltrim(written, F.lit("0"))
    digits = F.rtrim(behind_zeros, F.lit("0"))
    size = F.coalesce(power.try_cast("bigint"), F.lit(0)) + F.length(whole)
    size += F.length(behind_zeros) - F.length(written)
    below = sign == "-"
    way = F.when(digits == "", 0).otherwise(F.when(below, -1).otherwise(1))
    # The end of digits that are turned round goes behind more digits.
    turned = F.concat(F.translate(digits, "0123456789", "9876543210"), F.lit("~"))
    held = (power == "") & (F.length(whole) <= MAX_DIGITS) & (F.length(fraction) <= MAX_DIGITS)
    return {
        "sign": F.when(is_number, way),
        "size": F.when(is_number, F.when(digits != "", way * size)),
        "digits": F.when(is_number, F.when(below, turned).otherwise(digits)),
        "number": F.when(held, F.concat(sign, whole).try_cast("decimal(38,0)")),
        "fraction": F.when(held, F.concat(sign, F.lit("0."), fraction).try_cast("decimal(38,38)")),
    }


def _shape(
    asking: ParsedExpressions, pairs: Mapping[str, Pair], expected: Table, actual: Table
) -> Shape:
    def named(first: str) -> tuple[str, ...]:
        return tuple(
            column
            for name, pair in pairs.items()
            if name.startswith(first)
            for column in (name, *((name + MISSING,) if pair.missing is not None else ()))
        )

    return Shape(
        identity=(*named("k"), *named("s")),
        key=named("k"),
        compare=named("c"),
        sequence=RANK if asking.sequence else None,
        status=STATUS,
        lane=() if asking.order else actual.lane,
        position=ORDER if asking.order else actual.position,
        where=actual.place,
        unread=MALFORMED,
        unplaced=UNPLACED,
        partition=actual.partition,
        expected_partition=expected.partition,
        also=asking.also,
        retracts=RETRACTS if asking.retracts else None,
        deletes=DELETES if asking.upsert else None,
    )
