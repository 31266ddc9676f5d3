"""The contract of every registered format; a new format is covered automatically."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest

from streamquake.harness.reconcile.reading.format import Format, Schema, formats
from streamquake.topologies.problems import BadInput
from tests.contract.member_rules import without_docstring

HEADS = {"avro": b"Obj\x01\x04", "json": b' {"a": 1}\n', "parquet": b"PAR1\x15", "": b"a,b\n1,2\n"}
"""Format -> the first bytes of its files; a text file has no format."""
NO_SCHEMA = Schema(texts={"": "no schema of anything"}, place="here")


def wrong_claims(kind: type[Format]) -> Iterator[str]:
    """A format recognizes its own files, and no file of another format."""
    for name, head in HEADS.items():
        if kind.fits(head) != (kind.name == name):
            yield f"claims {head!r}" if kind.name != name else f"does not know {head!r}"
    if kind.fits(b""):
        yield "claims an empty file"


def wrong_extensions(kind: type[Format]) -> Iterator[str]:
    used = {e for name in formats if name != kind.name for e in formats[name].extensions}
    for extension in kind.extensions:
        if not extension.startswith(".") or extension in used:
            yield f"its files end in {extension}"


def contradictory_claims(kind: type[Format]) -> Iterator[str]:
    """The declarations of a format agree with its methods."""
    if kind.in_topics != (kind.values is not Format.values):
        yield "`in_topics` and `values` disagree"
    if kind.takes_schema != (kind.check_schema is not Format.check_schema):
        yield "`takes_schema` and `check_schema` disagree"
    if (kind.has_schema_ids or kind.takes_message) and not kind.takes_schema:
        yield "it takes no schema to number, or to name a message of"


def accepts_any_schema(kind: type[Format]) -> Iterator[str]:
    if not kind.takes_schema or kind.check_schema is Format.check_schema:
        return
    try:
        kind(NO_SCHEMA).check_schema()
    except BadInput:
        return
    yield "it accepts an invalid schema"


def violations(kind: type[Format]) -> list[str]:
    return [
        *without_docstring(kind),
        *wrong_claims(kind),
        *wrong_extensions(kind),
        *contradictory_claims(kind),
        *accepts_any_schema(kind),
    ]


@pytest.mark.parametrize("name", sorted(formats))
def test_a_format_fulfils_the_contract(name: str) -> None:
    assert violations(formats[name]) == []


class IncompleteFormat(Format):
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


class SchemaAcceptingFormat(IncompleteFormat):
    """Accepts any text as a schema."""

    takes_schema: ClassVar[bool] = True


def test_every_violation_of_the_contract_is_detected() -> None:
    assert violations(IncompleteFormat) == [
        "IncompleteFormat has no docstring of its own, so `list` shows nothing",
        *(f"claims {head!r}" for head in HEADS.values()),
        "claims an empty file",
        "its files end in .json",
        "its files end in greedy",
        "`in_topics` and `values` disagree",
        "`takes_schema` and `check_schema` disagree",
        "it takes no schema to number, or to name a message of",
    ]
    assert list(accepts_any_schema(SchemaAcceptingFormat)) == ["it accepts an invalid schema"]
