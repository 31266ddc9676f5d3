"""Checks, triggers and load settings that an experiment cannot have are rejected before anything
starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.cli.validate import problems_of
from streamquake.harness.experiment.loader import EXPERIMENTS
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.topologies.named_files import shipped_names

EXPERIMENT = """\
name: rules
topology: flink-kafka-hdfs
job: JOB
workload: {numbered: WORKLOAD}
SCHEDULE
checks:
  - exactly_once
  - CHECK
"""
KILL = "{kill: PARAMS, target: one of flink/taskmanager, WHEN, for_s: 5}"


def problems_in(
    tmp_path: Path,
    *,
    check: str = "progress",
    params: str = "{}",
    when: str = "at_s: 3",
    workload: str = "{records: 9000, rate_per_s: 100}",
    schedule: str = "",
    job: str = "{sql: keyed-totals.sql, parallelism: 4}",
) -> str:
    step = KILL.replace("PARAMS", params).replace("WHEN", when)
    text = EXPERIMENT.replace("SCHEDULE", schedule or f"faults: [{step}]").replace("JOB", job)
    file = tmp_path / "x.yaml"
    file.write_text(text.replace("CHECK", check).replace("WORKLOAD", workload))
    return "\n".join(str(problem) for problem in problems_of(str(file)))


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            "{recovery: {fault: pause}}",
            'x.yaml:8: checks[1].recovery.fault: the schedule has no "pause"',
        ),
        ("{recovery: {fault: kil}}", 'did you mean "kill"?'),
        ("{}", "x.yaml:8: checks[1]: expected a check by name; known: backpressure_root"),
        ("{recovery: false}", "checks[1].recovery: expected keys with values, got false"),
        ("{recovery: []}", "checks[1].recovery: expected keys with values, got []"),
        ("{checkpoints: {fault: pause}}", 'checkpoints.fault: the schedule has no "pau'),
        ("{throughput: {outage_within_s: 1, fault: pause}}", 'the schedule has no "pause"'),
        ("{continuity: {within_s: 1, fault: pause}}", 'the schedule has no "pause"'),
        ("{backpressure_root: {fault: pause}}", 'the schedule has no "pause"'),
        (
            "{latency: {p50_within_s: 1, output: total}}",
            'no output is called "total"; did you mean "totals"?',
        ),
        ("{throughput: {outage_within_s: 1, output: nowhere}}", 'no output is called "nowhere"'),
        ("{continuity: {within_s: 1, output: nowhere}}", 'no output is called "nowhere"'),
        ("{bounded_loss: {output: nowhere}}", 'no output is called "nowhere"'),
        ("{bounded_loss: {at_most: 9000}}", "9,000 is all of the 9,000 records that are sent"),
        (
            "{bounded_loss: {slack_s: 90}}",
            "bounded_loss.slack_s: 90 s is no less than the 90 s in which all is sent",
        ),
        (
            "{transactions: {hanging: 9000}}",
            "transactions.hanging: expected fewer than the 9,000 records that are sent, got 9,000",
        ),
        ("{progress: {records: 9001}}", "expected at most the 9,000 that are sent, got 9,001"),
        ("sql", "checks[1]: expected the key `query`, which is missing"),
        ("command", "checks[1]: expected the key `run`, which is missing"),
        ("{command: {run: []}}", "checks[1].command.run: expected"),
        ("{command: {run: judge}}", "checks[1].command.run: expected"),
        ("{command: {run: [judge, 5]}}", "checks[1].command.run[1]: expected"),
        ('{command: {run: ["a\\0b"]}}', "checks[1].command.run[0]: expected"),
        ("{command: {run: [judge], timeout_s: 0}}", "checks[1].command.timeout_s: expected"),
        ("{sql: {query: SELECT 1, min_rows: 0}}", "checks[1].sql.min_rows: expected"),
        (
            "{sql: {name: a, query: SELECT 1, may_be_empty: [sent, totls]}}",
            'x.yaml:8: checks[1].sql.may_be_empty: no relation is called "totls"; did you mean '
            '"totals"? known: history, sent, totals',
        ),
    ],
)
def test_a_check_with_an_unknown_reference_or_that_cannot_fail_is_rejected(
    tmp_path: Path, check: str, message: str
) -> None:
    assert message in problems_in(tmp_path, check=check)


@pytest.mark.parametrize(
    "check",
    [
        "{recovery: {fault: kill}}",
        "{latency: {p50_within_s: 1, output: totals}}",
        "{bounded_loss: {at_most: 8999}}",
        "{bounded_loss: {slack_s: 89.9}}",
        "{transactions: {hanging: 8999}}",
        "{progress: {records: 9000}}",
        "{sql: {query: SELECT * FROM sent, may_be_empty: [totals, history]}}",
    ],
)
def test_a_check_with_known_references_is_valid(tmp_path: Path, check: str) -> None:
    assert problems_in(tmp_path, check=check) == ""


def test_an_output_has_no_name_of_another_relation_of_a_query(tmp_path: Path) -> None:
    (tmp_path / "mine.sql").write_text(
        "-- streamquake:\n--   outputs: {History: {kafka: h}}\nSELECT '${output.History}';\n"
    )
    text = EXPERIMENT.replace("SCHEDULE\n", "").replace("JOB", "{sql: mine.sql}")
    text = text.replace("WORKLOAD", "{records: 9000, rate_per_s: 100}")
    file = tmp_path / "x.yaml"
    file.write_text(text.replace("CHECK", "{sql: {query: SELECT * FROM history}}"))

    (problem,) = problems_of(str(file))

    assert str(problem).endswith(
        'x.yaml:7: checks[1].sql.query: the output "History" has the name of another relation; '
        "rename the output"
    )


def test_a_check_may_name_any_fault_if_the_schedule_is_drawn(tmp_path: Path) -> None:
    drawn = "draw: {profile: swarm}"

    assert problems_in(tmp_path, check="{recovery: {fault: pause}}", schedule=drawn) == ""


@pytest.mark.parametrize("params", ["false", "0", "''", "[]", "true", "x"])
def test_parameters_are_keys_with_values_or_nothing(tmp_path: Path, params: str) -> None:
    assert "faults[0].kill: expected keys with values" in problems_in(tmp_path, params=params)
    assert problems_in(tmp_path, params="null") == ""


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("between: [checkpoint completed, checkpoint triggered]", "never follows"),
        ("between: [checkpoint completed, checkpoint acknowledged]", "never follows"),
        ("between: [checkpoint failed, checkpoint completed]", "never follows"),
        ("event: drained", "so no fault can wait for it"),
        ("event: not recovered", "so no fault can wait for it"),
        ("between: [drained, phase]", "so no fault can wait for it"),
    ],
)
def test_a_trigger_that_can_never_fire_is_rejected(tmp_path: Path, when: str, message: str) -> None:
    message_text = problems_in(tmp_path, when=f"when: {{{when}}}")

    assert "x.yaml:5: faults[0].when: " in message_text
    assert message in message_text


@pytest.mark.parametrize(
    "workload",
    [
        "{records: 9000, rate_per_s: 100, topic: .}",
        "{records: 9000, rate_per_s: 100, topic: ..}",
        "{records: 9000, rate_per_s: 99999999999999999999}",
        "{records: 9000, rate_per_s: 100, event_step_us: 99999999999999999999}",
    ],
)
def test_a_load_that_cannot_be_sent_is_rejected(tmp_path: Path, workload: str) -> None:
    assert "x.yaml:4: workload.numbered." in problems_in(tmp_path, workload=workload)


def test_output_names_that_collide_ignoring_case_are_rejected() -> None:
    output = Output(kafka="t")

    for names in (("a", "A"), ("Totals", "totals"), ("Input.Topic",)):
        with pytest.raises(ValueError, match=r"another name|rename one of them"):
            JobPromise(outputs=dict.fromkeys(names, output))


def test_every_shipped_experiment_is_valid() -> None:
    wrong = {name: problems_of(name) for name in shipped_names(EXPERIMENTS, ".yaml")}

    assert len(wrong) > 50
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.parametrize("check", ["throughput: {outage_within_s: 1", "continuity: {within_s: 1"])
@pytest.mark.parametrize(
    ("outputs", "given", "message"),
    [
        ("{files: {hdfs: /o, identity: [key, seq]}}", "", "and no output is a topic"),
        (
            "{files: {hdfs: /o, identity: [key, seq]}, t: {kafka: t, identity: [key, seq]}}",
            ", output: files",
            "and files is no topic; topics: t",
        ),
        ("{files: {hdfs: /o, identity: [key, seq]}, t: {kafka: t, identity: [key]}}", "", ""),
    ],
)
def test_a_check_of_append_times_needs_a_topic(
    tmp_path: Path, check: str, outputs: str, given: str, message: str
) -> None:
    promise = f'{{outputs: {outputs}, expected: "SELECT key, seq FROM sent"}}'
    job = f"{{sql: keyed-totals.sql, promise: {promise}}}"
    found = problems_in(tmp_path, check=f"{{{check}{given}}}}}", job=job)
    assert ("when records were appended to a topic" in found) == bool(message), found
    assert message in found
