"""What recorded runs tried, for a new exploration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from streamquake.harness.campaign.exploration.guidance import Guidance
from streamquake.harness.campaign.exploration.trial_cells import tried_cells
from streamquake.harness.coverage.recorded_coverage import read_hits, runs_below
from streamquake.harness.verdict.recorded_run import recorded_experiment
from streamquake.topologies.errors import StreamquakeError


def learn_from_runs(
    guidance: Guidance, folders: Sequence[Path], show_message: Callable[[str], None]
) -> None:
    """Count what the runs of some folders tried. A record that cannot be read is named."""
    for folder in runs_below(folders):
        try:
            experiment, results = recorded_experiment(folder), folder.read_results()
            _, hits = read_hits(folder)
        except (StreamquakeError, OSError, ValueError) as error:
            show_message(f"left out: {folder.path}: {error}")
            continue
        guidance.count((), tried_cells(experiment, results.faults, hits).all)
