"""Whose traffic or work a fault disturbed: the system's, or that of the harness's probe alone.

A cut, a limit or a reset is shown by attempts of the harness's own. On a link or a node that the
system left idle they are all that suffered, and what holds then proves nothing.
"""

from __future__ import annotations

from streamquake.reports.record.event import DISTURBED, PROBE_ALONE, SYSTEM, Action
from streamquake.reports.record.history import History

LOOKS = (Action.FAULT_IN_EFFECT, Action.FAULT_STILL_IN_EFFECT, Action.FAULT_ENDED_EARLY)


def probe_alone(history: History, step: int) -> tuple[str, ...]:
    """The targets of a step's newest try on which, by every look, only the probe suffered."""
    message: dict[str, set[str]] = {}
    for event in history.of(Action.FAULT_CALLED, *LOOKS):
        if event.value.get("step") != step:
            continue
        if event.action == Action.FAULT_CALLED:
            message = {}
        for target, seen in (event.value.get("evidence") or {}).items():
            if isinstance(seen, dict) and DISTURBED in seen:
                message.setdefault(target, set()).add(seen[DISTURBED])
    return tuple(
        target for target, whose in message.items() if PROBE_ALONE in whose and SYSTEM not in whose
    )
