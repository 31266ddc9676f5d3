"""One expression over one side: its value, its type, and what the type rests on."""

from __future__ import annotations

from dataclasses import dataclass

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
    VariantType,
)

from streamquake.harness.reconcile.expressions import Expression, type_of
from streamquake.harness.reconcile.table import Origin, Table

SEVERAL = "values of several kinds"
FAMILIES: tuple[tuple[str, tuple[type[DataType], ...]], ...] = (
    ("nothing", (NullType,)),
    ("text", (StringType,)),
    ("number", (IntegralType, DecimalType)),
    ("floating-point", (FloatType, DoubleType)),
    ("boolean", (BooleanType,)),
    (SEVERAL, (VariantType,)),
    ("object or list", (StructType, ArrayType, MapType)),
)
LARGE = 1e38
"""JSON numbers of more than 38 digits come as floating-point: nobody knows what they were."""


@dataclass(frozen=True, kw_only=True)
class Operand:
    """`variant` holds a JSON field with each value's own kind; `missing` says whether a record has
    no such field, where that can be told from null."""

    value: Column
    type: DataType
    origin: Origin
    variant: Column | None = None
    missing: Column | None = None

    @property
    def family(self) -> str:
        for name, kinds in FAMILIES:
            if isinstance(self.type, kinds):
                return name
        return self.type.simpleString()

    @property
    def inexact(self) -> Column | None:
        """Whether a record's number is too large to be known exactly; None where none can be."""
        if self.variant is None or self.family not in ("floating-point", SEVERAL):
            return None
        floating = F.schema_of_variant(self.variant) == "DOUBLE"
        return F.when(floating, F.abs(F.try_variant_get(self.variant, "$", "double")) >= LARGE)


def operand(expression: Expression, table: Table, side: str) -> Operand:
    """An expression over a table. Raises BadInput."""
    if table.blank:
        return Operand(value=F.lit(None), type=NullType(), origin=table.origin)
    cell = table.variants.get(expression.path[0]) if expression.path else None
    if cell is None or expression.path is None:
        kind = type_of(expression, table, side)
        absent = table.missing.get(expression.path[0]) if expression.path else None
        return Operand(
            value=F.expr(expression.text), type=kind, origin=table.origin,
            missing=F.col(absent) if absent else None,
        )  # fmt: skip
    variant = F.col(cell)
    inner = expression.path[1:]
    if inner:
        variant = F.variant_get(variant, "$" + "".join(_step(name) for name in inner), "variant")
    if inner and isinstance(table.frame.schema[expression.path[0]].dataType, VariantType):
        # An object in some records and something else in others, where it has no fields.
        value, kind = variant, VariantType()
    else:
        value, kind = F.expr(expression.text), type_of(expression, table, side)
    return Operand(
        value=value, type=kind, origin=table.origin, variant=variant, missing=F.isnull(variant)
    )


def _step(name: str) -> str:
    return f"['{name}']" if "'" not in name else f'["{name}"]'
