"""Files that a document names are read with limits. A recorded plan cannot name a file of the
user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamquake.harness.cli.validate import problems_of
from streamquake.harness.experiment.loader import (
    experiment_document,
    experiment_of_plan,
    load_experiment,
)
from streamquake.harness.reconcile.mapping import read_mapping
from streamquake.topologies.named_files import JOBS, LARGEST_TEXT_BYTES
from streamquake.topologies.problems import BadInput

EXPERIMENT = """\
name: named
topology: {topology}
job: {job}
workload: {{numbered: {{records: 1000, rate_per_s: 100}}}}
faults: [{step}]
checks: [exactly_once]
"""
RESTART = "{{restart_job: {{from: savepoint, sql: {sql}}}, target: the job, at_s: 3}}"
KILL = "{kill: {}, target: one of flink/taskmanager, at_s: 3, for_s: 5}"
STATEMENTS = (JOBS / "keyed-totals.sql").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with one file of every kind that cannot be read as a text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin.sql").write_bytes(b"SELECT '\xe9';\n")
    with (tmp_path / "large.sql").open("wb") as large:
        large.truncate(LARGEST_TEXT_BYTES + 1)
    os.mkfifo(tmp_path / "pipe.sql")
    (tmp_path / "device.sql").symlink_to("/dev/zero")
    return tmp_path


def problems_in(
    job: str = "{sql: keyed-totals.sql, parallelism: 4}",
    step: str = KILL,
    topology: str = "flink-kafka-hdfs",
) -> str:
    Path("x.yaml").write_text(EXPERIMENT.format(job=job, step=step, topology=topology))
    return "\n".join(str(problem) for problem in problems_of("x.yaml"))


NAMES = ["latin.sql", "large.sql", "pipe.sql", "device.sql", "nowhere.sql", '"a\\0b.sql"', "."]


@pytest.mark.parametrize("name", NAMES)
def test_an_unreadable_program_is_a_problem_with_its_line(folder: Path, name: str) -> None:
    assert problems_in(job=f"{{sql: {name}, parallelism: 4}}").startswith("x.yaml:3: job.sql: ")


@pytest.mark.parametrize("name", NAMES)
def test_unreadable_restart_statements_are_a_problem_with_their_line(
    folder: Path, name: str
) -> None:
    message = problems_in(step=RESTART.format(sql=name))

    assert message.startswith("x.yaml:5: faults[0].restart_job.sql: ")


@pytest.mark.parametrize("name", [*NAMES, "/dev/zero", "/proc/self/mem", "/dev/stdin"])
@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_an_unreadable_schema_is_a_problem_with_its_line(
    folder: Path, name: str, kind: str
) -> None:
    Path("map.yaml").write_text(f"key: a\nformat: {kind}\nschema: {name}\n")

    with pytest.raises(BadInput) as rejected:
        read_mapping(Path("map.yaml"), "expected")

    assert str(rejected.value).startswith("map.yaml:3: schema: ")


@pytest.mark.parametrize("name", [*NAMES, "/dev/zero"])
def test_unreadable_rules_are_a_problem_with_their_line(folder: Path, name: str) -> None:
    changed = f"services: {{flink: {{nodes: {{jobmanager: {{rules: {name}}}}}}}}}"

    message = problems_in(topology=f"\n  base: flink-kafka-hdfs\n  {changed}")

    assert "services.flink.nodes.jobmanager.rules: " in message


def test_a_program_of_one_line_is_text_in_the_record(folder: Path) -> None:
    (folder / "one.sql").write_text("SELECT 1;")
    Path("x.yaml").write_text(
        EXPERIMENT.format(
            job="{sql: one.sql, parallelism: 4}", step=KILL, topology="flink-kafka-hdfs"
        )
    )
    experiment = load_experiment("x.yaml", seed=1)

    assert experiment_of_plan(experiment_document(experiment), "run.json", 1) == experiment


def test_a_plan_has_the_restart_statements_and_reads_no_file(folder: Path) -> None:
    (folder / "other.sql").write_text(STATEMENTS)
    Path("x.yaml").write_text(
        EXPERIMENT.format(
            job="{sql: keyed-totals.sql, parallelism: 4, config: "
            "{execution.checkpointing.externalized-checkpoint-retention: RETAIN_ON_CANCELLATION}}",
            step=RESTART.format(sql="other.sql"),
            topology="flink-kafka-hdfs",
        )
    )
    experiment = load_experiment("x.yaml", seed=1)
    (folder / "other.sql").unlink()
    plan = experiment_document(experiment)

    assert plan["faults"][0]["restart_job"]["sql"] == STATEMENTS
    assert experiment_of_plan(plan, "run.json", 1) == experiment


@pytest.mark.parametrize("name", ["/etc/hosts", "../other.sql", "other.sql", "nowhere"])
def test_a_recorded_restart_can_name_only_shipped_statements(folder: Path, name: str) -> None:
    (folder / "other.sql").write_text(STATEMENTS)
    plan = experiment_document(load_experiment("uc-restart-incompatible", seed=1))
    assert experiment_of_plan(plan, "run.json", 1).faults

    (step,) = (step for step in plan["faults"] if "restart_job" in step)
    step["restart_job"]["sql"] = name
    with pytest.raises(BadInput, match="a record must hold the statements themselves"):
        experiment_of_plan(plan, "run.json", 1)
