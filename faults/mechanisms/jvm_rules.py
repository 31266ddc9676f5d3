"""Faults at an exact step inside a JVM: rules that the JVM's agent applies where a step is entered.

A rule acts every time the chosen operator or subtask enters its step, or the first `times` times.
The JVM counts how often it acts and stamps the first time; the names of rules and counters contain
a mark derived from the fault and its parameters, and both end with the JVM.
"""

from __future__ import annotations

import hashlib
import re
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
from streamquake.faults.requirement import (
    Requirement,
    Requirements,
    each,
    more_than,
    one_of,
    other_text_than,
    text_with,
)
from streamquake.topologies.limits import Milliseconds
from streamquake.topologies.model import Topology

NO_JVM = (ContainerStatus.EXITED, ContainerStatus.GONE, ContainerStatus.CREATED)
EVERY_TIME = 2**31 - 1
ROLE = "taskmanager"
Words = Annotated[str, Field(min_length=1, pattern=r'^[^"\\\n\r]+$')]
"""Text that a rule can contain: no double quotes, backslashes or line breaks."""

ANY_SUBTASK = r".*(?: subtask \d+$|\(\d+/)"
"""What follows the name in a place, as a regular expression."""


class JvmFault(NodeFault):
    """The base of the faults at a step inside a TaskManager."""

    engines: ClassVar[tuple[str, ...]] = ("flink",)
    leaves_agent: ClassVar[bool] = True
    grows: ClassVar[tuple[str, ...]] = ("hits",)
    keeps: ClassVar[tuple[str, ...]] = ("first_hit", "rules")

    operator: Words | None = None
    """Only operators whose name contains this text; where the step is a whole task's, only tasks
    into which such an operator is chained. By default, any."""
    subtask: Annotated[int, Field(ge=0, lt=2**15)] | None = None
    """Only the subtask with this index, from 0. By default, any."""

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        service, _, kind = role.partition("/")
        if kind != ROLE:
            return f"{cls.name} acts on steps of tasks, and a {kind} runs none; target a {ROLE}"
        declared = topology.services[service]
        group = declared.nodes.get(kind)
        if foreign := (group.image if group else None) or declared.image:
            return f"{cls.name} needs the rule agent, which the image {foreign} does not contain"
        return None

    def points(self) -> Iterable[RuleLocation]:
        """The steps at which the fault acts."""
        raise NotImplementedError

    def action(self) -> str:
        """The action of the rule, in the rule language."""
        raise NotImplementedError

    def limit(self) -> int:
        """How often the rule acts."""
        return EVERY_TIME

    def script(self, nonce: str) -> str:
        """The text of the rules. Counters live as long as the JVM, so the names of each injection's
        counters contain a `nonce` of its own."""
        return "".join(
            self.rule(f"{self.mark} {number}", point, self._counting(nonce), self.action())
            for number, point in enumerate(self.points(), start=1)
        )

    @property
    def mark(self) -> str:
        """The prefix of the names of its rules and counters."""
        digest = hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:8]
        return f"streamquake-{self.name}-{digest}"

    def rule(self, name: str, point: RuleLocation, counting: tuple[str, str], action: str) -> str:
        """The text of one rule; `counting` is a further condition, and the statements before the
        action."""
        condition, recording = counting
        return (
            f"RULE {name}\nCLASS {point.clazz}\nMETHOD {point.method}\nAT ENTRY\nCOMPILE\n"
            f"BIND {point.who}\nIF {' AND '.join([*self._conditions(point), condition])}\n"
            f"DO {recording}{action}\nENDRULE\n"
        )

    def _conditions(self, point: RuleLocation) -> Iterable[str]:
        if self.operator is not None:
            yield f'name.contains("{self.operator}")'
        if self.subtask is not None:
            yield point.is_subtask.format(subtask=self.subtask, ordinal=self.subtask + 1)

    def _counting(self, nonce: str) -> tuple[str, str]:
        key = f"{PROPERTIES}{self.mark}"
        return (
            f'incrementCounter("{nonce} entered") <= {self.limit()}',
            # The count is set last, so that a counted hit always has its moment and place.
            f'System.setProperty("{key}.first", System.getProperty("{key}.first", '
            "java.time.Instant.now().toString()));\n"
            f'System.setProperty("{key}.at." + place.hashCode(), place);\n'
            f'System.setProperty("{key}.hits", '
            f'String.valueOf(incrementCounter("{nonce} hits")));\n',
        )

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        """Measures nothing, but loads the agent before the injection, which then takes one
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
        """In effect when every rule is in the JVM and one was triggered since; healed when no rule
        is in it.

        `first_hit` is the moment of the first hit, UTC, by the JVM's own clock.
        """
        state, loaded = _inspect(cluster, target)
        if state.status == ContainerStatus.PAUSED:
            return Evidence(
                in_effect=False, healed=False, observations={"status": str(state.status)}
            )
        rules = self._own_entries(loaded.texts)
        recorded = {
            key: loaded.properties[f"{self.mark}.{key}"]
            for key in ("hits", "first")
            if f"{self.mark}.{key}" in loaded.properties
        }
        places = self._own_entries(loaded.properties, ".at.")
        hits = int(recorded.get("hits", 0))
        errors = list(self._own_entries(loaded.errors).values())
        observations = {
            "status": str(state.status),
            "rules": len(rules),
            "hits": hits,
            "first_hit": recorded.get("first"),
            "at": sorted(places.values()),
            **({"refused": errors[0]} if errors else {}),
        }
        return Evidence(
            in_effect=bool(rules) and hits > 0, healed=not rules, observations=observations
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        requires = {
            "status": one_of(str(ContainerStatus.RUNNING)),
            "rules": more_than(0),
            "hits": more_than(0),
            "first_hit": text_with(r"^\d{4}-\d\d-\d\dT", words="a moment"),
        }
        return {**requires, "at": each(self._place())}

    def _place(self) -> Requirement:
        """Every place at which the rules may act."""
        names = sorted({self.operator or "", *(point.named for point in self.points())} - {""})
        parts = [re.escape(name) + ANY_SUBTASK for name in names]
        words = [f"`{name}` in its name" for name in names]
        if self.subtask is not None:
            parts.append(_place_of(self.subtask))
            words.append(f"subtask {self.subtask}")
        return text_with(*parts, words=", ".join(["a place", *words]))

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"rules": one_of(0), "status": other_text_than(str(ContainerStatus.PAUSED))}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        called_ns = cluster.clock.epoch_ns()
        state, loaded = _inspect(cluster, target)
        if state.status == ContainerStatus.PAUSED:
            raise AgentError(f"{target.name} is frozen: its rules are removed when it runs again")
        try:
            self._remove(_agent(cluster, target), loaded)
        except (AgentError, ContainerError):
            if self._own_entries(_inspect(cluster, target)[1].texts):
                raise
        return until_now(cluster, called_ns, "agent")

    def _remove(self, agent: JvmAgent, loaded: Rules) -> None:
        if rules := self._own_entries(loaded.texts):
            agent.remove(rules)
        if properties := self._own_entries(loaded.properties):
            agent.forget(properties)

    def _own_entries(self, loaded: Mapping[str, str], below: str = "") -> dict[str, str]:
        return {name: text for name, text in loaded.items() if name.startswith(self.mark + below)}


class DelayingFault(JvmFault):
    """The base of faults that delay every call of the step."""

    delay_ms: Milliseconds
    """How long each call is delayed, milliseconds."""

    def action(self) -> str:
        return f"delay({self.delay_ms})"


class FailingFault(JvmFault):
    """The base of faults that throw an exception at the step."""

    lasts: ClassVar[bool] = False
    fails_tasks: ClassVar[bool] = True

    times: Annotated[int, Field(gt=0, lt=EVERY_TIME)] = 1
    """How often it throws, in each JVM."""
    message: Words = "thrown by streamquake"
    """The message of the exception."""

    def action(self) -> str:
        return f'throw new RuntimeException("{self.message}")'

    def limit(self) -> int:
        return self.times


def _agent(cluster: Cluster, node: Node) -> JvmAgent:
    return JvmAgent(cluster.runtime, node.container)


def _inspect(cluster: Cluster, node: Node) -> tuple[ContainerState, Rules]:
    """The node's state and the rules in its JVM; no rules if the JVM does not run, or was restarted
    and has no agent."""
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


def _place_of(subtask: int) -> str:
    """A regular expression that is found in the places of a subtask alone: `Map subtask 2`, or the
    name of its thread, `Map (3/4)#0`, which counts from one."""
    return rf" subtask {subtask}$|\({subtask + 1}/"
