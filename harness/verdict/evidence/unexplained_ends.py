"""Ends of nodes that no fault caused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamquake.faults.fault import faults
from streamquake.reports.record.fault_windows import FaultWindow, fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import (
    ContainerDied,
    ContainerOom,
    ContainerStarted,
    NodeEvent,
    NodeGivenUp,
)

RECORDED_LATER_S = 2.0
"""The end of a container is an event of the container engine, which may arrive after the heal."""
SIGNALS = {137: "SIGKILL", 143: "SIGTERM"}
"""Exit code of a process that a signal ended -> the signal. A process that ends by itself after the
failure of another one has an exit code of its own."""


def not_started_again(history: History) -> Iterator[ContainerDied]:
    """The ends of nodes that no fault caused and that were not started again. Exit code 0 is a
    regular end; an unknown exit code may be a failure."""
    ended: dict[str, ContainerDied] = {}
    unexplained = {event.index for event in _unexplained(history)}
    for event in history.of(ContainerDied, ContainerStarted):
        ended.pop(event.node, None)
        if isinstance(event, ContainerDied) and event.index in unexplained:
            ended[event.node] = event
    given_up = {event.node for event in history.of(NodeGivenUp)}
    yield from (
        event for node, event in ended.items() if event.exit_code != 0 and node not in given_up
    )


def ended_from_outside(history: History) -> Iterator[NodeEvent]:
    """The ends by a signal that no fault sent, and the lacks of memory of nodes on which no fault
    that ends processes was called. The machine or a person caused them, not the system."""
    touched_s = [(window.called_s, window.nodes) for window in _ending(history)]
    for event in history.of(ContainerOom):
        if not any(event.node in nodes and called_s <= event.at_s for called_s, nodes in touched_s):
            yield event
    yield from (event for event in _unexplained(history) if event.exit_code in SIGNALS)


def how(event: NodeEvent) -> str:
    """What happened to a node from outside, as a phrase."""
    if isinstance(event, ContainerOom):
        return f"{event.node} was out of memory"
    return f"{event.node} was ended by {SIGNALS[event.exit_code or 0]}"


def _unexplained(history: History) -> Iterator[ContainerDied]:
    """The ends that no fault caused."""
    ending = _ending(history)
    started_s: dict[str, float] = {}
    for event in history.of(ContainerDied, ContainerStarted):
        if not isinstance(event, ContainerDied):
            started_s[event.node] = event.at_s
        elif not _by_a_fault(event, started_s.get(event.node, 0.0), ending):
            yield event


def _ending(history: History) -> Sequence[FaultWindow]:
    """The windows of the faults that end processes."""
    return [
        window
        for window in fault_windows(history)
        if window.fault in faults and faults[window.fault].ends_process
    ]


def _by_a_fault(end: ContainerDied, started_s: float, ending: Sequence[FaultWindow]) -> bool:
    """Whether one of the faults that end processes acted on the node at that moment, or was healed
    shortly before. A node that was started since the fault, and ends after the heal, ends by
    itself."""

    def shortly_after(window: FaultWindow) -> bool:
        if window.healed_s is None or started_s >= window.called_s:
            return False
        return window.healed_s <= end.at_s <= window.healed_s + RECORDED_LATER_S

    return any(
        end.node in window.nodes and (window.was_under_way(end.at_s) or shortly_after(window))
        for window in ending
    )
