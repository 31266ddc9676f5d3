"""`compare` on the command line: its plan, and the input that it rejects."""

from __future__ import annotations

import json

import pytest

from streamquake.harness.cli import program
from streamquake.harness.cli.guard import guarded

TWO = ("--topology", "flink-kafka-hdfs", "--topology", "flink-1-20-kafka-hdfs")


def test_every_topology_has_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(program, ["compare", "quickstart", *TWO, "--dry-run"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "on flink-kafka-hdfs" in first
    assert "on flink-1-20-kafka-hdfs" in second
    assert first.partition("seed")[2] == second.partition("seed")[2]


def test_the_plan_may_be_one_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["compare", "canary", *TWO, "--seed", "4", "--dry-run", "--json"]
    assert guarded(program, argv) == 0
    planned = {"experiment": "canary", "seed": 4, "expected": {"exactly_once": ["duplicated"]}}
    topologies = ("flink-kafka-hdfs", "flink-1-20-kafka-hdfs")
    runs = [{**planned, "topology": name} for name in topologies]
    assert json.loads(capsys.readouterr().out) == {"runs": runs}


@pytest.mark.parametrize(
    "experiment", ["quickstart", "kill-worker-mid-batch", "silent-worker", "slow-sink", "hot-key"]
)
def test_experiments_that_need_no_single_engine_are_planned_on_both(
    capsys: pytest.CaptureFixture[str], experiment: str
) -> None:
    engines = ("--topology", "flink-kafka-hdfs", "--topology", "spark-kafka-hdfs")
    assert guarded(program, ["compare", experiment, *engines, "--dry-run"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (TWO[:2], "expected two or more topologies, got flink-kafka-hdfs"),
        ((*TWO, *TWO[:2]), "expected two or more topologies"),
        ((*TWO[:2], "--topology", "flnk"), 'no topology is called "flnk"'),
    ],
)
def test_bad_input_is_an_error_with_a_message(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], message: str
) -> None:
    assert guarded(program, ["compare", "quickstart", *argv, "--dry-run"]) == 2
    assert message in capsys.readouterr().err
