"""The two views of a run: a panel that redraws itself in a terminal, and plain lines for CI.

They have their own clock, because the run passes no figures while it waits for containers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

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
def open_view(*, plain: bool = False, stream: TextIO | None = None) -> Iterator[View]:
    """The view for a stream, the standard output unless given, closed at the end of the block:
    plain lines if `plain` is set, in CI, and without a terminal; otherwise a panel."""
    stream = stream or sys.stdout
    if plain or os.environ.get("CI") or not stream.isatty():
        yield PlainView(lambda line: print(escaped(line), file=stream, flush=True), SystemClock())
        return
    view = LiveView(TerminalConsole(file=stream), SystemClock())
    with view.live:
        yield view


def labelled_figures(now: Figures) -> dict[str, str]:
    """Label -> figure as text; figures that are zero or unknown are left out."""
    total = f" of {now.wanted:,}" if now.wanted else ""
    counts = f"{now.checkpoints_completed} completed, {now.checkpoints_failed} failed"
    figures = {
        "acknowledged": f"{now.acknowledged:,}{total} ({now.sent_per_s:,.0f}/s)",
        "output": f"{now.output:,}" + ("" if now.lag is None else f" (lag {now.lag:,})"),
    }
    if now.checkpoints_completed or now.checkpoints_failed:
        figures["checkpoints"] = counts
    if now.restarts:
        figures["job restarts"] = str(now.restarts)
    if now.active:
        figures["in effect"] = "; ".join(now.active)
    return figures


class PlainView:
    """Prints one line for every change, and a line with the figures about every ten seconds."""

    def __init__(self, write: Callable[[str], None], clock: Clock) -> None:
        self._write = write
        self._clock = clock
        self._now = Figures()
        self._progress_s = 0.0

    def phase(self, name: str, detail: str) -> None:
        self._write_line(name + (f": {detail}" if detail else ""))

    def show_message(self, line: str) -> None:
        self._write_line(f"  {line}")

    def update(self, now: Figures) -> None:
        before, self._now = self._now, now
        for fault in now.active:
            if fault not in before.active:
                self._write_line(f"  in effect: {fault}")
        for fault in before.active:
            if fault not in now.active:
                self._write_line(f"  healed: {fault}")
        if now.acknowledged and now.elapsed_s - self._progress_s >= PROGRESS_EVERY_S:
            self._progress_s = now.elapsed_s
            self._write_line(
                "  " + ", ".join(f"{name} {value}" for name, value in labelled_figures(now).items())
            )

    def _write_line(self, text: str) -> None:
        self._write(f"[{self._clock.now_ns() / 1e9:6.1f} s] {text}")


class LiveView:
    """Prints phases and messages line by line, above a panel that redraws the figures."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._clock = clock
        self._now = Figures()
        self._phase = ""
        self._spinner = Spinner("dots")
        self.live = Live(console=console, get_renderable=self._panel, refresh_per_second=8)

    def phase(self, name: str, detail: str) -> None:
        self._phase = name
        text = Text.assemble(self._time_label(), (name, "bold"), f"  {detail}" if detail else "")
        self.live.console.print(text)

    def show_message(self, line: str) -> None:
        self.live.console.print(Text.assemble(self._time_label(), f"  {line}"))

    def update(self, now: Figures) -> None:
        self._now = now

    def _time_label(self) -> tuple[str, str]:
        return (f"{self._clock.now_ns() / 1e9:7.1f} s  ", "dim")

    def _panel(self) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        for name, value in labelled_figures(self._now).items():
            style = "red" if name == "in effect" else ""
            table.add_row(Text(f"  {name}", style="dim"), Text(value, style=style))
        self._spinner.update(text=Text(f"{self._phase}  {self._clock.now_ns() / 1e9:.0f} s"))
        return Group(self._spinner, table)
