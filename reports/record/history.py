"""The history: one ordered, append-only stream of events, kept as JSON lines.

The first line of the file is a header with the schema version. The writer is owned by one loop and
flushes every event, so a crash loses nothing that was written; a reader accepts a file whose last
line is cut off.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, overload

from streamquake.reports.record.event import Action, Event, EventDraft, Kind
from streamquake.reports.record.event_fields import field_problem, is_moment
from streamquake.reports.record.record_json import is_schema, loads
from streamquake.reports.record.secret_settings import hidden

SCHEMA = 1


class History(Sequence[Event]):
    """An immutable sequence of events."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events = tuple(events)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        return self._events[index]

    def __len__(self) -> int:
        return len(self._events)

    def of(self, *actions: Action) -> tuple[Event, ...]:
        """The events with one of these actions, in order."""
        return tuple(event for event in self._events if event.action in actions)

    def first(self, *actions: Action, after_ns: int = 0) -> Event | None:
        """The first event with one of these actions at or after a moment, or None."""
        found = (e for e in self._events if e.action in actions and e.at_ns >= after_ns)
        return min(found, key=lambda event: event.at_ns, default=None)


class HistoryWriter:
    """Appends events to a file; the only writer of a history."""

    def __init__(self, path: Path) -> None:
        self._events: list[Event] = []
        self._file: IO[str] = path.open("x", encoding="utf-8")
        self._write({"schema": SCHEMA})

    def append(self, note: EventDraft) -> Event:
        """Give the note its place, write it, and return the event."""
        fields = {f.name: getattr(note, f.name) for f in dataclasses.fields(EventDraft)}
        event = Event(index=len(self._events), **fields)
        self._events.append(event)
        self._write(hidden(dataclasses.asdict(event)))
        return event

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def so_far(self) -> History:
        return History(self._events)

    def close(self) -> None:
        self._file.close()

    def _write(self, document: dict[str, object]) -> None:
        self._file.write(json.dumps(document, default=str) + "\n")
        self._file.flush()


def read_history(path: Path) -> History:
    """Read a history file; a last line without its end (a crash) is left out.

    Raises ValueError when the file is no history, has another schema, or is damaged elsewhere,
    FileNotFoundError where there is none.
    """
    history, damage = read_so_far(path)
    if damage:
        raise ValueError(damage)
    return history


def read_so_far(path: Path) -> tuple[History, str]:
    """The events of a history up to its first damage, and what the damage is; nothing where there
    is none. For a record that is judged by what is left of it. Raises FileNotFoundError."""
    header, *lines = path.read_bytes().split(b"\n")
    if not lines or not _is_header(header):
        return History(), f"{path}: not a history of schema {SCHEMA}"
    events: list[Event] = []
    try:
        for place, line in enumerate(lines[:-1]):
            events.append(_event(path, place, line))
    except ValueError as error:
        return History(events), str(error)
    return History(events), ""


def _is_header(line: bytes) -> bool:
    try:
        return is_schema(loads(line.decode("utf-8"))["schema"], SCHEMA)
    except (ValueError, KeyError, TypeError):
        return False


def _event(path: Path, place: int, line: bytes) -> Event:
    try:
        document = loads(line.decode("utf-8"))
        fields = {"kind": Kind(document["kind"]), "action": Action(document["action"])}
        event = Event(**{**document, **fields})
        if not is_moment(event.at_ns) or not isinstance(event.value, dict):
            raise TypeError("expected `at_ns` a whole number and `value` an object")
        if not isinstance(event.process, str) or not isinstance(event.error, str | None):
            raise TypeError("expected `process` and `error` to be texts")
        if problem := field_problem(event.value):
            raise TypeError(problem)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path}:{place + 2}: not an event: {error}") from error
    if event.index != place:
        raise ValueError(f"{path}:{place + 2}: expected event {place}, found event {event.index}")
    return event
