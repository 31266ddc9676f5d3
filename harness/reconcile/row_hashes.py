"""The two sides in one form: identity, a keyed hash of each record, and the kind of its row.

The hash only chooses buckets and shows which of them differ. Its key is random for each comparison,
so that records cannot be prepared to collide. Texts, also nested ones, go through SHA-256 first:
xxHash64, which hashes the rest, has texts that collide under every seed. Each null has a flag in
the hash, since xxHash64 skips nulls and (null, 1) would equal (1, null). Where buckets differ the
row diff compares the values themselves.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from enum import IntEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CharType,
    DataType,
    MapType,
    StringType,
    StructType,
    VarcharType,
)

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.json.json_text import json_text
from streamquake.harness.reconcile.shape import Shape

ACKNOWLEDGED, FAILED, UNKNOWN = "acknowledged", "failed", "unknown"
KEY_BYTES = 16
VALUE = "_value_"
"""Prefix of the columns of `rows_by_value`."""


class RowKind(IntEnum):
    """The kind of a row."""

    OK = 0
    """Expected side: the send was acknowledged."""
    UNKNOWN = 1
    """Expected side: the result of the send is unknown."""
    FAILED = 2
    """Expected side: the send failed."""
    UNREADABLE_EXPECTED = 3
    """Expected side: unreadable; it is counted, and compared with nothing."""
    UNKNOWN_STATUS = 4
    """Expected side: the status is not one of the known ones."""
    PRESENT = 5
    """Actual side: a record that is compared."""
    MALFORMED = 6
    """Actual side: unreadable; it counts as a phantom."""
    UNPLACED = 7
    """Actual side: it has no place in the order."""
    UNREADABLE_ACTUAL = 8
    """Actual side: unreadable; it is counted, and compared with nothing."""


EXPECTED_KINDS = (RowKind.OK, RowKind.UNKNOWN)
"""Expected rows that may be present on the actual side."""
ACTUAL_KINDS = (RowKind.PRESENT, RowKind.MALFORMED, RowKind.UNPLACED)
"""Actual rows that are compared."""


def random_key() -> str:
    """A random hash key for one comparison."""
    return secrets.token_hex(KEY_BYTES)


def both_sides(
    expected: DataFrame, actual: DataFrame, shape: Shape, buckets: int, key: str
) -> DataFrame:
    """Rows of both sides: `bucket`; `values`, a hash of the identity and the compared values; and
    `what`, a number of `RowKind`."""

    def rows(side: DataFrame, what: Column) -> DataFrame:
        return side.select(
            bucket_of(side, shape, buckets, key).alias("bucket"),
            keyed_hash(side, (*shape.identity, *shape.compare), key).alias("values"),
            what.alias("what"),
        )

    return rows(expected, _expected_kind(shape)).unionByName(rows(actual, _actual_kind(shape)))


def rows_by_value(expected: DataFrame, actual: DataFrame, shape: Shape) -> DataFrame:
    """Rows of both sides: identity, `VALUE` with a number for each compared column, and `what`."""
    values = [F.col(quote_name(name)).alias(f"{VALUE}{n}") for n, name in enumerate(shape.compare)]
    return expected.select(
        *shape.identity, *values, _expected_kind(shape).alias("what")
    ).unionByName(actual.select(*shape.identity, *values, _actual_kind(shape).alias("what")))


def bucket_of(side: DataFrame, shape: Shape, buckets: int, key: str) -> Column:
    """The bucket of a record, by its identity; `buckets` is a power of two."""
    return keyed_hash(side, shape.identity, key).bitwiseAND(F.lit(buckets - 1).cast("bigint"))


def keyed_hash(side: DataFrame, columns: Sequence[str], key: str) -> Column:
    """A 64-bit hash of columns under a key, in which null is a distinct value."""
    kinds = {name: side.schema[name].dataType for name in columns}
    plain = [F.col(quote_name(name)) for name, kind in kinds.items() if not _is_text(kind)]
    texts = [text for name, kind in kinds.items() for text in _texts_within(quote_name(name), kind)]
    marks = [F.isnull(F.col(quote_name(name))).cast("int") for name in kinds]
    hashed = [F.sha2(F.concat(F.lit(key), *_with_lengths(texts)), 256)] if texts else []
    return F.xxhash64(F.lit(key), *hashed, *plain, *marks)


def hash_of(columns: Sequence[str]) -> Column:
    """A 64-bit hash to look up records, which are then compared by value."""
    return F.xxhash64(*(F.col(quote_name(name)) for name in columns))


def _is_text(kind: DataType) -> bool:
    return isinstance(kind, StringType | CharType | VarcharType | BinaryType)


def _texts_within(name: str, kind: DataType) -> Iterator[Column]:
    """The text of a column; of a nested column, all of it as JSON."""
    if isinstance(kind, BinaryType):
        yield F.hex(F.col(name))
    elif _is_text(kind):
        yield F.col(name)
    elif isinstance(kind, StructType | ArrayType | MapType):
        yield json_text(F.struct(F.col(name)))


def _with_lengths(texts: Sequence[Column]) -> Iterator[Column]:
    """Each text after its length, so that texts cannot be split differently."""
    for text in texts:
        filled = F.coalesce(text, F.lit(""))
        yield from (F.octet_length(filled).cast("string"), F.lit(":"), filled)


def _expected_kind(shape: Shape) -> Column:
    status = F.col(shape.status) if shape.status else F.lit(ACKNOWLEDGED)
    return (
        F.when(_flag(shape.unreadable), RowKind.UNREADABLE_EXPECTED.value)
        .when(status == ACKNOWLEDGED, RowKind.OK.value)
        .when(status == UNKNOWN, RowKind.UNKNOWN.value)
        .when(status == FAILED, RowKind.FAILED.value)
        .otherwise(RowKind.UNKNOWN_STATUS.value)
    )


def _actual_kind(shape: Shape) -> Column:
    return (
        F.when(_flag(shape.unreadable), RowKind.UNREADABLE_ACTUAL.value)
        .when(_flag(shape.malformed), RowKind.MALFORMED.value)
        .when(_flag(shape.unplaced), RowKind.UNPLACED.value)
        .otherwise(RowKind.PRESENT.value)
    )


def _flag(name: str | None) -> Column:
    return F.col(name) if name else F.lit(False)
