"""One expression over one side: its value, its type, and the origin of the type."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from streamquake.harness.reconcile.expressions import Expression, type_of
from streamquake.harness.reconcile.reading.table import Origin, Table

SEVERAL_KINDS = "values of several kinds"
OBJECT_OR_LIST = "object or list"
LIST, OBJECT = "array<variant>", "map<string,variant>"
FAMILIES: tuple[tuple[str, tuple[type[DataType], ...]], ...] = (
    ("nothing", (NullType,)),
    ("text", (StringType,)),
    ("number", (IntegralType, DecimalType)),
    ("floating-point", (FloatType, DoubleType)),
    ("boolean", (BooleanType,)),
    (SEVERAL_KINDS, (VariantType,)),
    (OBJECT_OR_LIST, (StructType, ArrayType, MapType)),
)


@dataclass(frozen=True, kw_only=True)
class Operand:
    """`variant` is a JSON field with the kind of each value. `missing` is whether a record lacks
    the field, where that differs from null."""

    value: Column
    type: DataType
    origin: Origin
    variant: Column | None = None
    missing: Column | None = None

    @classmethod
    def of_declared_type(cls, value: Column, kind: DataType) -> Operand:
        """Values of a declared type; a time without a zone is in UTC."""
        if isinstance(kind, TimestampNTZType):
            kind = TimestampType()
            value = value.cast(kind)
        return cls(value=value, type=kind, origin="declared")

    @property
    def family(self) -> str:
        """The family of the type; types of one family can be compared."""
        for name, kinds in FAMILIES:
            if isinstance(self.type, kinds):
                return name
        return self.type.simpleString()


def operand(expression: Expression, table: Table, side: str) -> Operand:
    """An expression over a table. Raises BadInput for an expression that does not fit it."""
    if table.all_unreadable:
        return Operand(value=F.lit(None), type=NullType(), origin=table.origin)
    cell = table.variants.get(expression.path[0]) if expression.path else None
    if cell is None or expression.path is None:
        kind = type_of(expression, table, side)
        absent = table.missing.get(expression.path[0]) if expression.path else None
        return replace(
            Operand.of_declared_type(F.expr(expression.text), kind),
            origin=table.origin,
            missing=F.col(absent) if absent else None,
        )
    variant = F.col(cell)
    inner = expression.path[1:]
    for name in inner:
        variant = part(variant, name)
    if inner and isinstance(table.frame.schema[expression.path[0]].dataType, VariantType):
        # An object in some records, and a value without fields in others.
        value, kind = variant, VariantType()
    else:
        value, kind = F.expr(expression.text), type_of(expression, table, side)
    return Operand(
        value=value, type=kind, origin=table.origin, variant=variant, missing=F.isnull(variant)
    )


def part(variant: Column, name: str) -> Column:
    """A field of an object; null where the variant is no object or lacks the field. For a list, it
    is the list of that field of its objects, as for a column of a list type."""
    parts = F.transform(
        F.try_variant_get(variant, "$", LIST), lambda element: _of_object(element, name)
    )
    return F.coalesce(parts.cast("variant"), _of_object(variant, name))


def _of_object(variant: Column, name: str) -> Column:
    if "'" in name and '"' in name:  # no path of Spark can have both
        return F.try_variant_get(variant, "$", OBJECT).getItem(name)
    quote = '"' if "'" in name else "'"
    return F.variant_get(variant, f"$[{quote}{name}{quote}]", "variant")
