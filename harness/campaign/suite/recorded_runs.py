"""Runs that are there already: what a suite need not make again.

A recorded run stands for a planned one when it came to its end, its experiment is the same in all
but the words of its description and the seed, which is what repeats differ in, and it was made and
judged as it would be today: with the same program, releases and images, by every check. A record
that was written to since it was judged has no verdict. So a suite that was interrupted goes on
where it was, and the nights' runs of one claim add up.
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
from streamquake.reports.record.secret_settings import hidden

APART = ("seed", "description")
"""What may differ."""


class RecordedRuns:
    """The completed runs of a folder, each given away once, the oldest first."""

    def __init__(self, out: Path) -> None:
        self._left: list[tuple[Any, Results]] = []
        self.changed: list[str] = []
        """The runs whose record is newer than their results."""
        for folder, recorded, results in _completed(out):
            if _is_newer(folder):
                self.changed.append(folder.run_id)
            else:
                self._left.append((recorded, results))

    def __len__(self) -> int:
        return len(self._left)

    def take(self, experiment: Experiment) -> Results | None:
        """The results of a run of this experiment that nobody has taken; None without one."""
        document = {
            "experiment": experiment_document(experiment),
            **version_manifest(experiment.topology),
        }
        wanted = _recorded(document)
        checks = {check.name for check in checks_of(experiment)}
        for at, (recorded, results) in enumerate(self._left):
            if recorded == wanted and checks <= {each.check for each in results.checks}:
                del self._left[at]
                return results
        return None


def _is_newer(folder: RunFolder) -> bool:
    """Whether something that checks read was written after they were made, or is gone."""
    judged_ns = folder.results.stat().st_mtime_ns
    parts = (folder.history, folder.metrics, *folder.data.rglob("*"))
    return any(not part.exists() or part.stat().st_mtime_ns > judged_ns for part in parts)


def _completed(out: Path) -> Iterator[tuple[RunFolder, Any, Results]]:
    """What cannot be read, or says more than its checks did, stands for nothing."""
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
    """What a run is, and what it was made with."""
    return _compared(manifest["experiment"]), manifest["versions"], manifest["images"]


def _compared(document: Mapping[str, Any]) -> Any:
    return _given({key: value for key, value in hidden(document).items() if key not in APART})


def _given(value: Any) -> Any:
    """Without what is empty, so that a setting which a later version added, and which nobody gave,
    is no difference."""
    if isinstance(value, Mapping):
        parts = {key: _given(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part not in (None, {}, [], "")}
    return [_given(part) for part in value] if isinstance(value, list | tuple) else value
