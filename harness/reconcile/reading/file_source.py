"""What the sources of files share: list, find the format, read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from streamquake.harness.reconcile.reading.format import (
    Format,
    format_by_head,
    formats,
    reject_several,
)
from streamquake.harness.reconcile.reading.partitions import partitions_of
from streamquake.harness.reconcile.reading.source import ReadRequest, Source
from streamquake.topologies.problems import bad_input

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamquake.harness.reconcile.reading.listing import ListedFile
    from streamquake.harness.reconcile.reading.table import Table


class FileSource(Source):
    """Files on a file system that Hadoop's client knows."""

    def paths(self) -> Sequence[str]:
        """The URIs as Hadoop takes them."""
        return self.uris

    def read(self, spark: SparkSession, request: ReadRequest) -> Table:
        from streamquake.harness.reconcile.reading.listing import list_files

        listing = list_files(spark, self.paths())
        kind = formats[request.format] if request.format else format_of(listing.files)
        size = sum(file.size for file in listing.files)
        message = f"{len(listing.files)} {kind.name} files, {size / 1e6:,.1f} MB"
        request.show_message(f"{', '.join(self.uris)}: {message}")
        # An empty file has no header, no footer and no records.
        full = [file.for_spark for file in listing.files if file.size]
        paths = full or [listing.files[0].for_spark]
        if not full:
            kind = formats["json"]
        partitions = partitions_of((file.path, file.base) for file in listing.files if file.size)
        table = kind(request.schema).read(spark, paths, request.names, partitions)
        left_out = {
            "pending or in-progress files were left out": listing.pending,
            "files that the sink's log has not committed were left out": listing.uncommitted,
        }
        notes = [f"{n} {what}" for what, n in left_out.items() if n]
        notes += [partitions.note] if partitions.note else []
        recorded = (f"{', '.join(self.uris)}: {note}" for note in notes)
        return replace(table, notes=(*table.notes, *recorded), about=size // kind.bytes_each)


def format_of(files: Sequence[ListedFile]) -> type[Format]:
    """The one format of some files, by what they begin with and, failing that, by their names.

    Raises BadInput where it cannot be told or the files differ.
    """
    full = [file for file in files if file.size] or list(files)
    found: dict[str, str] = {}
    for file in full:
        found.setdefault(_format_name(file), file.path)
    reject_several(found, "input", "side")
    return formats[next(iter(found))]


def _format_name(file: ListedFile) -> str:
    if (known_by_head := format_by_head(file.head)) is not None:
        return known_by_head
    plain = file.path.removesuffix(".gz").lower()
    for name, kind in formats.items():
        if plain.endswith(kind.extensions):
            return name
    if not file.size:
        return "json"
    known = ", ".join(formats)
    raise bad_input(
        file.path,
        f"neither its content nor its name says of which format it is ({known}); say it with "
        "--expected-format or --actual-format",
    )
