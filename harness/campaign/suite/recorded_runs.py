"""Recorded runs that a suite reuses instead of running them again.

A recorded run replaces a planned one when it completed, its experiment is equal in all but the
description and the seed (repeats differ in their seeds), it used the same program, releases and
images, and it was judged by every check. A record that changed since it was judged has no verdict.
So an interrupted suite continues where it stopped, and the nightly runs of one claim add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from streamquake.harness.experiment.loader import experiment_document
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.versions import version_manifest
from streamquake.harness.verdict.judge import checks_of
from streamquake.reports.record.outcome import worst
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder, list_runs
from streamquake.reports.record.secret_settings import hide_secrets

IGNORED_KEYS = ("seed", "description")
"""The keys of an experiment that are not compared."""


class RecordedRuns:
    """The completed runs of a folder, each used once, the oldest first."""

    def __init__(self, out: Path) -> None:
        self._unused: list[tuple[Any, Results]] = []
        self.changed: list[str] = []
        """The runs whose record is newer than their results."""
        for folder, recorded, results in _completed(out):
            if _is_newer(folder):
                self.changed.append(folder.run_id)
            else:
                self._unused.append((recorded, results))

    def __len__(self) -> int:
        return len(self._unused)

    def take(self, experiment: Experiment) -> Results | None:
        """The results of an unused run of this experiment; None where there is none."""
        document = {
            "experiment": experiment_document(experiment),
            **version_manifest(experiment.topology),
        }
        wanted = _recorded(document)
        checks = {check.name for check in checks_of(experiment)}
        for index, (recorded, results) in enumerate(self._unused):
            if recorded == wanted and checks <= {result.check for result in results.checks}:
                del self._unused[index]
                return results
        return None


def _is_newer(folder: RunFolder) -> bool:
    """Whether a file that checks read was written after the results, or was removed."""
    judged_ns = folder.results.stat().st_mtime_ns
    parts = (folder.history, folder.metrics, *folder.data.rglob("*"))
    return any(not part.exists() or part.stat().st_mtime_ns > judged_ns for part in parts)


def _completed(out: Path) -> Iterator[tuple[RunFolder, Any, Results]]:
    """The completed runs, without those that cannot be read or whose outcome is better than that of
    their checks."""
    for folder in reversed(list_runs(out)):
        try:
            results = folder.read_results()
            recorded = _recorded(folder.read_manifest())
        except (ValueError, KeyError, TypeError, FileNotFoundError):
            continue
        judged = worst(check.outcome for check in results.checks)
        if results.ended == "completed" and results.outcome >= judged:
            yield folder, recorded, results


def _recorded(manifest: Mapping[str, Any]) -> Any:
    """The experiment of a run, its versions and its images."""
    return _compared_keys(manifest["experiment"]), manifest["versions"], manifest["images"]


def _compared_keys(document: Mapping[str, Any]) -> Any:
    return _without_empty(
        {key: value for key, value in hide_secrets(document).items() if key not in IGNORED_KEYS}
    )


def _without_empty(value: Any) -> Any:
    """A value without its empty parts, so that an unset key of a later version is no difference."""
    if isinstance(value, Mapping):
        parts = {key: _without_empty(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part not in (None, {}, [], "")}
    return [_without_empty(part) for part in value] if isinstance(value, list | tuple) else value
