"""Whether the events of a fault are recorded in the order in which they happen: called, in effect,
verified again, heal called, healed; and whether the moments in them agree with that order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamquake.harness.verdict.evidence.heal_evidence import CLOCK_S
from streamquake.reports.record.fault_events import (
    FaultCalled,
    FaultEvent,
    FaultHealed,
    FaultInEffect,
    FaultNotHealed,
    FaultSkipped,
    HealCalled,
)
from streamquake.reports.record.history import History

TWO_CLOCKS_S = 0.1
"""The tolerance between the call of a heal and its observation: where there is nothing to undo, the
two are measured one after the other by different clocks."""
ROUNDED_MS = 1.0


def disordered_events(step: int, history: History) -> Iterator[str]:
    """A message for each event of a step that is recorded twice, or after the heal, and for each
    moment in them that is not in their order. A step that missed its window is injected again,
    after its heal; a heal that failed is called again."""
    earlier: list[FaultEvent] = []
    for event in history.of(FaultEvent):
        if event.value.get("step") != step:
            continue
        yield from _out_of_order(event, earlier)
        if isinstance(event, FaultCalled):
            earlier = []
        earlier.append(event)
        yield from _contradicted_moments(event, earlier)


def _out_of_order(event: FaultEvent, earlier: Sequence[FaultEvent]) -> Iterator[str]:
    """`earlier` are the events of the same injection, oldest first."""
    is_healed = any(isinstance(each, FaultHealed) for each in earlier)
    if isinstance(event, FaultCalled):
        if any(isinstance(each, FaultInEffect) for each in earlier) and not is_healed:
            yield "its injection was called again before its heal"
    elif is_healed and not isinstance(event, FaultSkipped):
        yield f"`{event.action}` is recorded after its heal"
    elif isinstance(event, FaultInEffect | HealCalled):
        since_failed = [type(each) for each in earlier]
        if FaultNotHealed in since_failed:
            since_failed = since_failed[since_failed.index(FaultNotHealed) :]
        if type(event) in since_failed:
            yield f"`{event.action}` is recorded twice"


def _contradicted_moments(event: FaultEvent, known: Sequence[FaultEvent]) -> Iterator[str]:
    """`known` are the events of the same injection so far."""
    seen_ns = event.value.get("seen_ns")
    if isinstance(event, FaultInEffect) and event.called_ns is not None:
        calls = [each.at_ns for each in known if isinstance(each, FaultCalled)]
        if before_s := _before_s(event.called_ns, max(calls, default=event.called_ns)):
            yield f"it is recorded to have acted {before_s:.1f} s before its call"
        yield from _contradicted_delay(event)
    elif isinstance(event, FaultHealed) and event.called_ns is not None and seen_ns is not None:
        before_s = _before_s(seen_ns, event.called_ns)
        if before_s > TWO_CLOCKS_S:
            yield f"its removal was seen {before_s:.1f} s before its heal acted"
    elif isinstance(event, HealCalled) and event.in_place_ns is not None:
        effects = [each.moment_ns for each in known if isinstance(each, FaultInEffect)]
        if before_s := _before_s(event.in_place_ns, max(effects, default=event.in_place_ns)):
            yield f"it is recorded as last found in place {before_s:.1f} s before its effect"


def _contradicted_delay(event: FaultInEffect) -> Iterator[str]:
    """Older records have no moment at which the injection was due."""
    due_ns, seen_ns = event.value.get("due_ns"), event.value.get("seen_ns")
    if due_ns is None or seen_ns is None or event.called_ns is None:
        return
    if before_s := _before_s(event.called_ns, due_ns):
        yield f"it is recorded to have acted {before_s:.1f} s before it was due"
    late_ms, recorded_ms = (seen_ns - due_ns) / 1e6, event.value.get("lateness_ms")
    if recorded_ms is not None and abs(late_ms - recorded_ms) > ROUNDED_MS:
        yield f"its delay is recorded as {recorded_ms:,.0f} ms, and it was {late_ms:,.0f} ms"


def _before_s(moment_ns: int, other_ns: int) -> float:
    """How long a moment is before another, seconds; 0 within the tolerance."""
    before_s = (other_ns - moment_ns) / 1e9
    return before_s if before_s > CLOCK_S else 0.0
