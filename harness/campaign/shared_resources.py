"""The resources that consecutive runs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.runtime import ContainerRuntime
from streamquake.harness.run.progress import View


@dataclass(frozen=True, kw_only=True)
class SharedResources:
    """The output folder, container runtime, clock and view that the runs share."""

    out: Path
    argv: Sequence[str]
    again: str
    """The command that repeats all the runs."""
    runtime: ContainerRuntime
    clock: Clock
    view: View
    show_message: Callable[[str], None]
    """Shows the progress of the runs, a line at a time."""
    master: str = "local[*]"
