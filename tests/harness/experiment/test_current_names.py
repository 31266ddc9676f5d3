"""Former names of faults: an experiment is loaded with a warning, a record is read unchanged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from streamquake.faults.fault import faults
from streamquake.harness.experiment.loader import (
    experiment_document,
    experiment_of,
    experiment_of_plan,
)
from streamquake.harness.experiment.model import Experiment
from streamquake.topologies.yaml_document import parse_document

TEXT = """\
name: mine
topology: flink-kafka-hdfs
job: {sql: keyed-totals.sql, parallelism: 4}
workload: {numbered: {records: 100000, rate_per_s: 1000}}
"""
SCHEDULE = """\
faults:
  - {stop_the_world: {}, target: flink/taskmanager-1, at_s: 2, for_s: 3}
  - {kill: {}, target: flink/taskmanager-2, when: {effect_of: stop_the_world}}
checks: [progress, {recovery: {fault: stop_the_world}}]
"""
DRAW = "draw: {profile: swarm, without: [stop_the_world]}\n"


def load(text: str) -> Experiment:
    return experiment_of(parse_document(text, "e.yaml"), beside=Path(), seed=1)


def plan_of(experiment: Experiment) -> str:
    return json.dumps(experiment_document(experiment))


def test_an_experiment_is_loaded_under_the_current_name_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match='the fault "stop_the_world" is now called "sigstop"'):
        experiment = load(TEXT + SCHEDULE)

    assert experiment == load(TEXT + SCHEDULE.replace("stop_the_world", "sigstop"))
    assert "stop_the_world" not in plan_of(experiment)


@pytest.mark.filterwarnings("error")
def test_a_recorded_plan_keeps_the_name_that_its_history_has() -> None:
    current = load(TEXT + SCHEDULE.replace("stop_the_world", "sigstop"))
    former = json.loads(plan_of(current).replace('"sigstop"', '"stop_the_world"'))

    recorded = experiment_of_plan(former, "run.json")

    assert recorded.faults[0].fault == "stop_the_world"
    assert type(recorded.faults[0].build_fault()) is faults["sigstop"]
    assert experiment_document(recorded) == former


def test_a_draw_excludes_a_fault_by_its_former_name() -> None:
    with pytest.warns(FutureWarning, match="sigstop"):
        former = load(TEXT + DRAW)
    assert former == load(TEXT + DRAW.replace("stop_the_world", "sigstop"))
    assert former != load(TEXT + DRAW.replace("stop_the_world", "pause"))


def test_former_names_are_not_listed_and_are_unique() -> None:
    former = [name for fault in faults.values() for name in fault.former_names]

    assert {"explosion", "stop_the_world"} <= set(former)
    assert len(set(former)) == len(former)
    assert not set(former) & set(faults)


@pytest.mark.process
def test_the_command_line_prints_the_warning_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(TEXT + SCHEDULE.partition("checks")[0])
    command = (sys.executable, "-m", "streamquake", "validate", str(path))

    found = subprocess.run(command, capture_output=True, text=True, check=True)

    assert found.stderr.splitlines()[0] == (
        'warning: the fault "stop_the_world" is now called "sigstop"'
    )
