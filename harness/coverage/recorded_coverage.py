"""Coverage of recorded runs: reads the records of folders, and adds up what each one hit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from streamquake.harness.coverage.hits import hits_of
from streamquake.harness.coverage.possible_cells import possible_cells
from streamquake.harness.verdict.recorded_run import DAMAGED, recorded_experiment
from streamquake.reports.coverage.coverage import Coverage
from streamquake.reports.coverage.hit import CoveredRun, Hit
from streamquake.reports.record.history import read_history
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder, list_runs
from streamquake.reports.store.stored_run import AS_EXPECTED
from streamquake.topologies.errors import ErrorKind, StreamquakeError


class RecordUnreadable(StreamquakeError):
    """A record that cannot be counted."""

    kind = ErrorKind.BAD_INPUT


def coverage_of(runs: Sequence[RunFolder]) -> Coverage:
    """The coverage of these runs. A record that cannot be read is left out, with its reason."""
    covered: list[CoveredRun] = []
    hits: list[Hit] = []
    problems: list[str] = []
    for folder in runs:
        try:
            run, own = read_hits(folder)
        except StreamquakeError as error:
            problems.append(str(error))
            continue
        covered.append(run)
        hits += own
    return Coverage(
        runs=tuple(covered),
        hits=tuple(hits),
        possible=possible_cells(),
        problems=tuple(problems),
    )


def read_hits(folder: RunFolder) -> tuple[CoveredRun, tuple[Hit, ...]]:
    """One run, and what it hit. Raises StreamquakeError where its record cannot be read, is
    damaged, or was not judged."""
    experiment = recorded_experiment(folder.with_files_only())
    try:
        run = _covered(folder, folder.read_results())
        return run, hits_of(run, experiment, read_history(folder.history))
    except FileNotFoundError as error:
        missing = Path(error.filename or "").name
        raise RecordUnreadable(
            f"{folder.path}: expected a {missing}, and there is none; "
            f"to judge a run: streamquake check {folder.path}"
        ) from error
    except DAMAGED as error:
        text = str(error).replace(f"{folder.path}/", "")
        raise RecordUnreadable(f"{folder.path}: {type(error).__name__}: {text}") from error


def runs_below(folders: Sequence[Path]) -> Iterator[RunFolder]:
    """The runs of folders, each once, the oldest first; a folder may also be a run itself."""
    found: dict[Path, RunFolder] = {}
    for folder in folders:
        own = RunFolder(folder)
        for run in (own,) if own.manifest.is_file() else list_runs(folder):
            found[run.path.resolve()] = run
    yield from sorted(found.values(), key=lambda run: run.run_id)


def _covered(folder: RunFolder, results: Results) -> CoveredRun:
    return CoveredRun(
        run_id=results.run_id,
        experiment=results.experiment,
        folder=folder.path,
        outcome=str(results.outcome),
        as_expected=AS_EXPECTED[str(results.met)],
    )
