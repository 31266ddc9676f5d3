"""Records in a shape of their job's own: which JSON fields to read, and what to make of them.

Each column of the expectation may have an expression over the record's fields. A field that is only
named has its column's type exactly, as if it were called so; a field that is computed with is text,
of any value, as nothing says what else it should be, and the expression casts it.
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
"""Fields by their names: the type of each, None for any value as text, or an object's parts."""


@dataclass(frozen=True, kw_only=True)
class CustomShape:
    """`tree` has the fields that are read of each record; `values` says what each column is of
    them."""

    tree: Tree
    values: Mapping[str, Expression | None]
    """None: the field that is called like the column."""
    place: Collection[str]
    """What expressions may name beside fields."""

    def columns(
        self, frame: DataFrame, like: DataFrame, within: str | None = None
    ) -> dict[str, Column]:
        """The columns, over a frame that has the fields; those that are only named stand `within`
        a struct, where there is one. Raises BadInput for one of another type than it has in
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
    """The shape of records from which `columns` are made, those of `how` by its expressions.
    `place` names what expressions may name beside fields. Raises BadInput."""
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
    """Whether it only names a field of the record."""
    return bool(expression.path) and expression.names.isdisjoint(place)


def _path(name: str, expression: Expression | None) -> tuple[str, ...]:
    """Where a column's field stands in a record, level by level."""
    return (expression.path if expression else None) or (name,)


def _column_at(path: tuple[str, ...], within: str | None) -> Column:
    first, *below = path if within is None else (within, *path)
    return reduce(Column.getField, below, F.col(quote_name(first)))


def _expression(like: DataFrame, name: str, text: str) -> Expression:
    return only_expression(expressions(like.sparkSession, text, f"map.{name}"))


def _add_field(
    tree: Tree, path: tuple[str, ...], kind: DataType | None, expression: Expression | None
) -> None:
    """Note the type of a field; None is any value as text, unless a type is noted already."""
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
    # Whether its parts may be null is no matter of a type: no CAST changes that.
    if kind.simpleString() != wanted.simpleString():
        raise bad_input(
            expression.option,
            f"expected {wanted.simpleString()}, as `{name}` is in the expectation, got "
            f"{kind.simpleString()}; write CAST(… AS {wanted.simpleString()})",
        )
