"""The run folder: all files of one run.

    runs/latest -> 20261121-031500-4f3a
    runs/20261121-031500-4f3a/
        run.json  history.jsonl  intents.jsonl  metrics.parquet  results.json
        report.html  junit.xml  logs/<node>/  data/<output>/

`run.json` is the manifest: the plan as plain data, the seed, versions, image ids, argv. Every file
has a schema version. `run.json` and `results.json` are replaced atomically.
"""

from __future__ import annotations

import difflib
import json
import os
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamquake.reports.record import atomic_files
from streamquake.reports.record.record_json import loads
from streamquake.reports.record.results import RUN_ID, Results
from streamquake.reports.record.secret_settings import hide_secrets
from streamquake.topologies.named_files import is_file, shorten
from streamquake.topologies.problems import bad_input

MANIFEST_SCHEMA = 1
LATEST = "latest"
PRIVATE = 0o600
MAX_SIMILAR = 3
"""How many similar names an error lists."""


def new_run_id() -> str:
    """A new run id: unique, sorted by time, and valid as part of a host name."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = path / "run.json"
        self.history = path / "history.jsonl"
        self.intents = path / "intents.jsonl"
        self.metrics = path / "metrics.parquet"
        self.results = path / "results.json"
        self.report = path / "report.html"
        self.junit = path / "junit.xml"
        self.logs = path / "logs"
        self.data = path / "data"

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def results_id(self) -> str:
        """The run's id in its results: the folder's name, or, where that is no id, the one in the
        manifest."""
        if RUN_ID.fullmatch(self.run_id):
            return self.run_id
        return self._recorded_id() or self.run_id

    @classmethod
    def create(cls, out: Path, run_id: str) -> RunFolder:
        """Create the folder of a new run and point `latest` to it.

        Raises FileExistsError when a run of this name exists.
        """
        folder = cls(out / run_id)
        folder.path.mkdir(parents=True)
        folder.logs.mkdir()
        folder.data.mkdir()
        atomic_files.point_symlink(out / LATEST, run_id)
        return folder

    @classmethod
    def open(cls, out: Path, name_or_path: str) -> RunFolder:
        """A run by its path, its id, a prefix that only one run has, or `latest`.

        Raises BadInput, with the runs of similar names, where there is not exactly one, and for a
        folder with a symbolic link to a place outside of it, a pipe or a device.
        """
        runs = {folder.run_id: folder for folder in list_runs(out)}
        for path in (Path(name_or_path), out / name_or_path):
            if name_or_path and is_file(path / "run.json"):
                return cls(path.resolve()).with_files_only()
        matching = [name for name in runs if name_or_path and name.startswith(name_or_path)]
        if len(matching) == 1:
            return runs[matching[0]].with_files_only()
        raise bad_input(str(out), _not_one(name_or_path, matching, runs))

    def with_files_only(self) -> RunFolder:
        """The folder, if no symbolic link below it leads out of it, and everything else is a file
        or a folder: a record may be from an untrusted source, and the end of a pipe may never come.
        Raises BadInput."""
        top = self.path.resolve()
        for place, folders, files in os.walk(top):
            for path in (Path(place, name) for name in (*folders, *files)):
                if path.is_symlink() and not _leads_into(path, top):
                    message = "a symbolic link leads out of the run's folder, or nowhere; remove it"
                    raise bad_input(str(path), message)
                if path.exists() and not path.is_dir() and not path.is_file():
                    message = "expected a file or a folder, found a pipe, socket or device"
                    raise bad_input(str(path), f"{message}; remove it")
        return self

    def write_manifest(self, document: Mapping[str, Any]) -> None:
        """Write run.json with the schema version and without secrets. Only the manifest of an
        interactive cluster keeps its secrets, since its nodes may have to be created again; no
        other user may read it."""
        interactive = bool(document.get("by_hand"))
        whole = {"schema": MANIFEST_SCHEMA, **(document if interactive else hide_secrets(document))}
        text = json.dumps(whole, indent=2, default=str) + "\n"
        atomic_files.write_text(self.manifest, text, mode=PRIVATE if interactive else None)

    def read_manifest(self) -> dict[str, Any]:
        """Raises ValueError for another schema, FileNotFoundError where there is no manifest."""
        document = _read_object(self.manifest)
        seen = document.get("schema")
        if seen != MANIFEST_SCHEMA:
            raise ValueError(f"{self.manifest}: schema {seen}, expected {MANIFEST_SCHEMA}")
        return document

    def write_results(self, results: Results) -> None:
        """Write results.json."""
        text = json.dumps(hide_secrets(results.to_json()), indent=2, default=str)
        atomic_files.write_text(self.results, text + "\n")

    def read_results(self) -> Results:
        """Raises ValueError for another schema and for the results of another run,
        FileNotFoundError for a run not judged yet."""
        document = _read_object(self.results)
        try:
            results = Results.from_json(document)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{self.results}: not results of a run: {error}") from error
        if results.run_id not in (self.run_id, self._recorded_id()):
            raise ValueError(f"{self.results}: results of another run, {results.run_id}")
        return results

    def _recorded_id(self) -> str | None:
        """The run's id in its manifest: the folder may have been renamed since. None where the
        manifest does not have it."""
        try:
            return str(self.read_manifest()["run_id"])
        except (OSError, ValueError, LookupError):
            return None


def _leads_into(link: Path, top: Path) -> bool:
    try:
        return link.resolve().is_relative_to(top)
    except (OSError, RuntimeError):  # a link to itself
        return False


def _read_object(path: Path) -> dict[str, Any]:
    if path.exists() and not path.is_file():
        raise ValueError(f"{path}: expected a file")
    try:
        document = loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ValueError(f"{path}: expected an object, found {type(document).__name__}")
    return document


def list_runs(out: Path) -> tuple[RunFolder, ...]:
    """Every run below `out` that has a manifest, newest first."""
    if not out.is_dir():
        return ()
    found = (
        RunFolder(Path(entry.path))
        for entry in os.scandir(out)
        if entry.name != LATEST and (Path(entry.path) / "run.json").is_file()
    )
    return tuple(sorted(found, key=lambda folder: folder.run_id, reverse=True))


def _not_one(wanted: str, matching: list[str], runs: Mapping[str, RunFolder]) -> str:
    if matching:
        listed = ", ".join(matching[:MAX_SIMILAR]) + (", …" if len(matching) > MAX_SIMILAR else "")
        return f'{len(matching)} runs begin with "{wanted}": {listed}; give more of the name'
    if not runs:
        return f'no run is called "{wanted}": there are no runs here; another folder is `--out DIR`'
    wanted = shorten(wanted)
    similar = (
        difflib.get_close_matches(wanted, runs, n=MAX_SIMILAR, cutoff=0.5)
        or list(runs)[:MAX_SIMILAR]
    )
    known = ", ".join(similar)
    return f'no run is called "{wanted}"; similar or newest: {known}; all: `streamquake list runs`'
