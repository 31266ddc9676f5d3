"""The command `selftest`: its output, its JSON file, its exit status."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from streamquake.harness.cli import selftest
from streamquake.harness.reconcile.reconcile import reconcile
from streamquake.harness.reconcile.result import ReconciliationResult
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.reconcile.spark_session import JavaMissing
from streamquake.harness.selftest import selftest_runner
from tests.harness.conftest import RunCommand

CELL = "lost/one/few_keys"
SMALL = ("selftest", "--seed", "9", "--records", "400", "--only", CELL)


@pytest.fixture
def run_command(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> RunCommand:
    """Run the program in an empty folder, with the Spark session of the tests. Returns (status,
    stdout, stderr)."""
    monkeypatch.setattr(selftest, "spark_session", lambda **options: spark)
    monkeypatch.setattr(selftest, "stop_spark", lambda session: None)
    return run_command


def test_a_held_self_test_prints_the_seed_first_and_the_command_last(
    run_command: RunCommand,
) -> None:
    status, out, err = run_command(*SMALL, "--only", "clean/none/nulls")
    lines = [line.rstrip() for line in out.strip().splitlines()]

    assert (status, err) == (0, "")
    assert lines[0] == "seed 9"
    assert lines[1] == "HELD  every planted anomaly was found, and nothing else"
    assert lines[2].startswith("2 of 2 cells held, 400 records in each shape")
    assert lines[-1] == (
        "again    streamquake selftest --seed 9 --records 400 --only lost/one/few_keys "
        "--only clean/none/nulls"
    )


def test_the_table_has_a_row_for_each_class_and_a_column_for_each_rate(
    run_command: RunCommand,
) -> None:
    out = run_command(*SMALL, "--only", "clean/none/nulls")[1]
    table = {line.split("  ")[0].strip(): line.split() for line in out.splitlines() if line}

    assert table["class"][1:4] == ["one", "1", "in"]
    assert table["lost"][:3] == ["lost", "1", "held"]
    assert table["clean"][-3:-1] == ["1", "held"]


@pytest.mark.nightly
def test_a_missed_anomaly_is_printed_with_the_command_that_repeats_its_cell(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blind_judge(
        expected: DataFrame, actual: DataFrame, shape: Shape, **_: Any
    ) -> ReconciliationResult:
        real = reconcile(expected, actual, shape)
        return replace(real, counts={**real.counts, "lost": 0}, findings=())

    monkeypatch.setattr(selftest_runner, "reconcile", blind_judge)

    status, out, _ = run_command(*SMALL, "--only", "clean/none/nulls")

    assert status == 1
    assert "VIOLATED" in out
    assert f"violated  {CELL}, seed 9, 1 planted" in out
    assert "  lost: planted 1, reported 0\n" in out
    assert f"  again: streamquake selftest --seed 9 --records 400 --only {CELL}\n" in out


def test_a_self_test_whose_judge_fails_is_undecided(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing_judge(*sides: Any, **_: Any) -> ReconciliationResult:
        raise RuntimeError("no space left")

    monkeypatch.setattr(selftest_runner, "reconcile", failing_judge)

    status, out, err = run_command(*SMALL)

    assert (status, err.splitlines()[-1]) == (3, "exit status 3: internal error")
    assert "  RuntimeError: no space left\n" in out


def test_without_java_the_reason_is_printed(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java(**options: Any) -> SparkSession:
        raise JavaMissing("Spark needs Java 17 or later")

    monkeypatch.setattr(selftest, "spark_session", no_java)

    status, out, err = run_command(*SMALL)

    assert (status, out) == (3, "seed 9\n")
    assert err == "streamquake: Spark needs Java 17 or later\nexit status 3: machine unsuitable\n"


@pytest.mark.nightly
def test_every_cell_is_in_the_json_file(run_command: RunCommand, tmp_path: Path) -> None:
    assert run_command(*SMALL, "--json", "found.json")[0] == 0

    document = json.loads((tmp_path / "found.json").read_text())
    (cell,) = document.pop("cells")
    assert {name: document[name] for name in ("schema", "outcome", "seed", "records")} == {
        "schema": 1,
        "outcome": "held",
        "seed": 9,
        "records": 400,
    }
    assert (cell["class"], cell["rate"], cell["shape"]) == ("lost", "one", "few_keys")
    assert cell["planted"] == cell["reported"]
    assert (cell["planted"]["lost"], cell["spots"]) == (1, 1)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("--only", "lsot"), 'no class is called "lsot"; did you mean "lost"?'),
        (("--only", CELL, "--json", "missing/found.json"), "no such folder"),
        (("--records", "7"), "7 is not in the range"),
        (("--seed", "-1"), "-1 is not in the range"),
    ],
)
def test_bad_input_is_reported_before_spark_starts(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...], text: str
) -> None:
    started: list[Any] = []
    monkeypatch.setattr(selftest, "spark_session", lambda **options: started.append(options))

    status, out, err = run_command("selftest", *argv)

    assert (status, out, started) == (2, "", [])
    assert text in err


def test_a_large_self_test_has_a_session_for_many_records(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java(**options: Any) -> SparkSession:
        requested.update(options)
        raise JavaMissing("not now")

    requested: dict[str, Any] = {}
    monkeypatch.setattr(selftest, "spark_session", no_java)

    run_command("selftest", "--large", "--records", "10000000")
    assert requested == {"small": False}
    run_command("selftest", "--large")
    assert requested == {"small": True}
