"""Power off: the machine of a node stops at once, and its address goes with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerStatus, InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.netfilter import (
    PROBE_LIMIT_S,
    UNDISTURBED_S,
    PacketRule,
    add_chain,
    chain_name,
    poll,
    remove_chain,
)
from streamquake.faults.mechanisms.processes import (
    KILLED,
    RUNNING_OR_REMOVED,
    ended_evidence,
    process_baseline,
    runs_again,
    start_if_ended,
    stays_down,
)
from streamquake.faults.mechanisms.reachability import (
    ANSWERS,
    ConnectionAttempt,
    direct_attempt,
    parse_attempt,
    poll_namespaces,
)
from streamquake.faults.requirement import (
    Requirements,
    all_of,
    any_of,
    each,
    has,
    one_of,
    other_than,
    same_names_as,
)

ANYWHERE = "0.0.0.0/0"
SILENCE = (
    PacketRule(direction="in", peer="all", address=ANYWHERE),
    PacketRule(direction="out", peer="all", address=ANYWHERE),
)
PEERS = 3
"""From how many peers the node is tried; more than one, because a peer may end too."""


@faults.register
class PowerOff(NodeFault):
    """Stop the machine of a node at once: first no packet leaves or reaches it any more, so that
    its peers get no reset, then its process ends, then its address vanishes.

    `kill` ends only the process: the machine still answers, and its peers get a reset at once.
    What the process had written and not flushed to disk is not lost (`lose_unflushed_log`).
    """

    name: ClassVar[str] = "power_off"
    touches: ClassVar[str] = "process"
    ends_process: ClassVar[bool] = True
    ends_sandbox: ClassVar[bool] = True

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        """The process, and how the node answers a peer."""
        answers = _answers(cluster, target, _attempts(cluster, target), UNDISTURBED_S)
        return {**process_baseline(cluster, target), "answers": answers}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        called_ns = cluster.clock.epoch_ns()
        add_chain(cluster.runtime, target.sandbox, _chain(target), SILENCE, "silent")
        ended = cluster.runtime.kill(target.container)
        cluster.runtime.kill(target.sandbox)
        return InjectionTimes(called_ns=called_ns, seen_ns=ended.seen_ns, how=ended.how)

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect while process and address are gone: the process has ended, the namespace too,
        and a peer that was answered before is not answered."""
        before = baseline.get("answers", {})
        tried = [parse_attempt(name) for name in before] or _attempts(cluster, target)
        answers = _answers(cluster, target, tried)
        silent = not any(answer in ANSWERS for answer in answers.values())
        compared = [name for name in answers if before.get(name, "connected") in ANSWERS]
        sandbox = cluster.runtime.inspect(target.sandbox).status
        process = ended_evidence(
            cluster.state(target), baseline, sandbox=str(sandbox), answers=answers
        )
        off = process.in_effect and sandbox == ContainerStatus.EXITED
        on = process.healed and sandbox in RUNNING_OR_REMOVED
        return Evidence(
            in_effect=off and silent and bool(compared),
            healed=on and not _is_silenced(cluster, target),
            observations=process.observations,
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {
            **stays_down(before),
            "exit_code": one_of(KILLED),
            "sandbox": one_of(str(ContainerStatus.EXITED)),
            "answers": all_of(same_names_as(before.get("answers")), each(other_than(*ANSWERS))),
            "before": has(answers=any_of(one_of(*ANSWERS))),
        }

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {**runs_again(before), "sandbox": one_of(*map(str, RUNNING_OR_REMOVED))}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        # The rules are still there if the injection was interrupted before the sandbox ended.
        remove_chain(cluster.runtime, target.sandbox, _chain(target))
        return start_if_ended(cluster, target)


def _attempts(cluster: Cluster, node: Node) -> list[ConnectionAttempt]:
    """An attempt from each of some running peers."""
    if cluster.state(node).status != ContainerStatus.RUNNING:
        return []
    running = (
        peer
        for peer in cluster.nodes.values()
        if peer.name != node.name and cluster.state(peer).status == ContainerStatus.RUNNING
    )
    return [direct_attempt(cluster, peer, node) for peer in islice(running, PEERS)]


def _answers(
    cluster: Cluster,
    node: Node,
    attempts: Iterable[ConnectionAttempt],
    limit_s: float = PROBE_LIMIT_S,
) -> dict[str, str]:
    """Attempt -> its outcome within `limit_s` seconds."""
    _, answers = poll_namespaces(cluster, _chain(node), [], attempts, limit_s)
    return {attempt.name: answer for attempt, answer in answers.items()}


def _is_silenced(cluster: Cluster, node: Node) -> bool:
    """Whether the rules of an interrupted injection are still in the namespace."""
    found = poll(cluster.runtime, node.sandbox, _chain(node))
    return found is not None and found.in_place


def _chain(node: Node) -> str:
    return chain_name("power_off", node.name)
