"""The two sides brought to one form: identity, a keyed hash of a record, and what a row is.

The hash only chooses buckets and tells which of them differ. It is keyed by a value drawn for each
comparison, so that two records with one hash cannot be prepared. Texts, also those within other
values, go through SHA-256 first: xxHash64, which hashes the rest, has texts that collide under
every seed. Nulls are hashed with a mark, since xxhash64 skips them and (null, 1) would equal
(1, null). Where buckets differ the drill takes the values themselves.
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
"""How columns of `rows_by_value` begin."""


class RowKind(IntEnum):
    """What one row stands for. Rows up to `REFUSED` are of the expected side."""

    OK = 0
    UNKNOWN = 1
    REFUSED = 2
    UNREAD_EXPECTED = 3
    """Expected, and cannot be read: it is counted, and compared with nothing."""
    UNKNOWN_STATUS = 4
    """Expected, with a status that is none."""
    PRESENT = 5
    MALFORMED = 6
    """There, and could not be read: nobody sent it."""
    UNPLACED = 7
    """There, and stands nowhere in the order."""
    UNREAD_ACTUAL = 8
    """There, cannot be read, and is compared with nothing."""


EXPECTED_KINDS = (RowKind.OK, RowKind.UNKNOWN)
"""What may be there."""
ACTUAL_KINDS = (RowKind.PRESENT, RowKind.MALFORMED, RowKind.UNPLACED)
"""What is there and is compared."""


def random_key() -> str:
    """A key for one comparison."""
    return secrets.token_hex(KEY_BYTES)


def both_sides(
    expected: DataFrame, actual: DataFrame, shape: Shape, buckets: int, key: str
) -> DataFrame:
    """Rows of both sides: `bucket`, `values`, a hash of all that is compared, and `what`, a number
    of `What`."""

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
    """A 64-bit hash of columns under a key, in which a null is a value of its own."""
    kinds = {name: side.schema[name].dataType for name in columns}
    plain = [F.col(quote_name(name)) for name, kind in kinds.items() if not _is_text(kind)]
    texts = [text for name, kind in kinds.items() for text in _texts_within(quote_name(name), kind)]
    marks = [F.isnull(F.col(quote_name(name))).cast("int") for name in kinds]
    hashed = [F.sha2(F.concat(F.lit(key), *_with_lengths(texts)), 256)] if texts else []
    return F.xxhash64(F.lit(key), *hashed, *plain, *marks)


def hash_of(columns: Sequence[str]) -> Column:
    """A 64-bit hash by which records are looked up and then compared: it proves nothing."""
    return F.xxhash64(*(F.col(quote_name(name)) for name in columns))


def _is_text(kind: DataType) -> bool:
    return isinstance(kind, StringType | CharType | VarcharType | BinaryType)


def _texts_within(name: str, kind: DataType) -> Iterator[Column]:
    """The text of a column, or all that a nested one has."""
    if isinstance(kind, BinaryType):
        yield F.hex(F.col(name))
    elif _is_text(kind):
        yield F.col(name)
    elif isinstance(kind, StructType | ArrayType | MapType):
        yield json_text(F.struct(F.col(name)))


def _with_lengths(texts: Sequence[Column]) -> Iterator[Column]:
    """Each behind its length, so that none can run over into the next."""
    for text in texts:
        filled = F.coalesce(text, F.lit(""))
        yield from (F.octet_length(filled).cast("string"), F.lit(":"), filled)


def _expected_kind(shape: Shape) -> Column:
    status = F.col(shape.status) if shape.status else F.lit(ACKNOWLEDGED)
    return (
        F.when(_flag(shape.unread), RowKind.UNREAD_EXPECTED.value)
        .when(status == ACKNOWLEDGED, RowKind.OK.value)
        .when(status == UNKNOWN, RowKind.UNKNOWN.value)
        .when(status == FAILED, RowKind.REFUSED.value)
        .otherwise(RowKind.UNKNOWN_STATUS.value)
    )


def _actual_kind(shape: Shape) -> Column:
    return (
        F.when(_flag(shape.unread), RowKind.UNREAD_ACTUAL.value)
        .when(_flag(shape.malformed), RowKind.MALFORMED.value)
        .when(_flag(shape.unplaced), RowKind.UNPLACED.value)
        .otherwise(RowKind.PRESENT.value)
    )


def _flag(name: str | None) -> Column:
    return F.col(name) if name else F.lit(False)
