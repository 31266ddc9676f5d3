"""The format and schema of records that do not contain them, as a YAML document describes them.

    format: avro                  # json unless given schema: order.avsc            # beside the
    document; several by ID: {3: a.avsc, 5: b.avsc} header: confluent             # the header
    before each value of a topic message: shop.Order           # the message, where a schema of
    Protobuf has several

A schema of several lines is the schema itself, not a file. The plan of a run has it in this form.
"""

from __future__ import annotations

import re
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
SCHEMA_ID = re.compile(r"0|[1-9][0-9]{0,9}")
W = TypeVar("W", bound="RecordFormat")


class RecordFormat(Model):
    """The format and schema of records, as a document describes them."""

    format: str | None = None
    """The format of a topic's values, by its name; JSON when left out."""
    schema_: Annotated[str | Mapping[str, str] | None, Field(alias="schema")] = None
    """The file with their schema, or schema ID in their header -> file."""
    header: Literal["confluent"] | None = None
    """The header before each value."""
    message: str | None = None
    """Which of the messages that a schema of Protobuf describes."""

    def to_format(self, place: str) -> Format | None:
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
            texts=_by_id(self.schema_), place=place, header=self.header, message=self.message
        )


def with_schemas(
    record_format: W, folder: Path, document: Document, at: Place = ()
) -> tuple[W, list[Problem]]:
    """The format with the texts of its schemas instead of their files in `folder`, and the problems
    of the format at this place of the document."""
    problems = list(_contradictions(record_format, document, at))
    if problems or record_format.schema_ is None or record_format.format is None:
        return record_format, problems
    kind, texts = formats[record_format.format], dict[str, str]()
    for schema_id, text_or_file in _by_id(record_format.schema_).items():
        place = (*at, "schema", schema_id) if schema_id else (*at, "schema")
        try:
            texts[schema_id] = (
                text_or_file if "\n" in text_or_file else kind.schema_text(folder / text_or_file)
            )
        except OSError as error:
            message = f"{folder / shorten(text_or_file)} cannot be read: {error.strerror}"
            problems.append(document.problem(place, message))
    if problems:
        return record_format, problems
    with_texts = record_format.model_copy(update={"schema_": texts.get("", texts)})
    return with_texts, problems + _schema_problems(with_texts, document, (*at, "schema"))


def _schema_problems(
    record_format: RecordFormat, document: Document, place: Place
) -> list[Problem]:
    """The problems of the schemas themselves."""
    format_ = record_format.to_format("")
    try:
        if format_ is not None:
            format_.check_schema()
    except BadInput as error:
        return [document.problem(place, problem.message) for problem in error.problems]
    return []


def _contradictions(
    record_format: RecordFormat, document: Document, at: Place
) -> Iterator[Problem]:
    def problem(name: str, message: str) -> Problem:
        return document.problem((*at, name), message)

    if record_format.format is not None and record_format.format not in set(formats):
        known = did_you_mean(record_format.format, formats)
        yield problem("format", f'no format is called "{record_format.format}"{known}')
        return
    kind = formats[record_format.format] if record_format.format is not None else None
    if record_format.schema_ is not None and (kind is None or not kind.takes_schema):
        known = formats_where(lambda format_: format_.takes_schema)
        yield problem(
            "schema", f"only records of format {known} have one; name the format: `format: FORMAT`"
        )
        return
    if record_format.header is not None and record_format.schema_ is None:
        yield problem("header", "it needs a `schema`; name one too")
    if record_format.message is not None and (kind is None or not kind.takes_message):
        known = formats_where(lambda format_: format_.takes_message)
        yield problem(
            "message",
            f"only schemas of format {known} have messages; name the format: `format: {known}`",
        )
    if isinstance(record_format.schema_, Mapping):
        assert kind is not None
        if not kind.has_schema_ids:
            yield problem("schema", f"one schema of format {kind.name} reads all records; name it")
        elif record_format.header is None:
            yield problem("schema", "schema IDs need a header; name it: `header: confluent`")
        for schema_id in record_format.schema_:
            if not SCHEMA_ID.fullmatch(schema_id):
                message = f'expected a schema ID, got "{schema_id}"'
                yield document.problem((*at, "schema", schema_id), message)


def _by_id(schema: str | Mapping[str, str]) -> Mapping[str, str]:
    return {"": schema} if isinstance(schema, str) else schema
