"""The base of all sources of files: list the files, detect their format, read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from streamquake.harness.reconcile.reading.format import (
    Format,
    format_by_head,
    formats,
    reject_several,
)
from streamquake.harness.reconcile.reading.listing import ListedFile, list_files
from streamquake.harness.reconcile.reading.partitions import partitions_of
from streamquake.harness.reconcile.reading.source import ReadRequest, Source
from streamquake.harness.reconcile.reading.table import Table
from streamquake.topologies.problems import bad_input


class FileSource(Source):
    """Files on a file system that Hadoop's client can read."""

    def paths(self) -> Sequence[str]:
        """The URIs in the form that Hadoop expects."""
        return self.uris

    def read(self, spark: SparkSession, request: ReadRequest) -> Table:
        listing = list_files(spark, self.paths())
        kind = formats[request.format] if request.format else format_of(listing.files)
        size = sum(file.size for file in listing.files)
        message = f"{len(listing.files)} {kind.name} files, {size / 1e6:,.1f} MB"
        request.show_message(f"{', '.join(self.uris)}: {message}")
        # An empty file has no header, no footer and no records.
        nonempty = [file.for_spark for file in listing.files if file.size]
        paths = nonempty or [listing.files[0].for_spark]
        if not nonempty:
            kind = formats["json"]
        partitions = partitions_of((file.path, file.base) for file in listing.files if file.size)
        table = kind(request.schema).read(spark, paths, request.names, partitions)
        ignored = {
            "pending or in-progress files were ignored": listing.pending,
            "files with hidden names or in hidden folders were ignored": listing.hidden,
            "files that the sink's log has not committed were ignored": listing.uncommitted,
            "files are empty": len(listing.files) - len(nonempty),
        }
        notes = [f"{n} {what}" for what, n in ignored.items() if n]
        notes += [partitions.note] if partitions.note else []
        with_place = (f"{', '.join(self.uris)}: {note}" for note in notes)
        return replace(
            table, notes=(*table.notes, *with_place), record_estimate=size // kind.bytes_per_record
        )


def format_of(files: Sequence[ListedFile]) -> type[Format]:
    """The format of some files, by their first bytes or else by their names.

    Raises BadInput where it cannot be detected or the files differ.
    """
    nonempty = [file for file in files if file.size] or list(files)
    files_by_format: dict[str, str] = {}
    for file in nonempty:
        files_by_format.setdefault(_format_name(file), file.path)
    reject_several(files_by_format, "input", "side")
    return formats[next(iter(files_by_format))]


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
        f"neither its content nor its name shows its format ({known}); set it with "
        "--expected-format or --actual-format",
    )
