"""Evidence of one node that is that of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamquake.harness.verdict.evidence.step_attempts import StepAttempt
from streamquake.reports.record.fault_events import ObservedFaultEvent
from streamquake.reports.record.history import History


def copied_evidence(attempt: StepAttempt, history: History) -> Iterator[str]:
    """A message for each node whose process, by the evidence of its fault, started at the very
    nanosecond at which that of another node did, by the evidence of the same fault or of an
    earlier one."""
    own = {event.index for event in attempt.events()}
    owners = dict[str, str]()
    copied = dict[str, str]()
    for event in history.of(ObservedFaultEvent):
        for node, stamp in _starts(event):
            if owners.setdefault(stamp, node) != node and event.index in own:
                copied.setdefault(stamp, node)
    for stamp, node in copied.items():
        yield f"the evidence of {node} is that of {owners[stamp]}: its process started at {stamp}"


def _starts(event: ObservedFaultEvent) -> Iterator[tuple[str, str]]:
    """Each target with each start of its processes that is more exact than a second."""
    for target, observed in (event.evidence or {}).items():
        if not isinstance(observed, Mapping):
            continue
        before = observed.get("before")
        for state in (observed, before if isinstance(before, Mapping) else {}):
            stamp = state.get("started_at")
            if isinstance(stamp, str) and "." in stamp:
                yield target, stamp
