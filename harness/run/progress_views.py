"""The two views of a run: a panel that redraws itself in a terminal, and plain lines for CI.

They have a clock of their own, since the run hands over no figures while it waits for containers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from streamquake.cluster.runtime.clock import Clock, SystemClock
from streamquake.harness.run.progress import Figures, View
from streamquake.reports.render.terminal import TerminalConsole, escaped

PROGRESS_EVERY_S = 10.0


@contextmanager
def open_view(*, plain: bool = False) -> Iterator[View]:
    """The view that fits where the output goes, closed at the end of the block."""
    if plain or os.environ.get("CI") or not sys.stdout.isatty():
        yield PlainView(lambda line: print(escaped(line), flush=True), SystemClock())
        return
    view = LiveView(TerminalConsole(), SystemClock())
    with view.live:
        yield view


def words(now: Figures) -> dict[str, str]:
    """The figures as words, by what they are; only those that say something."""
    of_all = f" of {now.wanted:,}" if now.wanted else ""
    counts = f"{now.checkpoints_completed} completed, {now.checkpoints_failed} failed"
    found = {
        "acknowledged": f"{now.acknowledged:,}{of_all} ({now.sent_per_s:,.0f}/s)",
        "output": f"{now.output:,}" + ("" if now.lag is None else f" (lag {now.lag:,})"),
    }
    if now.checkpoints_completed or now.checkpoints_failed:
        found["checkpoints"] = counts
    if now.restarts:
        found["job restarts"] = str(now.restarts)
    if now.active:
        found["in effect"] = "; ".join(now.active)
    return found


class PlainView:
    """One line for every change, and one with the figures about every ten seconds."""

    def __init__(self, write: Callable[[str], None], clock: Clock) -> None:
        self._write = write
        self._clock = clock
        self._now = Figures()
        self._progress_s = 0.0

    def phase(self, name: str, detail: str) -> None:
        self._line(name + (f": {detail}" if detail else ""))

    def show_message(self, line: str) -> None:
        self._line(f"  {line}")

    def update(self, now: Figures) -> None:
        before, self._now = self._now, now
        for fault in now.active:
            if fault not in before.active:
                self._line(f"  in effect: {fault}")
        for fault in before.active:
            if fault not in now.active:
                self._line(f"  healed: {fault}")
        if now.acknowledged and now.elapsed_s - self._progress_s >= PROGRESS_EVERY_S:
            self._progress_s = now.elapsed_s
            self._line(
                "  " + ", ".join(f"{name} {message}" for name, message in words(now).items())
            )

    def _line(self, text: str) -> None:
        self._write(f"[{self._clock.now_ns() / 1e9:6.1f} s] {text}")


class LiveView:
    """Phases and lines scroll by; below them a panel with the figures redraws itself."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._clock = clock
        self._now = Figures()
        self._phase = ""
        self._spinner = Spinner("dots")
        self.live = Live(console=console, get_renderable=self._panel, refresh_per_second=8)

    def phase(self, name: str, detail: str) -> None:
        self._phase = name
        text = Text.assemble(self._when(), (name, "bold"), f"  {detail}" if detail else "")
        self.live.console.print(text)

    def show_message(self, line: str) -> None:
        self.live.console.print(Text.assemble(self._when(), f"  {line}"))

    def update(self, now: Figures) -> None:
        self._now = now

    def _when(self) -> tuple[str, str]:
        return (f"{self._clock.now_ns() / 1e9:7.1f} s  ", "dim")

    def _panel(self) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        for name, message in words(self._now).items():
            style = "red" if name == "in effect" else ""
            table.add_row(Text(f"  {name}", style="dim"), Text(message, style=style))
        self._spinner.update(text=Text(f"{self._phase}  {self._clock.now_ns() / 1e9:.0f} s"))
        return Group(self._spinner, table)
