"""The shipped documents of a kind: their names and descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from streamquake.topologies.named_files import shipped_files
from streamquake.topologies.yaml_document import read_document


def shipped_descriptions(folder: Path, prefix: str = "") -> Mapping[str, str]:
    """Name -> description, as one line, of the shipped documents in a folder whose names begin with
    a prefix."""
    return {
        name: " ".join(str(read_document(path).data.get("description", "")).split())
        for name, path in shipped_files(folder, ".yaml").items()
        if name.startswith(prefix)
    }
