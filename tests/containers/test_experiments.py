"""The shipped experiments on real systems, started from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.campaign.suite.loader import SUITES
from streamquake.harness.experiment.loader import EXPERIMENTS
from streamquake.harness.project.project import write_project
from streamquake.reports.record.results import Results
from streamquake.topologies.named_files import shipped_names
from streamquake.topologies.yaml_document import read_document
from tests.containers.test_claims import names_of_experiments
from tests.plugin_files import write_metadata

pytestmark = pytest.mark.container

SHIPPED = shipped_names(EXPERIMENTS, ".yaml")
TESTED_ELSEWHERE = {
    "quickstart",
    "kill-taskmanager-mid-checkpoint",
    "canary",
    "canary-no-checkpoints",
    "kafka-kill-broker",
    "swarm",
}
IN_SUITES = {
    name
    for suite in ("claims", "planted", "zoo")
    for row in read_document(SUITES / f"{suite}.yaml").data["rows"]
    for name in names_of_experiments(row)
}
"""These suites run them, see `test_claims.py` and `test_bug_suites.py`."""
EXAMPLES = Path(__file__).parents[2] / "examples"
STREAMQUAKE = (sys.executable, "-m", "streamquake")
TWO_TOPICS = """
name: two-topics
topology: kafka-only
workload:
  topics:
    of:
      orders:
        template: {records: 5000, rate_per_s: 1000, key: id, fields: {id: {sequence: {}}}}
      pays.v2:
        template:
          records: 500
          rate_per_s: 100
          fields: {id: {integer: {most: 99999}}, nth: {sequence: {}}}
checks: [exactly_once]
"""


def run(experiment: str, out: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    """Run an experiment; its exit status, its results, and what it printed."""
    done = subprocess.run(
        [*STREAMQUAKE, "run", experiment, "--out", str(out), "--seed", "7", *options],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    message = done.stdout + done.stderr
    results = out / "latest" / "results.json"
    assert results.exists(), message
    return done.returncode, json.loads(results.read_text()), message


def counts(results: dict[str, Any], check: str) -> dict[str, Any]:
    (found,) = (c for c in results["checks"] if c["check"] == check)
    return dict(found["counts"])


@pytest.mark.nightly
@pytest.mark.parametrize("experiment", ["quickstart", "kill-taskmanager-mid-checkpoint"])
def test_a_killed_taskmanager_causes_no_loss_and_no_duplicates(
    experiment: str, tmp_path: Path
) -> None:
    status, results, message = run(experiment, tmp_path)
    assert (status, results["outcome"], results["ended"]) == (0, "held", "completed"), message
    (fault,) = results["faults"]
    assert fault["in_effect"]
    assert fault["healed"]
    # An attempt that missed its window may be followed by the next before the job runs again.
    assert results["recoveries"][-1]["phases"]["restarted_s"] > 0
    assert message.index("seed") < message.index("streamquake replay")
    assert (tmp_path / "latest" / "report.html").stat().st_size > 100_000
    assert (tmp_path / "latest" / "junit.xml").exists()


@pytest.mark.nightly
def test_the_canary_is_violated_with_the_expected_class(tmp_path: Path) -> None:
    status, results, message = run("canary", tmp_path)
    assert (status, results["outcome"]) == (1, "violated"), message
    found = counts(results, "exactly_once")
    assert found["duplicated"] > 0
    assert found["lost"] == 0


@pytest.mark.nightly
def test_a_retraction_of_an_unwritten_row_is_found(tmp_path: Path) -> None:
    """With transactions no record is repeated, and the experiment holds."""
    status, results, message = run("changelog", tmp_path, "--set", "job.sink=at-least-once")
    assert (status, results["outcome"]) == (1, "violated"), message
    found = counts(results, "exactly_once")
    assert found["unmatched_retraction"] > 0
    assert found["lost"] == found["phantom"] == 0
    assert found["actual"] == found["expected"] + found["duplicated"]


@pytest.mark.nightly
def test_a_killed_broker_keeps_acknowledged_records(tmp_path: Path) -> None:
    status, results, message = run("kafka-kill-broker", tmp_path)
    assert (status, results["outcome"]) == (0, "held"), message


@pytest.mark.nightly
@pytest.mark.parametrize("experiment", sorted(set(SHIPPED) - TESTED_ELSEWHERE - IN_SUITES))
def test_every_other_experiment_has_its_expected_outcome(experiment: str, tmp_path: Path) -> None:
    _, results, message = run(experiment, tmp_path)
    assert results["ended"] == "completed", message
    assert Results.from_json(results).as_expected, message


@pytest.mark.nightly
def test_without_checkpoints_losses_or_duplicates_are_found(tmp_path: Path) -> None:
    status, results, message = run("canary-no-checkpoints", tmp_path)
    assert (status, results["outcome"]) == (1, "violated"), message
    found = counts(results, "exactly_once")
    assert found["lost"] + found["duplicated"] > 0


@pytest.mark.nightly
def test_flink_1_20_holds_as_well(tmp_path: Path) -> None:
    other = ("--set", "topology=flink-1-20-kafka-hdfs")
    status, results, message = run("kill-taskmanager-mid-checkpoint", tmp_path, *other)
    assert (status, results["outcome"]) == (0, "held"), message


@pytest.mark.nightly
def test_a_job_on_recorded_orders_is_held_and_repeated_without_the_file(tmp_path: Path) -> None:
    for file in (EXAMPLES / "recorded").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    status, results, message = run(str(tmp_path / "spending.yaml"), tmp_path)
    assert (status, results["outcome"]) == (0, "held"), message
    assert counts(results, "exactly_once")["actual"] == 2000

    (tmp_path / "orders.jsonl").unlink()
    command = [*STREAMQUAKE, "replay", "latest", "--out", str(tmp_path)]
    again = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert again.returncode == 0, again.stdout + again.stderr
    first, second = (json.loads((tmp_path / r / "run.json").read_text()) for r in runs_in(tmp_path))
    loads = [run["experiment"]["workload"]["recorded"] for run in (first, second)]
    assert loads[0]["sha256"] == loads[1]["sha256"]


@pytest.mark.nightly
def test_two_topics_are_joined_once_and_duplicates_are_found(tmp_path: Path) -> None:
    document = str(EXAMPLES / "join" / "paid-orders.yaml")
    status, results, message = run(document, tmp_path)
    assert (status, results["outcome"], results["ended"]) == (0, "held", "completed"), message
    assert counts(results, "exactly_once")["actual"] == 20_000

    weak = ("--set", "job.sink=at-least-once", "--set", "faults.0.when.delay_s=0.8")
    status, results, message = run(document, tmp_path, *weak)
    assert (status, results["outcome"]) == (1, "violated"), message
    found = counts(results, "exactly_once")
    assert found["duplicated"] > 0
    assert found["lost"] == found["phantom"] == found["changed"] == 0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("example", "status", "outcome"),
    [("bills", 0, "held"), ("repeated-stage", 1, "violated"), ("ended-stage", 3, "undecided")],
)
def test_two_stages_are_judged_by_what_the_last_one_writes(
    example: str, status: int, outcome: str, tmp_path: Path
) -> None:
    ended, results, message = run(str(EXAMPLES / "stages" / f"{example}.yaml"), tmp_path)
    assert (ended, results["outcome"], results["ended"]) == (status, outcome, "completed"), message
    found = counts(results, "exactly_once")
    assert found["phantom"] == found["changed"] == 0
    assert (found["lost"], bool(found["duplicated"])) == {
        "bills": (0, False),
        "repeated-stage": (0, True),
        "ended-stage": (None, False),
    }[example]


@pytest.mark.nightly
def test_topics_without_a_job_hold_what_was_sent(tmp_path: Path) -> None:
    document = tmp_path / "topics.yaml"
    document.write_text(TWO_TOPICS, "utf-8")
    status, results, message = run(str(document), tmp_path)
    assert (status, results["outcome"]) == (0, "held"), message
    found = counts(results, "exactly_once")
    assert (found["orders.actual"], found["pays.v2.actual"]) == (5000, 500)


@pytest.mark.nightly
def test_orders_in_avro_arrive_as_they_were_sent(tmp_path: Path) -> None:
    status, results, message = run(str(EXAMPLES / "avro" / "orders.yaml"), tmp_path)
    assert (status, results["outcome"], results["ended"]) == (0, "held", "completed"), message
    assert counts(results, "exactly_once")["actual"] == 20_000


@pytest.mark.nightly
def test_deletes_leave_what_an_upsert_leaves(tmp_path: Path) -> None:
    status, results, message = run(str(EXAMPLES / "deletes" / "stock.yaml"), tmp_path)
    assert (status, results["outcome"], results["ended"]) == (0, "held", "completed"), message
    assert 1000 < counts(results, "exactly_once")["actual"] < 2000


@pytest.mark.nightly
def test_a_program_imports_a_module_of_its_own(tmp_path: Path) -> None:
    status, results, message = run(str(EXAMPLES / "modules" / "discounts.yaml"), tmp_path)
    assert (status, results["outcome"], results["ended"]) == (0, "held", "completed"), message
    assert counts(results, "exactly_once")["expected"] == 20_000
    plan = json.loads((tmp_path / "latest" / "run.json").read_text())["experiment"]
    assert "def discounted" in plan["job"]["modules"]["prices"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "outcome", "rows"),
    [("totals", "held", 500), ("payments", "held", 40_000), ("copies", "violated", None)],
)
def test_tables_hold_what_transactions_and_keys_promise(
    tmp_path: Path, name: str, outcome: str, rows: int | None
) -> None:
    if name == "payments":
        pom = EXAMPLES / "tables" / "payments" / "pom.xml"
        subprocess.run(["mvn", "-B", "-q", "-ntp", "-f", str(pom), "package"], check=True)

    status, results, message = run(str(EXAMPLES / "tables" / f"{name}.yaml"), tmp_path)

    assert (status, results["outcome"], results["ended"]) == (0, outcome, "completed"), message
    found = counts(results, "exactly_once")
    assert found["duplicated"] > 0 if rows is None else found["actual"] == rows
    assert (found["lost"], found["prepared"]) == (0, 0)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["copies", "outage"])
def test_an_object_store_holds_what_a_checkpoint_completes(tmp_path: Path, name: str) -> None:
    status, results, message = run(str(EXAMPLES / "objects" / f"{name}.yaml"), tmp_path)

    assert (status, results["outcome"], results["ended"]) == (0, "held", "completed"), message
    found = counts(results, "exactly_once")
    assert (found["actual"], found["lost"], found["duplicated"]) == (60_000, 0, 0)
    plan = (tmp_path / "latest" / "run.json").read_text()
    assert '"s3.secret-key": "***"' in plan


def runs_in(out: Path) -> list[str]:
    """The names of the run folders, the oldest first."""
    return sorted(p.name for p in out.iterdir() if (p / "run.json").exists() and not p.is_symlink())


@pytest.mark.nightly
def test_a_first_project_runs_as_it_is(tmp_path: Path) -> None:
    write_project(tmp_path)

    status, results, message = run(str(tmp_path / "chaos" / "lose-a-worker.yaml"), tmp_path / "out")

    assert (status, results["outcome"], results["ended"]) == (0, "held", "completed"), message


@pytest.mark.nightly
def test_the_example_of_a_plugin_takes_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_metadata(tmp_path / "site", "streamquake_example")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join((str(tmp_path / "site"), str(EXAMPLES / "plugin")))
    )

    status, results, message = run(
        str(EXAMPLES / "plugin" / "interrupted-broker.yaml"), tmp_path / "out"
    )

    assert (status, results["outcome"], results["ended"]) == (0, "held", "completed"), message
    manifest = json.loads((tmp_path / "out" / "latest" / "run.json").read_text())
    assert [each["name"] for each in manifest["plugins"]] == ["acme"]
