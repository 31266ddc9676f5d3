"""`errors`: the table, the baseline and the JSON of what runs logged."""

from __future__ import annotations

import json
from pathlib import Path

from tests.harness.conftest import RunCommand

FENCED = "2026-11-28T19:01:41.000Z ERROR KafkaCommitter - transaction 7 is fenced\n"
LOST = "2026-11-28T19:01:42.000Z WARN  Task - failed\njava.io.IOException: lost\n\tat a.B.c(B:1)\n"


def record(name: str, **logs: str) -> None:
    """A run of which only the logs matter, by node."""
    folder = Path("runs", name)
    for node, text in logs.items():
        (folder / "logs" / node).mkdir(parents=True)
        (folder / "logs" / node / "log.txt").write_text(text)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text("{}")


def test_errors_are_shown_by_how_many_runs_logged_them(run_command: RunCommand) -> None:
    record("a", broker=FENCED, worker=LOST)
    record("b", worker=FENCED.replace("7", "8") + FENCED)
    status, out, _ = run_command("errors", "a", "b")
    assert status == 0
    assert out.index("2 of 2") < out.index("1 of 2")
    assert "ERROR KafkaCommitter: transaction # is fenced" in out
    assert "java.io.IOException at a.B.c" in out


def test_a_baseline_leaves_only_what_is_new(run_command: RunCommand) -> None:
    record("a", broker=FENCED)
    record("b", broker=FENCED + LOST)
    status, out, _ = run_command("errors", "a", "--write", "known.yaml")
    assert (status, out) == (0, "known.yaml: kinds of errors: 1, runs: 1\n")

    _, out, _ = run_command("errors", "b", "--baseline", "known.yaml", "--json")
    (row,) = json.loads(out)
    assert row == {
        "run": "b",
        "error": "java.io.IOException at a.B.c",
        "text": "Task: failed\njava.io.IOException: lost",
        "nodes": {"broker": 1},
    }
    assert run_command("errors", "a", "--baseline", "known.yaml")[1] == "no errors\n"


def test_a_log_that_cannot_be_read_is_named(run_command: RunCommand) -> None:
    record("a", broker="it runs\n", worker=LOST)
    record("b")
    status, out, err = run_command("errors", "a", "b")
    assert status == 0
    assert "broker/log.txt: no line begins with a time stamp and a level" in err
    assert "b: it has no logs" in err
    assert "1 of 2" in out


def test_wrong_input_is_told(run_command: RunCommand) -> None:
    record("a", broker=FENCED)
    assert run_command("errors", "c")[0] == 2
    Path("known.yaml").write_text("errors: 3\n")
    status, _, err = run_command("errors", "a", "--baseline", "known.yaml")
    assert status == 2
    assert "known.yaml" in err
    status, _, err = run_command("errors", "a", "--write", "no/such/known.yaml")
    assert status == 2
    assert "no such folder" in err
