"""What a fault slowed down, by its parameters and evidence."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.experiment.model import Experiment
from streamquake.harness.verdict.evidence.bottleneck import JobGraph
from streamquake.harness.verdict.evidence.slowdown_cause import (
    SlowdownCause,
    expected_part,
    injected_cause,
)
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt
from streamquake.reports.record.event import Action
from streamquake.reports.record.fault_events import FaultEvent
from tests.fakes import WIDE
from tests.harness.histories import Story

NAMES = {
    "0": "Source: input",
    "1": "Map -> copies[3]: Writer",
    "2": "totals[4]: Writer",
    "3": "other: Writer",
}
GRAPH = JobGraph(names=NAMES, edges=(("0", "1", "HASH"), ("1", "2", "FORWARD"), ("0", "3", "HASH")))
LINKS = {
    "out": {"from": "flink/taskmanager", "to": "kafka/broker", "port": "output"},
    "sink": {"from": "flink/taskmanager", "to": "kafka/broker", "port": "client"},
    "source": {"from": "flink/taskmanager", "to": "kafka/broker", "port": "input"},
    "data": {"from": "flink/taskmanager", "to": "flink/taskmanager", "port": "data"},
    "store": {"from": "flink/taskmanager", "to": "hdfs/datanode", "port": "data"},
}


def experiment(**outputs: Any) -> Experiment:
    """With links into brokers for input and output, and into the files."""
    return Experiment.model_validate(
        {
            "name": "by-hand",
            "topology": {**WIDE.model_dump(by_alias=True, exclude_unset=True), "links": LINKS},
            "workload": {"numbered": {"records": 9, "rate_per_s": 9}},
            "job": {"sql": "SELECT 1", "promise": {"outputs": outputs}},
        }
    )


TOPICS = experiment(copies={"kafka": "copies"}, totals={"kafka": "totals"})
FILES = experiment(copies={"kafka": "copies"}, files={"hdfs": "/output"})


def tried(fault: str | None, **reported: Any) -> StepAttempt:
    """A step that was in effect; `params` are recorded with its call."""
    story = Story()
    named = {} if fault is None else {"fault": fault}
    if "params" in reported:
        story.at(1, Action.FAULT_CALLED, **named, params=reported.pop("params"))
    elif reported.pop("called", False):
        story.at(1, Action.FAULT_CALLED, **named)
    story.at(2, Action.FAULT_IN_EFFECT, **named, **reported)
    return StepAttempt(story.history().of(FaultEvent))


AT = {"taskmanager-1": {"at": ["Map subtask 0", "strange"]}, "taskmanager-2": {"hits": 3}}


@pytest.mark.parametrize(
    ("step", "where"),
    [
        (tried("slow_operator", params={"operator": "totals"}), ("2",)),
        (tried("slow_operator", params={"operator": "totals"}, evidence=AT), ("2",)),
        (tried("slow_operator", params={}, evidence=AT), ("1",)),
        (tried("slow_operator", called=True, evidence=AT), ("1",)),
        (tried("slow_operator", evidence=AT), ("1",)),
        (tried("slow_operator", params={}), None),
        (tried("slow_operator", params={"operator": "o"}), None),
        (tried("skew"), ("1", "3")),
        (tried("slow_link", target="link out"), ("1", "2")),
        (tried("slow_link", target="link sink"), ("1", "2")),
        (tried("slow_link", target="link source"), None),
        (tried("slow_link", target="link store"), None),
        (tried("slow_link", target="link nowhere"), None),
        (tried("kill", target="link sink"), None),
        (tried(None, target="link sink"), None),
    ],
)
def test_a_step_slows_down_these_vertices(step: StepAttempt, where: tuple[str, ...] | None) -> None:
    wanted = None if where is None else SlowdownCause(vertices=where)
    assert injected_cause(step, TOPICS, GRAPH) == wanted


def test_a_slow_link_between_tasks_is_the_cause_itself() -> None:
    assert injected_cause(tried("slow_link", target="link data"), TOPICS, GRAPH) == SlowdownCause(
        is_link=True
    )


def test_without_a_writer_named_after_an_output_every_writer_counts() -> None:
    graph = JobGraph(names={**NAMES, "1": "Map", "2": "Sink: Writer", "3": "end: Writer"}, edges=())
    step = tried("slow_link", target="link out")
    assert injected_cause(step, TOPICS, graph) == SlowdownCause(vertices=("2",))


@pytest.mark.parametrize(
    ("step", "topics", "files"),
    [
        (tried("skew"), "operators", "operators"),
        (tried("slow_link", target="link source"), "source", "source"),
        (tried("slow_link", target="link out"), "sink", "sink"),
        (tried("slow_link", target="link sink"), None, None),
        (tried("slow_link", target="link data"), None, None),
        (tried("slow_link", target="link store"), "store", None),
        (tried("slow_link", target="link nowhere"), None, None),
        (tried("slow_operator", target="link source"), None, None),
        (tried(None, target="link source"), None, None),
    ],
)
def test_a_step_slows_down_this_part_of_a_batch(
    step: StepAttempt, topics: str | None, files: str | None
) -> None:
    """Files are stored beside checkpoints, so a slow link there may affect either."""
    assert expected_part(step, TOPICS) == topics
    assert expected_part(step, FILES) == files
