"""Nodes that lost their network without a fault: their sandbox ended by itself."""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.harness.verdict.evidence.node_faults import ended_by_fault
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import NodeEvent, NodeRevived, SandboxDied


def lost_sandboxes(history: History) -> Iterator[SandboxDied]:
    """The ends of sandboxes that no fault caused. A node that got its network back had lost it, so
    a later start changes nothing."""
    yield from (
        event
        for event in history.of(SandboxDied)
        if not ended_by_fault("ends_sandbox", event, history)
    )


def losses_of_network(history: History) -> Iterator[NodeEvent]:
    """Every loss of a node's network that no fault caused: the end of its sandbox, or the restart
    of a node without network of which the record has no such end."""
    lost: set[str] = set()
    ends, revivals = list(lost_sandboxes(history)), list(revived_without_network(history))
    for event in sorted((*ends, *revivals), key=lambda each: each.index):
        if isinstance(event, SandboxDied):
            lost.add(event.node)
            yield event
        elif event.node in lost:
            lost.remove(event.node)
        else:
            yield event


def revived_without_network(history: History) -> Iterator[NodeRevived]:
    """The restarts of nodes whose process ran without a network, which no fault took away. The end
    of the sandbox may be missing in the record."""
    yield from (
        event
        for event in history.of(NodeRevived)
        if event.lost_network and not ended_by_fault("ends_sandbox", event, history)
    )
