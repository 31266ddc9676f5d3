"""Targets by the names of nodes."""

from __future__ import annotations

import random

import pytest

from streamquake.faults.schedule.exact_target import bound_target, narrower_targets
from streamquake.faults.schedule.target import parse_target, resolve
from streamquake.topologies.model import Topology
from tests.fakes import TOPOLOGY, fake_cluster

TASKMANAGERS = [f"flink/taskmanager-{n}" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("written", "names", "bound"),
    [
        ("one of flink/taskmanager", TASKMANAGERS[1:2], "flink/taskmanager-2"),
        ("all of flink/taskmanager", TASKMANAGERS, "all of flink/taskmanager"),
        ("the node running subtask 0 of a", TASKMANAGERS[2:], "flink/taskmanager-3"),
        ("all of flink/taskmanager", TASKMANAGERS[:2], "all but flink/taskmanager-3"),
        ("link sink", ["sink"], "link sink"),
        ("the workload", ["the workload"], "the workload"),
        (
            "between one of flink/taskmanager and kafka/broker-1",
            ["flink/taskmanager-2<->kafka/broker-1"],
            "between flink/taskmanager-2 and kafka/broker-1",
        ),
        (
            "from all of flink/taskmanager to kafka/broker-1",
            [f"{name}->kafka/broker-1" for name in TASKMANAGERS],
            "from all of flink/taskmanager to kafka/broker-1",
        ),
    ],
)
def test_a_bound_target_matches_exactly_the_recorded_names(
    written: str, names: list[str], bound: str
) -> None:
    assert bound_target(written, names, TOPOLOGY) == bound
    if not bound.startswith("link"):
        cluster = fake_cluster()
        if bound != "the workload":
            found = resolve(parse_target(bound), cluster, random.Random(0))
            assert {target.name for target in found} == {*names}


@pytest.mark.parametrize(
    ("written", "names", "message"),
    [
        (
            "the leaders",
            ["flink/taskmanager-1", "kafka/broker-1"],
            "no target is exactly flink/taskmanager-1, kafka/broker-1",
        ),
        (
            "all of flink/taskmanager",
            ["flink/taskmanager-1", "kafka/broker-1"],
            "no target is exactly flink/taskmanager-1, kafka/broker-1",
        ),
        ("one of flink/taskmanager", [], "no target is exactly no node"),
        (
            "between all of flink/taskmanager and kafka/broker-1",
            ["flink/taskmanager-1", "kafka/broker-1"],
            "flink/taskmanager-1, kafka/broker-1 is no pair of nodes",
        ),
        (
            "between all of flink/taskmanager and kafka/broker-1",
            [],
            "nothing is no pair of nodes",
        ),
        (
            "between all of flink/taskmanager and all of flink/taskmanager",
            ["flink/taskmanager-1<->flink/taskmanager-2", "flink/taskmanager-3<->kafka/broker-1"],
            "no target is exactly flink/taskmanager-1<->flink/taskmanager-2, "
            "flink/taskmanager-3<->kafka/broker-1",
        ),
    ],
)
def test_names_that_no_target_matches_are_an_error(
    written: str, names: list[str], message: str
) -> None:
    with pytest.raises(LookupError) as rejected:
        bound_target(written, names, TOPOLOGY)
    assert str(rejected.value) == message


def test_half_of_a_role_is_no_target() -> None:
    """`all but` one node would inject into a third one, too."""
    services = {"flink": {"engine": "flink", "nodes": {"jobmanager": 1, "taskmanager": 4}}}
    four = Topology.model_validate({"name": "four", "services": services})
    assert bound_target("the leaders", TASKMANAGERS, four) == "all but flink/taskmanager-4"
    with pytest.raises(LookupError, match="no target is exactly"):
        bound_target("the leaders", TASKMANAGERS[:2], four)


@pytest.mark.parametrize(
    ("text", "narrower"),
    [
        ("all of flink/taskmanager", TASKMANAGERS),
        ("all but flink/taskmanager-2", [TASKMANAGERS[0], TASKMANAGERS[2]]),
        ("flink/taskmanager-1", []),
        ("link sink", []),
        (
            "from all but flink/taskmanager-2 to flink/taskmanager-1",
            ["from flink/taskmanager-3 to flink/taskmanager-1"],
        ),
        (
            "between flink/taskmanager-1 and all of flink/taskmanager",
            [f"between flink/taskmanager-1 and {name}" for name in TASKMANAGERS[1:]],
        ),
    ],
)
def test_a_target_of_several_nodes_is_narrowed_to_each(text: str, narrower: list[str]) -> None:
    assert [*narrower_targets(text, TOPOLOGY)] == narrower
