"""A folder of this machine in place of an object store: one folder for each bucket."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from streamquake.harness.reconcile.reading import objects
from streamquake.harness.reconcile.reading.object_folder import object_folder


class Client:
    """Another client, with some of its answers changed."""

    def __init__(self, of: Any, found: Callable[[Any], Any]) -> None:
        self._of, self._found = of, found

    def get_file_info(self, asked: Any) -> Any:
        return self._found(asked)

    def open_input_stream(self, key: str, compression: str | None) -> Any:
        return self._of.open_input_stream(key, compression=compression)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one folder for each bucket, in place of a store."""
    root = tmp_path / "store"
    (root / "results").mkdir(parents=True)
    local = fs.SubTreeFileSystem(str(root), fs.LocalFileSystem())

    def found(asked: Any) -> Any:
        if isinstance(asked, fs.FileSelector) and (root / asked.base_dir).is_file():
            raise FileNotFoundError("a store has no folder of this name")
        return local.get_file_info(asked)

    monkeypatch.setattr(objects, "_client", lambda folder: Client(local, found))
    return root


def answering(monkeypatch: pytest.MonkeyPatch, names: list[str], own: fs.FileType) -> None:
    """Have the store list objects of one byte."""
    real = objects._client(object_folder("s3://results"))
    listed = [fs.FileInfo(f"results/out/{name}", fs.FileType.File, size=1) for name in names]

    def found(asked: Any) -> Any:
        return listed if isinstance(asked, fs.FileSelector) else fs.FileInfo(asked, own, size=1)

    monkeypatch.setattr(objects, "_client", lambda folder: Client(real, found))
