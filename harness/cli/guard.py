"""What becomes of errors: lines for the user and an exit status, no traceback by surprise."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

import click

from streamquake.harness.cli.machine_check import ENGINE, MachineCheck
from streamquake.harness.cli.output import echo
from streamquake.harness.interrupts import Interrupted
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Results
from streamquake.topologies.errors import ErrorKind, ExitStatus, kind_of
from streamquake.topologies.registry import FormerName

HELD, VIOLATED, BAD_INPUT, UNDECIDED, INTERRUPTED = ExitStatus
STATUSES = {Outcome.HELD: HELD, Outcome.VIOLATED: VIOLATED, Outcome.UNDECIDED: UNDECIDED}
"""The exit status of an outcome."""
DEBUG = "STREAMQUAKE_DEBUG"
PYTHON_FORMAT = warnings.formatwarning


def guarded(command: click.Command, argv: Sequence[str]) -> int:
    """Run a command and answer with its exit status, whatever happens."""
    warnings.formatwarning = _warning_line
    try:
        status = command.main(args=list(argv), prog_name="streamquake", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else HELD
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does; nothing is left to be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return HELD
    except click.ClickException as error:
        error.show()
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt, Interrupted):
        return _record(INTERRUPTED, "interrupted")
    except Exception as error:  # noqa: BLE001 - the outermost guard: said in lines, kept in a file
        return _failed(error)


def _warning_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """A warning of a former name is for the user: one line, without a place in the code."""
    if issubclass(category, FormerName):
        return f"warning: {message}\n"
    return PYTHON_FORMAT(message, category, filename, lineno, line)


def status_of(results: Results) -> int:
    """The exit status of a run; of status 3 the last line says what it stands for."""
    status = INTERRUPTED if results.ended == "interrupted" else STATUSES[results.outcome]
    return _undecided(results.cause or "failed to run") if status == UNDECIDED else status


def hindered(found: Sequence[MachineCheck]) -> int:
    """Say why this machine can run no experiment; the exit status."""
    missing = any(each.what == ENGINE for each in found)
    kind = ErrorKind.ENGINE_MISSING if missing else ErrorKind.MACHINE_UNFIT
    return _undecided(kind, *(f"{each.what}: {each.finding}; {each.next}" for each in found))


def _failed(error: Exception) -> int:
    """Say what stood in the way, and the exit status that this ends with."""
    kind = kind_of(error)
    if kind == ErrorKind.BAD_INPUT:
        return _record(kind.exit_status, str(error))
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    if kind == ErrorKind.INTERNAL:
        return _undecided(kind, f"streamquake: {type(error).__name__}: {error}", _kept(error))
    return _undecided(kind, f"streamquake: {error}")


def _undecided(cause: str, *lines: str) -> int:
    return _record(UNDECIDED, *lines, f"exit status {UNDECIDED}: {cause}")


def _record(status: int, *lines: str) -> int:
    for line in lines:
        echo(line, err=True)
    return status


def _kept(error: Exception) -> str:
    """Save the traceback for whoever mends it, and say where."""
    number, name = tempfile.mkstemp(prefix="streamquake-traceback-", suffix=".txt")
    os.close(number)
    Path(name).write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    return (
        f"this is a mistake in Streamquake, not in your input; traceback: {name} "
        f"({DEBUG}=1 shows it here)"
    )
