"""The part of the pipeline of a target, a node, a pair of nodes and a vertex."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.faults.schedule.target import parse_target
from streamquake.harness.coverage.batch_tasks import places_of_batch_tasks
from streamquake.harness.coverage.places import (
    TASKS,
    TaskPlaces,
    is_worker,
    places_of_nodes,
    places_of_target,
)
from streamquake.reports.coverage.cell import Place
from streamquake.reports.record.event import Action
from streamquake.topologies.loader import load_topology
from tests.harness.histories import Story

WORKER, OTHER = "flink/taskmanager-1", "flink/taskmanager-2"


@pytest.mark.parametrize(
    ("target", "topology", "expected"),
    [
        ("the workload", "flink-kafka-hdfs", {Place.SOURCE}),
        ("the job", "flink-kafka-hdfs", {Place.COORDINATOR}),
        ("link source", "flink-kafka-hdfs", {Place.SOURCE}),
        ("link sink", "flink-kafka-hdfs", {Place.SINK}),
        ("link data", "flink-kafka-hdfs", {Place.EXCHANGE}),
        ("link checkpoints", "flink-kafka-hdfs", {Place.STORE}),
        ("link replication", "flink-kafka3-hdfs2", {Place.BROKER}),
        ("link election", "flink-ha", {Place.COORDINATOR}),
        ("one of flink/taskmanager", "flink-kafka-hdfs", TASKS),
        ("flink/jobmanager-1", "flink-kafka-hdfs", {Place.COORDINATOR}),
        ("all of kafka/broker", "flink-kafka-hdfs", {Place.BROKER}),
        ("hdfs/datanode-1", "flink-kafka-hdfs", {Place.STORE}),
        ("one of zookeeper/server", "flink-ha", {Place.COORDINATOR}),
        ("spark/driver-1", "spark-kafka-hdfs", {Place.COORDINATOR}),
        ("spark/worker-1", "spark-kafka-hdfs", TASKS),
        (f"between {WORKER} and {OTHER}", "flink-kafka-hdfs", {Place.EXCHANGE}),
        (f"from {WORKER} to kafka/broker-1", "flink-kafka-hdfs", {Place.SOURCE, Place.SINK}),
        (f"from {WORKER} to flink/jobmanager-1", "flink-kafka-hdfs", {Place.COORDINATOR}),
    ],
)
def test_a_target_is_in_a_part_of_the_pipeline(
    target: str, topology: str, expected: set[Place]
) -> None:
    assert places_of_target(parse_target(target), load_topology(topology)) == expected


def test_nodes_and_pairs_are_known_by_their_names() -> None:
    topology = load_topology("flink-kafka-hdfs")
    assert places_of_nodes([f"{WORKER}<->{OTHER}"], topology) == {Place.EXCHANGE}
    assert places_of_nodes(["kafka/broker-1", "hdfs/namenode-1"], topology) == {
        Place.BROKER,
        Place.STORE,
    }
    assert places_of_nodes(["elsewhere/node-1"], topology) == {Place.UNKNOWN}
    assert is_worker(WORKER, topology)
    assert not is_worker("flink/jobmanager-1", topology)
    assert not is_worker(f"{WORKER}->{OTHER}", topology)


VERTICES = {
    "in": "Source: input[1] -> Calc[2]",
    "both": "OverAggregate[4] -> Calc[5] -> (totals[6]: Writer -> totals[6]: Committer)",
    "out": "end: Writer",
    "one": "Source: input[1] -> Sink: totals",
}
EDGES = [{"from": "in", "to": "both"}, {"from": "both", "to": "out"}]


@pytest.mark.parametrize(
    ("vertex", "expected"),
    [
        ("in", {Place.SOURCE}),
        ("both", {Place.OPERATOR, Place.SINK}),
        ("out", {Place.SINK}),
        ("one", {Place.SOURCE, Place.SINK}),
    ],
)
def test_a_vertex_is_what_its_operators_are(vertex: str, expected: set[Place]) -> None:
    vertices = [{"id": key, "name": name, "parallelism": 1} for key, name in VERTICES.items()]
    story = Story().at(0, Action.JOB_SUBMITTED, job="j", vertices=vertices, edges=EDGES)
    assert TaskPlaces(story.history()).of(VERTICES[vertex]) == expected


def test_a_vertex_of_no_recorded_job_is_not_known() -> None:
    assert TaskPlaces(Story().history()).of("map") == {Place.UNKNOWN}


def attempt(stage: int, start_s: float, end_s: float, node: str = "spark/worker-1") -> Any:
    return {
        "batch": 1,
        "stage": stage,
        "stage_attempt": 0,
        "task": 0,
        "node": node,
        "state": "SUCCESS",
        "start_ms": round(start_s * 1000) + 1000,
        "end_ms": round(end_s * 1000) + 1000,
    }


def test_the_first_stage_of_a_batch_reads_and_the_others_write() -> None:
    story = Story()
    story.at(2, Action.TASK_ATTEMPT, **attempt(0, 1, 2))
    story.at(4, Action.TASK_ATTEMPT, **attempt(1, 3, 4))
    history, nodes = story.history(), ["spark/worker-1"]
    story.at(0, Action.OFFSET_WRITTEN, job="q", checkpoint=1, step_ms=1000)
    history = story.history()
    assert places_of_batch_tasks(nodes, history, round(1.5e9)) == {Place.SOURCE}
    assert places_of_batch_tasks(nodes, history, round(3.5e9)) == {Place.OPERATOR, Place.SINK}
    assert places_of_batch_tasks(nodes, history, round(2.5e9)) == frozenset()
    assert places_of_batch_tasks(["spark/worker-2"], history, round(1.5e9)) == frozenset()
