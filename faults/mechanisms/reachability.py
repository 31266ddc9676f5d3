"""Reachability between the nodes of a run: connection attempts that are started inside the
nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.links.links import LinkPath
from streamquake.cluster.node import Node
from streamquake.faults.mechanisms.netfilter import (
    CONNECT,
    PROBE_LIMIT_S,
    TIMED_OUT,
    UNDISTURBED_S,
    PacketFilterState,
    in_namespace,
    poll,
)
from streamquake.faults.mechanisms.parallel import run_in_parallel
from streamquake.faults.requirement import Requirement, all_of, any_of, one_of, same_names_as

CLOSED_PORT = 9
"""Used where a node listens on no port: its kernel refuses the connection, which is also an
answer."""
ANSWERS = ("connected", "refused")
"""The outcomes of an attempt when packets pass both ways."""


def answered_as(before: Any) -> Requirement:
    """Attempt -> its outcome, one of them an answer at least, where there was one before."""
    was_answered = any_of(one_of(*ANSWERS))
    return all_of(same_names_as(before), *([was_answered] if was_answered.is_met(before) else []))


HOLD = r"""
limit=$1 connect=$2 sends=$3; shift 3
for at; do
  {
    error=$(LC_ALL=C timeout "$limit" perl -e "$connect" "$at" "$sends" 2>&1)
    echo "held $at $?" $error
  } &
done
wait
"""
"""Connect to some addresses at once, send data or nothing, and report the outcome."""

SILENT = 142
"""The exit code of `CONNECT` without an answer."""
HELD = re.compile(r"^held (\S+) (\d+) ?(.*)$", re.M)
LISTENING = re.compile(r"^LISTEN\s+\d+\s+\d+\s+(\S+):(\d+)\s", re.M)
NAMED = re.compile(r"(\S+) -> (\S+):(\d+)")


@dataclass(frozen=True, order=True)
class ConnectionAttempt:
    """A connection attempt from one node to a port of another."""

    source: str
    target: str
    port: int

    @property
    def name(self) -> str:
        return f"{self.source} -> {self.target}:{self.port}"


def parse_attempt(name: str) -> ConnectionAttempt:
    """The attempt with this name, as stored in a baseline. Raises ValueError."""
    found = NAMED.fullmatch(name)
    if found is None:
        raise ValueError(f'expected "NODE -> NODE:PORT", got "{name}"')
    return ConnectionAttempt(found[1], found[2], int(found[3]))


def direct_attempt(cluster: Cluster, source: Node, target: Node) -> ConnectionAttempt:
    """An attempt that bypasses the proxy, on a port where the target listens if there is one."""
    link_ports = {path.target_port for path in cluster.links.between(source.name, target.name)}
    ports = [port for port in _listening(cluster, target) if port not in link_ports]
    return ConnectionAttempt(source.name, target.name, min(ports, default=CLOSED_PORT))


def link_attempts(cluster: Cluster, source: Node, target: Node) -> list[ConnectionAttempt]:
    """An attempt for every link from one node to the other."""
    ports = {path.target_port for path in cluster.links.between(source.name, target.name)}
    return [ConnectionAttempt(source.name, target.name, port) for port in sorted(ports)]


def attempts_of_link(cluster: Cluster, paths: Iterable[LinkPath]) -> list[ConnectionAttempt]:
    """An attempt for every path of a link."""
    return [
        ConnectionAttempt(path.source, path.target, path.target_port)
        for path in paths
        if path.source in cluster.nodes and path.target in cluster.nodes
    ]


def hold_connections(
    cluster: Cluster, attempts: Iterable[ConnectionAttempt], sends: str
) -> Mapping[str, str]:
    """Connect and send: attempt -> `open`, `closed`, `reset`, or why there is no connection within
    `UNDISTURBED_S`."""
    tries = _by_source(cluster, attempts)

    def connect(container: str) -> dict[str, str]:
        addresses = sorted(tries[container].values())
        argv = ["bash", "-c", HOLD, "bash", str(UNDISTURBED_S), CONNECT, sends, *addresses]
        done = in_namespace(cluster.runtime, container, argv)
        if done is None:
            return {}
        outcomes = {
            at: _outcome(int(code), message) for at, code, message in HELD.findall(done.output)
        }
        return {a.name: outcomes[at] for a, at in tries[container].items() if at in outcomes}

    return {
        name: outcome
        for found in run_in_parallel(connect, tries)
        for name, outcome in found.items()
    }


def poll_namespaces(
    cluster: Cluster,
    chain: str,
    containers: Iterable[str],
    attempts: Iterable[ConnectionAttempt],
    limit_s: float = PROBE_LIMIT_S,
) -> tuple[Mapping[str, PacketFilterState | None], Mapping[ConnectionAttempt, str]]:
    """Poll namespaces, all at once: the state of each, and the outcome of the attempts within
    `limit_s` seconds.

    Attempts from nodes that have ended are skipped.
    """
    tries: dict[str, dict[ConnectionAttempt, str]] = {container: {} for container in containers}
    tries |= _by_source(cluster, attempts)

    def poll_one(container: str) -> PacketFilterState | None:
        addresses = sorted(set(tries[container].values()))
        return poll(cluster.runtime, container, chain, addresses, limit_s)

    found = dict(zip(tries, run_in_parallel(poll_one, tries), strict=True))
    answers = {
        attempt: state.answers[at]
        for container, state in found.items()
        if state is not None
        for attempt, at in tries[container].items()
    }
    return found, answers


def _by_source(
    cluster: Cluster, attempts: Iterable[ConnectionAttempt]
) -> dict[str, dict[ConnectionAttempt, str]]:
    """Container -> its attempts, each with address and port."""
    found: dict[str, dict[ConnectionAttempt, str]] = {}
    for attempt in attempts:
        if attempt.source in cluster.nodes and attempt.target in cluster.nodes:
            at = f"{cluster.ip_of(attempt.target)}:{attempt.port}"
            found.setdefault(cluster.node(attempt.source).sandbox, {})[attempt] = at
    return found


def _outcome(exit_code: int, message: str) -> str:
    """The outcome of `CONNECT`, by its exit code and message."""
    for word in ("reset", "refused"):
        if word in message:
            return word
    if exit_code == 124:
        return TIMED_OUT
    return "open" if exit_code in (0, SILENT) else (message or "closed")


def _listening(cluster: Cluster, node: Node) -> set[int]:
    """The ports on which a node accepts connections from other nodes; none without a namespace."""
    done = in_namespace(cluster.runtime, node.sandbox, ["ss", "-ltnH"])
    listed = done.output if done is not None else ""
    open_to_all = ("0.0.0.0", "*", "[::]")
    own = (node.ip, f"[::ffff:{node.ip}]")
    return {int(port) for at, port in LISTENING.findall(listed) if at in (*open_to_all, *own)}
