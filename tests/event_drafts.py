"""Compares the events that a part of the harness writes with the fields of their classes."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from streamquake.reports.record.event import EVENT_CLASSES, Event, EventDraft
from streamquake.reports.record.event_field import EventField


def field_names(kind: type[Event]) -> set[str]:
    """The names of a class's fields in the record."""
    return {each.name for _, each in inspect.getmembers(kind) if isinstance(each, EventField)}


def undeclared_fields(drafts: Iterable[EventDraft]) -> list[str]:
    """The fields of drafts that the class of their action does not have, as "ACTION: FIELD"."""
    return sorted(
        {
            f"{draft.action}: {name}"
            for draft in drafts
            for name in draft.value.keys() - field_names(EVENT_CLASSES[draft.action])
        }
    )
