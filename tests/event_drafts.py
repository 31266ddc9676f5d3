"""What a part wrote to the history, held against the classes that its readers read it by."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from streamquake.reports.record.event import EVENT_CLASSES, Event, EventDraft
from streamquake.reports.record.event_field import EventField


def field_names(kind: type[Event]) -> set[str]:
    """The names in the record."""
    return {each.name for _, each in inspect.getmembers(kind) if isinstance(each, EventField)}


def undeclared_fields(drafts: Iterable[EventDraft]) -> list[str]:
    """The fields that the class of their action does not have."""
    return sorted(
        {
            f"{draft.action}: {name}"
            for draft in drafts
            for name in draft.value.keys() - field_names(EVENT_CLASSES[draft.action])
        }
    )
