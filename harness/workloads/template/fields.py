"""The fields of a template: a generator each, which may be left out or null at times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Annotated, Any, Protocol, cast

from pydantic import Field, model_validator

from streamquake.harness.experiment.outputs import ColumnName
from streamquake.harness.workloads.data_sets.column_types import JSON
from streamquake.harness.workloads.template.generators import (
    Bounds,
    Choice,
    Fraction,
    Integer,
    NumberOf,
    Record,
    Sequence,
    Share,
    Text,
    Timestamp,
    Values,
    Zipf,
)
from streamquake.topologies.model import Model

MISSING = object()
"""The value of a field that a record leaves out."""


class Generator(Protocol):
    """Makes the values of a field."""

    @property
    def type(self) -> str:
        """The type of its values, as a column of the records sent."""
        ...

    def values(self) -> Values:
        """A function for the values of one load, from its first record on."""
        ...


class Several(Bounds):
    """A list of values."""

    of: FieldTemplate
    """Each of its values."""
    least: Annotated[int, Field(ge=0, le=1000)] = 0
    most: Annotated[int, Field(ge=0, le=1000)] = 3

    @property
    def type(self) -> str:
        return JSON

    def values(self) -> Values:
        of = self.of.values()

        def value(index: int, record: Record, random: Random) -> list[Any]:
            made = [of(index, {}, random) for _ in range(random.randint(self.least, self.most))]
            return [each for each in made if each is not MISSING]

        return value


class FieldTemplate(Model):
    """One field: one generator, and how often it has no value."""

    sequence: Sequence | None = None
    """Whole numbers at even distances."""
    number_of: NumberOf | None = None
    """The number among the records with the same value of another field."""
    choice: Choice | None = None
    """One of some values."""
    zipf: Zipf | None = None
    """Text of which few values are frequent."""
    integer: Integer | None = None
    """A whole number within bounds."""
    fraction: Fraction | None = None
    """A decimal number within bounds."""
    timestamp: Timestamp | None = None
    """A growing time."""
    text: Text | None = None
    """Random text."""
    fields: Mapping[ColumnName, FieldTemplate] | None = None
    """An object with fields of its own."""
    list: Several | None = None
    """A list of values."""
    null_share: Share = 0
    """The share of records in which it is null."""
    missing_share: Share = 0
    """The share of records that leave it out."""

    @model_validator(mode="after")
    def _one_generator(self) -> FieldTemplate:
        given = [name for name in GENERATORS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"expected one of {', '.join(GENERATORS)}; got {' and '.join(given) or 'none'}"
            )
        if self.null_share + self.missing_share > 1:
            raise ValueError("null_share and missing_share are more than all records")
        return self

    @property
    def generator(self) -> Generator:
        if self.fields is not None:
            return Nested(self.fields)
        given = (getattr(self, name) for name in GENERATORS)
        return cast(Generator, next(generator for generator in given if generator is not None))

    @property
    def within(self) -> Mapping[str, FieldTemplate]:
        """The fields of an object; that of the values of a list, as `of`."""
        return {"of": self.list.of} if self.list is not None else self.fields or {}

    def values(self) -> Values:
        """As those of the generator, with null and `MISSING`."""
        generated = self.generator.values()
        absent = self.null_share + self.missing_share

        def value(index: int, record: Record, random: Random) -> Any:
            chance = random.random() if absent else 1.0
            if chance < self.missing_share:
                return MISSING
            return None if chance < absent else generated(index, record, random)

        return value


GENERATORS = tuple(
    name for name in FieldTemplate.model_fields if name not in ("null_share", "missing_share")
)


class Nested:
    """An object with fields of its own."""

    type = JSON

    def __init__(self, fields: Mapping[str, FieldTemplate]) -> None:
        self.fields = fields

    def values(self) -> Values:
        fields = {name: field.values() for name, field in self.fields.items()}

        def value(index: int, record: Record, random: Random) -> dict[str, Any]:
            made: dict[str, Any] = {}
            for name, of in fields.items():
                if (found := of(index, made, random)) is not MISSING:
                    made[name] = found
            return made

        return value


def records_of(
    fields: Mapping[str, FieldTemplate], count: int, seed: int
) -> Iterator[dict[str, Any]]:
    """The records of a template, a function of the seed alone."""
    random = Random(f"{seed}:template")
    value = Nested(fields).values()
    for index in range(count):
        yield value(index, {}, random)


def wrong_references(fields: Mapping[str, FieldTemplate], place: str = "") -> Iterator[str]:
    """Fields that number the values of a field which does not come before them."""
    before: set[str] = set()
    for name, field in fields.items():
        if field.number_of is not None and field.number_of.field not in before:
            known = ", ".join(before) or "none"
            yield (
                f"{place}{name}: number_of names {field.number_of.field}; expected a field before "
                f"it: {known}"
            )
        yield from wrong_references(field.within, f"{place}{name}.")
        before.add(name)


def fields_beyond_calendar(
    fields: Mapping[str, FieldTemplate], records: int, place: str = ""
) -> Iterator[str]:
    """Fields with times that have no text, of so many records."""
    for name, field in fields.items():
        if field.timestamp is not None and field.timestamp.beyond_calendar(records):
            yield f"{place}{name}"
        yield from fields_beyond_calendar(field.within, records, f"{place}{name}.")
