"""The format and schema of records that do not contain them, as a YAML document describes them.

    format: avro                  # json unless given
    schema: order.avsc            # beside the document; several by number: {3: a.avsc, 5: b.avsc}
    header: confluent             # the header before each value of a topic
    message: shop.Order           # the message, where a schema of Protobuf has several

A schema of several lines is the schema itself, not a file. The plan of a run has it in this form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from streamquake.harness.reconcile.reading.format import Format, Schema, formats, formats_where
from streamquake.topologies.model import Model
from streamquake.topologies.named_files import shorten
from streamquake.topologies.problems import BadInput, Problem, did_you_mean
from streamquake.topologies.yaml_document import Document, Place

DEFAULT_FORMAT = "json"
W = TypeVar("W", bound="RecordFormat")


class RecordFormat(Model):
    """The format and schema of records, as a document describes them."""

    format: str | None = None
    """The format of a topic's values, by its name; JSON when left out."""
    schema_: Annotated[str | Mapping[str, str] | None, Field(alias="schema")] = None
    """The file with their schema, or number in their header -> file."""
    header: Literal["confluent"] | None = None
    """The header that stands before each value."""
    message: str | None = None
    """Which of the messages that a schema of Protobuf describes."""

    def reported(self, place: str) -> Format | None:
        """The format with its schemas, which must be texts by now; None for JSON, the default.
        `place` is where the format was given, for messages."""
        if self.format in (None, DEFAULT_FORMAT):
            return None
        return formats[self.format](self.schema_given(place))

    def schema_given(self, place: str) -> Schema | None:
        """The schemas as texts."""
        if self.schema_ is None:
            return None
        return Schema(
            texts=_by_number(self.schema_), place=place, header=self.header, message=self.message
        )


def with_schemas(
    found: W, folder: Path, document: Document, at: Place = ()
) -> tuple[W, list[Problem]]:
    """The format with the texts of its schemas instead of their files in `folder`, and the problems
    of the format at this place of the document."""
    problems = list(_contradictions(found, document, at))
    if problems or found.schema_ is None or found.format is None:
        return found, problems
    kind, texts = formats[found.format], dict[str, str]()
    for number, given in _by_number(found.schema_).items():
        place = (*at, "schema", number) if number else (*at, "schema")
        try:
            texts[number] = given if "\n" in given else kind.schema_text(folder / given)
        except OSError as error:
            message = f"{shorten(str(folder / given))} cannot be read: {error.strerror}"
            problems.append(document.problem(place, message))
    if problems:
        return found, problems
    read = found.model_copy(update={"schema_": texts.get("", texts)})
    return read, problems + _schema_problems(read, document, (*at, "schema"))


def _schema_problems(read: RecordFormat, document: Document, place: Place) -> list[Problem]:
    """The problems of the schemas themselves."""
    format_ = read.reported("")
    try:
        if format_ is not None:
            format_.check_schema()
    except BadInput as error:
        return [document.problem(place, each.message) for each in error.problems]
    return []


def _contradictions(found: RecordFormat, document: Document, at: Place) -> Iterator[Problem]:
    def problem(name: str, message: str) -> Problem:
        return document.problem((*at, name), message)

    if found.format is not None and found.format not in set(formats):
        known = did_you_mean(found.format, formats)
        yield problem("format", f'no format is called "{found.format}"{known}')
        return
    kind = formats[found.format] if found.format is not None else None
    if found.schema_ is not None and (kind is None or not kind.takes_schema):
        known = formats_where(lambda each: each.takes_schema)
        yield problem(
            "schema", f"only records of format {known} have one; name the format: `format: FORMAT`"
        )
        return
    if found.header is not None and found.schema_ is None:
        yield problem("header", "it needs a `schema`; name one too")
    if found.message is not None and (kind is None or not kind.takes_message):
        known = formats_where(lambda each: each.takes_message)
        yield problem(
            "message",
            f"only schemas of format {known} have messages; name the format: `format: {known}`",
        )
    if isinstance(found.schema_, Mapping):
        assert kind is not None
        if not kind.numbers_schemas:
            yield problem("schema", f"one schema of format {kind.name} reads all records; name it")
        elif found.header is None:
            yield problem(
                "schema", "numbers of schemas need a header; name it: `header: confluent`"
            )
        for number in found.schema_:
            if not number.isdecimal():
                message = f'expected the number of a schema, got "{number}"'
                yield document.problem((*at, "schema", number), message)


def _by_number(schema: str | Mapping[str, str]) -> Mapping[str, str]:
    return {"": schema} if isinstance(schema, str) else schema
