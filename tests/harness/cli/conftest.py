"""Runs without containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.cli import runs
from streamquake.harness.experiment.loader import experiment_document
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run import runner
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Ended, Results
from streamquake.reports.record.run_folder import RunFolder


@pytest.fixture
def fake_runner(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A fake runner. A test sets the outcome in the mapping, and reads the options of the run from
    it; a `message` is shown in its view."""
    settings: dict[str, Any] = {"outcome": Outcome.HELD, "ended": "completed"}

    def run(experiment: Experiment, *, out: Path, **options: Any) -> Results:
        settings.update(options, experiment=experiment)
        if "message" in settings:
            options["view"].show_message(settings["message"])
        folder = RunFolder.create(out, f"20260101-00000{len([*out.glob('2026*')])}-abcd")
        folder.write_manifest(
            {"experiment": experiment_document(experiment), "seed": experiment.seed}
        )
        ended: Ended = settings["ended"]
        results = Results(
            run_id=folder.run_id,
            experiment=experiment.name,
            seed=experiment.seed,
            ended=ended,
            outcome=settings["outcome"],
            cause=settings.get("cause", ""),
            replay=f"streamquake replay {folder.path}",
        )
        folder.write_results(results)
        return results

    monkeypatch.setattr(runner, "run", run)
    monkeypatch.setattr(runs, "hindrances", lambda runtime: settings.get("hindrances", ()))
    return settings
