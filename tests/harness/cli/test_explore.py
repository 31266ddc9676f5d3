"""`explore` before anything starts: what it would run, and what it rejects."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.conftest import RunCommand

pytestmark = pytest.mark.slow


def test_a_dry_run_prints_the_first_trials_of_a_seed(run_command: RunCommand) -> None:
    status, out, _ = run_command("explore", "flink-kafka-hdfs", "--dry-run", "--seed", "5")
    assert status == 0
    assert [line.split(":")[0] for line in out.splitlines() if line.startswith("trial")] == [
        f"trial {number}" for number in range(1, 9)
    ]
    assert run_command("explore", "flink-kafka-hdfs", "--dry-run", "--seed", "5")[1] == out
    assert run_command("explore", "flink-kafka-hdfs", "--dry-run", "--seed", "6")[1] != out
    assert not Path("runs").exists()


def test_an_experiment_keeps_its_job(run_command: RunCommand) -> None:
    status, out, _ = run_command("explore", "quickstart", "--dry-run", "--trials", "2")
    assert (status, out.count("trial ")) == (0, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("flink-kafka-hdfs",), "give --for DURATION or --trials N"),
        (("nosuch", "--trials", "1"), "no experiment is called"),
        (
            ("undisturbed", "--dry-run", "--set", "workload.numbered.records=20000"),
            "expected a load of at least 23 s",
        ),
        (("undisturbed", "--dry-run", "--coverage", "nosuch"), "nosuch"),
        (("kafka-only", "--dry-run"), "no"),
    ],
)
def test_wrong_input_is_told(
    run_command: RunCommand, arguments: tuple[str, ...], message: str
) -> None:
    status, _, err = run_command("explore", *arguments)
    assert status == 2
    assert message in err
