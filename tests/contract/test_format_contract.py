"""What every registered format must do; a new one is covered by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest

from streamquake.harness.reconcile.reading.format import Format, Schema, formats
from streamquake.topologies.problems import BadInput
from tests.contract.member_rules import undescribed

HEADS = {"avro": b"Obj\x01\x04", "json": b' {"a": 1}\n', "parquet": b"PAR1\x15", "": b"a,b\n1,2\n"}
"""How files begin -> the one format that claims them; a text is claimed by none."""
NO_SCHEMA = Schema(texts={"": "no schema of anything"}, place="here")


def wrong_claims(kind: type[Format]) -> Iterator[str]:
    """A file that is certainly of one format is of no other."""
    for name, head in HEADS.items():
        if kind.fits(head) != (kind.name == name):
            yield f"claims {head!r}" if kind.name != name else f"does not know {head!r}"
    if kind.fits(b""):
        yield "claims an empty file"


def wrong_extensions(kind: type[Format]) -> Iterator[str]:
    taken = {e for name in formats if name != kind.name for e in formats[name].extensions}
    for extension in kind.extensions:
        if not extension.startswith(".") or extension in taken:
            yield f"its files end in {extension}"


def unkept_claims(kind: type[Format]) -> Iterator[str]:
    """What a format declares, it can do."""
    if kind.in_topics != (kind.values is not Format.values):
        yield "`in_topics` and `values` disagree"
    if kind.takes_schema != (kind.check_schema is not Format.check_schema):
        yield "`takes_schema` and `check_schema` disagree"
    if (kind.numbers_schemas or kind.takes_message) and not kind.takes_schema:
        yield "it takes no schema to number, or to name a message of"


def takes_any_schema(kind: type[Format]) -> Iterator[str]:
    if not kind.takes_schema or kind.check_schema is Format.check_schema:
        return
    try:
        kind(NO_SCHEMA).check_schema()
    except BadInput:
        return
    yield "it takes a schema that is none"


def broken(kind: type[Format]) -> list[str]:
    return [
        *undescribed(kind),
        *wrong_claims(kind),
        *wrong_extensions(kind),
        *unkept_claims(kind),
        *takes_any_schema(kind),
    ]


@pytest.mark.parametrize("name", sorted(formats))
def test_a_format_keeps_the_contract(name: str) -> None:
    assert broken(formats[name]) == []


class Greedy(Format):
    name: ClassVar[str] = "greedy"
    extensions: ClassVar[tuple[str, ...]] = (".json", "greedy")
    in_topics: ClassVar[bool] = True
    takes_message: ClassVar[bool] = True

    def check_schema(self) -> None:
        return

    @classmethod
    def fits(cls, head: bytes) -> bool:
        return True

    def read(self, spark: Any, paths: Sequence[str], names: frozenset[str], partitions: Any) -> Any:
        raise NotImplementedError


class Trusting(Greedy):
    """Takes whatever it is given as a schema."""

    takes_schema: ClassVar[bool] = True


def test_a_format_that_keeps_nothing_of_it_is_found_out() -> None:
    assert broken(Greedy) == [
        "Greedy has no docstring of its own, so `list` shows nothing",
        *(f"claims {head!r}" for head in HEADS.values()),
        "claims an empty file",
        "its files end in .json",
        "its files end in greedy",
        "`in_topics` and `values` disagree",
        "`takes_schema` and `check_schema` disagree",
        "it takes no schema to number, or to name a message of",
    ]
    assert list(takes_any_schema(Trusting)) == ["it takes a schema that is none"]
