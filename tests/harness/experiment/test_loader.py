"""Loading experiments from YAML: names are resolved, and all problems are reported at once."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from streamquake.faults.schedule.step import TriggerSpec
from streamquake.harness.experiment.job_placeholders import placeholders
from streamquake.harness.experiment.loader import (
    EXPERIMENTS,
    experiment_document,
    experiment_of,
    experiment_of_plan,
    load_experiment,
)
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.verdict.checks.progress import Progress
from streamquake.harness.verdict.checks.recovery import Recovery
from streamquake.topologies.named_files import shipped_names
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import parse_document

GOOD = """\
name: mine
topology: flink-kafka-hdfs
job: {sql: keyed-totals.sql, parallelism: 4}
workload: {numbered: {records: 1000, rate_per_s: 100}}
faults:
  - {kill: {}, target: one of flink/taskmanager, when: {event: checkpoint triggered, nth: 3}}
  - {slow_link: {latency_ms: 5}, target: link sink, at_s: 2, for_s: 1.5}
checks: [progress, {recovery: {within_s: 60}}]
"""


def load(text: str, *, beside: Path = Path(), sets: Sequence[str] = ()) -> Experiment:
    return experiment_of(parse_document(text, "e.yaml"), beside=beside, sets=sets, seed=1)


def problems_in(text: str, sets: Sequence[str] = (), beside: Path = Path()) -> list[str]:
    with pytest.raises(BadInput) as caught:
        load(text, sets=sets, beside=beside)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("name", shipped_names(EXPERIMENTS, ".yaml"))
def test_every_shipped_experiment_can_be_loaded_written_and_read_again(name: str) -> None:
    experiment = load_experiment(name)
    plan = json.loads(json.dumps(experiment_document(experiment)))

    assert experiment.name == name
    assert experiment_of_plan(plan, "run.json") == experiment


def repeated_names(folder: Path) -> set[str]:
    """Names of files that occur more than once in a folder, in any subfolder."""
    names = Counter(path.stem for path in folder.rglob("*.yaml"))
    return {name for name, files in names.items() if files > 1}


def test_no_two_experiments_have_the_same_name() -> None:
    assert repeated_names(EXPERIMENTS) == set()


def test_two_experiments_with_the_same_name_are_found(tmp_path: Path) -> None:
    for file in ("flink/same.yaml", "spark/same.yaml", "spark/other.yaml"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()

    assert repeated_names(tmp_path) == {"same"}


def test_short_forms_are_read() -> None:
    experiment = load(GOOD)

    assert experiment.topology.name == "flink-kafka-hdfs"
    assert experiment.faults[0].when == TriggerSpec(event="checkpoint triggered", nth=3)
    assert experiment.faults[1].when == TriggerSpec(after_s=2)
    assert experiment.faults[1].params == {"latency_ms": 5}
    assert experiment.checks == (Progress(), Recovery(within_s=60))


def test_the_job_has_its_program_and_its_promise() -> None:
    job = load(GOOD).job

    assert job is not None
    assert "INSERT INTO" in str(job.sql)
    assert "totals" in job.promise.outputs


def test_the_transaction_timeout_is_that_of_the_job_or_15_minutes() -> None:
    def timeout_ms(job: str) -> str:
        return placeholders(load(GOOD.replace("parallelism: 4", job)), "run")[
            "sink.transaction-timeout-ms"
        ]

    assert timeout_ms("parallelism: 4") == "900000"
    assert timeout_ms("parallelism: 4, transaction_timeout_s: 10") == "10000"
    (problem,) = problems_in(
        GOOD.replace("parallelism: 4", "parallelism: 4, transaction_timeout_s: 0")
    )
    assert problem.startswith("e.yaml:3: job.transaction_timeout_s: ")


def test_the_seed_is_the_given_one_else_that_of_the_file_else_random() -> None:
    document = parse_document(GOOD + "seed: 7\n", "e.yaml")

    assert experiment_of(document, beside=Path(), seed=9).seed == 9
    assert experiment_of(document, beside=Path()).seed == 7
    drawn = {experiment_of(parse_document(GOOD, "e.yaml"), beside=Path()).seed for _ in range(3)}
    assert len(drawn) == 3


def test_files_beside_the_experiment_are_found(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(
        "name: t\nservices:\n  kafka: {engine: kafka, nodes: {broker: 1}}\n"
        "  flink: {engine: flink, nodes: {jobmanager: 1, taskmanager: 2}}\n"
    )
    (tmp_path / "j.sql").write_text("-- streamquake:\n--   outputs: {o: {kafka: o}}\nSELECT 1;\n")
    (tmp_path / "e.yaml").write_text(
        "name: e\ntopology: t.yaml\njob: {sql: j.sql}\n"
        "workload: {numbered: {records: 1, rate_per_s: 1}}\n"
    )

    experiment = load_experiment(str(tmp_path / "e.yaml"))

    assert experiment.topology.name == "t"
    assert experiment.job is not None
    assert list(experiment.job.promise.outputs) == ["o"]


def test_all_problems_of_all_parts_are_reported_at_once() -> None:
    found = problems_in(
        "name: x\n"
        "topology: flink-kafka-hfds\n"
        "job: {sql: keyd-totals.sql, paralelism: 4, parallelism: many}\n"
        "workload: {numberd: {records: 1}}\n"
        "faults:\n"
        "  - {puase: {}, target: one of flink/taskmanager, at_s: 3}\n"
        "  - {kill: {x: 9}, target: flink/taskmanager-1, when: {event: checkpoint trigered}}\n"
        "  - {slow_link: {}, target: link sink, at_s: 3, fro_s: 4}\n"
        "  - {kill: {}, target: link sink, for_s: x}\n"
        "  - {target: link sink, at_s: 1}\n"
        "checks: [exactly_one, {recovery: {within_s: soon}}, progress, progress]\n"
        "limits: {ready_s: -1}\n"
        "expct: held\n"
    )

    for place, message in (
        ("e.yaml:2: topology", 'did you mean "flink-kafka-hdfs"'),
        ("e.yaml:3: job.sql", 'did you mean "keyed-totals"'),
        ("e.yaml:3: job.paralelism", 'did you mean "parallelism"'),
        ("e.yaml:3: job.parallelism", 'expected a whole number, got "many"'),
        ("e.yaml:4: workload.numberd", 'did you mean "numbered"'),
        ("e.yaml:6: faults[0].puase", 'no fault is called "puase"; did you mean "pause"'),
        ("e.yaml:7: faults[1].kill.x", 'unknown key "x"'),
        ("e.yaml:7: faults[1].when.event", 'did you mean "checkpoint triggered"'),
        ("e.yaml:8: faults[2].fro_s", 'did you mean "for_s"'),
        ("e.yaml:8: faults[2].slow_link", "slow_link needs `latency_ms`"),
        ("e.yaml:9: faults[3].for_s", 'expected a number of seconds, got "x"'),
        ("e.yaml:10: faults[4]", "expected a fault by name"),
        ("e.yaml:11: checks[0]", 'no check is called "exactly_one"'),
        ("e.yaml:11: checks[1].recovery.within_s", 'expected a number of seconds, got "soon"'),
        ("e.yaml:11: checks[3]", 'the check "progress" is given twice'),
        ("e.yaml:12: limits.ready_s", "expected a number of seconds above 0, got -1"),
        ("e.yaml:13: expct", 'did you mean "expect"'),
    ):
        assert any(line.startswith(f"{place}: ") and message in line for line in found), (
            place,
            message,
        )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "one of flink/taskmanager",
            "one of flink/taskmanger",
            'e.yaml:6: faults[0].target: no role is called "flink/taskmanger"; did you mean',
        ),
        (
            "one of flink/taskmanager",
            "flink/taskmanager-9",
            'faults[0].target: no node is called "flink/taskmanager-9"',
        ),
        (
            "one of flink/taskmanager",
            "some of flink",
            'faults[0].target: expected NODE, "one of ROLE"',
        ),
        ("for_s: 1.5", "for_s: .inf", "e.yaml:7: faults[1].for_s: expected"),
        ("at_s: 2", "at_s: .nan", "e.yaml:7: faults[1].at_s: expected"),
        (
            "within_s: 60",
            "fault: kil",
            'e.yaml:8: checks[1].recovery.fault: no fault is called "kil"; did you mean "kill"',
        ),
        ("one of flink/taskmanager", "link sink", "faults[0].target: kill disturbs nodes, got"),
        ("link sink", "flink/taskmanager-1", 'slow_link disturbs links, got "flink/taskmanager-1"'),
        ("link sink", "link snk", 'no link is called "snk"; did you mean "sink"'),
        ("at_s: 2, ", "", "faults[1]: expected one trigger: `at_s: SECONDS`"),
        ("at_s: 2", "at_s: 2, when: {after_s: 1}", "faults[1]: expected one trigger"),
        ("kill: {}", "kill: {}, pause: {}", "faults[0]: expected one fault, got kill and pause"),
        ("numbered: {", "other: {}, numbered: {", "workload: expected one workload by name"),
        (
            "parallelism: 4",
            "parallelism: 4, config: {execution.checkpointing.intervl: 1s}",
            "e.yaml:3: job.config.execution.checkpointing.intervl: Flink",
        ),
        (
            "sql: keyed-totals.sql",
            "jar: nowhere.jar",
            'e.yaml:3: job.jar: no file is called "nowhere.jar": there is no such',
        ),
        ("sql: keyed-totals.sql, ", "", "e.yaml:3: job: a job is either `jar: FILE`"),
    ],
)
def test_inconsistent_parts_are_rejected(old: str, new: str, message: str) -> None:
    found = problems_in(GOOD.replace(old, new, 1))

    assert any(message in line for line in found), found


def test_too_few_slots_for_the_job_are_a_problem() -> None:
    (problem,) = problems_in(GOOD.replace("parallelism: 4", "parallelism: 7"))

    assert problem.startswith("e.yaml:3: job.parallelism: 7 parallel tasks need 7 slots, got 6")


def test_a_node_without_a_slot_setting_has_one_slot(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(
        "name: t\nservices:\n  kafka: {engine: kafka, nodes: {broker: 1}}\n"
        "  flink: {engine: flink, nodes: {jobmanager: 1, taskmanager: 3}}\n"
        "links: {sink: {from: flink/taskmanager, to: kafka/broker, port: output}}\n"
    )
    (tmp_path / "j.sql").write_text("SELECT 1;\n")
    text = GOOD.replace("flink-kafka-hdfs", "t.yaml").replace("keyed-totals", "j")

    (problem,) = problems_in(text, beside=tmp_path)

    assert "4 parallel tasks need 4 slots, got 3 from flink/taskmanager (3 with 1 each)" in problem


def test_too_few_slots_after_a_fault_without_heal_are_a_problem() -> None:
    six = GOOD.replace("parallelism: 4", "parallelism: 6")

    (problem,) = problems_in(six)
    assert "e.yaml:6: faults[0]: kill on one of flink/taskmanager without `for_s`" in problem
    assert "leaves 4 of 6 slots" in problem
    assert load(six.replace("nth: 3}", "nth: 3}, for_s: 5")).job is not None


def test_killing_all_nodes_permanently_leaves_no_slot() -> None:
    (problem,) = problems_in(GOOD.replace("one of flink/taskmanager", "all of flink/taskmanager"))

    assert "leaves 0 of 6 slots" in problem


def test_a_job_needs_an_engine_that_runs_jobs() -> None:
    found = problems_in(GOOD.replace("flink-kafka-hdfs", "kafka-only"))

    assert any("e.yaml:3: job: kafka-only has no engine that runs jobs" in line for line in found)


def test_engines_check_an_inline_topology() -> None:
    found = problems_in(
        "name: x\n"
        "topology:\n"
        "  name: inline\n"
        "  services:\n"
        "    kafka: {engine: kafak, nodes: {broker: 1}}\n"
        "    flink: {engine: flink, version: 9.9, nodes: {jobmanager: 1, taskmanger: 1}}\n"
        "  links: {a: {from: flink/jobmanager, to: flink/jobmanager, port: rset}}\n"
        "workload: {numbered: {records: 1, rate_per_s: 1}}\n"
    )

    for message in (
        'e.yaml:5: services.kafka.engine: no engine is called "kafak"; did you mean "kafka"',
        "e.yaml:6: services.flink.version: no flink version '9.9'",
        'e.yaml:6: services.flink.nodes.taskmanger: flink has no role "taskmanger"; did you mean',
        'e.yaml:7: links.a.port: flink has no port "rset"; did you mean "rest"',
    ):
        assert any(line.startswith(message) for line in found), (message, found)


def test_a_problem_of_a_promise_is_reported_with_the_sql_file(tmp_path: Path) -> None:
    (tmp_path / "j.sql").write_text(
        "-- A job.\n-- streamquake:\n--   outputs:\n--     o: {kafka: a, hdsf: b}\nSELECT 1;\n"
    )

    (problem,) = problems_in(GOOD.replace("keyed-totals.sql", "j.sql"), beside=tmp_path)

    assert problem.startswith(f"{tmp_path}/j.sql:4: streamquake.outputs.o.hdsf: unknown key")


def test_an_unknown_placeholder_is_reported_with_the_sql_file(tmp_path: Path) -> None:
    (tmp_path / "j.sql").write_text("SELECT 1;\nSELECT '${inptu}';\n")

    (problem,) = problems_in(GOOD.replace("keyed-totals.sql", "j.sql"), beside=tmp_path)

    assert problem.startswith(f"{tmp_path}/j.sql:2: unknown placeholder ${{inptu}}; did you mean")


def test_a_role_without_a_service_is_one_of_the_engine_that_runs_the_job() -> None:
    flink = load_experiment("quickstart", seed=1)
    spark = load_experiment("quickstart", seed=1, sets=["topology=spark-kafka-hdfs"])
    assert flink.faults[0].target == "one of flink/taskmanager"
    assert spark.faults[0].target == "one of spark/worker"
    assert spark.checkpointed


@pytest.mark.parametrize("columns", ["identity", "order_by"])
def test_a_record_has_columns_that_name_and_group_it(columns: str, tmp_path: Path) -> None:
    (tmp_path / "j.sql").write_text(
        f"-- streamquake:\n--   outputs:\n--     o: {{kafka: a, {columns}: []}}\nSELECT 1;\n"
    )
    (problem,) = problems_in(GOOD.replace("keyed-totals.sql", "j.sql"), beside=tmp_path)
    place = f"{tmp_path}/j.sql:3: streamquake.outputs.o.{columns}"
    assert problem == f"{place}: expected at least 1 of them, got []"


def test_the_promise_is_read_from_the_program_of_the_topologys_engine() -> None:
    spark = load_experiment("spark-kill-worker", seed=1)
    assert spark.job is not None
    assert list(spark.job.promise.outputs) == ["totals"]
    assert "applyInPandas" not in str(spark.job.pyspark)


def test_a_program_of_another_engine_is_rejected_with_the_next_step() -> None:
    with pytest.raises(BadInput, match="takes pyspark, got sql; give the job as `pyspark: FILE`"):
        load_experiment("one-to-many", seed=1, sets=["topology=spark-kafka-hdfs"])


WRITTEN = """\
-- streamquake:
--   outputs:
--     o: {kafka: o, format: avro, schema: o.avsc}
--   expected: SELECT * FROM sent
SELECT 1;
"""
RECORD = '{"type": "record", "name": "R", "fields": [{"name": "key", "type": "string"}]}'


@pytest.mark.parametrize(("topic", "known"), [("o", True), ("other", False)])
def test_a_load_into_the_topic_of_an_output_is_rejected(
    tmp_path: Path, topic: str, known: bool
) -> None:
    (tmp_path / "j.sql").write_text(WRITTEN)
    (tmp_path / "o.avsc").write_text(RECORD)
    text = GOOD.replace("keyed-totals.sql", "j.sql").replace(
        "rate_per_s", f"topic: {topic}, rate_per_s"
    )

    problems = problems_in(text, beside=tmp_path) if known else []

    assert [p for p in problems if "the job's output" in str(p)] == problems
    if known:
        assert 'sends to the topic o, which is the job\'s output "o" too' in str(problems[0])
    else:
        load(text, beside=tmp_path)


def test_a_plan_contains_the_schema_files_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "j.sql").write_text(WRITTEN)
    (tmp_path / "jobs" / "o.avsc").write_text(RECORD)
    experiment = load(GOOD.replace("keyed-totals.sql", "jobs/j.sql"), beside=tmp_path)
    plan = json.loads(json.dumps(experiment_document(experiment)))
    (tmp_path / "jobs" / "o.avsc").unlink()

    assert experiment.promise.outputs["o"].schema_ == RECORD + "\n"
    assert experiment_of_plan(plan, "run.json") == experiment


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema: o.avsc", "schema: p.avsc", "o.schema: {}/p.avsc cannot be read: No such file"),
        ("schema: o.avsc", "schema: n.avsc", "o.schema: expected the schema of a record"),
        (", schema: o.avsc", "", "o: values in avro do not hold their schema; give it as"),
        ("format: avro, ", "", "o.schema: only records of format avro or protobuf have"),
        (
            "avro",
            "csv",
            "o: the values of a topic are read as avro or json or protobuf or text, not as csv",
        ),
        ("kafka: o, format: avro", "hdfs: /o, format: csv", "o: files are JSON lines, Parquet"),
        ("avro", "arvo", 'o.format: no format is called "arvo"; did you mean "avro"?'),
    ],
)
def test_an_unsuitable_schema_is_reported_with_its_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    (tmp_path / "j.sql").write_text(WRITTEN.replace(old, new))
    (tmp_path / "o.avsc").write_text(RECORD)
    (tmp_path / "n.avsc").write_text('"string"')

    (problem,) = problems_in(GOOD.replace("keyed-totals.sql", "j.sql"), beside=tmp_path)

    start = f"{tmp_path}/j.sql:3: streamquake.outputs."
    assert problem.startswith(start + message.format(tmp_path)), problem


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            "{recovary: too late}",
            'expect.recovary: the experiment has no check "recovary"; did you mean "recovery"?',
        ),
        ("{exactly_once: lost}", 'the experiment has no check "exactly_once"'),
        ("{recovery: to late}", 'finds nothing called "to late"; did you mean "too late"?'),
        (
            "{recovery: [too late, violated]}",
            "expect.recovery: expected either outcomes or classes, got too late, violated",
        ),
        ("{recovery: [held, violated]}", "expect.recovery: expected held or violated, got both"),
        ("{recovery: [held, undecidet]}", "expected either outcomes or classes"),
        ("{recovery: undecidet}", 'nothing called "undecidet"; did you mean "undecided"?'),
        ("{recovery: []}", "expect.recovery: expected an outcome or classes, got an empty list"),
        ("{}", "expect: "),
        ("{recovery: 3}", "expect"),
        ("wrong", "expect"),
    ],
)
def test_an_expected_outcome_that_cannot_occur_is_rejected(written: str, message: str) -> None:
    found = problems_in(f"{GOOD}expect: {written}\n")
    assert any(line.startswith("e.yaml:9: ") and message in line for line in found), found


def test_the_expected_outcome_of_each_check_is_loaded() -> None:
    written = (
        "{recovery: [too late, not recovered], effect: undecided, execution: [held, undecided]}"
    )
    experiment = load(f"{GOOD}expect: {written}\n")

    found = {
        "recovery": ("too late", "not recovered"),
        "effect": ("undecided",),
        "execution": ("held", "undecided"),
    }
    assert experiment.expected.found == found
    assert experiment_of_plan(experiment_document(experiment), "run.json") == experiment


def test_jars_and_modules_are_found_beside_the_document(tmp_path: Path) -> None:
    for name, text in (("lib.py", "def f(): ...\n"), ("j.py", "import lib\n")):
        (tmp_path / name).write_text(text)
    with zipfile.ZipFile(tmp_path / "own.jar", "w") as jar:
        jar.writestr("Own.class", "")
    text = (
        "name: mine\ntopology: spark-kafka-hdfs\nchecks: [progress]\n"
        "job: {pyspark: j.py, jars: [own.jar], modules: {lib: lib.py}}\n"
        "workload: {numbered: {records: 1000, rate_per_s: 100}}\n"
    )
    job = load(text, beside=tmp_path).job
    assert job is not None
    assert job.jars == (str(tmp_path / "own.jar"),)
    assert job.modules == {"lib": "def f(): ...\n"}


def test_a_jar_may_be_named_by_its_coordinates() -> None:
    job = load(GOOD.replace("parallelism: 4", "jars: ['org.postgresql:postgresql:42.7.8']")).job
    assert job is not None
    assert job.jars == ("org.postgresql:postgresql:42.7.8",)


TABLE = """\
name: mine
topology:
  base: flink-kafka-hdfs
  services:
    db: {engine: container, image: postgres:17, ports: {sql: 5432}, nodes: {server: 1}}
job:
  sql: copy.sql
  promise:
    outputs: {t: {table: "postgresql://app@${db.sql}/shop/sales.totals"}}
    expected: SELECT key, seq FROM sent
workload: {numbered: {records: 1000, rate_per_s: 100}}
checks: [exactly_once]
"""


def test_a_table_is_found_by_the_ports_of_a_service(tmp_path: Path) -> None:
    (tmp_path / "copy.sql").write_text("SELECT '${output.t}';\nSELECT '${db.sql}';\n")
    text = TABLE.replace("sql: copy.sql", "sql: ./copy.sql")
    values = placeholders(load(text, beside=tmp_path), "run")

    assert values["output.t"] == "sales.totals"
    assert values["db.sql"] == "db-server-1:5432"
    several = problems_in(text.replace("{server: 1}", "{server: 2}"), beside=tmp_path)
    assert several == [
        "e.yaml:9: job.promise.outputs.t.table: db has several nodes, and only one of them has the "
        "table"
    ]
    problem = problems_in(text.replace("${db.sql}", "${db.sq}"), beside=tmp_path)
    assert problem == [
        "e.yaml:9: job.promise.outputs.t.table: no service declares the port ${db.sq}; did you "
        'mean "db.sql"? known: db.sql; a service of the engine container declares `ports`'
    ]
    assert load(text.replace("${db.sql}", "db.example.com"), beside=tmp_path).job is not None


OBJECTS = TABLE.replace("db: {", "store: {").replace("sql: 5432", "api: 7070")
OBJECTS = OBJECTS.replace(
    'table: "postgresql://app@${db.sql}/shop/sales.totals"',
    's3: "s3://results/totals", endpoint: "http://${store.api}"',
)


def test_objects_are_found_by_the_ports_of_a_service(tmp_path: Path) -> None:
    (tmp_path / "copy.sql").write_text("SELECT '${output.t}';\n")
    text = OBJECTS.replace("sql: copy.sql", "sql: ./copy.sql")
    loaded = load(text, beside=tmp_path)

    assert placeholders(loaded, "run")["output.t"] == "s3://results/totals"
    promise = loaded.promise
    assert (promise.writes_files, promise.only_files) == (True, True)
    assert promise.outputs["t"].kind == "s3"
    several = problems_in(text.replace("{server: 1}", "{server: 2}"), beside=tmp_path)
    assert several == [
        "e.yaml:9: job.promise.outputs.t.endpoint: store has several nodes, and only one of them "
        "has the objects"
    ]
    (problem,) = problems_in(text.replace("${store.api}", "${store.ap}"), beside=tmp_path)
    assert "outputs.t.endpoint: no service declares the port ${store.ap}; did you" in problem
    for other in ("http://store.example.com", "https://10.0.0.7:9000"):
        assert load(text.replace("http://${store.api}", other), beside=tmp_path).job is not None
    assert load(text.replace(', endpoint: "http://${store.api}"', ""), beside=tmp_path).job


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("s3://results/totals", "s3://results", "expected a folder of a bucket, such as s3://"),
        ("s3://results/totals", "s3://results/a/../b", "expected a folder of a bucket, such as"),
        ("s3://results/totals", "s3://results/it's", "expected a text like ^s3://"),
        ("http://${store.api}", "${store.api}", "expected a URL such as http://${store.api}, got"),
        ("s3: ", "hdfs: /x, s3: ", "an output is one of `kafka: TOPIC`, `hdfs: FOLDER`, `s3: URI`"),
        ('s3: "s3://results/totals"', "hdfs: /x", "`endpoint` is the store of `s3`; remove it"),
        ("endpoint:", "format: csv, endpoint:", "files are JSON lines, Parquet or Avro, which"),
    ],
)
def test_a_wrong_place_of_objects_is_rejected(before: str, after: str, message: str) -> None:
    assert message in "\n".join(problems_in(OBJECTS.replace(before, after)))


@pytest.mark.parametrize("other", ["totals", "totals/", "totals/day"])
def test_the_objects_of_an_output_are_not_those_of_another(other: str) -> None:
    totals = Output(s3="s3://results/totals")
    with pytest.raises(ValueError, match=r"is in s3://results/totals, and both are outputs"):
        JobPromise(outputs={"a": totals, "b": Output(s3=f"s3://results/{other}")})
    elsewhere = Output(s3=f"s3://results/{other}", endpoint="http://another")
    beside = Output(s3="s3://results/totals-2")
    assert JobPromise(outputs={"a": totals, "b": elsewhere, "c": beside}).writes_files


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ("sql: copy.sql, jars: [nowhere.jar]", 'job.jars[0]: no file is called "nowhere.jar": '),
        ("sql: copy.sql, jars: [dir.jar]", "/dir.jar is no regular file"),
        ("sql: copy.sql, jars: [empty.jar]", "empty.jar is a jar without any entry"),
        ("sql: copy.sql, jars: [own.jar]", "own.jar is no complete jar (a zip archive); build or"),
        ("jar: own.jar", "own.jar is no complete jar (a zip archive); build or"),
        ("pyspark: copy.py, jars: [cut.jar]", "cut.jar is no complete jar (a zip archive); build"),
        ("sql: copy.sql, jars: [lib.zip]", "job.jars[0]: expected"),
        ("sql: copy.sql, jars: ['a:b']", "job.jars[0]: expected"),
        ("sql: copy.sql, jars: ['a:b:1:tests']", "VERSION with one version and no classifier, got"),
        ("sql: copy.sql, jars: ['a:b:[1,2)']", "expected the path of a jar, which ends with .jar"),
        ("sql: copy.sql, jars: ['a:b:1-SNAPSHOT']", "may change between runs; name a release"),
        ("sql: copy.sql, modules: {lib: lib.py}", "job: `modules` are for `pyspark`"),
        (
            "pyspark: copy.py, modules: {lib: nowhere.py}",
            'job.modules.lib: no file is called "nowhere.py": ',
        ),
        ("pyspark: copy.py, modules: {lib: dir.jar}", "/dir.jar is no regular file"),
        ("pyspark: copy.py, modules: {lib: wrong.py}", "job.modules.lib: it is no Python: line 2:"),
        ("pyspark: copy.py, modules: {lib: nul.py}", "job.modules.lib: it is no Python: "),
        ("pyspark: copy.py, modules: {json: lib.py}", "every program has a module `json` already"),
        ("pyspark: copy.py, modules: {pyspark: lib.py}", "every program has a module `pyspark` a"),
        ("pyspark: copy.py, modules: {class: lib.py}", "`class` is a word of Python"),
        ("pyspark: copy.py, modules: {lib.x: lib.py}", "expected lower-case letters, digits and _"),
        (
            "pyspark: copy.py, modules: {job: lib.py}",
            "every program has a module `job`",
        ),
        (
            "pyspark: copy.py, modules: {kafka_sink: lib.py}",
            "every program has a module `kafka",
        ),
        ("jar: own.jar, jars: [own.jar]", "`jars` are for `sql` and `pyspark`"),
    ],
)
def test_wrong_jars_and_modules_are_rejected(job: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "own.jar").touch()
    (tmp_path / "dir.jar").mkdir()
    with zipfile.ZipFile(tmp_path / "empty.jar", "w"):
        pass
    with zipfile.ZipFile(tmp_path / "whole.jar", "w") as whole:
        whole.writestr("Own.class", "0" * 100)
    (tmp_path / "cut.jar").write_bytes((tmp_path / "whole.jar").read_bytes()[:-30])
    for name, program in (("lib", "x = 1\n"), ("wrong", "x = 1\ny = = 2\n"), ("nul", "x = '\0'\n")):
        (tmp_path / f"{name}.py").write_text(program)
    text = GOOD.replace("sql: keyed-totals.sql, parallelism: 4", f"{job}, parallelism: 4")
    found = problems_in(text, beside=tmp_path)
    assert any(message in line for line in found), found


def test_a_recorded_plan_is_read_without_the_files_of_its_clients(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    properties = "{security.protocol: SSL, ssl.ca.location: ca.pem}"
    topology = f"{{base: existing, services: {{kafka: {{properties: {properties}}}}}}}"
    text = f"""\
name: mine
topology: {topology}
workload: {{numbered: {{records: 1000, rate_per_s: 100}}}}
checks: [progress]
"""
    experiment = experiment_of(
        parse_document(text, str(tmp_path / "e.yaml")), beside=tmp_path, seed=1
    )
    (tmp_path / "ca.pem").unlink()

    assert experiment_of_plan(experiment_document(experiment), "run.json") == experiment
    assert any("expected a file in PEM" in problem for problem in problems_in(text, (), tmp_path))
