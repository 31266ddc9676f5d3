"""Whether the window of a step that was injected between two events was ever closed.

"Before the second event" is proven only by a second event that came later, or by a sign that it
cannot come any more: the checkpoint failed or a later one completed, or the job failed.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamquake.faults.moments import LATER_STAMPS
from streamquake.faults.step import When
from streamquake.reports.event import Action, Event
from streamquake.reports.history import History

JOB_FAILED = (Action.JOB_FAILING, Action.JOB_RESTARTING, Action.JOB_RESTORED)


def never_closed(when: When, tried: Mapping[Action, Event], history: History) -> str:
    """Why it is not known that the fault came between its two events; empty where it is, where it
    is known to be late, or where the record does not say which event set it off."""
    called = tried.get(Action.FAULT_CALLED)
    index = None if called is None else called.value.get("trigger_index")
    if when.between is None or index is None or Action.FAULT_MISSED_WINDOW in tried:
        return ""
    opened, second = history[index], when.between[1]
    if any(_closes(event, opened, second) for event in history if event.index > index):
        return ""
    return f'the window was never closed: no "{second}" was seen after "{when.between[0]}"'


def _closes(event: Event, opened: Event, second: str) -> bool:
    if event.action in JOB_FAILED:
        return True
    of, by = (each.value.get("checkpoint") for each in (opened, event))
    known = None not in (of, by)
    if event.action == Action.CHECKPOINT_FAILED:
        return known and of == by
    if event.action == Action.CHECKPOINT_COMPLETED and known and int(by or 0) > int(of or 0):
        return True  # the engine gives up older checkpoints then
    told = {str(action) for key, action in LATER_STAMPS.items() if event.value.get(key)}
    return second in {str(event.action), *told} and (not known or of == by)
