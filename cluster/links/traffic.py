"""The kernel's counters of a link's connections, in the namespace of its proxy.

Every connection of a link consists of two: from the source to the proxy, and from the proxy to the
target. Bytes that were received on the one and delivered on the other have passed the link.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from streamquake.cluster.links.links import LinkPath, Links

Direction = Literal["upstream", "downstream"]
"""Upstream is from a link's source to its target."""

SOCKET = re.compile(r"^\S+\s+\S+\s+\S*:(\d+)\s+\[?(?:::ffff:)?([\d.]+)\]?:(\d+)\s(.*)$", re.M)
COUNTER = re.compile(r"\b(bytes_sent|bytes_acked|bytes_received|data_segs_out):(\d+)")


@dataclass(frozen=True, kw_only=True)
class ConnectionCounters:
    """The counters of connections: bytes received, bytes that the peer has acknowledged, bytes and
    segments sent."""

    received: int = 0
    delivered: int = 0
    sent: int = 0
    segments: int = 0


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """The open connections of a link at one moment: peer of the proxy -> its counters."""

    sources: Mapping[str, ConnectionCounters]
    targets: Mapping[str, ConnectionCounters]

    def since(self, before: Traffic, direction: Direction) -> ConnectionCounters:
        """The traffic in one direction: received at one side, delivered and sent on the other."""
        source, target = (
            ("sources", "targets") if direction == "upstream" else ("targets", "sources")
        )
        incoming = _growth(getattr(before, source), getattr(self, source))
        outgoing = _growth(getattr(before, target), getattr(self, target))
        return ConnectionCounters(
            received=incoming.received,
            delivered=outgoing.delivered,
            sent=outgoing.sent,
            segments=outgoing.segments,
        )


def traffic_of(links: Links, paths: Sequence[LinkPath]) -> Traffic:
    """The open connections of some paths of a link. Raises ContainerError."""
    near = {str(path.proxy_port) for path in paths}
    far = {(links.target_ip(path), str(path.target_port)) for path in paths}
    sources, targets = {}, {}
    for port, peer_ip, peer_port, rest in SOCKET.findall(links.connections()):
        if port in near:
            sources[f"{peer_ip}:{peer_port}"] = _counters(rest)
        elif (peer_ip, peer_port) in far:
            targets[f"{port}>{peer_ip}:{peer_port}"] = _counters(rest)
    return Traffic(sources=sources, targets=targets)


def _counters(text: str) -> ConnectionCounters:
    found = {name: int(number) for name, number in COUNTER.findall(text)}
    return ConnectionCounters(
        received=found.get("bytes_received", 0),
        delivered=found.get("bytes_acked", 0),
        sent=found.get("bytes_sent", 0),
        segments=found.get("data_segs_out", 0),
    )


def _growth(
    before: Mapping[str, ConnectionCounters], after: Mapping[str, ConnectionCounters]
) -> ConnectionCounters:
    """The growth of the counters since `before`, summed over the open connections."""
    totals = dict.fromkeys(asdict(ConnectionCounters()), 0)
    for peer, now in after.items():
        then = asdict(before.get(peer, ConnectionCounters()))
        for name, number in asdict(now).items():
            totals[name] += number - then[name]
    return ConnectionCounters(**totals)
