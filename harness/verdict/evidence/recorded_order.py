"""Whether the times of the events agree with the order in which they were recorded.

Every thread takes the time of an event right before it queues it, and one thread writes them. Only
the end of a checkpoint is recorded later, when its details were read, and the events of containers
have the time of the container engine.
"""

from __future__ import annotations

from streamquake.reports.record.checkpoint_events import CheckpointEnd
from streamquake.reports.record.event import Event
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import NodeEvent

QUEUED_NS = 5 * 10**9
"""How long a thread may take to queue an event, with its time. In recorded runs it is not seen to
take any time."""


def out_of_order(history: History) -> str | None:
    """A message about the first event whose time is long before that of an earlier one; None where
    there is none."""
    latest: Event | None = None
    for event in history:
        if isinstance(event, CheckpointEnd | NodeEvent):
            continue
        if latest is None or event.at_ns > latest.at_ns:
            latest = event
        elif event.at_ns < latest.at_ns - QUEUED_NS:
            return (
                f"`{event.action}` is recorded at {event.at_s:.1f} s, and `{latest.action}` before "
                f"it at {latest.at_s:.1f} s"
            )
    return None
