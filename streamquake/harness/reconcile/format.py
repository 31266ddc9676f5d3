"""Formats: how records stand in files. One file each in `formats/`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from streamquake.topologies.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamquake.harness.reconcile.partitions import Partitions
    from streamquake.harness.reconcile.table import Table


class Format(ABC):
    """A way to write records into files, by `name`."""

    name: ClassVar[str]
    extensions: ClassVar[tuple[str, ...]]
    bytes_each: ClassVar[int] = 80
    """What a record takes, roughly."""

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


formats: Registry[Format] = Registry("format", "streamquake.harness.reconcile.formats")
