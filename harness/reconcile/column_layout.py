"""The two sides laid out for the comparison, with numbered columns that fit any expression.

k0, k1, ...   the key          s          the sequence      c0, c1, ...   the compared values
k0_missing    whether a JSON record lacks the field (beside each column where that matters)
rank          the sequence in a form that sorts; order: the requested order, in the same form
f0, f1, ...   the columns of partition folders
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
from streamquake.harness.reconcile.values.operand import SEVERAL_KINDS, Operand, operand
from streamquake.harness.reconcile.values.pairing import Pair, pair_operands
from streamquake.harness.reconcile.values.rank import rank_of_text
from streamquake.harness.reconcile.values.scalars import numeral_of
from streamquake.topologies.problems import bad_input

MISSING = "_missing"
RANK, ORDER, UNPLACED = "rank", "order", "unplaced"
RETRACTS, DELETES = "retracts", "deletes"
STATUS, STATUS_TEXT = "status", "status_text"
ACKS = {
    ACKNOWLEDGED: ("ok", "true", ACKNOWLEDGED),
    FAILED: ("fail", "false", FAILED),
    UNKNOWN: ("unknown",),
}
"""Status -> the values of `--ack` that mean it."""


@dataclass(frozen=True, kw_only=True)
class ParsedExpressions:
    """The parsed expressions of both sides, in pairs of (expected, actual)."""

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
        numbered = {f"k{number}": pair for number, pair in enumerate(self.key)}
        numbered |= dict(zip("s", self.sequence, strict=False))
        return numbered | {f"c{number}": pair for number, pair in enumerate(self.compare)}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Both sides as frames of the same columns, and how to compare them."""

    expected: DataFrame
    actual: DataFrame
    shape: Shape
    titles: Mapping[str, str]
    """Column -> the expression as it was written."""
    canonical_columns: frozenset[str]
    """Columns whose values are canonical texts."""
    notes: tuple[str, ...]


def lay_out(parsed: ParsedExpressions, expected: Table, actual: Table) -> Layout:
    """Lay out two tables in one form. Raises BadInput for expressions that do not fit them."""
    operands = {
        name: (operand(one, expected, "expected"), operand(other, actual, "actual"))
        for name, (one, other) in parsed.columns.items()
    }
    texts = {name: one.text for name, (one, _) in parsed.columns.items()}
    pairs = {
        name: pair_operands(*operands[name], texts[name], parsed.columns[name][0].option)
        for name in operands
    }
    ranked = _rank(operands["s"][1]) if parsed.sequence else F.lit(None)
    ordering = [_rank(operand(expression, actual, "actual")) for expression in parsed.order]
    deletes = F.col(actual.deletes) if parsed.upsert and actual.deletes else F.lit(False)
    keys = (pair.actual for name, pair in pairs.items() if name.startswith("k"))
    malformed = F.col(MALFORMED) | deletes_without_key(deletes, keys)
    return Layout(
        expected=expected.frame.select(
            *_value_columns(pairs, 0),
            *_ack_columns(parsed, expected),
            *_place_columns(expected.place),
            MALFORMED,
            RAW,
        ),
        actual=actual.frame.select(
            *_value_columns(pairs, 1),
            *_order_columns(ordering, ranked),
            _retraction_column(parsed, actual),
            deletes.alias(DELETES),
            *_place_columns(actual.place),
            malformed.alias(MALFORMED),
            RAW,
        ),
        shape=_shape(parsed, pairs, expected, actual),
        titles=texts,
        canonical_columns=frozenset(name for name, pair in pairs.items() if pair.is_canonical),
        notes=tuple(dict.fromkeys(pair.mismatch for pair in pairs.values() if pair.mismatch)),
    )


def _value_columns(pairs: Mapping[str, Pair], side: int) -> list[Column]:
    """The columns of one side: 0 is the expected side, 1 the actual one."""
    columns = []
    for name, pair in pairs.items():
        columns.append((pair.expected, pair.actual)[side].alias(name))
        if pair.missing is not None:
            columns.append(pair.missing[side].alias(name + MISSING))
    return columns


def _place_names(place: Sequence[str]) -> dict[str, str]:
    """The columns of a place -> their names in the layout. Only those of partition folders, whose
    names are free, get another one."""
    folders = [name for name in place if not name.startswith("_")]
    return {name: name for name in place} | {name: f"f{n}" for n, name in enumerate(folders)}


def _place_columns(place: Sequence[str]) -> list[Column]:
    return [F.col(quote_name(name)).alias(own) for name, own in _place_names(place).items()]


def _order_columns(ordering: Sequence[Column], ranked: Column) -> list[Column]:
    """The place of a record in the requested order, and whether it has none."""
    unplaced = reduce(or_, map(F.isnull, ordering), F.lit(False))
    # Records of the same moment are never out of order, so the sequence breaks the tie.
    moment = F.struct(*ordering, ranked) if ordering else F.lit(None)
    return [ranked.alias(RANK), moment.alias(ORDER), unplaced.alias(UNPLACED)]


def _ack_columns(parsed: ParsedExpressions, expected: Table) -> list[Column]:
    if parsed.ack is None:
        return [F.lit(ACKNOWLEDGED).alias(STATUS), F.lit(None).cast("string").alias(STATUS_TEXT)]
    ack = operand(parsed.ack, expected, "expected")
    if ack.family not in ("text", "boolean", "nothing", SEVERAL_KINDS):
        message = f"expected text or a boolean, got {ack.type.simpleString()}"
        raise bad_input(parsed.ack.option, message)
    ack_text = ack.value.cast("string")
    statuses = [F.when(ack_text.isin(*known), F.lit(status)) for status, known in ACKS.items()]
    return [F.coalesce(*statuses).alias(STATUS), ack_text.alias(STATUS_TEXT)]


def _retraction_column(parsed: ParsedExpressions, actual: Table) -> Column:
    """Whether a record is a retraction."""
    if parsed.retracts is None:
        return F.lit(False).alias(RETRACTS)
    condition = operand(parsed.retracts, actual, "actual")
    if condition.family not in ("boolean", "nothing"):
        message = (
            f"expected a condition, got {condition.type.simpleString()}; write one, such as "
            "op = 'd'"
        )
        raise bad_input(parsed.retracts.option, message)
    return condition.value.cast("boolean").alias(RETRACTS)


def _rank(side: Operand) -> Column:
    """A sequence or an order in a form that sorts (`rank.py`). A JSON value sorts by its own text,
    since a common type of all values may be less exact."""
    variant = side.variant if side.family == "floating-point" else None
    if side.family == SEVERAL_KINDS:
        variant = side.value if side.variant is None else side.variant
    plain = ("number", "floating-point", "boolean", "date", "timestamp", "nothing")
    if variant is None and side.family in plain:
        return side.value
    text = side.value.cast("string")
    if variant is not None:
        text = F.coalesce(numeral_of(variant), F.try_variant_get(variant, "$", "string"))
    return rank_of_text(text)


def _shape(
    parsed: ParsedExpressions, pairs: Mapping[str, Pair], expected: Table, actual: Table
) -> Shape:
    place = _place_names(actual.place)

    def columns_of(first: str) -> tuple[str, ...]:
        return tuple(
            column
            for name, pair in pairs.items()
            if name.startswith(first)
            for column in (name, *((name + MISSING,) if pair.missing is not None else ()))
        )

    return Shape(
        identity=(*columns_of("k"), *columns_of("s")),
        key=columns_of("k"),
        compare=columns_of("c"),
        sequence=RANK if parsed.sequence else None,
        status=STATUS,
        lane=() if parsed.order else actual.lane,
        position=ORDER if parsed.order else actual.position,
        display_columns=tuple(place.values()),
        unreadable=MALFORMED,
        unplaced=UNPLACED,
        partition=actual.partition,
        expected_partition=expected.partition,
        also=parsed.also,
        retracts=RETRACTS if parsed.retracts else None,
        deletes=DELETES if parsed.upsert else None,
        names={own: name for name, own in place.items() if own != name},
    )
