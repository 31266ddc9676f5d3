"""What the fields of a template can hold: each generator makes the values of one field."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from streamquake.topologies.model import Model

Record = Mapping[str, Any]
Values = Callable[[int, Record, Random], Any]
"""The value for a record's index and the fields before it."""
Share = Annotated[float, Field(ge=0, le=1)]
LARGEST = 2**53
"""Whole numbers up to here are exact in every JSON parser."""
EPOCH, MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
FIRST_MS = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
LAST_MS = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
"""The first and the last time with a year of four digits."""
Whole = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]


class Sequence(Model):
    """Whole numbers at even distances."""

    start: Whole = 0
    """The value of the first record."""
    step: Annotated[int, Field(ge=-(2**20), le=2**20)] = 1
    """From record to record."""

    @property
    def type(self) -> str:
        return "BIGINT"

    def values(self) -> Values:
        return lambda index, record, random: self.start + index * self.step


class NumberOf(Model):
    """The number of the record among those with the same value of another field, from 1. With that
    field it identifies a record, and orders those of one value."""

    field: str
    """The other field, which comes before this one."""

    @property
    def type(self) -> str:
        return "BIGINT"

    def values(self) -> Values:
        counts: Counter[str] = Counter()

        def number(index: int, record: Record, random: Random) -> int:
            counts[value := repr(record.get(self.field))] += 1
            return counts[value]

        return number


class Choice(Model):
    """One of some values, each as likely or by weights."""

    of: Annotated[tuple[str | Whole | bool, ...], Field(min_length=1, strict=False)]
    """The values: text, whole numbers or booleans, of one kind."""
    weights: Annotated[
        tuple[Annotated[float, Field(gt=0, le=LARGEST)], ...], Field(strict=False)
    ] = ()
    """The weight of each value."""

    @model_validator(mode="after")
    def _one_kind(self) -> Choice:
        if len({type(value) for value in self.of}) > 1:
            raise ValueError("expected values of one kind: text, whole numbers or booleans")
        if self.weights and len(self.weights) != len(self.of):
            raise ValueError(f"expected {len(self.of)} weights, got {len(self.weights)}")
        return self

    @property
    def type(self) -> str:
        return {str: "STRING", bool: "BOOLEAN", int: "BIGINT"}[type(self.of[0])]

    def values(self) -> Values:
        weights = list(itertools.accumulate(self.weights or [1.0] * len(self.of)))
        return lambda index, record, random: random.choices(self.of, cum_weights=weights)[0]


class Zipf(Model):
    """Text with a number, of which the first ones are the most frequent: that of rank r with a
    weight of 1 / r ** exponent."""

    values_: Annotated[int, Field(ge=1, le=1_000_000, alias="values")]
    """How many different values there are."""
    exponent: Annotated[float, Field(gt=0, le=10)] = 1.0
    """The skew: 0.5 is mild, 1 usual, 2 extreme."""
    prefix: str = "v-"
    """The text before the number."""

    @property
    def type(self) -> str:
        return "STRING"

    def values(self) -> Values:
        weights = (1 / rank**self.exponent for rank in range(1, self.values_ + 1))
        sums = list(itertools.accumulate(weights))

        def value(index: int, record: Record, random: Random) -> str:
            rank = bisect.bisect_right(sums, random.random() * sums[-1])
            return f"{self.prefix}{min(rank, self.values_ - 1)}"

        return value


class Bounds(Model):
    """The base of generators with a smallest and a largest number."""

    least: int
    most: int

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"expected least ({self.least}) no more than most ({self.most})")
        return self


class Integer(Bounds):
    """A whole number between two, both included."""

    least: Whole = 0
    most: Whole = 100

    @property
    def type(self) -> str:
        return "BIGINT"

    def values(self) -> Values:
        return lambda index, record, random: random.randint(self.least, self.most)


class Fraction(Bounds):
    """A decimal number between two whole ones, with a number of digits behind the point."""

    least: Annotated[int, Field(ge=-(10**9), le=10**9)] = 0
    most: Annotated[int, Field(ge=-(10**9), le=10**9)] = 100
    digits: Annotated[int, Field(ge=1, le=9)] = 2
    """Behind the point."""

    @property
    def type(self) -> str:
        return f"DECIMAL({10 + self.digits},{self.digits})"

    def values(self) -> Values:
        unit = 10**self.digits

        def value(index: int, record: Record, random: Random) -> Decimal:
            number = random.randint(self.least * unit, self.most * unit)
            return Decimal(number).scaleb(-self.digits)

        return value


class Timestamp(Model):
    """A time that grows from record to record, with a delay for the disorder."""

    start: Annotated[AwareDatetime, Field(strict=False)] = datetime(2026, 1, 1, tzinfo=UTC)
    """The time of the first record."""
    step_ms: Annotated[int, Field(ge=0, le=86_400_000)] = 1
    """From record to record, in milliseconds."""
    disorder_ms: Annotated[int, Field(ge=0, le=86_400_000)] = 0
    """Each time is up to this many milliseconds earlier than in order."""
    form: Literal["ms", "sql", "iso"] = "ms"
    """Milliseconds since 1970, or UTC as text: `2026-01-01 00:00:00.000`,
    `2026-01-01T00:00:00.000Z`."""

    @property
    def type(self) -> str:
        return "BIGINT" if self.form == "ms" else "STRING"

    def beyond_calendar(self, records: int) -> bool:
        """Whether the text of a time would be before the year 1 or after 9999."""
        earliest_ms = self._start_ms - self.disorder_ms
        latest_ms = self._start_ms + (records - 1) * self.step_ms
        return self.form != "ms" and (earliest_ms < FIRST_MS or latest_ms > LAST_MS)

    @property
    def _start_ms(self) -> int:
        return (self.start - EPOCH) // MILLISECOND

    def values(self) -> Values:
        start_ms = self._start_ms

        def value(index: int, record: Record, random: Random) -> int | str:
            delay_ms = random.randint(0, self.disorder_ms) if self.disorder_ms else 0
            at_ms = start_ms + index * self.step_ms - delay_ms
            if self.form == "ms":
                return at_ms
            at = EPOCH + timedelta(milliseconds=at_ms)
            text = at.replace(tzinfo=None).isoformat(
                " " if self.form == "sql" else "T", timespec="milliseconds"
            )
            return text if self.form == "sql" else f"{text}Z"

        return value


class Text(Model):
    """Random letters and digits."""

    length: Annotated[int, Field(ge=1, le=900_000)] = 20
    """Characters."""

    @property
    def type(self) -> str:
        return "STRING"

    def values(self) -> Values:
        letters = "abcdefghijklmnopqrstuvwxyz0123456789"
        return lambda index, record, random: "".join(random.choices(letters, k=self.length))
