"""The stretch of a run in which its output is watched: from the first fault's strike until five
seconds after the last heal or restart, and after the longest pause that is allowed, as far as the
load went on."""

from __future__ import annotations

from streamquake.reports.event import Action
from streamquake.reports.history import History

AFTERWARDS_NS = 5 * 10**9
"""How long after heal and recovery pauses still count: what came back late is late."""


class NoSpan(LookupError):
    """There is no stretch of time in which to look; the message says why."""


def struck_ns(history: History) -> int | None:
    """When the first fault struck, on the run's clock: the call that took effect, where that was
    noted; None where none did."""
    struck = next(iter(history.of(Action.FAULT_IN_EFFECT)), None)
    return None if struck is None else int(struck.value.get("called_ns", struck.value["seen_ns"]))


def stretch(history: History, within_s: float) -> tuple[int, int]:
    """From when to when pauses count, on the run's clock, for a limit of `within_s` seconds. Raises
    NoSpan where a pause of that length could not have been seen."""
    if (began_ns := struck_ns(history)) is None:
        raise NoSpan("no fault took effect, so nothing failed over")
    seen_ns = history.of(Action.FAULT_IN_EFFECT)[0].value["seen_ns"]
    over = [e.at_ns for e in history.of(Action.JOB_RUNNING, Action.FAULT_HEALED)
            if e.at_ns >= seen_ns]  # fmt: skip
    if not over:
        raise NoSpan("neither the fault's heal nor the job running again was seen")
    sent = history.of(Action.WORKLOAD_DONE) or history.of(Action.SENT)
    if not sent:
        raise NoSpan("nothing was sent")
    allowed_ns = began_ns + round(within_s * 1e9)
    end_ns = min(max(*over, allowed_ns) + AFTERWARDS_NS, sent[-1].at_ns)
    if (left_s := (end_ns - began_ns) / 1e9) < within_s:
        raise NoSpan(
            f"the load ended {max(left_s, 0):.1f} s after the fault struck, and a pause of "
            f"{within_s:g} s could not have been seen; send longer"
        )
    return began_ns, end_ns
