"""Triggers from YAML: every form, and the messages for invalid ones."""

from __future__ import annotations

import pytest

from streamquake.faults.schedule.step import TriggerSpec
from tests.harness.experiment.test_loader import load, problems_in

TWO = """\
name: mine
topology: flink-kafka-hdfs
job: {sql: copy.sql, parallelism: 2}
workload: {numbered: {records: 1000, rate_per_s: 100}}
faults:
  - {kill: {}, target: flink/taskmanager-1, at_s: 3, for_s: 2}
  - {pause: {}, target: flink/taskmanager-2, when: WHEN, for_s: 2}
"""


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            "{between: [checkpoint triggered, checkpoint acknowledged], nth: 2, tries: 3}",
            TriggerSpec(
                between=("checkpoint triggered", "checkpoint acknowledged"), nth=2, tries=3
            ),
        ),
        (
            "{metric: backpressure, above: 0.5, for_s: 3}",
            TriggerSpec(metric="backpressure", above=0.5, for_s=3),
        ),
        ("{metric: lag, below: 10}", TriggerSpec(metric="lag", below=10)),
        ("{effect_of: kill, delay_s: 1}", TriggerSpec(effect_of="kill", delay_s=1)),
        ("{effect_of: 1}", TriggerSpec(effect_of=1)),
    ],
)
def test_every_form_of_a_trigger_is_loaded(written: str, expected: TriggerSpec) -> None:
    assert load(TWO.replace("WHEN", written)).faults[1].when == expected


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            "{between: [checkpoint triggered, checkpoint acknowleged]}",
            'faults[1].when.between[1]: no event is called "checkpoint acknowleged"; did you mean '
            '"checkpoint acknowledged"?',
        ),
        ("{between: [checkpoint triggered, checkpoint triggered]}", "two different events"),
        ("{metric: lagg, above: 3}", 'faults[1].when.metric: no metric is called "lagg"; did you'),
        ("{metric: lag}", "faults[1].when: `metric` needs one threshold"),
        ("{effect_of: 2}", "faults[1].when.effect_of: there is no step 2 before this one"),
        ("{effect_of: pause}", 'no step before this one is a "pause"; there are: kill'),
        ("{event: checkpoint triggered, tries: 2}", "`tries` goes with `between`, got `event`"),
        ("{after_s: 1, event: checkpoint triggered}", "a trigger is either `after_s: SECONDS`"),
    ],
)
def test_invalid_triggers_are_rejected(written: str, message: str) -> None:
    found = problems_in(TWO.replace("WHEN", written))
    assert any(line.startswith("e.yaml:7: ") and message in line for line in found), found


def test_an_operation_on_the_job_needs_a_job() -> None:
    text = TWO.replace("job: {sql: copy.sql, parallelism: 2}\n", "")
    text = text.replace("{kill: {}, target: flink/taskmanager-1", "{savepoint: {}, target: the job")
    found = problems_in(text.replace("WHEN", "{effect_of: 1}"))
    assert any("faults[0].target: the experiment has no job" in line for line in found), found


BY_ENGINE = "{flink: {after_s: 3}, spark: {between: [batch running, sink written], tries: 2}}"
ON_SPARK = ("topology: flink-kafka-hdfs", "topology: spark-kafka-hdfs")


def test_the_trigger_for_the_jobs_engine_is_used() -> None:
    text = TWO.replace("flink/taskmanager", "worker").replace("worker-1", "one of worker")
    text = text.replace("worker-2", "one of worker").replace(
        "sql: copy.sql", "sql: copy.sql, pyspark: copy.py"
    )
    text = text.replace("WHEN", BY_ENGINE)

    assert load(text).faults[1].when == TriggerSpec(after_s=3)
    spark = TriggerSpec(between=("batch running", "sink written"), tries=2)
    assert load(text.replace(*ON_SPARK)).faults[1].when == spark


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            "{spark: {after_s: 1}}",
            "faults[1].when: the job runs on flink, and the trigger is given "
            "for spark only; write `flink: {...}` too",
        ),
        (
            "{flink: {after_s: 1}, spark: {event: batch runing}}",
            'no event is called "batch runing"; did you mean "batch running"?',
        ),
        ("{flink: {after_s: -1}, spark: {after_s: 1}}", "faults[1].when.flink.after_s: expected"),
        ("{flink: {after_s: 1}, event: batch running}", 'when.flink: unknown key "flink"'),
        ("{}", "a trigger is either"),
    ],
)
def test_invalid_triggers_for_engines_are_rejected(written: str, message: str) -> None:
    found = problems_in(TWO.replace("WHEN", written))
    assert any(line.startswith("e.yaml:7: ") and message in line for line in found), found
