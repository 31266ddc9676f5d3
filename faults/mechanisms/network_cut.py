"""Common base of all faults that stop packets: injecting, polling, healing.

A fault defines which packets it stops and where, and the expected outcome of connection attempts.
Links are a special case: their connections run through the proxy, so the packets of a link have the
proxy's address as source, and the proxy's port on the side of the connecting node identifies the
link. On the other side the proxy's connections stay as they are: the far node receives nothing
more, but the proxy still receives its packets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar, Generic, Literal

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.links.links import LinkPath
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerStatus, InjectionTimes
from streamquake.faults.fault import (
    Evidence,
    Fault,
    Target,
    TargetT,
    disturbed_party,
)
from streamquake.faults.mechanisms.injection_times import until_now
from streamquake.faults.mechanisms.netfilter import (
    TIMED_OUT,
    UNDISTURBED_S,
    How,
    PacketFilterState,
    PacketRule,
    add_chain,
    chain_name,
    remove_chain,
)
from streamquake.faults.mechanisms.parallel import run_in_parallel
from streamquake.faults.mechanisms.reachability import (
    ANSWERS,
    ConnectionAttempt,
    answered_as,
    direct_attempt,
    link_attempts,
    parse_attempt,
    poll_namespaces,
)
from streamquake.faults.requirement import (
    Requirement,
    Requirements,
    all_of,
    more_than,
    one_of,
    same_names_as,
    text_with,
)
from streamquake.reports.record.event import DISTURBED, PROBE_ALONE, SYSTEM

ExpectedOutcome = Literal["stopped", "unanswered", "open"]
"""The expected outcome of an attempt: its packets are stopped, or only the answer to them; or
neither."""

NamespaceRules = Mapping[str, Sequence[PacketRule]]
"""Container -> the rules that are added in its namespace."""


class NetworkCutFault(Fault[TargetT], Generic[TargetT]):
    """The base of faults that stop packets by rules in network namespaces."""

    touches: ClassVar[str] = "network"
    shows_in_place: ClassVar[bool] = True

    leaves_some: ClassVar[bool] = False
    """Whether some of the attempts must still be answered."""
    other_outcomes: ClassVar[Set[str]] = frozenset()
    """Outcomes of attempts of which only the answer is stopped, with any `how`."""

    how: How = "silent"
    """silent: packets are dropped, as when a machine lost power; peers notice by timeout only.
    reset: they are rejected, and the sender fails at once."""

    def rules(self, cluster: Cluster, target: TargetT) -> NamespaceRules:
        """The packets to stop, by namespace. Raises ValueError when there are none."""
        raise NotImplementedError

    def attempts(self, cluster: Cluster, target: TargetT) -> Iterable[ConnectionAttempt]:
        """The connection attempts that prove the effect, without those of nodes that have ended."""
        raise NotImplementedError

    def expected(
        self, cluster: Cluster, target: TargetT, attempt: ConnectionAttempt
    ) -> ExpectedOutcome:
        """The expected outcome of an attempt while the fault is in effect."""
        return "stopped"

    def baseline(self, cluster: Cluster, target: TargetT) -> Mapping[str, Any]:
        """The outcome of the attempts before the injection."""
        _, answers = self._poll_answered(cluster, target, self.attempts(cluster, target))
        return {"answers": _by_name(answers)}

    def inject(self, cluster: Cluster, target: TargetT) -> InjectionTimes:
        chain, rules = chain_of(self, target), self.rules(cluster, target)

        def add(container: str) -> None:
            add_chain(cluster.runtime, container, chain, rules[container], self.how)

        return run_in_namespaces(cluster, add, rules)

    def evidence(self, cluster: Cluster, target: TargetT, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when attempts that were answered before now fail in the expected way, attempts
        that must still be answered are answered, and the rules have counted packets."""
        before = baseline.get("answers", {})
        containers = self.rules(cluster, target)
        tried = [parse_attempt(name) for name in before] or list(self.attempts(cluster, target))
        expected = {a: self.expected(cluster, target, a) for a in tried}
        found, answers = self._poll(cluster, target, containers, expected)
        places = [found[container] for container in containers]
        applied = [place is not None and place.in_place for place in places]
        compared = {
            attempt: answer
            for attempt, answer in answers.items()
            if before.get(attempt.name, "connected") in ANSWERS
        }
        as_expected = [self._fits(expected[a], answer) for a, answer in compared.items()]
        rules = [rule for added in containers.values() for rule in added]
        counted = (
            _sum(places, "stopped") > 0 or all(rule.passes for rule in rules),
            _sum(places, "passed") > 0 or not any(rule.passes for rule in rules),
        )
        return Evidence(
            in_effect=all(applied) and bool(compared) and all(as_expected) and all(counted),
            healed=not any(applied) and _answered_again(cluster, found.values(), compared),
            in_place=all(applied),
            observations={
                "rules_laid": f"in {sum(applied)} of {len(applied)} namespaces",
                "packets_stopped": _sum(places, "stopped"),
                "probes_stopped": _sum(places, "probes_stopped"),
                "packets_let_pass": _sum(places, "passed"),
                "answers": _by_name(answers),
                **disturbed_party(
                    any(applied), _sum(places, "stopped") > _sum(places, "probes_stopped")
                ),
            },
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {
            "rules_laid": text_with(r"^in ([1-9]\d*) of \1 namespaces$"),
            "packets_stopped": more_than(0),
            "answers": all_of(
                same_names_as(before.get("answers")),
                self._answers_required(before.get("answers", {})),
            ),
            DISTURBED: one_of(SYSTEM, PROBE_ALONE),
        }

    def contradicted_effect(
        self, observations: Mapping[str, Any], before: Mapping[str, Any]
    ) -> Iterator[str]:
        yield from super().contradicted_effect(observations, before)
        stopped, of_probe = (observations.get(f"{name}_stopped") for name in ("packets", "probes"))
        if observations.get(DISTURBED) == SYSTEM and stopped == of_probe:
            yield f"the system was disturbed, and the probe sent all {stopped} packets stopped"

    def _answers_required(self, before: Mapping[str, str]) -> Requirement:
        """How attempts end that were answered before: all of them, or some where others must still
        be answered."""
        cut = {"refused" if self.how == "reset" else TIMED_OUT} | self.other_outcomes
        enough = any if self.leaves_some else all

        def is_met(found: Any) -> bool:
            answered = before if isinstance(before, Mapping) else {}
            answers = found.items() if isinstance(found, Mapping) else ()
            compared = [v for name, v in answers if answered.get(name, "connected") in ANSWERS]
            return bool(compared) and enough(value in cut for value in compared)

        some = "for some" if self.leaves_some else "for all"
        return Requirement(expected=f"{' or '.join(sorted(cut))} {some}", is_met=is_met)

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {
            "rules_laid": text_with(r"^in 0 of \d+ namespaces$"),
            "answers": answered_as(before.get("answers")),
        }

    def heal(
        self, cluster: Cluster, target: TargetT, baseline: Mapping[str, Any]
    ) -> InjectionTimes:
        chain = chain_of(self, target)

        def remove(container: str) -> None:
            remove_chain(cluster.runtime, container, chain)

        return run_in_namespaces(cluster, remove, self.rules(cluster, target))

    def _poll(
        self,
        cluster: Cluster,
        target: TargetT,
        containers: NamespaceRules,
        expected: Mapping[ConnectionAttempt, ExpectedOutcome],
    ) -> tuple[Mapping[str, PacketFilterState | None], Mapping[ConnectionAttempt, str]]:
        """The state of the namespaces, and the outcome of the attempts. Attempts from which no
        answer is expected get less time, as long as one of the fault's rules is in place."""
        silent = {a for a, what in expected.items() if self._fits(what, TIMED_OUT)}
        found, answers = self._poll_answered(cluster, target, expected.keys() - silent)
        # The rules are read last, so that their counters include the attempts.
        last_found, unanswered = poll_namespaces(
            cluster, chain_of(self, target), containers, silent
        )
        late: Mapping[ConnectionAttempt, str] = {}
        if not any(place is not None and place.in_place for place in last_found.values()):
            slow = [a for a, answer in unanswered.items() if answer == TIMED_OUT]
            _, late = self._poll_answered(cluster, target, slow)
        return {**found, **last_found}, {**answers, **unanswered, **late}

    def _poll_answered(
        self, cluster: Cluster, target: TargetT, attempts: Iterable[ConnectionAttempt]
    ) -> tuple[Mapping[str, PacketFilterState | None], Mapping[ConnectionAttempt, str]]:
        """The outcome of attempts that must be answered: an answer ends them at once, so their
        limit can be long: a slow answer of a busy machine must not count as a partition."""
        return poll_namespaces(cluster, chain_of(self, target), [], attempts, UNDISTURBED_S)

    def _fits(self, expected: ExpectedOutcome, answer: str) -> bool:
        if expected == "open":
            return answer in ANSWERS
        rejected = expected == "stopped" and self.how == "reset"
        return answer == ("refused" if rejected else TIMED_OUT)


def chain_of(fault: Fault, target: Target) -> str:
    """The chain of a fault on a target, the same in every process."""
    return chain_name(fault.name, target.name, fault.model_dump_json())


def attempts_between(cluster: Cluster, source: Node, target: Node) -> list[ConnectionAttempt]:
    """Attempts from one node to another, by every route: direct, and each link."""
    if {cluster.state(node).status for node in (source, target)} != {ContainerStatus.RUNNING}:
        return []
    return [direct_attempt(cluster, source, target), *link_attempts(cluster, source, target)]


def rules_to_proxy(cluster: Cluster, paths: Iterable[LinkPath]) -> list[PacketRule]:
    """At a link's source: the packets that it sends into its links."""
    ip = cluster.links.proxy_ip
    return [PacketRule(direction="out", peer=p.name, address=ip, port=p.proxy_port) for p in paths]


def rules_from_proxy(cluster: Cluster, paths: Iterable[LinkPath]) -> list[PacketRule]:
    """At a link's source: the packets that it receives from its links."""
    ip = cluster.links.proxy_ip
    return [PacketRule(direction="in", peer=p.name, address=ip, port=p.proxy_port) for p in paths]


def run_in_namespaces(
    cluster: Cluster, act: Callable[[str], None], containers: Iterable[str]
) -> InjectionTimes:
    """Run an action in several namespaces at once; returns its times."""
    places = list(containers)
    called_ns = cluster.clock.epoch_ns()
    run_in_parallel(act, places)
    return until_now(cluster, called_ns, "iptables")


def _answered_again(
    cluster: Cluster,
    places: Iterable[PacketFilterState | None],
    answers: Mapping[ConnectionAttempt, str],
) -> bool:
    """Whether running nodes answer, or another injection may explain why they do not."""
    if any(place is not None and place.other_chains for place in places):
        return True
    silent = {attempt.target for attempt, answer in answers.items() if answer not in ANSWERS}
    states = (cluster.state(cluster.node(name)).status for name in silent)
    return ContainerStatus.RUNNING not in states


def _sum(
    places: Iterable[PacketFilterState | None], what: Literal["stopped", "passed", "probes_stopped"]
) -> int:
    return sum(getattr(place, what) for place in places if place is not None)


def _by_name(answers: Mapping[ConnectionAttempt, str]) -> dict[str, str]:
    return {attempt.name: answers[attempt] for attempt in sorted(answers)}
