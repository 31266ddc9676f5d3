"""The command line: the output on each stream, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import click
import pytest
from pyspark.sql import SparkSession

from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.images.versions import UnknownImage
from streamquake.cluster.runtime.runtime import ContainerError, RuntimeUnavailable
from streamquake.harness.cli import COMMANDS
from streamquake.harness.cli.guard import guarded
from streamquake.harness.cli.machine_check import ENGINE, MachineCheck
from streamquake.harness.experiment.loader import experiment_document, load_experiment
from streamquake.harness.interrupts import Interrupted
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.spark_session import JavaMissing, SparkInBackground
from streamquake.harness.workloads.recorded import Recorded
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Ended
from streamquake.reports.record.run_folder import RunFolder
from streamquake.topologies.problems import BadInput, Problem
from tests.harness.conftest import RunCommand
from tests.harness.histories import Story


def test_every_command_has_help_and_is_listed(run_command: RunCommand) -> None:
    _, out, _ = run_command("--help")

    for name in COMMANDS:
        status, help_text, _ = run_command(name, "--help")
        assert status == 0
        assert name in out
        assert help_text.startswith("Usage: streamquake")


def test_an_unknown_command_or_option_is_bad_input(run_command: RunCommand) -> None:
    status, _, err = run_command("vallidate")
    assert (status, 'did you mean "validate"' in err) == (2, True)

    status, _, err = run_command("run", "quickstart", "--sed", "3")
    assert (status, "--seed" in err) == (2, True)


@pytest.mark.parametrize(
    ("outcome", "ended", "status"),
    [
        (Outcome.HELD, "completed", 0),
        (Outcome.VIOLATED, "completed", 1),
        (Outcome.UNDECIDED, "completed", 3),
        (Outcome.UNDECIDED, "failed_to_run", 3),
        (Outcome.UNDECIDED, "interrupted", 130),
        (Outcome.VIOLATED, "interrupted", 130),
    ],
)
def test_the_exit_status_of_run_is_by_the_outcome(
    run_command: RunCommand,
    fake_runner: dict[str, Any],
    outcome: Outcome,
    ended: Ended,
    status: int,
) -> None:
    fake_runner.update(outcome=outcome, ended=ended)

    assert run_command("run", "quickstart")[0] == status


@pytest.mark.parametrize("cause", ["undecided", "image failed"])
def test_the_last_line_is_the_cause_of_exit_status_3(
    run_command: RunCommand, fake_runner: dict[str, Any], cause: str
) -> None:
    fake_runner.update(outcome=Outcome.UNDECIDED, cause=cause)

    assert run_command("run", "quickstart")[2].splitlines()[-1] == f"exit status 3: {cause}"


def test_a_verdict_prints_no_line_about_its_exit_status(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    fake_runner.update(outcome=Outcome.VIOLATED)

    assert run_command("run", "quickstart")[2] == ""


def test_the_seed_is_printed_first_and_the_replay_command_last(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    status, out, _ = run_command(
        "run", "quickstart", "--seed", "77", "--keep", "--master", "local[1]"
    )
    lines = out.strip().splitlines()

    assert status == 0
    assert lines[0] == "seed 77"
    assert "streamquake replay runs/20260101-000000-abcd" in lines[-1]
    assert (fake_runner["keep"], fake_runner["master"]) == (True, "local[1]")


def test_problems_of_the_machine_are_reported_before_anything_starts(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    fake_runner["hindrances"] = (
        MachineCheck(what="Java", verdict="problem", finding="not found", next="install Java 17"),
        MachineCheck(what="disk", verdict="problem", finding="1 GiB free at /", next="free some"),
    )

    status, _, err = run_command("run", "quickstart")

    assert (status, "experiment" in fake_runner) == (3, False)
    assert err == (
        "Java: not found; install Java 17\ndisk: 1 GiB free at /; free some\n"
        "exit status 3: machine unsuitable\n"
    )


def test_a_missing_container_engine_is_the_cause_of_exit_status_3(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    fake_runner["hindrances"] = (
        MachineCheck(what=ENGINE, verdict="problem", finding="no engine answers", next="start it"),
        MachineCheck(what="Java", verdict="problem", finding="not found", next="install Java 17"),
    )

    assert run_command("run", "quickstart")[2].splitlines()[-1] == "exit status 3: engine missing"


def test_a_replay_runs_the_recorded_plan(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    run_command("run", "quickstart", "--seed", "5", "--set", "job.parallelism=1")
    first = fake_runner["experiment"]

    status, out, _ = run_command("replay", "20260101")

    assert status == 0
    assert fake_runner["experiment"] is not first
    assert fake_runner["experiment"] == first
    assert out.splitlines()[0] == "seed 5"


def test_dry_run_prints_the_whole_plan_and_starts_nothing(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    status, out, _ = run_command(
        "run", "kill-taskmanager-mid-checkpoint", "--dry-run", "--seed", "3"
    )

    unwrapped = " ".join(out.split())  # long lines are wrapped at the width of the terminal
    assert status == 0
    assert "experiment" not in fake_runner
    for message in (
        "3 taskmanager (slots 2, memory_mb 1024)",
        "sink: flink/taskmanager to kafka/broker",
        "numbered (records 120000, rate_per_s 2000, keys 128)",
        "parallelism 4",
        "kill on the node running subtask 0 of totals, between checkpoint triggered no. 3 and "
        "checkpoint completed, 10 tries, for 5 s",
        "recovery (within_s 60)",
        "ready_s 240",
        "seed",
    ):
        assert message in unwrapped


def test_dry_run_shows_the_transaction_timeout_if_it_is_set(
    run_command: RunCommand,
) -> None:
    given = run_command("run", "outage-beyond-timeout", "--dry-run", "--seed", "3")[1]
    usual = run_command("run", "commit-fails", "--dry-run", "--seed", "3")[1]

    assert "sink exactly-once with transactions of 10 s at most" in given
    assert "sink exactly-once, outputs: totals" in usual


def test_dry_run_shows_the_other_jobs_and_what_each_job_reads(
    run_command: RunCommand, tmp_path: Path
) -> None:
    (tmp_path / "e.yaml").write_text(
        "base: quickstart\nname: e\n"
        "other_jobs:\n"
        "  noise:\n"
        "    {jar: noise.jar, entry_class: Noise, reads: [], config: {s3.secret-key: hunter2}}\n"
        "job: {reads: [input]}\n"
    )
    with ZipFile(tmp_path / "noise.jar", "w") as jar:
        jar.writestr("Noise.class", "")

    status, out, err = run_command("run", "e.yaml", "--dry-run", "--seed", "3")

    assert (status, err) == (0, "")
    assert "job noise" in out
    assert "reads no topic" in out
    assert "reads input" in out
    assert "hunter2" not in out


def test_dry_run_shows_the_names_of_rules_but_not_their_text(run_command: RunCommand) -> None:
    status, out, _ = run_command("run", "single-task-kill", "--dry-run", "--seed", "3")

    assert status == 0
    assert '1 jobmanager (rules "the scheduler takes a job with approximate' in out
    assert "ENDRULE" not in out


def test_dry_run_shows_no_secret(run_command: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(
        "base: quickstart\nname: e\n"
        "job: {config: {s3.secret-key: hunter2, pipeline.name: shown}}\n"
        "topology: {services: {flink: {config: {fs.s3a.access.key: hunter2}, nodes: "
        "{taskmanager: {env: {DB_PASSWORD: hunter2, ZONE: shown-too}}}}}}\n"
    )

    status, out, err = run_command("run", "e.yaml", "--dry-run", "--seed", "3")

    assert (status, err) == (0, "")
    assert "hunter2" not in out
    assert "s3.secret-key: ***" in out
    assert "pipeline.name: shown" in out
    assert "'DB_PASSWORD': '***', 'ZONE': 'shown-too'" in " ".join(out.split())


def test_bad_input_has_one_line_for_each_problem_on_stderr(
    run_command: RunCommand, tmp_path: Path
) -> None:
    (tmp_path / "bad.yaml").write_text("name: x\ntopology: nowhere\nfaults: 3\n")

    status, out, err = run_command("run", "bad.yaml")

    assert (status, out) == (2, "")
    assert err.splitlines()[0].startswith("bad.yaml:")
    assert len(err.splitlines()) == 3


def test_validate_distinguishes_topologies_from_experiments(
    run_command: RunCommand, tmp_path: Path
) -> None:
    (tmp_path / "t.yaml").write_text(
        "name: t\nservices: {kafka: {engine: kafak, nodes: {broker: 1}}}\n"
    )
    (tmp_path / "e.yaml").write_text("name: e\ntopology: kafka-only\nworkload: {nmbered: {}}\n")

    status, out, err = run_command(
        "validate", "t.yaml", "e.yaml", "quickstart", "kafka-only", "none.yaml"
    )

    assert status == 2
    assert out == "quickstart: valid\nkafka-only: valid\n"
    assert 't.yaml:2: services.kafka.engine: no engine is called "kafak"' in err
    assert 'e.yaml:3: workload.nmbered: no workload is called "nmbered"' in err
    assert "none.yaml: no experiment is called" in err


QUERIES = """\
name: e
topology: kafka-only
workload: {numbered: {records: 100, rate_per_s: 100}}
checks:
  - {sql: {query: SELECT * FROM input JOIN sent USING (key)}}
  - {sql: {name: second, query: "SELECT * FROM text.`/etc/hosts`"}}
  - sql:
      name: third
      query: DROP VIEW sent
  - {sql: {name: fourth, query: SELECT 1}}
"""


def test_validate_rejects_a_check_whose_sql_does_more_than_query_the_run(
    run_command: RunCommand, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkInBackground, "get", lambda self: spark)
    (tmp_path / "e.yaml").write_text(QUERIES)

    status, _, err = run_command("validate", "e.yaml")
    second, third, fourth = err.splitlines()

    assert status == 2
    assert second.startswith("e.yaml:6: checks[1].sql.query: the relation `text./etc/hosts` is not")
    assert second.endswith("given here; given: history, input, sent")
    assert third.startswith("e.yaml:9: checks[2].sql.query: expected one query")
    assert fourth.startswith("e.yaml:10: checks[3].sql.query: expected a query that reads one of:")


def test_validate_rejects_an_image_that_is_not_built_on_one_of_ours(
    run_command: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamquake.harness.cli.validate._images", lambda: None)
    text = "base: kafka-only\nname: mine\nservices:\n  kafka: {image: 'apache/kafka:4.1.0'}\n"
    (tmp_path / "t.yaml").write_text(text, "utf-8")
    topology = "{base: flink-kafka-hdfs, services: {kafka: {image: 'apache/kafka:4.1.0'}}}"
    text = f"base: quickstart\nname: e\ntopology: {topology}\n"
    (tmp_path / "e.yaml").write_text(text, "utf-8")

    for file, place in (
        ("t.yaml", "t.yaml:4: services.kafka.image"),
        ("e.yaml", "topology.services.kafka.image"),
    ):
        status, _, err = run_command("validate", file)
        assert status == 2
        assert place in err
        assert "FROM streamquake/kafka:" in err


def test_validate_prints_json(run_command: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("name: T\nservices: {}\n")

    status, out, _ = run_command("validate", "t.yaml", "--json")
    (document,) = json.loads(out)

    assert (status, document["valid"]) == (2, False)
    assert document["problems"][0]["path"] == "name"
    assert document["problems"][0]["line"] == 1


def test_list_prints_all_kinds_and_selected_kinds_as_json(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    run_command("run", "quickstart", "--seed", "5")

    _, out, _ = run_command("list")
    for message in (
        "flink-kafka-hdfs",
        "canary",
        "slow_link",
        "latency_ms: int",
        "recovery",
        "numbered",
        "records: int (needed)",
        "quickstart, seed 5: held",
    ):
        assert message in out

    listed = json.loads(run_command("list", "faults", "runs", "--json")[1])
    assert {"kill", "pause", "slow_link"} <= {row["name"] for row in listed["faults"]}
    assert listed["runs"][0]["outcome"] == "held"
    assert run_command("list", "fault")[0] == 2


def test_the_compose_file_is_written_checked_and_updated(
    run_command: RunCommand, tmp_path: Path
) -> None:
    assert run_command("compose", "kafka-only", "--check")[0] == 3
    assert run_command("compose", "kafka-only")[0] == 0
    assert run_command("compose", "kafka-only", "--check")[0] == 0
    assert recipe("kafka").tag in run_command("compose", "kafka-only", "--print")[1]

    (tmp_path / "docker-compose.yml").write_text("services: {}\n")
    status, _, err = run_command("compose", "kafka-only", "--check")
    assert status == 3
    assert "docker-compose.yml: differs from" in err
    assert err.splitlines()[-1] == "exit status 3: file outdated"
    assert run_command("compose", "kafka-only")[0] == 0
    assert run_command("compose", "kafka-only", "--check")[0] == 0


@pytest.mark.parametrize(
    ("error", "status", "finding"),
    [
        (BadInput([Problem(file=f, message="m") for f in ("a", "b")]), 2, "a: m\nb: m\n"),
        (
            RuntimeUnavailable("no engine; start it"),
            3,
            "streamquake: no engine; start it\nexit status 3: engine missing\n",
        ),
        (ContainerError("no such container"), 3, "exit status 3: cluster failed\n"),
        (UnknownImage("no image kind 'kafak'"), 3, "exit status 3: image failed\n"),
        (JavaMissing("install Java"), 3, "exit status 3: machine unsuitable\n"),
        (OSError(28, "No space left on device"), 3, "No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (Interrupted("SIGTERM"), 130, "interrupted\n"),
        (click.UsageError("no such thing"), 2, "no such thing"),
        (click.Abort(), 130, "interrupted\n"),
    ],
)
def test_errors_are_printed_as_lines(
    error: BaseException, status: int, finding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(_raising(error), []) == status

    captured = capsys.readouterr()
    assert finding in captured.err
    assert "Traceback" not in captured.err


def test_a_program_that_is_ended_from_within_has_no_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert guarded(_raising(SystemExit(0)), []) == 3
    assert "exit status 3: internal error" in capsys.readouterr().err


def test_the_traceback_of_an_unexpected_error_is_in_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STREAMQUAKE_DEBUG", raising=False)
    assert guarded(_raising(ZeroDivisionError("oops")), []) == 3

    err = capsys.readouterr().err
    saved = Path(err.split("traceback: ")[1].split(" ")[0])
    assert err.splitlines()[-1] == "exit status 3: internal error"
    assert "Traceback" not in err
    assert "ZeroDivisionError: oops" in saved.read_text()
    saved.unlink()


def test_debug_shows_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMQUAKE_DEBUG", "1")

    assert guarded(_raising(RuntimeUnavailable("no engine")), []) == 3
    assert "Traceback" in capsys.readouterr().err


def _raising(error: BaseException) -> click.Command:
    @click.command()
    def command() -> None:
        raise error

    return command


def _untrusted_record(out: Path, told: Story | None = None, **promise: Any) -> RunFolder:
    """A record from an untrusted source, with its own promise."""
    folder = RunFolder.create(out, "20260101-000000-abcd")
    plan = experiment_document(load_experiment("quickstart", seed=1))
    plan["job"]["sql"] = plan["job"]["pyspark"] = "SELECT 1;\n"
    output = {"kafka": "totals", "compare": ("amount",), **promise.pop("output", {})}
    plan["job"]["promise"] = {"outputs": {"totals": output}, **promise}
    folder.write_manifest({"experiment": plan, "seed": 1})
    history = HistoryWriter(folder.history)
    for event in (told or Story()).history():
        history.append(event)
    history.close()
    return folder


def test_a_record_with_sql_that_has_side_effects_is_rejected(
    run_command: RunCommand, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkInBackground, "get", lambda self: spark)
    written = tmp_path / "written"
    run = "java_method('java.lang.System', 'getenv', 'HOME')"
    folder = _untrusted_record(
        tmp_path / "runs",
        expected=f"INSERT OVERWRITE DIRECTORY '{written}' USING json SELECT 1",
        output={"map": {"amount": run}, "retracts": "key IN (SELECT value FROM text.`/etc/hosts`)"},
    )

    status, _, err = run_command("check", str(folder.path))

    assert status == 2
    assert not written.exists()
    assert not folder.results.exists()
    lines = err.splitlines()
    places = ("expected", "outputs.totals.map.amount", "outputs.totals.retracts")
    assert [line.split(": ")[:2] for line in lines] == [
        [str(folder.manifest), f"job.promise.{place}"] for place in places
    ]
    assert "InsertIntoDir" in lines[0]
    assert "java_method" in lines[1]


def test_a_replay_lists_the_secrets_that_must_be_given_again(
    run_command: RunCommand, fake_runner: dict[str, Any], tmp_path: Path
) -> None:
    secret = "job.config.security.ssl.key-password"
    status, *_ = run_command("run", "quickstart", "--set", f"{secret}=hunter2")
    assert (status, fake_runner["experiment"].job.config["security.ssl.key-password"]) == (
        0,
        "hunter2",
    )
    run = next((tmp_path / "runs").glob("2026*"))
    assert "hunter2" not in (run / "run.json").read_text()

    status, _, err = run_command("replay", str(run))

    assert status == 2
    assert f"give it again, as --set {secret}=VALUE" in err
    assert run_command("replay", str(run), "--set", f"{secret}=hunter3")[0] == 0
    assert fake_runner["experiment"].job.config["security.ssl.key-password"] == "hunter3"


def test_a_record_with_sql_that_only_misleads_is_judged(
    run_command: RunCommand, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier release accepted it. What needs it is undecided, and the other checks judge."""
    monkeypatch.setattr(SparkInBackground, "get", lambda self: spark)
    wrong = "SELECT key, amount FROM sent WHERE (key IN (SELECT key FROM sent)) = false"
    story = Story().sent(1, 400).at(2, Action.DRAINED)
    folder = _untrusted_record(tmp_path / "runs", story, expected=wrong)
    stored = StoredOutput(path=folder.data / "totals")
    stored.part("x").mkdir(parents=True)
    stored.finish({"kind": "kafka", "records": 0})
    manifest = folder.read_manifest()
    any_row = "SELECT key FROM sent LIMIT 1"
    manifest["experiment"]["checks"] = [
        {"sql": {"name": "mine", "query": wrong}},
        {"sql": {"name": "any", "query": any_row}},
        {"exactly_once": {"min_records": 1}},
    ]
    folder.write_manifest(manifest)

    _, out, _ = run_command("check", str(folder.path), "--json")

    summaries = {check["check"]: check["summary"] for check in json.loads(out)["checks"]}
    assert "`IN (SELECT ...)` as a value is not allowed here" in summaries["mine"]
    assert "LIMIT is not allowed here without ORDER BY" in summaries["any"]
    assert "`IN (SELECT ...)` as a value is not allowed here" in summaries["exactly_once"]
    assert summaries["progress"] == "no checkpoint was completed in the whole run"


def test_a_record_whose_check_reads_other_relations_is_rejected(
    run_command: RunCommand, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkInBackground, "get", lambda self: spark)
    folder = _untrusted_record(tmp_path / "runs")
    manifest = folder.read_manifest()
    query = "SELECT * FROM text.`/etc/hosts`"
    manifest["experiment"]["checks"] = [{"sql": {"name": "mine", "query": query}}]
    folder.write_manifest(manifest)

    status, _, err = run_command("check", str(folder.path))

    assert status == 2
    assert "run.json: checks.mine.query: the relation `text./etc/hosts` is not given here" in err


def test_replay_runs_no_program_of_a_record_unless_allowed(
    run_command: RunCommand, tmp_path: Path, fake_runner: dict[str, Any]
) -> None:
    folder = _untrusted_record(tmp_path / "runs")
    manifest = folder.read_manifest()
    manifest["experiment"]["checks"] = [
        {"command": {"name": "mine", "run": ["rm", "-rf", "a b"]}},
        {"command": {"run": ["judge"]}},
    ]
    folder.write_manifest(manifest)

    status, _, err = run_command("replay", str(folder.path))
    first, second = err.splitlines()

    assert status == 2
    assert first.endswith(
        "run.json: checks.mine: it runs `rm -rf 'a b'` on this machine; to allow that, add "
        "--run-commands"
    )
    assert "checks.command: it runs `judge`" in second
    assert "experiment" not in fake_runner

    status, _, _ = run_command("replay", str(folder.path), "--run-commands")
    assert (status, len(fake_runner["experiment"].commands)) == (0, 2)


def test_replay_sends_the_records_that_the_run_stored(
    run_command: RunCommand, tmp_path: Path, fake_runner: dict[str, Any]
) -> None:
    file = tmp_path / "orders.jsonl"
    file.write_text('{"id": 1}\n{"id": 2}\n')
    load = Recorded(file=str(file), rate_per_s=1).with_files(Path)
    folder = _untrusted_record(tmp_path / "runs")
    load.store(folder.data, 1)
    file.write_text('{"id": 3}\n')
    manifest = folder.read_manifest()
    manifest["experiment"]["workload"] = {"recorded": load.model_dump(mode="json")}
    folder.write_manifest(manifest)

    status, _, err = run_command("replay", str(folder.path))
    assert (status, err) == (0, "")
    sent = fake_runner["experiment"].workload
    assert sent.data_set(1).lines == [b'{"id": 1}', b'{"id": 2}']

    setting = f"workload.recorded.file={file}"
    status, _, err = run_command("replay", str(folder.path), "--set", setting)
    assert (status, "workload.recorded.file: a run is repeated with the records" in err) == (
        2,
        True,
    )


def test_check_starts_no_program_of_a_record(run_command: RunCommand, tmp_path: Path) -> None:
    folder = _untrusted_record(tmp_path / "runs")
    manifest = folder.read_manifest()
    program = ["touch", str(tmp_path / "started")]
    manifest["experiment"]["checks"] = [{"command": {"run": program}}]
    folder.write_manifest(manifest)

    _, out, _ = run_command("check", str(folder.path))

    assert "the record has no result of the program" in out
    assert not (tmp_path / "started").exists()
