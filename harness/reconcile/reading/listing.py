"""Lists the files of a side with Hadoop's client, for local disks and HDFS alike.

Files are ignored as Spark ignores them (`is_hidden`): Flink marks pending and in-progress files so,
and committers the files of attempts. Where a Spark sink has a log (`_spark_metadata`), files that
it has not committed are ignored too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.reading.files import may_have_records
from streamquake.harness.reconcile.reading.hidden_files import (
    COPYING_SUFFIX,
    is_hidden,
    is_pending,
)
from streamquake.harness.reconcile.reading.literal_path import literal_path
from streamquake.harness.reconcile.reading.source import NOT_FOUND
from streamquake.harness.reconcile.reading.spark_sink_log import FOLDER as SINK_LOG
from streamquake.harness.reconcile.reading.spark_sink_log import committed_paths
from streamquake.topologies.problems import bad_input

HEAD_BYTES = 4096
HIDDEN_FILE = (
    "Spark reads no file whose name begins with a dot or an underscore (unless it contains =), or "
    f"ends in {COPYING_SUFFIX}: expected another name"
)


@dataclass(frozen=True, kw_only=True)
class ListedFile:
    """A file with records, or an empty one."""

    path: str
    size: int
    head: bytes
    base: str = ""
    """The requested folder, with a slash at its end; empty for a file by name."""

    @property
    def for_spark(self) -> str:
        """The path, escaped for Spark, which would read some characters as a pattern."""
        return literal_path(self.path)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The `files` to read, and the numbers of ignored files."""

    files: tuple[ListedFile, ...]
    pending: int
    hidden: int
    uncommitted: int


def list_files(spark: SparkSession, uris: Sequence[str]) -> Listing:
    """List the files of some files, folders or patterns.

    Raises BadInput for a missing path, ConnectionError for an unreachable file system.
    """
    files: list[ListedFile] = []
    ignored = {"pending": 0, "hidden": 0, "uncommitted": 0}
    for uri in uris:
        try:
            files += _files_under(_HadoopFileSystem(spark, uri), uri, ignored)
        except Py4JJavaError as error:
            raise ConnectionError(f"{uri} could not be listed: {_message(error)}") from error
    unique: dict[str, ListedFile] = {}
    for file in files:
        unique.setdefault(_real_path(file.path), file)
    if not unique:
        raise bad_input(
            ", ".join(uris), f"expected files with records, found none{_ignored_text(ignored)}"
        )
    return Listing(files=tuple(unique.values()), **ignored)


def _real_path(path: str) -> str:
    """The path of a local file without symbolic links: a link to a folder above itself would give
    each of its files many times. Any other path as it is."""
    return os.path.realpath(path.removeprefix("file:")) if path.startswith("file:") else path


def _files_under(
    hadoop: _HadoopFileSystem, uri: str, ignored: dict[str, int]
) -> Iterator[ListedFile]:
    roots = hadoop.matching_statuses(uri)
    if not roots:
        raise bad_input(uri, NOT_FOUND)
    above = _above_pattern(uri)
    for root in roots:
        root_name = PurePosixPath(root.getPath().getName())
        if not root.isDirectory():
            if not above and is_hidden(root_name):
                raise bad_input(uri, HIDDEN_FILE)
            if not _count_hidden(root_name, ignored):
                yield hadoop.listed_file(root, above)
            continue
        base = root.getPath().toString().rstrip("/") + "/"
        statuses = {
            s.getPath().toString()[len(base) :]: s for s in hadoop.files_below(root.getPath())
        }
        committed = _committed_files(hadoop, base, sorted(statuses))
        for name in sorted(statuses):
            # A requested folder may have any name; a pattern matches no hidden one.
            if _count_hidden(root_name / name if above else PurePosixPath(name), ignored):
                continue
            if committed is not None and name not in committed:
                ignored["uncommitted"] += 1
            else:
                yield hadoop.listed_file(statuses[name], above or base)


def _count_hidden(path: PurePosixPath, ignored: dict[str, int]) -> bool:
    """Whether Spark ignores a file by its name; it is then counted where it may have records."""
    hidden = is_hidden(path)
    if hidden and may_have_records(path):
        ignored["pending" if is_pending(path.name) else "hidden"] += 1
    return hidden


def _above_pattern(uri: str) -> str:
    """The folder above the first pattern in a path; empty for a plain path."""
    plain = re.split(r"[*?\[{]", uri, maxsplit=1)
    return plain[0].rpartition("/")[0] + "/" if len(plain) > 1 else ""


def _committed_files(
    hadoop: _HadoopFileSystem, base: str, names: Sequence[str]
) -> frozenset[str] | None:
    """The files that the sink's log has committed; None where there is no log. A sink creates the
    folder of its log before its first batch, so an empty one has committed nothing, as for Spark.

    The log has absolute paths. The folder may have been moved since, so a file is identified by the
    end of its path.
    """
    paths = committed_paths(names, lambda name: hadoop.read_text(base + name))
    if paths is None:
        return frozenset() if hadoop.exists(base + SINK_LOG) else None
    return _names_by_path_end([unquote(path) for path in paths], base, names)


def _names_by_path_end(paths: Sequence[str], base: str, names: Sequence[str]) -> frozenset[str]:
    by_end = {PurePosixPath(name).name: name for name in names}
    committed = set()
    for path in paths:
        name = by_end.get(PurePosixPath(path).name)
        if name is None or not path.endswith("/" + name):
            raise bad_input(
                base, f"the log {SINK_LOG} names a committed file that does not exist: {path}"
            )
        committed.add(name)
    return frozenset(committed)


class _HadoopFileSystem:
    """The calls of org.apache.hadoop.fs.FileSystem that listing needs."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm
        path = self._jvm.org.apache.hadoop.fs.Path(uri)
        self._system = path.getFileSystem(context._jsc.hadoopConfiguration())

    def matching_statuses(self, uri: str) -> list[Any]:
        """The path itself if it exists, else the paths that match it as a pattern."""
        path = self._jvm.org.apache.hadoop.fs.Path(uri)
        if self._system.exists(path):
            return [self._system.getFileStatus(path)]
        return list(self._system.globStatus(path) or ())

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(self._jvm.org.apache.hadoop.fs.Path(path)))

    def files_below(self, folder: Any) -> Iterator[Any]:
        files = self._system.listFiles(folder, True)
        while files.hasNext():
            yield files.next()

    def listed_file(self, status: Any, base: str = "") -> ListedFile:
        path, size = status.getPath(), status.getLen()
        return ListedFile(path=path.toString(), size=size, head=self._head(path, size), base=base)

    def read_text(self, path: str) -> str:
        stream = self._system.open(self._jvm.org.apache.hadoop.fs.Path(path))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _head(self, path: Any, size: int) -> bytes:
        stream = self._system.open(path)
        try:
            length = min(size, HEAD_BYTES)
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, length))
        finally:
            stream.close()


def _ignored_text(ignored: dict[str, int]) -> str:
    parts = [f"{count} {kind}" for kind, count in ignored.items() if count]
    return f" ({', '.join(parts)} ignored)" if parts else ""


def _message(error: Py4JJavaError) -> str:
    return str(error.java_exception.toString()).partition("\n")[0]
