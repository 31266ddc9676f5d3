"""The folder of what several runs have in common, beside those of its runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from streamquake.reports.record import atomic_files
from streamquake.reports.record.secret_settings import hidden


class WritableResults(Protocol):
    """Results that can be written down."""

    def to_json(self) -> dict[str, Any]: ...


class GroupFolder:
    """KIND-ID with KIND.json, which is there as a whole or not at all, and KIND.html."""

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
        text = json.dumps(hidden(results.to_json()), indent=2, default=str)
        atomic_files.write_text(self.results, text + "\n")
