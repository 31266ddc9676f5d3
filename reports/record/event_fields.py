"""The type of each field of an event. A history with a text in place of a number is damaged.

A check could compare such a value and find no problem. A field's name has one type in all events;
the few names for which this is not so are not listed here. No field is required here, since records
of older versions may lack fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

LARGEST = 2**63
"""No clock, offset or size of a run is larger; readers use integers of eight bytes."""
PLACES = (
    "attempt",
    "subtask",
    "first",
    "last",
    "count",
    "at_record",
    "stage",
    "stage_attempt",
    "subpartition",
)
"""Whole numbers that are always known and never negative."""
SIGNED = ("step", "checkpoint", "called_ns", "acknowledged")
"""Whole numbers that are always known; a query's checkpoint is -1 where it has none. A null is
damage; it differs from a field that an older version did not record."""
WHOLE = (
    "acknowledged_until_ns",
    "batch",
    "before_checkpoint",
    "bytes",
    "due_ns",
    "end",
    "exit_code",
    "failed",
    "grown",
    "in_place_ns",
    "lag",
    "last_seen_ns",
    "partition",
    "records",
    "restart",
    "seen_ns",
    "times",
    "trigger_index",
    "unaligned_subtasks",
    "unknown",
)
"""Whole numbers, null where they are not known."""
NUMBERS = (
    "ack_ms",
    "added_ms",
    "alignment_ms",
    "async_ms",
    "before_asked_s",
    "before_at_s",
    "by_s",
    "checkpointed_bytes",
    "duration_ms",
    "end_ms",
    "ended_ms",
    "failed_ms",
    "first_ack_ms",
    "initializing_ms",
    "last_ack_ms",
    "lateness_ms",
    "lost_ms",
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
KNOWN_NUMBERS = ("asked_s", "logged_s", "longest_gap_s")
"""Numbers that are always known."""
NAMES = ("check", "fault", "job", "output", "phase", "state", "target", "vertex")
"""Texts that are always known."""
TEXTS = ("cause", "executor", "node", "path", "reason", "task_name", "type", "vertex_name")
"""Texts, null where they are not known."""
FLAGS = ("before_met", "is_last", "lost_network", "own", "speculative", "unaligned")
"""True or false, null where it is not known."""
KNOWN_FLAGS = ("met",)
"""True or false, always known."""
LISTS = ("argv", "last_errors", "last_lines", "nodes", "transactions")
VERTICES, EDGES, REGIONS = ("vertices",), ("edges",), ("regions",)
"""The graph of a job."""
STATUSES = ("acknowledged", "failed", "unknown")
"""The values of `status`, that of sent records."""
SUBTASKS = ("subtasks",)
"""How many subtasks a checkpoint has, or what each of them reports; null where it is not known."""
INTERVALS = ("pauses_ns", "ranges")
"""Lists of pairs of whole numbers."""
PARTS = ("sent_by",)
"""Lists of triples of whole numbers."""
OBJECTS = ("config", "evidence", "files", "params")
"""Lists, graphs, intervals and objects are empty where there is nothing, never null."""


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
_A_LIST, _AN_OBJECT, _A_FLAG = "a list", "an object", "true or false"
_VERTICES = "a list of objects with the texts `id` and `name` and the whole number `parallelism`"
_EDGES = "a list of objects with the texts `from` and `to`"
_REGIONS = "a list of lists of pairs, each the id of a vertex and a whole number of at least 0"
_SUBTASKS = "a whole number, or a list of objects with the fields of a subtask's checkpoint"
_INTERVALS = "a list of pairs of whole numbers of at least 0"
_PARTS = "a list of triples of whole numbers of at least 0"
_EXPECTED = {
    **dict.fromkeys(PLACES, _A_PLACE),
    **dict.fromkeys((*SIGNED, *WHOLE), _A_WHOLE),
    **dict.fromkeys((*NUMBERS, *KNOWN_NUMBERS), _A_NUMBER),
    **dict.fromkeys((*NAMES, *TEXTS), _A_TEXT),
    **dict.fromkeys((*FLAGS, *KNOWN_FLAGS), _A_FLAG),
    **dict.fromkeys(LISTS, _A_LIST),
    **dict.fromkeys(VERTICES, _VERTICES),
    **dict.fromkeys(EDGES, _EDGES),
    **dict.fromkeys(REGIONS, _REGIONS),
    **dict.fromkeys(SUBTASKS, _SUBTASKS),
    **dict.fromkeys(INTERVALS, _INTERVALS),
    **dict.fromkeys(PARTS, _PARTS),
    **dict.fromkeys(OBJECTS, _AN_OBJECT),
}
_GRAPH = (*VERTICES, *EDGES, *REGIONS)
_KNOWN = frozenset(
    (
        *PLACES,
        *SIGNED,
        *KNOWN_NUMBERS,
        *KNOWN_FLAGS,
        *NAMES,
        *LISTS,
        *_GRAPH,
        *INTERVALS,
        *PARTS,
        *OBJECTS,
    )
)


def _is(expected: str, held: Any, *, nullable: bool) -> bool:
    return nullable if held is None else _CHECKS[expected](held)


def _is_whole(held: Any) -> bool:
    return type(held) is int and abs(held) < LARGEST


def _is_number(held: Any) -> bool:
    return type(held) in (int, float) and abs(held) < LARGEST and isfinite(held)


def _is_text(held: Any) -> bool:
    return isinstance(held, str)


def _is_list_of(is_item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda held: isinstance(held, list) and all(map(is_item, held))


def _is_vertex(held: Any) -> bool:
    """Whether it can be a vertex; records of older versions may lack its fields."""
    return (
        isinstance(held, dict)
        and _is_text(held.get("id", ""))
        and _is_text(held.get("name", ""))
        and is_moment(held.get("parallelism", 0))
    )


def _is_edge(held: Any) -> bool:
    return isinstance(held, dict) and all(_is_text(held.get(end)) for end in ("from", "to"))


def _is_subtask(held: Any) -> bool:
    return isinstance(held, list) and len(held) == 2 and _is_text(held[0]) and is_moment(held[1])


def _is_report(held: Any) -> bool:
    """Whether it can be what a subtask reports of its checkpoint, where each field is known."""
    return isinstance(held, dict) and all(
        _is(_EXPECTED[name], each, nullable=False)
        for name, each in held.items()
        if name in _EXPECTED
    )


def _are_moments(held: Any, count: int) -> bool:
    return isinstance(held, list) and len(held) == count and all(map(is_moment, held))


_are_reports = _is_list_of(_is_report)
_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    _A_PLACE: is_moment,
    _A_WHOLE: _is_whole,
    _A_NUMBER: _is_number,
    _A_TEXT: _is_text,
    _A_FLAG: lambda held: isinstance(held, bool),
    _A_LIST: lambda held: isinstance(held, list),
    _AN_OBJECT: lambda held: isinstance(held, dict),
    _VERTICES: _is_list_of(_is_vertex),
    _EDGES: _is_list_of(_is_edge),
    _REGIONS: _is_list_of(_is_list_of(_is_subtask)),
    _SUBTASKS: lambda held: _is_whole(held) or _are_reports(held),
    _INTERVALS: _is_list_of(lambda held: _are_moments(held, 2)),
    _PARTS: _is_list_of(lambda held: _are_moments(held, 3)),
}
