"""Experiments with several jobs: what each reads and writes, its placeholders, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamquake.harness.experiment.job_chain import drain_order
from streamquake.harness.experiment.job_placeholders import placeholders
from streamquake.harness.experiment.loader import (
    experiment_document,
    experiment_of_plan,
    load_experiment,
)
from streamquake.harness.experiment.model import JOB, Experiment
from streamquake.topologies.problems import BadInput
from tests.harness.experiment.test_loader import load, problems_in

EXAMPLES = Path(__file__).parents[3] / "examples" / "stages"
FIRST = """-- streamquake:
--   outputs:
--     first:
--       kafka: between
INSERT INTO `${output.first}` SELECT * FROM `${input}` -- ${run}
"""
SECOND = """-- streamquake:
--   outputs:
--     second:
--       kafka: totals
--   expected: SELECT key FROM sent
INSERT INTO `${output.second}` SELECT * FROM `${input}`
"""
CHAIN = """\
name: chain
topology: flink-kafka-hdfs
other_jobs:
  enrich: {sql: first.sql, sink: at-least-once}
job: {sql: second.sql, reads: [between], parallelism: 2}
workload: {numbered: {records: 1000, rate_per_s: 100}}
checks: [exactly_once]
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    (tmp_path / "first.sql").write_text(FIRST, "utf-8")
    (tmp_path / "second.sql").write_text(SECOND, "utf-8")
    return tmp_path


def chain(programs: Path, *sets: str, text: str = CHAIN) -> Experiment:
    return load(text, beside=programs, sets=sets)


def problems(programs: Path, *sets: str, text: str = CHAIN) -> list[str]:
    return problems_in(text, sets, programs)


def test_each_job_has_its_program_its_promise_and_its_placeholders(programs: Path) -> None:
    experiment = chain(programs)
    assert list(experiment.jobs) == ["enrich", JOB]
    assert experiment.other_jobs["enrich"].sql == FIRST
    assert list(experiment.promise.outputs) == ["second"]

    first = placeholders(experiment, "r", "enrich")
    assert (first["input"], first["output.first"], first["run"]) == ("input", "between", "r.enrich")
    assert first["sink.guarantee"] == "at-least-once"
    assert first["checkpoint"].endswith("/checkpoints/r.enrich")

    second = placeholders(experiment, "r")
    assert (second["input"], second["input.between"]) == ("between", "between")
    assert (second["run"], second["sink.guarantee"]) == ("r", "exactly-once")
    assert {"output.first", "input.input"}.isdisjoint(second)


def test_a_recorded_plan_is_complete(programs: Path) -> None:
    experiment = chain(programs)
    plan = json.loads(json.dumps(experiment_document(experiment)))
    assert experiment_of_plan(plan, "run.json") == experiment

    plan["other_jobs"]["enrich"]["sql"] = "first.sql"
    with pytest.raises(BadInput, match="must hold the program itself"):
        experiment_of_plan(plan, "run.json")


def test_a_plan_from_before_there_were_other_jobs_is_read(programs: Path) -> None:
    text = CHAIN.replace("  enrich: {sql: first.sql, sink: at-least-once}\n", "")
    experiment = chain(programs, text=text.replace("other_jobs:\n", "").replace("between", "input"))
    plan = json.loads(json.dumps(experiment_document(experiment)))
    del plan["other_jobs"], plan["job"]["reads"]
    read = experiment_of_plan(plan, "run.json")
    assert (read.other_jobs, read.job and read.job.reads) == ({}, None)


def test_settings_change_other_jobs(programs: Path) -> None:
    changed = chain(programs, "other_jobs.enrich.parallelism=3")
    assert changed.other_jobs["enrich"].parallelism == 3
    (message,) = problems(programs, "other_jobs.enrich.paralelism=3")
    assert 'did you mean "parallelism"' in message


def test_jobs_are_drained_behind_those_they_read(programs: Path) -> None:
    experiment = chain(programs)
    job = experiment.jobs[JOB].model_copy(update={"reads": ("input",)})
    # The job named first reads what the others write, and is drained last.
    enrich = experiment.other_jobs["enrich"].model_copy(update={"reads": ("totals",)})
    assert drain_order(experiment) == ("enrich", JOB)
    turned = experiment.model_copy(update={"other_jobs": {"enrich": enrich}, "job": job})
    assert drain_order(turned) == (JOB, "enrich")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["job.reads=[betwen]"], 'nothing writes the topic betwen; did you mean "between"?'),
        (["job.reads=[]"], "`job` must read a topic"),
        (["other_jobs.enrich.reads=[totals]"], "the jobs read in a circle: "),
        (["other_jobs.enrich.reads=[between]"], "circle: enrich reads from enrich"),
        (["other_jobs.enrich={existing: {}}"], "a job that already runs is not supported here"),
        (["other_jobs.job={sql: first.sql}", "other_jobs.enrich=null"], "is the name of `job`"),
        (["other_jobs.again={sql: first.sql}"], "between is an output of enrich and of again"),
        (["other_jobs.enrich.sql=no.sql"], 'no job is called "no.sql"'),
        (["other_jobs.enrich.parallelism=5"], "2 parallel tasks beside 5 of the other jobs need 7"),
        (["other_jobs.enrich.config={taskmanager.slots: 1}"], "taskmanager.slots"),
        (["workload.numbered.topic=between"], 'which is enrich\'s output "first" too'),
        (["topology=spark-kafka-hdfs"], "spark runs spark, which runs one program"),
        (["topology=spark-kafka-hdfs"], "job.reads: what this job really reads is not known"),
    ],
)
def test_bad_input_is_rejected(programs: Path, settings: list[str], message: str) -> None:
    assert any(message in each for each in problems(programs, *settings)), problems(
        programs, *settings
    )


def test_other_jobs_need_a_job_that_is_submitted(programs: Path) -> None:
    text = CHAIN.replace("job: {sql: second.sql, reads: [between], parallelism: 2}\n", "")
    assert any("the experiment has no `job`" in each for each in problems(programs, text=text))


def test_a_program_names_only_topics_that_it_is_declared_to_read(programs: Path) -> None:
    (programs / "second.sql").write_text(SECOND.replace("${input}", "${input.between}"), "utf-8")
    assert chain(programs)
    (message,) = problems(programs, "job.reads=[input]")
    assert "second.sql:6: unknown placeholder ${input.between}" in message


@pytest.mark.parametrize("name", ["bills", "repeated-stage", "ended-stage"])
def test_the_examples_are_valid(name: str) -> None:
    experiment = load_experiment(str(EXAMPLES / f"{name}.yaml"), seed=1)
    assert drain_order(experiment) == ("enrich", JOB)


@pytest.mark.parametrize(
    ("one", "other", "is_bad"),
    [
        ("hdfs: /out", "hdfs: /out/", True),
        ("hdfs: /out", "hdfs: /out/late", True),
        ("hdfs: /out/late", "hdfs: /out", True),
        ("hdfs: /out", "hdfs: /output", False),
        ("s3: s3://results/out", "s3: s3://results/out/late", True),
        ("s3: s3://results/out", "s3: s3://results/out/", True),
        ("s3: s3://results/out", "s3: s3://others/out", False),
        ("hdfs: /out", "kafka: out", False),
    ],
)
def test_the_output_of_a_job_is_not_in_that_of_another(
    programs: Path, one: str, other: str, is_bad: bool
) -> None:
    sides = f"kafka: between\n--     side:\n--       {one}"
    (programs / "first.sql").write_text(FIRST.replace("kafka: between", sides), "utf-8")
    sides = f"kafka: totals\n--     side:\n--       {other}"
    (programs / "second.sql").write_text(SECOND.replace("kafka: totals", sides), "utf-8")
    if is_bad:
        assert any("rename one of them" in each for each in problems(programs))
    else:
        assert chain(programs).jobs
