"""The data shapes: kinds of records that reconciliation must be able to judge.

A data shape is one class here, listed in `data_shapes`. The first line of its docstring names the
difficulty for reconciliation.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.data_shape import AMOUNTS, DataShape


class FewKeys(DataShape):
    """Few keys with long streams: every record has other records of its key nearby."""

    name = "few_keys"
    key_count = 16


class ManyKeys(DataShape):
    """Many keys with short streams of eight records: grouping by key does not reduce the data."""

    name = "many_keys"

    def keys(self, units: int) -> int:
        return units // 8


class HotKey(DataShape):
    """One hot key with every second pair of records; a thousand keys share the others. One task
    gets half of the data if they are grouped or sorted by key."""

    name = "hot_key"
    cold_keys = 1000

    def keys(self, units: int) -> int:
        return 1 + self.cold_keys

    def key_number(self, units: int) -> Column:
        cold = F.expr("pair div 2") % self.cold_keys + 1
        return F.when(self._is_hot(), F.lit(0)).otherwise(cold)

    def sequence(self, units: int) -> Column:
        hot, cold = F.expr("pair div 2"), F.expr(f"pair div {2 * self.cold_keys}")
        return F.when(self._is_hot(), hot).otherwise(cold) * 2 + F.col("unit") % 2

    def _is_hot(self) -> Column:
        return F.col("pair") % 2 == 0


class Resent(DataShape):
    """Three sends of one identity, each with its own value. A changed record has the value of the
    next send."""

    name = "resent"
    sends = 3
    key_count = 16


class DenseIds(DataShape):
    """Whole numbers 0, 1, 2, ... as identities, without a sequence: no order must be judged."""

    name = "dense_ids"
    ordered = False
    identity = ("id",)

    def fields(self) -> Mapping[str, Column]:
        return {**super().fields(), "id": F.col("unit")}

    def unknown_identity(self) -> Mapping[str, Column]:
        return {"id": -1 - F.col("id")}


class HashIds(DataShape):
    """MD5 hashes of 32 hexadecimal digits as identities, which do not include the sequence."""

    name = "hash_ids"
    identity = ("id",)

    def fields(self) -> Mapping[str, Column]:
        name = F.concat_ws("|", "hashed", "unit")
        return {**super().fields(), "id": F.md5(F.encode(name, "utf-8"))}

    def unknown_identity(self) -> Mapping[str, Column]:
        return {"id": F.substring("id", 1, 31)}


class LongStrings(DataShape):
    """Keys of 200 characters and values of 1,000, which differ only in the last characters."""

    name = "long_strings"
    weight = 10
    compare = ("text", "checksum")

    def key(self) -> Column:
        return F.lpad(super().key(), 200, "k")

    def fields(self) -> Mapping[str, Column]:
        return {"text": F.rpad(F.hex("hashed"), 1000, "é")}

    def altered(self) -> Mapping[str, Column]:
        return {"text": F.concat(F.substring("text", 1, 999), F.lit("e"))}


class Nulls(DataShape):
    """Nulls: one key of sixteen is null, and one of two values is null in every record.

    An unknown identity has an empty key instead of null; a changed value is in the other column.
    """

    name = "nulls"
    key_count = 16
    compare = ("left", "right", "checksum")

    def key(self) -> Column:
        return F.when(F.col("key_number") != 0, super().key())

    def fields(self) -> Mapping[str, Column]:
        on_the_left = F.pmod(F.col("hashed"), F.lit(2)) == 0
        amount = self.amount()
        return {"left": F.when(on_the_left, amount), "right": F.when(~on_the_left, amount)}

    def unknown_identity(self) -> Mapping[str, Column]:
        return {"key": F.when(F.col("key").isNotNull(), F.concat("key", F.lit(" "))).otherwise("")}

    def altered(self) -> Mapping[str, Column]:
        return {"left": F.col("right"), "right": F.col("left")}


class Decimals(DataShape):
    """Identities of 26 digits with two places, amounts with twelve places, times to the µs: more
    digits than a floating-point number can hold."""

    name = "decimals"
    identity = ("id",)
    compare = ("amount", "at", "checksum")
    first_id = Decimal(10) ** 25
    """Beyond the whole numbers of 64 bits."""
    least = Decimal("0.000000000001")

    def fields(self) -> Mapping[str, Column]:
        return {
            "id": (F.col("unit").cast("decimal(28,0)") + F.lit(self.first_id)).cast(
                "decimal(32,2)"
            ),
            "amount": (self.amount() + F.lit(self.least)).cast("decimal(38,12)"),
            "at": F.timestamp_micros(F.pmod(F.col("hashed"), F.lit(1 << 50))),
        }

    def unknown_identity(self) -> Mapping[str, Column]:
        return {"id": (F.col("id") + F.lit(Decimal("0.01"))).cast("decimal(32,2)")}

    def altered(self) -> Mapping[str, Column]:
        return {"amount": (F.col("amount") + F.lit(self.least)).cast("decimal(38,12)")}


class Floats(DataShape):
    """Floating-point identities and values; the zero in the identity is negative in the output.

    A changed record differs in the last bit of one value, of 64 bits or of 32.
    """

    name = "floats"
    identity = ("id", "zero")
    compare = ("amount", "small", "checksum")

    def fields(self) -> Mapping[str, Column]:
        between_one_and_two = self.amount() / F.lit(float(AMOUNTS)) + F.lit(1.0)
        return {
            "id": F.col("unit").cast("double") + F.lit(2.0**50),
            "zero": F.lit(0.0),
            "amount": between_one_and_two,
            "small": between_one_and_two.cast("float"),
        }

    def rewritten(self) -> Mapping[str, Column]:
        return {"zero": F.lit(-0.0)}

    def unknown_identity(self) -> Mapping[str, Column]:
        # The distance between neighbouring 64-bit numbers from 2**50 on.
        return {"id": F.col("id") + F.lit(2.0**-2)}

    def altered(self) -> Mapping[str, Column]:
        changes_64_bits = F.col("unit") % 2 == 0
        # The distances between neighbouring 64-bit and 32-bit numbers between one and two.
        amount = F.col("amount") + F.lit(2.0**-52)
        small = (F.col("small") + F.lit(2.0**-23)).cast("float")
        return {
            "amount": F.when(changes_64_bits, amount).otherwise(F.col("amount")),
            "small": F.when(changes_64_bits, F.col("small")).otherwise(small),
        }


class Nested(DataShape):
    """Structs, lists and lists in lists, with nulls in them.

    A changed record has its value in the neighbouring field, or a null in another place of a list,
    or a list without the null at its end, or one list instead of two. All values remain.
    """

    name = "nested"
    compare = ("one", "pairs", "lists", "checksum")

    def fields(self) -> Mapping[str, Column]:
        amount, unit = self.amount(), F.col("unit")
        return {
            "one": _pair(amount, F.lit(None)),
            "pairs": F.array(_pair(F.lit(None), amount), F.lit(None)),
            "lists": F.array(F.array(amount), F.array(unit)),
        }

    def altered(self) -> Mapping[str, Column]:
        turn, pairs = F.col("unit") % 4, F.col("pairs")
        one = _pair(F.col("one.right"), F.col("one.left"))
        return {
            "one": F.when(turn == 0, one).otherwise(F.col("one")),
            "pairs": F.when(turn == 1, F.reverse(pairs))
            .when(turn == 2, F.slice(pairs, 1, 1))
            .otherwise(pairs),
            "lists": F.when(turn == 3, F.array(F.flatten("lists"))).otherwise(F.col("lists")),
        }


def _pair(left: Column, right: Column) -> Column:
    return F.struct(left.cast("bigint").alias("left"), right.cast("bigint").alias("right"))


data_shapes: Mapping[str, type[DataShape]] = {
    kind.name: kind
    for kind in (
        Decimals,
        DenseIds,
        FewKeys,
        Floats,
        HashIds,
        HotKey,
        LongStrings,
        ManyKeys,
        Nested,
        Nulls,
        Resent,
    )
}
"""Every data shape by its name."""
