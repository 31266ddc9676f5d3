"""Which files make up a side: through Hadoop's client, so that a disk and HDFS are listed alike.

Names that begin with a dot or an underscore are left out: Flink marks so what is pending or in
progress, and Spark what is no data. Where a Spark sink keeps a log (`_spark_metadata`), what it has
committed decides, and other files are left out too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.reading.files import COPYING_SUFFIX, is_hidden
from streamquake.harness.reconcile.reading.literal_path import literal_path
from streamquake.harness.reconcile.reading.source import NOT_FOUND
from streamquake.harness.reconcile.reading.spark_sink_log import FOLDER as SINK_LOG
from streamquake.harness.reconcile.reading.spark_sink_log import committed_paths
from streamquake.topologies.problems import bad_input

HEAD_BYTES = 4096
HIDDEN_FILE = (
    "Spark reads no file whose name begins with a dot or an underscore, or ends in "
    f"{COPYING_SUFFIX}: expected another name"
)


@dataclass(frozen=True, kw_only=True)
class ListedFile:
    """A file with records, or an empty one."""

    path: str
    size: int
    head: bytes
    base: str = ""
    """The folder that was asked for, with a slash at its end; none for a file by name."""

    @property
    def for_spark(self) -> str:
        """The path as Spark takes it: it would read these signs as a pattern."""
        return literal_path(self.path)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What was found: `files` to read, and how many were left out."""

    files: tuple[ListedFile, ...]
    pending: int
    uncommitted: int


def list_files(spark: SparkSession, uris: Sequence[str]) -> Listing:
    """The files of some files, folders or patterns.

    Raises BadInput for what is not there, ConnectionError for a file system that does not answer.
    """
    files: list[ListedFile] = []
    left_out = {"pending": 0, "uncommitted": 0}
    for uri in uris:
        try:
            files += _files_under(_Hadoop(spark, uri), uri, left_out)
        except Py4JJavaError as error:
            raise ConnectionError(f"{uri} could not be listed: {_message(error)}") from error
    unique = {file.path: file for file in files}
    if not unique:
        raise bad_input(
            ", ".join(uris), f"expected files with records, found none{_left_out_text(left_out)}"
        )
    return Listing(files=tuple(unique.values()), **left_out)


def _files_under(hadoop: _Hadoop, uri: str, left_out: dict[str, int]) -> Iterator[ListedFile]:
    roots = hadoop.matches(uri)
    if not roots:
        raise bad_input(uri, NOT_FOUND)
    above = _above_pattern(uri)
    for root in roots:
        if not root.isDirectory():
            hidden = is_hidden(PurePosixPath(root.getPath().getName()))
            if hidden and not above:
                raise bad_input(uri, HIDDEN_FILE)
            left_out["pending"] += hidden
            if not hidden:
                yield hadoop.listed(root, above)
            continue
        base = root.getPath().toString().rstrip("/") + "/"
        found = {s.getPath().toString()[len(base) :]: s for s in hadoop.below(root.getPath())}
        committed = _committed(hadoop, base, sorted(found))
        for name in sorted(found):
            if is_hidden(PurePosixPath(name)):
                last = PurePosixPath(name).name
                marked = last.startswith(".") and not last.endswith(".crc")
                marked |= last.endswith(COPYING_SUFFIX)
                left_out["pending"] += marked and not name.startswith(SINK_LOG)
            elif committed is not None and name not in committed:
                left_out["uncommitted"] += 1
            else:
                yield hadoop.listed(found[name], above or base)


def _above_pattern(uri: str) -> str:
    """The folder above the first part of a path that is a pattern; nothing for a plain path."""
    plain = re.split(r"[*?\[{]", uri, maxsplit=1)
    return plain[0].rpartition("/")[0] + "/" if len(plain) > 1 else ""


def _committed(hadoop: _Hadoop, base: str, names: Sequence[str]) -> frozenset[str] | None:
    """The files that the sink's log names, None where there is no log.

    The log keeps whole paths of the time it was written; a folder may have been moved since, so a
    file is known by the end of its path.
    """
    paths = committed_paths(names, lambda name: hadoop.text(base + name))
    if paths is None:
        return None
    return _names_by_path_end([unquote(path) for path in paths], base, names)


def _names_by_path_end(paths: Sequence[str], base: str, names: Sequence[str]) -> frozenset[str]:
    by_end = {PurePosixPath(name).name: name for name in names}
    found = set()
    for path in paths:
        name = by_end.get(PurePosixPath(path).name)
        if name is None or not path.endswith("/" + name):
            raise bad_input(
                base, f"the log {SINK_LOG} names a committed file that is not there: {path}"
            )
        found.add(name)
    return frozenset(found)


class _Hadoop:
    """The few calls of org.apache.hadoop.fs.FileSystem that listing takes."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm
        path = self._jvm.org.apache.hadoop.fs.Path(uri)
        self._system = path.getFileSystem(context._jsc.hadoopConfiguration())

    def matches(self, uri: str) -> list[Any]:
        """What a path names: itself, or else what fits it as a pattern."""
        path = self._jvm.org.apache.hadoop.fs.Path(uri)
        if self._system.exists(path):
            return [self._system.getFileStatus(path)]
        return list(self._system.globStatus(path) or ())

    def below(self, folder: Any) -> Iterator[Any]:
        files = self._system.listFiles(folder, True)
        while files.hasNext():
            yield files.next()

    def listed(self, status: Any, base: str = "") -> ListedFile:
        path, size = status.getPath(), status.getLen()
        return ListedFile(path=path.toString(), size=size, head=self._head(path, size), base=base)

    def text(self, path: str) -> str:
        stream = self._system.open(self._jvm.org.apache.hadoop.fs.Path(path))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _head(self, path: Any, size: int) -> bytes:
        stream = self._system.open(path)
        try:
            wanted = min(size, HEAD_BYTES)
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, wanted))
        finally:
            stream.close()


def _left_out_text(left_out: dict[str, int]) -> str:
    parts = [f"{count} {kind}" for kind, count in left_out.items() if count]
    return f" ({', '.join(parts)} left out)" if parts else ""


def _message(error: Py4JJavaError) -> str:
    return str(error.java_exception.toString()).partition("\n")[0]
