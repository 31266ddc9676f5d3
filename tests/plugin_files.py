"""Plugins for tests: files, and installed packages as their metadata describe them."""

from __future__ import annotations

import textwrap
from pathlib import Path

CHECK = """
    from typing import ClassVar

    from streamquake.harness.experiment.check import Check, checks


    @checks.register
    class {title}(Check):
        \"\"\"The history has few events.\"\"\"

        name: ClassVar[str] = "{name}"
        most: int = 10

        def check(self, case):
            many = len(case.history) > self.most
            return self.violated("many events") if many else self.held("few events")
"""


def write_check(file: Path, name: str = "few_events", title: str = "FewEvents") -> Path:
    """A plugin file with one check."""
    return write(file, CHECK.format(name=name, title=title))


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    return file


def write_metadata(folder: Path, module: str, name: str = "acme", version: str = "1.2") -> None:
    """What pip writes of an installed package with this module as its plugin."""
    metadata = folder / f"{name}-{version}.dist-info"
    write(metadata / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    write(metadata / "entry_points.txt", f"[streamquake.plugins]\nown = {module}\n")
