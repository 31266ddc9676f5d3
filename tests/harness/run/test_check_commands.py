"""The programs of checks are run once, at the end of a run, and their results are recorded."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from streamquake.cluster.runtime.clock import FakeClock
from streamquake.harness.experiment.check import CheckCommand
from streamquake.harness.run import check_commands
from streamquake.harness.run.check_commands import reject_missing_programs, run_commands
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.verdict.checks.command import Command
from streamquake.reports.record.history import HistoryWriter, read_history
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.run_events import CommandEnded
from streamquake.reports.record.run_folder import RunFolder
from streamquake.topologies.problems import BadInput
from tests.event_drafts import undeclared_fields
from tests.harness.histories import experiment


def ended(out: Path, *argv: str, timeout_s: float = 60) -> CommandEnded:
    folder = RunFolder.create(out, "a-run")
    loop = EventLoop(
        HistoryWriter(folder.history), Metrics(folder.metrics), FakeClock(), lambda: None
    )
    run_commands({"rule": CheckCommand(argv=argv, timeout_s=timeout_s)}, folder, loop)
    loop.close()
    (event,) = read_history(folder.history)
    assert isinstance(event, CommandEnded)
    assert undeclared_fields([event]) == []
    assert (event.check, event.argv) == ("rule", list(argv))
    return event


def python(program: str) -> Sequence[str]:
    return (sys.executable, "-c", program)


def test_a_program_runs_in_the_run_folder_and_its_lines_are_recorded(tmp_path: Path) -> None:
    program = """
import os, sys
print(os.getcwd() == os.environ["STREAMQUAKE_RUN_FOLDER"], sys.stdin.read() == "")
print(*sorted(os.listdir()))
print("one\\n\\n  two  ", file=sys.stderr)
sys.exit(3)
"""
    event = ended(tmp_path, *python(program))

    assert (event.exit_code, event.reason) == (3, None)
    assert event.last_lines == ["True True", "data history.jsonl logs"]
    assert event.last_errors == ["one", "  two"]
    logs = tmp_path / "a-run" / "logs"
    assert (logs / "check-rule.out.txt").read_text().startswith("True")
    assert (logs / "check-rule.err.txt").read_text() == "one\n\n  two  \n"


def test_long_outputs_are_recorded_by_their_ends(tmp_path: Path) -> None:
    program = "for n in range(30): print(n, 'x' * 9000)\nprint(b'\\xff'.hex())"
    event = ended(tmp_path, *python(program))

    assert event.exit_code == 0
    assert [line.partition(" ")[0] for line in event.last_lines[-4:]] == ["27", "28", "29", "ff"]
    assert max(map(len, event.last_lines)) == 500
    assert len(event.last_lines) <= 10


@pytest.mark.parametrize("argv", [("yes",), ("sh", "-c", "yes; exit $?")])
def test_a_program_that_prints_without_an_end_is_ended(
    argv: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_commands, "MAX_FILE_BYTES", 2 << 20)
    event = ended(tmp_path, *argv)
    assert (event.exit_code, event.reason) == (None, "it wrote more than 2 MiB into a file")
    assert (tmp_path / "a-run" / "logs" / "check-rule.out.txt").stat().st_size == 2 << 20
    assert event.last_lines[0] == "y"


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    event = ended(tmp_path, *python("import sys; sys.stdout.buffer.write(b'\\xff\\n')"))
    assert event.last_lines == ["\ufffd"]


def test_a_program_that_does_not_end_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    fifo = tmp_path / "held-open"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)

    event = ended(tmp_path, "sh", "-c", f"(echo up; exec sleep 600) > {fifo} & wait", timeout_s=1)

    assert (event.exit_code, event.reason) == (None, "it did not end within 1 s")
    assert os.read(reader, 9) == b"up\n"
    ready, _, _ = select.select([reader], [], [], 60)
    assert ready, "the other process still has the file open"
    assert os.read(reader, 9) == b""
    os.close(reader)


def test_what_a_program_leaves_running_is_killed(tmp_path: Path) -> None:
    fifo = tmp_path / "held-open"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)

    event = ended(tmp_path, "sh", "-c", f"(echo up; exec sleep 600) > {fifo} & read up < {fifo}")

    assert (event.exit_code, event.reason) == (0, None)
    ready, _, _ = select.select([reader], [], [], 60)
    assert ready, "the other process still has the file open"
    assert os.read(reader, 9) == b""
    os.close(reader)


@pytest.mark.parametrize(
    "removal",
    ["rm -r logs", "rm logs/*; mkdir logs/check-rule.out.txt", "rm logs/*; mkfifo logs/{}.out.txt"],
)
def test_a_program_that_removes_its_logs_has_a_result(tmp_path: Path, removal: str) -> None:
    removal = removal.format("check-rule")
    event = ended(tmp_path, "sh", "-c", f"echo all add up; {removal}; exit 1")
    assert (event.exit_code, event.last_lines) == (1, ["all add up"])


def test_the_end_by_a_signal_is_recorded(tmp_path: Path) -> None:
    event = ended(tmp_path, *python("import os; os.kill(os.getpid(), 9)"))
    assert event.exit_code == -9


def test_a_program_that_cannot_be_started_is_recorded(tmp_path: Path) -> None:
    event = ended(tmp_path, "/nowhere/judge", "a b")
    assert event.exit_code is None
    assert event.reason == ("`/nowhere/judge 'a b'` cannot be started: No such file or directory")


def test_programs_that_are_missing_are_rejected_before_a_run(tmp_path: Path) -> None:
    (tmp_path / "no-program").touch()
    plan = experiment(
        checks=(
            Command(run=(sys.executable,)),
            Command(given_name="a", run=("/nowhere/judge",)),
            Command(given_name="b", run=(str(tmp_path / "no-program"),)),
            Command(given_name="c", run=("",)),
        )
    )

    with pytest.raises(BadInput) as caught:
        reject_missing_programs(plan)

    assert [str(problem) for problem in caught.value.problems] == [
        "by-hand: checks.a: there is no program `/nowhere/judge` that can be executed",
        f"by-hand: checks.b: there is no program `{tmp_path}/no-program` that can be executed",
        "by-hand: checks.c: there is no program `` that can be executed",
    ]


def test_the_environment_is_that_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_LIMIT", "7")
    event = ended(tmp_path, *python("import os; print(os.environ['MY_LIMIT'])"))
    assert event.last_lines == ["7"]
    assert "STREAMQUAKE_RUN_FOLDER" not in os.environ
