"""Error handling of commands: each error becomes lines for the user and an exit status."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

import click

from streamquake.harness.cli.machine_check import MachineCheck, kind_of_problems
from streamquake.harness.cli.output import echo
from streamquake.harness.cli.variables import variable_of
from streamquake.harness.interrupts import Interrupted
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Ended, Results
from streamquake.topologies.errors import ErrorKind, ExitStatus, kind_of
from streamquake.topologies.registry import FormerName

HELD, VIOLATED, BAD_INPUT, _, INTERRUPTED = ExitStatus
"""The exit statuses by name. Status 3 has no name: only `no_verdict` returns it."""
DEBUG = "STREAMQUAKE_DEBUG"
COMPLETION = "_STREAMQUAKE_COMPLETE"
"""The variable by which a shell requests a completion."""
PYTHON_FORMAT = warnings.formatwarning


def guarded(command: click.Command, argv: Sequence[str]) -> int:
    """Run a command and return its exit status; raises nothing."""
    warnings.formatwarning = _warning_line
    try:
        status = command.main(args=list(argv), prog_name="streamquake", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else HELD
    except BrokenPipeError:
        # The reader closed its end of the pipe, as `head` does; further output has no reader.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return HELD
    except click.ClickException as error:
        error.show()
        variable = variable_of(error)
        return _print_lines(BAD_INPUT, *([f"the value is from {variable}"] if variable else []))
    except (click.Abort, KeyboardInterrupt, Interrupted):
        return _print_lines(INTERRUPTED, "interrupted")
    except SystemExit as error:  # of a plugin: its status 0 would be "held"
        if COMPLETION in os.environ:  # click ends the program after a completion
            raise
        return _failed(error)
    except Exception as error:  # noqa: BLE001 - the outermost guard: printed, and saved in a file
        return _failed(error)


def _warning_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """A warning about a former name, for the user: one line, without a source location."""
    if issubclass(category, FormerName):
        return f"warning: {message}\n"
    return PYTHON_FORMAT(message, category, filename, lineno, line)


def status_of(results: Results) -> int:
    """The exit status of a run; for status 3 a last line is printed with its cause."""
    return status_of_outcome(results.outcome, results.ended, results.cause or "failed to run")


def status_of_outcome(
    outcome: Outcome, ended: Ended = "completed", cause: str = ErrorKind.UNDECIDED
) -> int:
    """The exit status of an outcome. `cause` is the reason of an undecided outcome."""
    if ended == "interrupted":
        return INTERRUPTED
    if outcome == Outcome.UNDECIDED:
        return no_verdict(cause)
    return VIOLATED if outcome == Outcome.VIOLATED else HELD


def hindered(found: Sequence[MachineCheck]) -> int:
    """Print why this machine can run no experiment, and return the exit status."""
    lines = (f"{check.what}: {check.finding}; {check.next}" for check in found)
    return no_verdict(kind_of_problems(found), *lines)


def no_verdict(cause: str, *lines: str) -> int:
    """Print the lines, and last the cause of exit status 3; return that status.

    Every command that ends with status 3 calls this. `cause` is a kind of error or two words.
    """
    status = ExitStatus.UNDECIDED
    return _print_lines(status, *lines, f"exit status {status}: {cause}")


def _failed(error: BaseException) -> int:
    """Print an error, and return the exit status of its kind."""
    kind = kind_of(error)
    if kind == ErrorKind.BAD_INPUT:
        return _print_lines(kind.exit_status, str(error))
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    if kind == ErrorKind.INTERNAL:
        return no_verdict(
            kind, f"streamquake: {type(error).__name__}: {error}", _saved_traceback(error)
        )
    return no_verdict(kind, f"streamquake: {error}")


def _print_lines(status: int, *lines: str) -> int:
    for line in lines:
        echo(line, err=True)
    return status


def _saved_traceback(error: BaseException) -> str:
    """Save the traceback for a bug report; return the message that names its file."""
    number, name = tempfile.mkstemp(prefix="streamquake-traceback-", suffix=".txt")
    os.close(number)
    Path(name).write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    return (
        f"this is a bug in Streamquake, not in your input; traceback: {name} "
        f"({DEBUG}=1 shows it here)"
    )
