"""The type of each field of an event. A history with a text in place of a number is damaged.

A check could compare such a value and find no problem. A field's name has one type in all events;
the few names for which this is not so are not listed here. No field is required here, since records
of older versions may lack fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

LARGEST = 2**63
"""No clock, offset or size of a run is larger; readers use integers of eight bytes."""
PLACES = ("attempt", "subtask", "first", "last", "count", "at_record")
"""Whole numbers that are always known and never negative."""
SIGNED = ("step", "checkpoint", "called_ns", "acknowledged")
"""Whole numbers that are always known; a query's checkpoint is -1 where it has none. A null is
damage; it differs from a field that an older version did not record."""
WHOLE = (
    "acknowledged_until_ns",
    "due_ns",
    "end",
    "exit_code",
    "grown",
    "in_place_ns",
    "last_seen_ns",
    "restart",
    "seen_ns",
    "times",
    "trigger_index",
)
"""Whole numbers, null where they are not known."""
NUMBERS = (
    "ack_ms",
    "alignment_ms",
    "async_ms",
    "checkpointed_bytes",
    "duration_ms",
    "ended_ms",
    "failed_ms",
    "first_ack_ms",
    "initializing_ms",
    "last_ack_ms",
    "lateness_ms",
    "persisted_bytes",
    "processed_bytes",
    "restarting_ms",
    "restored_at_ms",
    "start_delay_ms",
    "start_ms",
    "state_bytes",
    "step_ms",
    "submitted_ms",
    "sync_ms",
    "trigger_ms",
    "asked_ms",
)
"""Numbers, null where they are not known."""
NAMES = ("check", "fault", "job", "output", "phase", "state", "target", "vertex")
"""Texts that are always known."""
TEXTS = ("cause", "node", "path", "reason", "task_name", "type", "vertex_name")
"""Texts, null where they are not known."""
LISTS = (
    "argv",
    "edges",
    "last_errors",
    "last_lines",
    "nodes",
    "regions",
    "transactions",
    "vertices",
)
STATUSES = ("acknowledged", "failed", "unknown")
"""The values of `status`, that of sent records."""
INTERVALS = ("pauses_ns", "ranges")
"""Lists of pairs of whole numbers."""
PARTS = ("sent_by",)
"""Lists of triples of whole numbers."""
OBJECTS = ("config", "evidence", "files", "params")
"""Lists, intervals and objects are empty where there is nothing, never null."""


def field_problem(value: Mapping[str, Any]) -> str:
    """The field of an event with a value of the wrong type, as a message; empty where there is
    none."""
    if (status := value.get("status", STATUSES[0])) not in STATUSES:
        return f"expected `status` to be one of {', '.join(STATUSES)}, got {status}"
    for name, held in value.items():
        expected = _EXPECTED.get(name)
        if expected is not None and not _is(expected, held, nullable=name not in _KNOWN):
            return f"expected `{name}` to be {expected}"
    return ""


def is_moment(value: Any) -> bool:
    """Whether a value can be a time on the run's clock, in nanoseconds."""
    return type(value) is int and 0 <= value < LARGEST


_A_PLACE, _A_WHOLE = "a whole number of at least 0", "a whole number"
_A_NUMBER, _A_TEXT = "a number", "a text"
_A_LIST, _AN_OBJECT = "a list", "an object"
_INTERVALS = "a list of pairs of whole numbers of at least 0"
_PARTS = "a list of triples of whole numbers of at least 0"
_EXPECTED = {
    **dict.fromkeys(PLACES, _A_PLACE),
    **dict.fromkeys((*SIGNED, *WHOLE), _A_WHOLE),
    **dict.fromkeys(NUMBERS, _A_NUMBER),
    **dict.fromkeys((*NAMES, *TEXTS), _A_TEXT),
    **dict.fromkeys(LISTS, _A_LIST),
    **dict.fromkeys(INTERVALS, _INTERVALS),
    **dict.fromkeys(PARTS, _PARTS),
    **dict.fromkeys(OBJECTS, _AN_OBJECT),
}
_KNOWN = frozenset((*PLACES, *SIGNED, *NAMES, *LISTS, *INTERVALS, *PARTS, *OBJECTS))


def _is(expected: str, held: Any, *, nullable: bool) -> bool:
    if held is None:
        return nullable
    match expected:
        case "a whole number of at least 0":
            return type(held) is int and 0 <= held < LARGEST
        case "a whole number":
            return type(held) is int and abs(held) < LARGEST
        case "a number":
            return type(held) in (int, float) and abs(held) < LARGEST and isfinite(held)
        case "a text":
            return isinstance(held, str)
        case "a list":
            return isinstance(held, list)
        case "a list of pairs of whole numbers of at least 0":
            return isinstance(held, list) and all(_are_moments(each, 2) for each in held)
        case "a list of triples of whole numbers of at least 0":
            return isinstance(held, list) and all(_are_moments(each, 3) for each in held)
        case _:
            return isinstance(held, dict)


def _are_moments(held: Any, count: int) -> bool:
    return isinstance(held, list) and len(held) == count and all(map(is_moment, held))
