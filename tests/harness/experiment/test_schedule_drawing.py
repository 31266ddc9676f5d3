"""Drawn schedules on the shipped topologies: each is valid, has a dry run, and can be run again."""

from __future__ import annotations

import functools
import itertools
import random
from pathlib import Path

import pytest

from streamquake.harness.cli.plan import print_plan, schedule_yaml
from streamquake.harness.experiment.loader import (
    experiment_document,
    experiment_of,
    experiment_of_plan,
)
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.schedule_drawing import candidates_for, removes_whole_role
from streamquake.harness.experiment.validation import broken_rules
from streamquake.reports.run.text import make_console
from streamquake.topologies.named_files import SHIPPED, shipped_names
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import parse_document

pytestmark = pytest.mark.slow

TOPOLOGIES = shipped_names(SHIPPED, ".yaml")
FEW_DRAWS = len(TOPOLOGIES)
MANY_DRAWS = 200
JOB = "job: {sql: copy.sql, pyspark: copy.py, parallelism: 2}\n"
WITHOUT_JOB = ("kafka-only", "kafka-three", "existing", "existing-flink")


def text_of(topology: str, profile: str) -> str:
    return (
        f"name: drawn\ntopology: {topology}\n{'' if topology in WITHOUT_JOB else JOB}"
        "workload: {numbered: {records: 100000, rate_per_s: 1000}}\n"
        f"draw: {{profile: {profile}}}\n"
    )


def load(text: str, seed: int) -> Experiment:
    return experiment_of(parse_document(text, "drawn.yaml"), beside=Path(), seed=seed)


def seeds_and_profiles(draws: int) -> list[tuple[str, str, int]]:
    """Shipped topologies in turn, each with a profile and a seed."""
    rng = random.Random(0)
    found = []
    for number, topology in zip(range(draws), itertools.cycle(TOPOLOGIES), strict=False):
        name = rng.choice(("swarm", "gentle", f"single:{rng.choice(drawable_faults(topology))}"))
        found.append((topology, name, number))
    return found


@functools.cache
def drawable_faults(topology: str) -> tuple[str, ...]:
    """The faults that a draw on the topology may contain."""
    experiment = load(text_of(topology, "gentle"), 1)
    return tuple(sorted({candidate.fault for candidate in candidates_for(experiment)}))


@pytest.mark.parametrize("draws", [FEW_DRAWS, pytest.param(MANY_DRAWS, marks=pytest.mark.nightly)])
def test_drawn_schedules_are_valid_and_can_be_run_again(draws: int) -> None:
    for topology, profile, seed in seeds_and_profiles(draws):
        text = text_of(topology, profile)
        drawn = load(text, seed)
        assert broken_rules(drawn) == []
        assert all(step.for_s is not None for step in drawn.faults)
        again = text[: text.index("draw:")] + schedule_yaml(drawn.faults) + "\n"
        assert load(again, seed) == drawn
        assert experiment_of_plan(experiment_document(drawn), "run.json") == drawn
        with Path("/dev/null").open("w") as nowhere:
            print_plan(drawn, make_console(nowhere))


def test_equal_seeds_draw_equal_schedules_and_others_different_ones() -> None:
    text = text_of("flink-kafka-hdfs", "swarm")
    assert load(text, 5) == load(text, 5)
    assert len({str(load(text, seed).faults) for seed in range(8)}) > 5


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_draw_never_removes_the_last_node_of_a_role(topology: str) -> None:
    experiment = load(text_of(topology, "swarm"), 1)
    assert not [c for c in candidates_for(experiment) if removes_whole_role(c, experiment.topology)]


def test_only_a_fault_requested_by_name_removes_the_only_node_of_a_role() -> None:
    (step,) = load(text_of("kafka-only", "single:kill"), 1).faults
    assert step.target == "kafka/broker-1"
    (step,) = load(text_of("flink-kafka-hdfs", "single:kill"), 1).faults
    assert step.target.startswith("flink/taskmanager-")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("profile: swarm", "profile: swram", 'draw: no profile is called "swram"; did you mean'),
        ("profile: swarm", "profile: single:kil", 'draw: no fault is called "kil"; did you mean'),
        ("profile: swarm", "profile: swarm, without: [pasue]", 'no fault is called "pasue"'),
        ("records: 100000", "records: 5000", "too short for a schedule"),
        (
            "draw:",
            "faults: [{kill: {}, target: kafka/broker-1, at_s: 1}]\ndraw:",
            "expected one schedule",
        ),
    ],
)
def test_invalid_draws_are_rejected(old: str, new: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        load(text_of("flink-kafka-hdfs", "swarm").replace(old, new), 1)
    assert any(message in str(problem) for problem in caught.value.problems), caught.value


def test_a_fault_without_a_suitable_target_is_not_drawn() -> None:
    with pytest.raises(BadInput, match="no fault of the profile single:slow_link makes sense on"):
        load(text_of("kafka-only", "single:slow_link"), 1)
