"""The folder of the results of a group of runs (a suite, a comparison), beside the runs' own
folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from streamquake.reports.record import atomic_files
from streamquake.reports.record.secret_settings import hide_secrets


class WritableResults(Protocol):
    """Results that can be written as JSON."""

    def to_json(self) -> dict[str, Any]: ...


class GroupFolder:
    """A folder KIND-ID with KIND.json, which is replaced atomically, and KIND.html."""

    kind: ClassVar[str]

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results = path / f"{self.kind}.json"
        self.page = path / f"{self.kind}.html"

    @classmethod
    def create(cls, out: Path, group_id: str) -> Self:
        """Raises FileExistsError."""
        folder = cls(out / f"{cls.kind}-{group_id}")
        folder.path.mkdir(parents=True)
        return folder

    def write_results(self, results: WritableResults) -> None:
        text = json.dumps(hide_secrets(results.to_json()), indent=2, default=str)
        atomic_files.write_text(self.results, text + "\n")
