"""The view of a run in a suite: it shows only the build of images, and that the run is stopping."""

from __future__ import annotations

from collections.abc import Callable

from streamquake.harness.interrupts import STOPPING
from streamquake.harness.run.progress import Figures

SHOWN_IN = "prepare"
"""The phase in which images are built, which takes minutes the first time."""


class CompactView:
    """A view of a run without progress lines; the suite prints a line at its start and its end."""

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
