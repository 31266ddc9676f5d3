"""Sources: from where the records of a side can be read. One file each in `sources/`.

A scheme of a URI names its source. A source looks first (what is there, before Spark has been
started, so that a wrong path is told at once) and reads later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from streamquake.topologies.problems import bad_input, did_you_mean
from streamquake.topologies.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamquake.harness.reconcile.reading.format import Schema
    from streamquake.harness.reconcile.reading.table import Table

ShowMessage = Callable[[str], None]

NOT_FOUND = "no such file or folder, and no file fits it as a pattern"


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """What shall be read of a source."""

    names: frozenset[str]
    """Fields that the expressions of this side name."""
    format: str | None = None
    """The format as the user said it; None where it is to be found."""
    schema: Schema | None = None
    """What the user said of its records."""
    show_message: ShowMessage


class Source(ABC):
    """A place that records can be read from, by `name`, the scheme of its URIs."""

    name: ClassVar[str]
    needs_jars: ClassVar[bool] = False
    """Whether Spark needs more than it brings to read it."""
    keyed: ClassVar[bool] = False
    """Whether records have keys, and come one after the other, so that one can replace another."""

    def __init__(self, uris: Sequence[str]) -> None:
        """Of several URIs all together make up the side. Raises BadInput for some that cannot."""
        self.uris = tuple(uris)

    @abstractmethod
    def inspect(self) -> int | None:
        """How many bytes there are, None where that is not known without reading.

        Raises BadInput for what is not there, ConnectionError for a system that does not answer.
        """

    @abstractmethod
    def read(self, spark: SparkSession, request: ReadRequest) -> Table:
        """The records. Raises BadInput for what cannot be read as asked."""


sources: Registry[Source] = Registry("source", "streamquake.harness.reconcile.sources")


def source_of(uris: Sequence[str], option: str) -> Source:
    """The source of a side's URIs. Raises BadInput for an unknown scheme or a mixture."""
    by_scheme = {urlsplit(uri).scheme if "://" in uri else "file" for uri in uris}
    if unknown := sorted(by_scheme - set(sources)):
        known = did_you_mean(unknown[0], sources)
        raise bad_input(option, f'no source reads "{unknown[0]}://"{known}')
    if len(by_scheme) > 1:
        raise bad_input(
            option, f"one side is read from one kind of source, got {sorted(by_scheme)}"
        )
    return sources[by_scheme.pop()](uris)
