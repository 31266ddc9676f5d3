"""`file://` and plain paths: files of this machine, or of a disk that a cluster shares."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from streamquake.harness.reconcile.reading.file_source import FileSource
from streamquake.harness.reconcile.reading.source import NOT_FOUND, sources
from streamquake.topologies.problems import bad_input
from streamquake.topologies.secret_names import without_login


@sources.register
class LocalFiles(FileSource):
    """Files, folders and patterns on disk."""

    name: ClassVar[str] = "file"

    def paths(self) -> Sequence[str]:
        return [f"file:{_path(uri)}" for uri in self.uris]

    def inspect(self) -> int | None:
        return sum(_bytes(uri) for uri in self.uris)


def _path(uri: str) -> Path:
    """The path of a URI. Raises BadInput for a URI without one, and for an unknown user."""
    plain = unquote(urlsplit(uri).path) if uri.startswith("file://") else uri
    if not plain:
        raise bad_input(uri, "expected a path, got none")
    try:
        return Path(plain).expanduser().resolve()
    except (RuntimeError, ValueError, OSError) as error:
        raise bad_input(uri, f"it is no path: {error}") from error


def _bytes(uri: str) -> int:
    path = _path(uri)
    # Not `Path.exists`, which raises an error for a name that is too long.
    roots = [path] if os.path.exists(path) else [Path(match) for match in glob.glob(str(path))]
    if not roots:
        raise bad_input(without_login(uri), NOT_FOUND)
    files = (f for root in roots for f in ([root] if root.is_file() else root.rglob("*")))
    return sum(file.stat().st_size for file in files if file.is_file())
