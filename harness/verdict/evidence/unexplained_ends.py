"""Ends of nodes that no fault caused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.processes import KILLED
from streamquake.harness.verdict.evidence.node_ends import TOLERANCE_NS
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
SIGNALS = {129: "SIGHUP", 130: "SIGINT", KILLED: "SIGKILL", 143: "SIGTERM"}
"""Exit code of a process that a signal from outside ended -> the signal. A process that ends by
itself after the failure of another one has an exit code of its own, also a JVM that crashes."""


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
    """The ends by a signal that no fault sent, and the lacks of memory that no fault caused. The
    machine or a person caused them, not the system."""
    taking = [window for window in _ending(history) if faults[window.fault].takes_memory]
    for event in history.of(ContainerOom):
        if not any(_acted_on(event, window) for window in taking):
            yield event
    yield from (event for event in _unexplained(history) if event.exit_code in SIGNALS)


def how(event: NodeEvent) -> str:
    """What happened to a node from outside, as a phrase."""
    if isinstance(event, ContainerOom):
        return f"{event.node} was out of memory"
    return f"{event.node} was ended by {SIGNALS[event.exit_code or 0]}"


def _unexplained(history: History) -> Iterator[ContainerDied]:
    """The ends that no fault caused."""
    ending = [_EndingFault(window) for window in _ending(history)]
    down = set[str]()
    for event in history.of(ContainerDied, ContainerStarted):
        if isinstance(event, ContainerDied):
            caused = [fault.caused(event, down) for fault in ending]
            down.add(event.node)
            if not any(caused):
                yield event
        elif isinstance(event, ContainerStarted):
            down.discard(event.node)
            for fault in ending:
                fault.saw_start(event)


def _ending(history: History) -> Sequence[FaultWindow]:
    """The windows of the faults that end processes."""
    return [
        window
        for window in fault_windows(history)
        if window.fault in faults and faults[window.fault].ends_process
    ]


@dataclass
class _EndingFault:
    """A fault that ends processes, and the nodes that it has ended by now. Most faults end a node
    once; it ends by itself, or from outside, where it ends again."""

    window: FaultWindow
    ended: set[str] = field(default_factory=set)
    kills: Counter[str] = field(default_factory=Counter)
    """How often the fault itself killed each node."""

    def saw_start(self, start: ContainerStarted) -> None:
        """What was started since the call had ended, even where its end is not in the record."""
        if self.window.called_s <= start.at_s:
            self.ended.add(start.node)

    def caused(self, end: ContainerDied, down: Collection[str]) -> bool:
        """Whether it ended this node, where the nodes that are down are these."""
        fault = faults[self.window.fault]
        if not _acted_on(end, self.window):
            return False
        if fault.ends_repeatedly:
            return self._caused_again(end)
        first = end.node not in self.ended and end.node not in down
        self.ended.add(end.node)
        return first

    def _caused_again(self, end: ContainerDied) -> bool:
        """Whether a fault that ends its nodes more than once causes such an end."""
        fault, code = faults[self.window.fault], end.exit_code
        if code == KILLED:
            # The kernel kills what lacks memory.
            return fault.takes_memory or self._killed(end)
        if code in SIGNALS:
            return False
        return code is None or not fault.exit_codes or code in fault.exit_codes

    def _killed(self, end: ContainerDied) -> bool:
        """Whether the fault itself killed a node: its injection does so once, and its heal."""
        called_s = self.window.heal_called_s
        healing = called_s is None or end.at_ns > called_s * 1e9 - TOLERANCE_NS
        killed = self.kills[end.node] < (2 if healing else 1)
        self.kills[end.node] += killed
        return killed


def _acted_on(event: NodeEvent, window: FaultWindow) -> bool:
    """Whether a fault acted on the node of an event at that moment, or was healed shortly
    before."""
    if event.node not in window.nodes or event.at_ns <= window.called_s * 1e9 - TOLERANCE_NS:
        return False
    return window.healed_s is None or event.at_s <= window.healed_s + RECORDED_LATER_S
