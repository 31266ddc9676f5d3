"""The database of the runs of a folder: `results.sqlite`, beside the runs.

It is an index: the run folders are the record, and `rebuild` reads them again. A run stays in it
when its folder is pruned. Several processes may add runs at the same time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from streamquake.reports.record.record_json import loads
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder, list_runs
from streamquake.reports.store.stored_run import StoredRun
from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.problems import bad_input

FILE = "results.sqlite"
SCHEMA = 1
"""The version of the table, in the database's `user_version`."""
WAIT_S = 30.0
"""How long to wait for another process that writes."""
COLUMNS = tuple(field.name for field in fields(StoredRun))
JSON_COLUMNS = ("machine", "versions", "images", "figures")
READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}
"""What a condition may do."""


class StoreUnreadable(StreamquakeError):
    """The database cannot be read or written."""

    kind = ErrorKind.BAD_INPUT


class ResultsStore:
    """The database of one folder."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.path = out / FILE

    def add(self, folder: RunFolder, results: Results) -> None:
        """Add a run, or replace it. Raises StoreUnreadable, ValueError or KeyError for a damaged
        manifest, FileNotFoundError without one."""
        self._add([StoredRun.of(folder.read_manifest(), results)])

    def rebuild(self) -> list[str]:
        """Add every judged run of the folder; returns why others were left out. Raises
        StoreUnreadable."""
        runs, problems = [], []
        for folder in list_runs(self.out):
            try:
                runs.append(StoredRun.of(folder.read_manifest(), folder.read_results()))
            except FileNotFoundError:
                problems.append(f"{folder.run_id}: it was not judged")
            except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
                problems.append(f"{folder.run_id}: {_reason(error)}")
        self._add(runs)
        return problems

    def runs(self, *, where: str = "", since: str = "") -> list[StoredRun]:
        """The runs that began at `since` or later (an ISO time in UTC) and fulfil a condition of
        SQLite over the columns of `StoredRun`, the oldest first. `get(figures, NAME)` is an entry
        of a column that is a mapping. Raises BadInput for another condition, StoreUnreadable."""
        if not self.path.exists():
            return []
        condition = f"({where}\n)" if where.strip() else "1"
        query = f"SELECT * FROM runs WHERE started_at >= ? AND {condition} ORDER BY run_id"
        with self._connection() as connection:
            connection.create_function("get", 2, _get, deterministic=True)
            connection.set_authorizer(_only_reading)
            try:
                rows = connection.execute(query, (since,)).fetchall()
            except (sqlite3.DatabaseError, UnicodeEncodeError) as error:
                if not where:
                    raise
                known = ", ".join(COLUMNS)
                message = f"{error}; expected a condition of SQLite over {known}"
                raise bad_input("--where", message) from error
        try:
            return [_run_of(row) for row in rows]
        except ValueError as error:
            raise StoreUnreadable(
                f"{self.path}: a row is damaged ({_reason(error)}); remove the file "
                "and make it again: streamquake results --rebuild"
            ) from error

    def _add(self, runs: Sequence[StoredRun]) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        places = ", ".join("?" * len(COLUMNS))
        with self._connection() as connection, connection:
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS runs ({', '.join(COLUMNS)}, PRIMARY KEY (run_id))"
            )
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
            connection.executemany(
                f"INSERT OR REPLACE INTO runs ({', '.join(COLUMNS)}) VALUES ({places})",
                [_row_of(run) for run in runs],
            )

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Raises StoreUnreadable for errors of the database, and for one of a later version."""
        try:
            with closing(sqlite3.connect(self.path, timeout=WAIT_S)) as connection:
                connection.row_factory = sqlite3.Row
                seen = connection.execute("PRAGMA user_version").fetchone()[0]
                if seen not in (0, SCHEMA):
                    raise StoreUnreadable(f"{self.path}: schema {seen}, expected {SCHEMA}")
                yield connection
        except sqlite3.Error as error:
            message = f"{self.path}: {error}; remove it and make it again: streamquake results"
            raise StoreUnreadable(f"{message} --rebuild") from error


def _get(document: str | None, name: str | None) -> float | str | None:
    """The entry of a mapping in JSON; null without it."""
    value: float | str | None = json.loads(document or "{}").get(name)
    return value


def _only_reading(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY


def _row_of(run: StoredRun) -> list[Any]:
    values = asdict(run)
    return [
        json.dumps(values[name], sort_keys=True) if name in JSON_COLUMNS else values[name]
        for name in COLUMNS
    ]


def _run_of(row: sqlite3.Row) -> StoredRun:
    """The run of a row. Raises ValueError with the damaged column."""
    values = {name: row[name] for name in COLUMNS if name in row.keys()}  # noqa: SIM118 - no dict
    for name in JSON_COLUMNS:
        try:
            values[name] = loads(values[name])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{name}: {error}") from error
    return StoredRun(**values)


def _reason(error: Exception) -> str:
    """A message of one line; for a run with values of other types the first of them."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
