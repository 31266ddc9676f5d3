"""Formats: how records stand in files. One file each in `formats/`."""

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
    """What was told of the records of a side. `texts` are schemas by their numbers, or one without
    (""); `header` says what stands before each value of a topic; `place` where it was told."""

    texts: Mapping[str, str]
    place: str
    header: str | None = None
    message: str | None = None
    """Which of the messages that the schema describes."""


class Format(ABC):
    """A way to write records into files, by `name`."""

    name: ClassVar[str]
    extensions: ClassVar[tuple[str, ...]]
    bytes_each: ClassVar[int] = 80
    """What a record takes, roughly."""
    in_topics: ClassVar[bool] = False
    """Whether the values of a topic may be of it: `values` reads them."""
    takes_schema: ClassVar[bool] = False
    """Whether it may be told what its records look like."""
    numbers_schemas: ClassVar[bool] = False
    """Whether each value may have a schema of its own, by the number in its header."""
    takes_message: ClassVar[bool] = False
    """Whether a schema describes several messages, of which one is named."""

    def __init__(self, schema: Schema | None = None) -> None:
        self.schema = schema

    @classmethod
    def schema_text(cls, file: Path) -> str:
        """A schema's file as a text of several lines. Raises OSError."""
        return read_text(file).rstrip("\n") + "\n"

    def needed_schema(self) -> Schema:
        """What was told, of formats whose values in topics need it. Raises BadInput where nothing
        was."""
        if self.schema is None:
            message = f"values in {self.name} do not hold their schema; say it in the file of"
            raise bad_input(
                self.name, f"{message} --expected-map or --actual-map, as `schema: FILE`"
            )
        return self.schema

    def check_schema(self) -> None:
        """Of formats that take schemas. Raises BadInput for a schema that is none."""
        raise NotImplementedError

    @classmethod
    @abstractmethod
    def fits(cls, head: bytes) -> bool:
        """Whether a file that begins so is certainly of this format."""

    @abstractmethod
    def read(
        self,
        spark: SparkSession,
        paths: Sequence[str],
        names: frozenset[str],
        partitions: Partitions,
    ) -> Table:
        """The records of files, given as Spark takes them. `names` are the fields that are asked
        for, `partitions` the columns that the files' folders give. Raises BadInput."""

    def values(
        self,
        raw: DataFrame,
        place: tuple[str, ...],
        names: frozenset[str],
        *,
        lane: tuple[str, ...],
        position: str,
    ) -> Table:
        """The records of a topic, whose bytes are in `value` beside `place`. Raises BadInput."""
        raise NotImplementedError


formats: Registry[Format] = Registry("format", "streamquake.harness.reconcile.formats")


def format_by_head(head: bytes) -> str | None:
    """The format that a file is certainly of, by what it begins with."""
    return next((name for name, kind in formats.items() if kind.fits(head)), None)


def reject_several(found: Mapping[str, object], place: str, whole: str) -> None:
    """Raise BadInput where the files of one `whole`, a side or an output, are of several formats;
    `found` has a file of each."""
    if len(found) > 1:
        each = ", ".join(f"{file} is {name}" for name, file in found.items())
        raise bad_input(place, f"the files of one {whole} must be of one format: {each}")


def formats_where(holds: Callable[[type[Format]], bool]) -> str:
    """The names of the formats for which something holds, as a sentence has them."""
    return " or ".join(name for name, kind in formats.items() if holds(kind))


def not_in_topics(kind: type[Format]) -> str | None:
    """Why the values of a topic cannot be read as this format, or None."""
    if kind.in_topics:
        return None
    known = formats_where(lambda each: each.in_topics)
    return f"the values of a topic are read as {known}, not as {kind.name}"
