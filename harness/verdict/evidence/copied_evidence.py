"""Evidence of one node that is that of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamquake.harness.verdict.evidence.step_attempts import StepAttempt
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.history import History


def copied_evidence(attempt: StepAttempt, history: History) -> Iterator[str]:
    """A message for each node whose process, by the evidence of its fault, started at the very
    nanosecond at which that of another node did, by the evidence of an earlier fault."""
    began = attempt[FaultInEffect]
    for earlier in history.of(FaultInEffect):
        if earlier.index >= began.index:
            return
        others = {stamp: node for node, stamp in _starts(earlier)}
        for node, stamp in _starts(began):
            if (other := others.get(stamp, node)) != node:
                yield f"the evidence of {node} is that of {other}: its process started at {stamp}"


def _starts(effect: FaultInEffect) -> Iterator[tuple[str, str]]:
    """Each target with the start of its process, where that is more exact than a second."""
    for target, observed in (effect.evidence or {}).items():
        stamp = observed.get("started_at") if isinstance(observed, Mapping) else None
        if isinstance(stamp, str) and "." in stamp:
            yield target, stamp
