"""Recorded runs that a suite reuses instead of running them again.

A recorded run replaces a planned one when it completed, is young enough, its experiment is equal in
all but the description and the seed (repeats differ in their seeds), it used the same program,
releases and images, and it was judged by every check. A record that changed since it was judged has
no verdict; one that another judge judged is judged again. So an interrupted suite continues where
it stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from streamquake.cluster.images.store import ImageStore
from streamquake.harness.campaign.suite.todays_key import todays_key
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.versions import judge_digest
from streamquake.harness.verdict.judge import checks_of
from streamquake.reports.record.outcome import worst
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder, list_runs
from streamquake.reports.store.stored_run import key_of


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A completed run of a folder."""

    folder: RunFolder
    key: str
    results: Results

    @property
    def is_judged_today(self) -> bool:
        """Whether the judge of today judged it."""
        return self.results.judge == judge_digest()


class RecordedRuns:
    """The completed runs of a folder, each used once, the oldest first."""

    def __init__(self, out: Path, images: ImageStore, *, since: datetime) -> None:
        """`images` are the images of today; runs that began before `since` are too old."""
        self._images = images
        self._unused: list[RecordedRun] = []
        self.changed: list[str] = []
        """The runs whose record is newer than their results."""
        self.too_old = 0
        """How many completed runs began too long ago."""
        for folder, started_at, key, results in _completed(out):
            if started_at < since:
                self.too_old += 1
            elif _is_newer(folder):
                self.changed.append(folder.run_id)
            else:
                self._unused.append(RecordedRun(folder=folder, key=key, results=results))

    def __len__(self) -> int:
        return len(self._unused)

    def take(self, experiment: Experiment) -> RecordedRun | None:
        """An unused run of this experiment on the software of today; None where there is none."""
        wanted = todays_key(experiment, self._images)
        checks = {check.title for check in checks_of(experiment)}
        for index, recorded in enumerate(self._unused):
            judged = {result.check for result in recorded.results.checks}
            if recorded.key == wanted and checks <= judged:
                return self._unused.pop(index)
        return None


def _is_newer(folder: RunFolder) -> bool:
    """Whether a file that checks read was written after the results, or was removed."""
    judged_ns = folder.results.stat().st_mtime_ns
    parts = (folder.history, folder.metrics, *folder.data.rglob("*"))
    return any(not part.exists() or part.stat().st_mtime_ns > judged_ns for part in parts)


def _completed(out: Path) -> Iterator[tuple[RunFolder, datetime, str, Results]]:
    """The completed runs, without those that cannot be read or whose outcome is better than that of
    their checks."""
    for folder in reversed(list_runs(out)):
        try:
            results = folder.read_results()
            manifest = folder.read_manifest()
            started_at = datetime.fromisoformat(manifest["started_at"])
            key = key_of(manifest)
        except (ValueError, KeyError, TypeError, AttributeError, FileNotFoundError):
            continue
        judged = worst(check.outcome for check in results.checks)
        if results.ended == "completed" and results.outcome >= judged:
            yield folder, started_at, key, results
