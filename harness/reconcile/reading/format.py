"""Formats of records in files and topics. One file each in `formats/`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from streamquake.topologies.named_files import read_text
from streamquake.topologies.problems import bad_input
from streamquake.topologies.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamquake.harness.reconcile.reading.partitions import Partitions
    from streamquake.harness.reconcile.reading.table import Table


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The schema of a side as it was given. `texts` has schemas by their IDs, or one schema without
    an ID (""). `header` is the header before each value of a topic. `place` is where the schema was
    given, for messages."""

    texts: Mapping[str, str]
    place: str
    header: str | None = None
    message: str | None = None
    """The name of the message, where the schema describes several."""


class Format(ABC):
    """The base class of all formats of records, by `name`."""

    name: ClassVar[str]
    extensions: ClassVar[tuple[str, ...]]
    bytes_per_record: ClassVar[int] = 80
    """Rough size of a record in bytes."""
    in_topics: ClassVar[bool] = False
    """Whether the values of a topic can have this format; `values` reads them."""
    takes_schema: ClassVar[bool] = False
    """Whether the user can give a schema."""
    has_schema_ids: ClassVar[bool] = False
    """Whether each value may have a schema of its own, by the schema ID in its header."""
    takes_message: ClassVar[bool] = False
    """Whether a schema can describe several messages, so that the user names one."""

    def __init__(self, schema: Schema | None = None) -> None:
        self.schema = schema

    @classmethod
    def schema_text(cls, file: Path) -> str:
        """The content of a schema file as text of several lines. Raises OSError."""
        return read_text(file).rstrip("\n") + "\n"

    def required_schema(self) -> Schema:
        """The schema, for formats whose values in topics need one. Raises BadInput where none was
        given."""
        if self.schema is None:
            message = f"values in {self.name} do not contain their schema; name it in the file of"
            raise bad_input(
                self.name, f"{message} --expected-map or --actual-map, as `schema: FILE`"
            )
        return self.schema

    def check_schema(self) -> None:
        """Check the schema, for formats that take one. Raises BadInput for an invalid schema."""
        raise NotImplementedError

    @classmethod
    @abstractmethod
    def fits(cls, head: bytes) -> bool:
        """Whether a file with these first bytes is certainly of this format."""

    @abstractmethod
    def read(
        self,
        spark: SparkSession,
        paths: Sequence[str],
        names: frozenset[str],
        partitions: Partitions,
    ) -> Table:
        """Read the records of files, whose paths are escaped for Spark. `names` are the requested
        fields, `partitions` the columns of the folders. Raises BadInput for unreadable files."""

    def values(
        self,
        raw: DataFrame,
        place: tuple[str, ...],
        names: frozenset[str],
        *,
        lane: tuple[str, ...],
        position: str,
    ) -> Table:
        """Parse the records of a topic, whose bytes are in `value` beside the columns `place`.
        Raises BadInput where the format needs a schema that was not given."""
        raise NotImplementedError


formats: Registry[Format] = Registry("format", "streamquake.harness.reconcile.formats", base=Format)


def format_by_head(head: bytes) -> str | None:
    """The format of a file by its first bytes; None where they are not conclusive."""
    return next((name for name, kind in formats.items() if kind.fits(head)), None)


def reject_several(files_by_format: Mapping[str, object], place: str, whole: str) -> None:
    """Raise BadInput where the files of one `whole` (a side or an output) have several formats;
    `files_by_format` has one file of each."""
    if len(files_by_format) > 1:
        examples = ", ".join(f"{file} is {name}" for name, file in files_by_format.items())
        raise bad_input(place, f"the files of one {whole} must be of one format: {examples}")


def formats_where(holds: Callable[[type[Format]], bool]) -> str:
    """The names of the formats for which `holds` is true, joined for a message."""
    return " or ".join(name for name, kind in formats.items() if holds(kind))


def not_in_topics(kind: type[Format]) -> str | None:
    """A message why the values of a topic cannot have this format; None where they can."""
    if kind.in_topics:
        return None
    known = formats_where(lambda format_: format_.in_topics)
    return f"the values of a topic are read as {known}, not as {kind.name}"
