"""One expression over one side: its value, its type, and what the type rests on."""

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

SEVERAL = "values of several kinds"
WHOLE = "object or list"
LIST, OBJECT = "array<variant>", "map<string,variant>"
FAMILIES: tuple[tuple[str, tuple[type[DataType], ...]], ...] = (
    ("nothing", (NullType,)),
    ("text", (StringType,)),
    ("number", (IntegralType, DecimalType)),
    ("floating-point", (FloatType, DoubleType)),
    ("boolean", (BooleanType,)),
    (SEVERAL, (VariantType,)),
    (WHOLE, (StructType, ArrayType, MapType)),
)


@dataclass(frozen=True, kw_only=True)
class Operand:
    """`variant` holds a JSON field with each value's own kind; `missing` says whether a record has
    no such field, where that can be told from null."""

    value: Column
    type: DataType
    origin: Origin
    variant: Column | None = None
    missing: Column | None = None

    @classmethod
    def declared(cls, value: Column, kind: DataType) -> Operand:
        """Values whose type is known; a time without a zone is one of UTC."""
        if isinstance(kind, TimestampNTZType):
            kind = TimestampType()
            value = value.cast(kind)
        return cls(value=value, type=kind, origin="declared")

    @property
    def family(self) -> str:
        for name, kinds in FAMILIES:
            if isinstance(self.type, kinds):
                return name
        return self.type.simpleString()


def operand(expression: Expression, table: Table, side: str) -> Operand:
    """An expression over a table. Raises BadInput."""
    if table.all_unreadable:
        return Operand(value=F.lit(None), type=NullType(), origin=table.origin)
    cell = table.variants.get(expression.path[0]) if expression.path else None
    if cell is None or expression.path is None:
        kind = type_of(expression, table, side)
        absent = table.missing.get(expression.path[0]) if expression.path else None
        return replace(
            Operand.declared(F.expr(expression.text), kind),
            origin=table.origin,
            missing=F.col(absent) if absent else None,
        )
    variant = F.col(cell)
    inner = expression.path[1:]
    for name in inner:
        variant = part(variant, name)
    if inner and isinstance(table.frame.schema[expression.path[0]].dataType, VariantType):
        # An object in some records and something else in others, where it has no fields.
        value, kind = variant, VariantType()
    else:
        value, kind = F.expr(expression.text), type_of(expression, table, side)
    return Operand(
        value=value, type=kind, origin=table.origin, variant=variant, missing=F.isnull(variant)
    )


def part(variant: Column, name: str) -> Column:
    """A field of an object; null where the variant is none, or has no such field. Of a list it is
    the list of its objects' fields, as it is of a column of such a type."""
    parts = F.transform(F.try_variant_get(variant, "$", LIST), lambda each: _of_object(each, name))
    return F.coalesce(parts.cast("variant"), _of_object(variant, name))


def _of_object(variant: Column, name: str) -> Column:
    if "'" in name and '"' in name:  # no path of Spark has both
        return F.try_variant_get(variant, "$", OBJECT).getItem(name)
    quote = '"' if "'" in name else "'"
    return F.variant_get(variant, f"$[{quote}{name}{quote}]", "variant")
