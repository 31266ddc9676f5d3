"""An experiment with any value at any place is loaded or rejected with problems; the loader never
crashes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.experiment.loader import experiment_of
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import parse_document

pytestmark = pytest.mark.slow

TOPOLOGY = {
    "name": "inline",
    "services": {
        "kafka": {"engine": "kafka", "nodes": {"broker": 1}},
        "flink": {
            "engine": "flink",
            "version": "2.2",
            "nodes": {"jobmanager": 1, "taskmanager": {"count": 3, "slots": 2}},
            "config": {"execution.checkpointing.interval": "2s"},
        },
        "hdfs": {"engine": "hdfs", "nodes": {"namenode": 1, "datanode": 1}},
    },
    "links": {"sink": {"from": "flink/taskmanager", "to": "kafka/broker", "port": "output"}},
}
EXPERIMENT = {
    "name": "hostile",
    "topology": TOPOLOGY,
    "job": {"sql": "keyed-totals.sql", "parallelism": 4, "config": {"a.b": 1}},
    "workload": {"numbered": {"records": 1, "rate_per_s": 3}},
    "faults": [
        {"kill": {}, "target": "one of flink/taskmanager", "at_s": 3, "for_s": 1},
        {"slow_link": {"latency_ms": 3}, "target": "link sink", "when": {"event": "drained"}},
    ],
    "checks": ["progress", {"recovery": {"within_s": 60}}],
    "limits": {"ready_s": 3},
    "seed": 3,
}
JUNK_VALUES: tuple[Any, ...] = (
    None,
    -1,
    1.5,
    "",
    "one of",
    [],
    {},
    [None],
    {"a": {"b": [1]}},
    True,
    "../x",
    {"": 1},
)


def places(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    if isinstance(data, dict):
        for key in data:
            yield from places(data[key], (*at, key))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from places(value, (*at, number))


def with_value(data: Any, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    if isinstance(data, dict):
        return {**data, at[0]: with_value(data[at[0]], at[1:], value)}
    return [*data[: at[0]], with_value(data[at[0]], at[1:], value), *data[at[0] + 1 :]]


@pytest.mark.parametrize("junk", JUNK_VALUES, ids=json.dumps)
def test_junk_at_any_place_is_rejected_or_accepted_without_a_crash(junk: Any) -> None:
    rejected: list[BadInput] = []
    for at in places(EXPERIMENT):
        text = json.dumps(with_value(EXPERIMENT, at, junk))
        try:
            experiment_of(parse_document(text, "e.yaml"), beside=Path(), seed=1)
        except BadInput as bad:
            rejected.append(bad)

    assert len(rejected) > 10
    assert all(bad.problems for bad in rejected)
