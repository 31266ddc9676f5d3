"""The history: one ordered, append-only stream of events, stored as JSON lines.

The first line of the file is a header with the schema version. The writer is owned by one loop and
flushes every event, so a crash loses nothing that was written; a reader accepts a file whose last
line is cut off.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, TypeVar, overload

from streamquake.reports.record import checkpoint_events, fault_events, job_events, run_events
from streamquake.reports.record.event import EVENT_CLASSES, Action, Event, EventDraft, Kind
from streamquake.reports.record.record_json import is_schema, loads
from streamquake.reports.record.secret_settings import hide_secrets

SCHEMA = 1
EVENT_MODULES = (checkpoint_events, fault_events, job_events, run_events)
"""Imported here so that the class of every action is registered wherever a history is read."""

E = TypeVar("E", bound=Event)


class History(Sequence[Event]):
    """An immutable sequence of events."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events = tuple(events)

    @cached_property
    def _places(self) -> Mapping[type[Event], Sequence[int]]:
        """Class -> the places of its events. Checks ask for a few classes hundreds of times."""
        places: dict[type[Event], list[int]] = {}
        for place, event in enumerate(self._events):
            places.setdefault(type(event), []).append(place)
        return places

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        return self._events[index]

    def __len__(self) -> int:
        return len(self._events)

    @property
    def ended_ns(self) -> int:
        """The moment of the latest event, which may not be the last one; 0 without events."""
        return max((event.at_ns for event in self._events), default=0)

    @overload
    def of(self, *kinds: type[E]) -> tuple[E, ...]: ...
    @overload
    def of(self, *kinds: Action) -> tuple[Event, ...]: ...
    def of(self, *kinds: type[E] | Action) -> tuple[E, ...] | tuple[Event, ...]:
        """The events of these classes, or with one of these actions, in order."""
        return tuple(self._events[place] for place in self._places_of(kinds))

    def _places_of(self, kinds: Iterable[type[Event] | Action]) -> Sequence[int]:
        wanted = _classes(kinds)
        groups = [places for known, places in self._places.items() if issubclass(known, wanted)]
        return groups[0] if len(groups) == 1 else sorted(chain.from_iterable(groups))

    @overload
    def first(self, *kinds: type[E], after_ns: int = 0) -> E | None: ...
    @overload
    def first(self, *kinds: Action, after_ns: int = 0) -> Event | None: ...
    def first(self, *kinds: type[E] | Action, after_ns: int = 0) -> E | Event | None:
        """The first such event at or after a moment, or None."""
        found = (
            event
            for event in map(self._events.__getitem__, self._places_of(kinds))
            if event.at_ns >= after_ns
        )
        return min(found, key=lambda event: event.at_ns, default=None)


def usual_kind(action: Action) -> Kind:
    """The kind of an action's events, or that of their success where they may have another one."""
    return EVENT_CLASSES[action].kinds[0]


class HistoryWriter:
    """Appends events to a file; the only writer of a history."""

    def __init__(self, path: Path) -> None:
        self._events: list[Event] = []
        self._file: IO[str] = path.open("x", encoding="utf-8")
        self._write({"schema": SCHEMA})

    def append(self, draft: EventDraft) -> Event:
        """Give the draft its index, write it, and return the event."""
        fields = {f.name: getattr(draft, f.name) for f in dataclasses.fields(EventDraft)}
        event = Event(index=len(self._events), **fields)
        self._events.append(event)
        self._write(hide_secrets(event.to_json()))
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

    Raises ValueError when the file is not a history, has another schema, or is damaged elsewhere,
    and FileNotFoundError where it does not exist.
    """
    history, damage = read_so_far(path)
    if damage:
        raise ValueError(damage)
    return history


def read_so_far(path: Path) -> tuple[History, str]:
    """The events of a history up to its first damage, and the damage as a message (empty where
    there is none). A blank line is no event. Used to judge a damaged record by what is left of it.
    Raises FileNotFoundError."""
    header, *lines = path.read_bytes().split(b"\n")
    if not lines or not _is_header(header):
        return History(), f"{path}: not a history of schema {SCHEMA}"
    events: list[Event] = []
    try:
        for number, line in enumerate(lines[:-1], start=2):
            if line.strip():
                events.append(_event(f"{path}:{number}", len(events), line))
    except ValueError as error:
        return History(events), str(error)
    return History(events), ""


def _is_header(line: bytes) -> bool:
    try:
        return is_schema(loads(line.decode("utf-8"))["schema"], SCHEMA)
    except (ValueError, KeyError, TypeError):
        return False


def _event(place: str, index: int, line: bytes) -> Event:
    try:
        event = Event.from_json(loads(line.decode("utf-8")))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{place}: not an event: {error}") from error
    if event.index != index:
        raise ValueError(f"{place}: expected event {index}, found event {event.index}")
    return event


def _classes(kinds: Iterable[type[Event] | Action]) -> tuple[type[Event], ...]:
    return tuple(EVENT_CLASSES[kind] if isinstance(kind, Action) else kind for kind in kinds)
