"""Sources: the places that the records of a side can be read from. One file each in `sources/`.

The scheme of a URI names its source. A source is inspected first, before Spark starts, so that a
wrong path is reported at once. It is read later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from streamquake.topologies.problems import bad_input, did_you_mean
from streamquake.topologies.registry import Registry
from streamquake.topologies.secret_names import without_login

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamquake.harness.reconcile.reading.format import Schema
    from streamquake.harness.reconcile.reading.table import Table

ShowMessage = Callable[[str], None]

NO_PROPERTIES: Mapping[str, str] = {}
NOT_FOUND = "no such file or folder, and no file matches it as a pattern"


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """What to read of a source, and in which format."""

    names: frozenset[str]
    """Fields that the expressions of this side read."""
    format: str | None = None
    """The format that the user gave; None to detect it."""
    schema: Schema | None = None
    """The schema that the user gave."""
    show_message: ShowMessage
    """Shows progress to the user."""


class Source(ABC):
    """A place that records can be read from, by `name`, the scheme of its URIs."""

    name: ClassVar[str]
    needs_jars: ClassVar[bool] = False
    """Whether Spark needs further jars to read it."""
    takes_properties: ClassVar[bool] = False
    """Whether its clients may have to log in."""
    has_keys: ClassVar[bool] = False
    """Whether records have keys and an order, so that one can replace another."""

    def __init__(self, uris: Sequence[str], properties: Mapping[str, str] = NO_PROPERTIES) -> None:
        """The URIs together are one side; `properties` say how clients log in. Raises BadInput
        where they cannot be combined, or have no properties."""
        if properties and not self.takes_properties:
            raise bad_input(uris[0], "`properties` are for kafka://; leave them out")
        self.uris = tuple(uris)

    @abstractmethod
    def inspect(self) -> int | None:
        """Check that the source exists. Returns its size in bytes; None where only a read shows it.

        Raises BadInput for a missing source, ConnectionError for an unreachable system.
        """

    @abstractmethod
    def read(self, spark: SparkSession, request: ReadRequest) -> Table:
        """Read the records. Raises BadInput where they cannot be read as requested."""


sources: Registry[Source] = Registry("source", "streamquake.harness.reconcile.sources", base=Source)


def source_of(
    uris: Sequence[str], option: str, properties: Mapping[str, str] = NO_PROPERTIES
) -> Source:
    """The source of the URIs of a side, whose clients have these properties. Raises BadInput for an
    unknown scheme or a mixture."""
    if "" in uris:
        raise bad_input(option, "expected a file, a folder or a URI, got an empty text")
    by_scheme = {_scheme(uri) for uri in uris}
    if unknown := sorted(by_scheme - set(sources)):
        known = did_you_mean(unknown[0], sources)
        raise bad_input(option, f'no source reads "{unknown[0]}://"{known}')
    if len(by_scheme) > 1:
        raise bad_input(
            option, f"one side must be read from one kind of source, got {sorted(by_scheme)}"
        )
    return sources[by_scheme.pop()](uris, properties)


def _scheme(uri: str) -> str:
    """The scheme of a URI, `file` for a path. Raises BadInput for a text that is no URI."""
    if "://" not in uri:
        return "file"
    try:
        return urlsplit(uri).scheme
    except ValueError as error:
        raise bad_input(without_login(uri), f"it is no URI: {error}") from error
