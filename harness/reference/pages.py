"""The reference pages, and the function that generates each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streamquake.harness.reference import checks, events, experiment, faults, settings, topology

PAGES: Mapping[str, Callable[[], str]] = {
    "checks.md": checks.page,
    "events.md": events.page,
    "experiment.md": experiment.page,
    "faults.md": faults.page,
    "settings.md": settings.page,
    "topology.md": topology.page,
}
"""The name of the file in `docs/` -> its text."""
