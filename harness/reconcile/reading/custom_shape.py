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
    reject_changing,
)
from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.values.promised import NESTED, whole
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

    def columns(
        self, frame: DataFrame, like: DataFrame, within: str | None = None
    ) -> dict[str, Column]:
        """The columns, over a frame that has the fields. Fields that are only named are `within` a
        struct, where one is given. Raises BadInput for a column whose type differs from that in
        `like`."""
        found = {}
        for name, expression in self.values.items():
            if expression is None or _is_field(expression, self.place):
                value = _column_at(_path(name, expression), within)
            else:
                value = F.expr(expression.text)
                selected = frame.select(value)
                reject_changing(expression, selected)
                _reject_other_type(selected.schema[0].dataType, name, expression, like)
                kind = like.schema[name].dataType
                value = whole(value, kind) if isinstance(kind, NESTED) else value
            found[name] = value
        return found


def custom_shape(
    like: DataFrame, columns: Sequence[str], how: Mapping[str, str], place: Collection[str]
) -> CustomShape:
    """The shape of records for `columns`. `how` has the expression of some columns; `place` has the
    columns that expressions may read beside fields. Raises BadInput for a conflict of fields."""
    values = {name: _expression(like, name, how[name]) if name in how else None for name in columns}
    tree: Tree = {}
    for name, expression in values.items():
        if expression is None or _is_field(expression, place):
            _add_field(tree, _path(name, expression), like.schema[name].dataType, expression)
    for expression in values.values():
        for path in expression.paths if expression is not None and not expression.path else ():
            if path[0] not in place:
                _add_field(tree, path, None, expression)
    return CustomShape(tree=tree, values=values, place=place)


def _is_field(expression: Expression, place: Collection[str]) -> bool:
    """Whether the expression only names a field of the record."""
    return bool(expression.path) and expression.names.isdisjoint(place)


def _path(name: str, expression: Expression | None) -> tuple[str, ...]:
    """The path of a column's field in a record, level by level."""
    return (expression.path if expression else None) or (name,)


def _column_at(path: tuple[str, ...], within: str | None) -> Column:
    first, *below = path if within is None else (within, *path)
    return reduce(Column.getField, below, F.col(quote_name(first)))


def _expression(like: DataFrame, name: str, text: str) -> Expression:
    return only_expression(expressions(like.sparkSession, text, f"map.{name}"))


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
    known = tree.setdefault(last, kind)
    if isinstance(known, dict) or (kind is not None and known != kind):
        raise _conflict(path, expression)


def _conflict(path: tuple[str, ...], expression: Expression | None) -> Exception:
    option = expression.option if expression else f"map.{path[0]}"
    message = f"`{'.'.join(path)}` stands for values of two kinds, or for a field and its parts"
    return bad_input(option, f"{message}; name the parts, or compute with it")


def _reject_other_type(kind: DataType, name: str, expression: Expression, like: DataFrame) -> None:
    wanted = like.schema[name].dataType
    # Compared without nullability, which no CAST changes.
    if kind.simpleString() != wanted.simpleString():
        raise bad_input(
            expression.option,
            f"expected {wanted.simpleString()}, as `{name}` is in the expectation, got "
            f"{kind.simpleString()}; write CAST(… AS {wanted.simpleString()})",
        )
