"""Records in the shape of their job: which JSON fields to read, and how to compute the columns.

Each column of the expected output may have an expression over the fields of a record. A field that
is only named must have exactly the type of its column. A field within a computation is read as
text, whatever its value, since its type is unknown; the expression casts it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from streamquake.harness.reconcile.expressions import (
    Expression,
    expressions,
    only_expression,
    reject_nondeterministic,
)
from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.values.nested import nested_text
from streamquake.harness.reconcile.values.promised import NESTED
from streamquake.topologies.problems import bad_input

Tree = dict[str, "DataType | Tree | None"]
"""Name of a field -> its type, None for any value as text, or the fields of an object."""


@dataclass(frozen=True, kw_only=True)
class CustomShape:
    """`tree` has the fields to read of each record; `values` has the expression of each column."""

    tree: Tree
    values: Mapping[str, Expression | None]
    """Column -> its expression; None for the field of the same name."""
    place: Collection[str]
    """The columns that expressions may read beside fields."""
    fields: Mapping[str, str]
    """Column -> the field that it is by default, where that has another name."""

    def columns(
        self, frame: DataFrame, promised_frame: DataFrame, within: str | None = None
    ) -> dict[str, Column]:
        """The columns, over a frame that has the fields. Fields that are only named are `within` a
        struct, where one is given. Raises BadInput for a column whose type differs from that in
        `promised_frame`."""
        columns_by_name = {}
        for name, expression in self.values.items():
            field = self.fields.get(name, name)
            if expression is None or _is_field(expression, self.place):
                value = _column_at(_path(field, expression), within)
            else:
                value = F.expr(expression.text)
                selected = frame.select(value)
                reject_nondeterministic(expression, selected)
                kind = promised_frame.schema[name].dataType
                _reject_other_type(selected.schema[0].dataType, kind, field, expression)
                value = nested_text(value, kind) if isinstance(kind, NESTED) else value
            columns_by_name[name] = value
        return columns_by_name


def custom_shape(
    promised_frame: DataFrame,
    columns: Sequence[str],
    column_expressions: Mapping[str, str],
    place: Collection[str],
    fields: Mapping[str, str],
) -> CustomShape:
    """The shape of records for `columns`, with their types in `promised_frame`.
    `column_expressions` has the expression of some columns; `place` has the columns that
    expressions may read beside fields; `fields` has the field of a column that is called
    otherwise. Raises BadInput for a conflict of fields."""
    values = {
        name: _expression(promised_frame, fields.get(name, name), column_expressions[name])
        if name in column_expressions
        else None
        for name in columns
    }
    tree: Tree = {}
    for name, expression in values.items():
        if expression is None or _is_field(expression, place):
            path = _path(fields.get(name, name), expression)
            _add_field(tree, path, promised_frame.schema[name].dataType, expression)
    for expression in values.values():
        for path in expression.paths if expression is not None and not expression.path else ():
            if path[0] not in place:
                _add_field(tree, path, None, expression)
    return CustomShape(tree=tree, values=values, place=place, fields=fields)


def _is_field(expression: Expression, place: Collection[str]) -> bool:
    """Whether the expression only names a field of the record."""
    return bool(expression.path) and expression.names.isdisjoint(place)


def _path(field: str, expression: Expression | None) -> tuple[str, ...]:
    """The path of a column's field in a record, level by level."""
    return (expression.path if expression else None) or (field,)


def _column_at(path: tuple[str, ...], within: str | None) -> Column:
    first, *below = path if within is None else (within, *path)
    return reduce(Column.getField, below, F.col(quote_name(first)))


def _expression(promised_frame: DataFrame, name: str, text: str) -> Expression:
    return only_expression(expressions(promised_frame.sparkSession, text, f"map.{name}"))


def _add_field(
    tree: Tree, path: tuple[str, ...], kind: DataType | None, expression: Expression | None
) -> None:
    """Add the type of a field to the tree; None means text, unless the field has a type already."""
    *above, last = path
    for name in above:
        below = tree.setdefault(name, {})
        if not isinstance(below, dict):
            raise _conflict(path, expression)
        tree = below
    known_kind = tree.setdefault(last, kind)
    if isinstance(known_kind, dict) or (kind is not None and known_kind != kind):
        raise _conflict(path, expression)


def _conflict(path: tuple[str, ...], expression: Expression | None) -> Exception:
    option = expression.option if expression else f"map.{path[0]}"
    message = f"`{'.'.join(path)}` stands for values of two kinds, or for a field and its parts"
    return bad_input(option, f"{message}; name the parts, or compute with it")


def _reject_other_type(
    kind: DataType, promised_kind: DataType, name: str, expression: Expression
) -> None:
    # Compared without nullability, which no CAST changes.
    if kind.simpleString() != promised_kind.simpleString():
        raise bad_input(
            expression.option,
            f"expected {promised_kind.simpleString()}, as `{name}` is in the expectation, got "
            f"{kind.simpleString()}; write CAST(… AS {promised_kind.simpleString()})",
        )
