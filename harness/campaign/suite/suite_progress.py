"""What a suite lets through of its runs: what takes long before a run, and that it is stopping."""

from __future__ import annotations

from collections.abc import Callable

from streamquake.harness.interrupts import STOPPING
from streamquake.harness.run.progress import Figures

SHOWN_IN = "prepare"
"""The phase in which images are built, which takes minutes the first time."""


class CompactView:
    """A view of a run that leaves the lines to the suite: one when it begins, one when it ends."""

    def __init__(self, write_message: Callable[[str], None]) -> None:
        self._report = write_message
        self._phase = ""

    def phase(self, name: str, detail: str) -> None:
        self._phase = name

    def show_message(self, line: str) -> None:
        if self._phase == SHOWN_IN or line == STOPPING:
            self._report(f"    {line}")

    def update(self, now: Figures) -> None:
        pass
