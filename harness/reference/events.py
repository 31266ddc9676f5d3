"""The events of a run's history."""

from __future__ import annotations

import inspect

from streamquake.harness.reference.markdown import GENERATED, attribute_docs, wrapped
from streamquake.reports.record.event import EVENT_CLASSES, Action, Event, Kind
from streamquake.reports.record.event_field import EventField

COMMON = attribute_docs(Event)
"""The fields of every event."""
HEAD = f"""# Events of the history

`history.jsonl` of a run's folder holds all events of the run in one order, one event a line:
`index`, `at_ns` (nanoseconds since the run began, when it was observed), `process` (which observed
it), `kind` ({", ".join(f"`{kind}`" for kind in Kind)}), `action`, `value` and `error`. The first
line is the schema's version.

Each section below is named after an `action` and lists the fields of `value`; records of older
versions may lack fields. A trigger can wait for an action:
`when: {{event: checkpoint triggered, nth: 3}}`.

{GENERATED}
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(_section(action, EVENT_CLASSES[action]) for action in Action)


def _section(action: Action, kind: type[Event]) -> str:
    docs = attribute_docs(kind)
    fields = "".join(
        wrapped(f"- `{_name(kind, attribute)}`: {doc}", "  ") + "\n"
        for attribute, doc in docs.items()
        if attribute not in COMMON
    )
    return f"\n## {action}\n\n{inspect.getdoc(kind)}\n" + (f"\n{fields}" if fields else "")


def _name(kind: type[Event], attribute: str) -> str:
    """The field's name in the record."""
    field: EventField[object] = getattr(kind, attribute)
    return field.name
