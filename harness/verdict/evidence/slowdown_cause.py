"""What a fault slowed down: the vertices, or the link, that cause its back-pressure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamquake.faults.schedule.target import parse_target
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.verdict.evidence.bottleneck import BackpressureSource, JobGraph
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt
from streamquake.reports.record.fault_events import FaultCalled, FaultInEffect

LINK = "link"
SLOWING = ("slow_operator", "slow_link", "skew")
PLACE = re.compile(r"^(?P<operator>.*) subtask \d+$")
WRITER = re.compile(r"(?<!end): Writer\b|^Sink: |\bSink: ")
"""A sink's operator in a vertex's name: `totals[12]: Writer`, `Sink: Writer`. The vertex `end:
Writer` follows a sink of files and writes nothing itself."""


@dataclass(frozen=True, kw_only=True)
class SlowdownCause:
    """One of the vertices, by id; or a link, into one of the vertices if there are any."""

    vertices: tuple[str, ...] = ()
    is_link: bool = False

    def agrees(self, root: BackpressureSource) -> bool:
        if self.is_link != root.is_link:
            return False
        return (self.is_link and not self.vertices) or bool({*root.vertices} & {*self.vertices})


def expected_cause(text: str, graph: JobGraph) -> SlowdownCause | None:
    """The cause that the experiment expects: text in a vertex's name, `link`, or `link into TEXT`.
    None when the text is in no vertex's name, or in every one's."""
    if text == LINK:
        return SlowdownCause(is_link=True)
    name = text.removeprefix(f"{LINK} into ")
    found = _cause_of(_vertices_with(graph, (name,)), graph)
    return None if found is None else replace(found, is_link=name != text)


def injected_cause(
    attempt: StepAttempt, experiment: Experiment, graph: JobGraph
) -> SlowdownCause | None:
    """What a step slowed down, or None where that is not known."""
    injected = attempt[FaultInEffect]
    match injected.fault:
        case "slow_operator":
            called = attempt.get(FaultCalled)
            params = {} if called is None else called.params or {}
            return _cause_of(
                _vertices_with(graph, _operators(params, injected.evidence or {})), graph
            )
        case "slow_link":
            return _cause_of_link(injected.target, experiment, graph)
        case "skew":
            return _cause_of((to for _, to, ship in graph.edges if ship == "HASH"), graph)
        case _:
            return None


def expected_part(attempt: StepAttempt, experiment: Experiment) -> str | None:
    """A word in the name of the part of a micro-batch that a step slowed down, or None where that
    is not known."""
    injected = attempt[FaultInEffect]
    if injected.fault == "skew":
        return "operators"
    if injected.fault != "slow_link":
        return None
    choice = parse_target(injected.target)
    link = experiment.topology.links.get(choice.name) if choice.how == "link" else None
    if link is None:
        return None
    to = experiment.topology.services[link.to.partition("/")[0]].engine
    files = any(output.hdfs for output in experiment.promise.outputs.values())
    if to == "hdfs":
        return None if files else "store"
    return {"input": "source", "output": "sink"}.get(str(link.port))


def _cause_of(vertices: Iterable[str], graph: JobGraph) -> SlowdownCause | None:
    """The cause at these vertices; None for all vertices, since any root would agree, and for
    none."""
    found = tuple(dict.fromkeys(vertices))
    return SlowdownCause(vertices=found) if 0 < len(found) < len(graph.names) else None


def _operators(params: Mapping[str, Any], evidence: Mapping[str, Any]) -> list[str]:
    """Parts of the slow operators' names: the fault's parameter, else the operators in its
    evidence."""
    if params.get("operator"):
        return [str(params["operator"])]
    places = [str(place) for sample in evidence.values() for place in sample.get("at", ())]
    return [match["operator"] for place in places if (match := PLACE.match(place)) is not None]


def _vertices_with(graph: JobGraph, operators: Iterable[str]) -> Iterable[str]:
    for operator in operators:
        yield from (vertex for vertex, name in graph.names.items() if operator in name)


def _cause_of_link(target: str, experiment: Experiment, graph: JobGraph) -> SlowdownCause | None:
    """A link between tasks is the cause itself; a link to a sink's output makes the writing task
    slow."""
    choice = parse_target(target)
    link = experiment.topology.links.get(choice.name) if choice.how == "link" else None
    if link is None:
        return None
    if link.from_ == link.to:
        return SlowdownCause(is_link=True)
    if link.port == "output" or choice.name == "sink":
        return _cause_of(_writers(experiment, graph), graph)
    return None


def _writers(experiment: Experiment, graph: JobGraph) -> list[str]:
    """The vertices that write to Kafka: by the names of the outputs, else every vertex with a
    writer."""
    outputs = [name for name, o in experiment.promise.outputs.items() if o.kafka is not None]
    named = re.compile(rf"\b({'|'.join(map(re.escape, outputs))})\[\d+\]: Writer")
    exact = [vertex for vertex, name in graph.names.items() if outputs and named.search(name)]
    return exact or [vertex for vertex, name in graph.names.items() if WRITER.search(name)]
