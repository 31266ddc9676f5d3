"""`s3://bucket/path`: objects of a store with S3's interface, copied to this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.reading.file_source import FileSource
from streamquake.harness.reconcile.reading.object_folder import ObjectFolder, object_folder
from streamquake.harness.reconcile.reading.objects import copy_objects, list_objects
from streamquake.harness.reconcile.reading.source import NO_PROPERTIES, ReadRequest, sources
from streamquake.harness.reconcile.reading.table import Table
from streamquake.harness.reconcile.spark_session import runs_here
from streamquake.topologies.problems import BadInput, bad_input
from streamquake.topologies.secret_names import without_login

FILE = "_file"


@sources.register
class S3(FileSource):
    """Folders and single objects of stores with S3's interface."""

    name: ClassVar[str] = "s3"

    def __init__(self, uris: Sequence[str], properties: Mapping[str, str] = NO_PROPERTIES) -> None:
        super().__init__(uris, properties)
        self._folders = [_folder(uri) for uri in uris]
        self._roots: list[Path] = []
        """The copies of the URIs."""
        self._copied: dict[str, str] = {}
        """Folder of copies -> the URI of what is in it."""

    def inspect(self) -> int | None:
        return sum(_bytes(folder) for folder in self._folders)

    def paths(self) -> Sequence[str]:
        """The copies."""
        return [f"file:{root}" for root in self._roots]

    def read(self, spark: SparkSession, request: ReadRequest) -> Table:
        if not runs_here(spark):
            raise bad_input(
                self.uris[0],
                "objects are copied to this machine, where other executors cannot read them; leave "
                "--master out, or copy them to a disk that all share",
            )
        # Removed with this source: the records are read as often as the comparison needs them.
        self._all_copies = tempfile.TemporaryDirectory(prefix="streamquake-objects-")
        for folder in self._folders:
            target = Path(tempfile.mkdtemp(dir=Path(self._all_copies.name).resolve()))
            root = copy_objects(folder, target)
            self._roots.append(root)
            above = folder.uri if root == target else folder.uri.rpartition("/")[0]
            self._copied[str(target)] = above
        try:
            table = super().read(spark, request)
        except BadInput as error:
            raise BadInput(
                [
                    replace(each, file=self._named(each.file), message=self._named(each.message))
                    for each in error.problems
                ]
            ) from error
        return replace(table, frame=table.frame.withColumn(FILE, self._place()))

    def _named(self, text: str) -> str:
        """A text with the URIs in place of the copies' paths."""
        for path, uri in self._copied.items():
            text = text.replace(f"file:{path}", uri).replace(path, uri)
        return text

    def _place(self) -> Column:
        """The column with the URI of each record's object."""
        file = F.col(FILE)
        for path, uri in self._copied.items():
            file = F.replace(file, F.lit(path), F.lit(uri))
        return file


def _folder(uri: str) -> ObjectFolder:
    try:
        return object_folder(uri)
    except ValueError as error:
        raise bad_input(without_login(uri), str(error)) from error


def _bytes(folder: ObjectFolder) -> int:
    sizes = list_objects(folder).sizes
    if not sizes:
        raise bad_input(
            folder.uri, "no such object, and none below it; a path is no pattern and no mere prefix"
        )
    return sum(sizes.values())
