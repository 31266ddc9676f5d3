"""Faults at an exact step inside a JVM: rules that the JVM's agent applies where a step is entered.

A rule acts every time its step is entered by the chosen operator or subtask, or the first
`times` times. It counts its hits and stamps the first one in the JVM; rules and counts carry a
mark made of the fault and its parameters, and go with the JVM.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.jvm_agent import PROPERTIES, AgentError, JvmAgent, Rules
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import (
    ContainerError,
    ContainerState,
    ContainerStatus,
    InjectionTimes,
)
from streamquake.faults.fault import Evidence, NodeFault
from streamquake.faults.mechanisms.injection_times import until_now
from streamquake.faults.mechanisms.jvm_points import RuleLocation
from streamquake.topologies.limits import Milliseconds
from streamquake.topologies.model import Topology

NO_JVM = (ContainerStatus.EXITED, ContainerStatus.GONE, ContainerStatus.CREATED)
EVERY_TIME = 2**31 - 1
ROLE = "taskmanager"
Words = Annotated[str, Field(min_length=1, pattern=r'^[^"\\\n\r]+$')]
"""Text that can stand in a rule: without double quotes, backslashes and line breaks."""


class JvmFault(NodeFault):
    """The base of the faults at a step inside a TaskManager."""

    engines: ClassVar[tuple[str, ...]] = ("flink",)
    leaves_agent: ClassVar[bool] = True

    operator: Words | None = None
    """Only operators whose name holds this text; where the step is a whole task's, only tasks
    into which such an operator is chained. Without it, any."""
    subtask: Annotated[int, Field(ge=0, lt=2**15)] | None = None
    """Only the subtask of this index, from 0. Without it, any."""

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        service, _, kind = role.partition("/")
        if kind != ROLE:
            return f"{cls.name} disturbs steps of tasks, and a {kind} runs none; target a {ROLE}"
        declared = topology.services[service]
        group = declared.nodes.get(kind)
        if foreign := (group.image if group else None) or declared.image:
            return f"{cls.name} needs the rule agent, which the image {foreign} does not bring"
        return None

    def points(self) -> Iterable[RuleLocation]:
        """The steps that the rules disturb."""
        raise NotImplementedError

    def action(self) -> str:
        """What is done there, in the rule language."""
        raise NotImplementedError

    def limit(self) -> int:
        """How often it acts."""
        return EVERY_TIME

    def script(self, nonce: str) -> str:
        """The rules. Counters live as long as the JVM, so each injection has a `nonce` of its
        own for them."""
        return "".join(
            self.rule(f"{self.mark} {number}", point, self._counting(nonce), self.action())
            for number, point in enumerate(self.points(), start=1)
        )

    @property
    def mark(self) -> str:
        """What the names of its rules and counters begin with."""
        digest = hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:8]
        return f"streamquake-{self.name}-{digest}"

    def rule(self, name: str, point: RuleLocation, counting: tuple[str, str], action: str) -> str:
        """One rule; `counting` is a further condition and what is done before the action."""
        condition, noting = counting
        return (
            f"RULE {name}\nCLASS {point.clazz}\nMETHOD {point.method}\nAT ENTRY\nCOMPILE\n"
            f"BIND {point.who}\nIF {' AND '.join([*self._chosen(point), condition])}\n"
            f"DO {noting}{action}\nENDRULE\n"
        )

    def _chosen(self, point: RuleLocation) -> Iterable[str]:
        if self.operator is not None:
            yield f'name.contains("{self.operator}")'
        if self.subtask is not None:
            yield point.is_subtask.format(subtask=self.subtask, ordinal=self.subtask + 1)

    def _counting(self, nonce: str) -> tuple[str, str]:
        key = f"{PROPERTIES}{self.mark}"
        return (
            f'incrementCounter("{nonce} entered") <= {self.limit()}',
            # The count comes last: a reader that sees a hit sees its moment and its place.
            f'System.setProperty("{key}.first", System.getProperty("{key}.first", '
            "java.time.Instant.now().toString()));\n"
            f'System.setProperty("{key}.at." + place.hashCode(), place);\n'
            f'System.setProperty("{key}.hits", '
            f'String.valueOf(incrementCounter("{nonce} hits")));\n',
        )

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        """Nothing is measured: the agent is loaded ahead, so that the injection takes one
        command."""
        try:
            _agent(cluster, target).load()
        except (AgentError, ContainerError) as error:
            return {"agent": str(error)}
        return {"agent": "loaded"}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        """Install the rules; they act when the step is next entered."""
        agent = _agent(cluster, target)
        called_ns = cluster.clock.epoch_ns()
        agent.install(self.script(nonce=uuid.uuid4().hex[:12]))
        return until_now(cluster, called_ns, "agent")

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when every rule is in the JVM and one was hit since; gone when none is there.

        `first_hit` is the moment of the first hit, UTC, by the JVM's own clock.
        """
        state, held = _inspect(cluster, target)
        if state.status == ContainerStatus.PAUSED:
            return Evidence(in_effect=False, gone=False, seen={"status": str(state.status)})
        rules = self._of_mine(held.texts)
        recorded = {
            key: held.properties[f"{self.mark}.{key}"]
            for key in ("hits", "first")
            if f"{self.mark}.{key}" in held.properties
        }
        places = self._of_mine(held.properties, ".at.")
        hits = int(recorded.get("hits", 0))
        seen = {
            "status": str(state.status),
            "rules": len(rules),
            "hits": hits,
            "first_hit": recorded.get("first"),
            "at": sorted(places.values()),
            **_refused(rules),
        }
        return Evidence(in_effect=bool(rules) and hits > 0, gone=not rules, seen=seen)

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        called_ns = cluster.clock.epoch_ns()
        state, held = _inspect(cluster, target)
        if state.status == ContainerStatus.PAUSED:
            raise AgentError(f"{target.name} is frozen: its rules go when it runs again")
        try:
            self._withdraw(_agent(cluster, target), held)
        except (AgentError, ContainerError):
            if self._of_mine(_inspect(cluster, target)[1].texts):
                raise
        return until_now(cluster, called_ns, "agent")

    def _withdraw(self, agent: JvmAgent, held: Rules) -> None:
        if rules := self._of_mine(held.texts):
            agent.remove(rules)
        if left := self._of_mine(held.properties):
            agent.forget(left)

    def _of_mine(self, held: Mapping[str, str], below: str = "") -> dict[str, str]:
        return {name: text for name, text in held.items() if name.startswith(self.mark + below)}


class DelayingFault(JvmFault):
    """The base of those that hold up a thread that enters the step."""

    delay_ms: Milliseconds
    """How long each one is held up, milliseconds."""

    def action(self) -> str:
        return f"delay({self.delay_ms})"


class FailingFault(JvmFault):
    """The base of those that throw an exception at the step."""

    lasts: ClassVar[bool] = False
    fails_tasks: ClassVar[bool] = True

    times: Annotated[int, Field(gt=0, lt=EVERY_TIME)] = 1
    """How often, in each JVM."""
    message: Words = "thrown by streamquake"
    """What the exception says."""

    def action(self) -> str:
        return f'throw new RuntimeException("{self.message}")'

    def limit(self) -> int:
        return self.times


def _agent(cluster: Cluster, node: Node) -> JvmAgent:
    return JvmAgent(cluster.runtime, node.container)


def _inspect(cluster: Cluster, node: Node) -> tuple[ContainerState, Rules]:
    """The node's state and the rules in its JVM; a JVM that does not run has none, and one that
    was started again has no agent."""
    none = Rules(texts={}, properties={})
    state = cluster.state(node)
    if state.status in NO_JVM or state.status == ContainerStatus.PAUSED:
        return state, none
    try:
        return state, _agent(cluster, node).rules() or none
    except (AgentError, ContainerError):
        state = cluster.state(node)
        if state.status in NO_JVM:
            return state, none
        raise


def _refused(rules: Mapping[str, str]) -> dict[str, str]:
    """What the JVM held against a rule when it first applied it: a wrong class, a wrong type."""
    lines = (line for text in rules.values() for line in text.splitlines())
    message = [line for line in lines if line.startswith("org.jboss.byteman.rule.exception.")]
    return {"refused": message[0]} if message else {}
