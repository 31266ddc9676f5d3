"""What becomes of errors: lines for the user and an exit status, no traceback by surprise."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from streamquake.cluster.cluster import NodeDied
from streamquake.cluster.engines.engine import JobRefused
from streamquake.cluster.images.recipes import UnknownImage
from streamquake.cluster.images.store import ImageBuildFailed
from streamquake.cluster.runtime.runtime import ContainerError, RuntimeUnavailable
from streamquake.cluster.runtime.waiting import NotReady
from streamquake.harness.cli.machine_check import Examined
from streamquake.harness.cli.output import echo
from streamquake.harness.interrupts import Interrupted
from streamquake.harness.reconcile.spark_session import JavaMissing
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Results
from streamquake.topologies.problems import BadInput

HELD, VIOLATED, BAD_INPUT, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130
STATUSES = {Outcome.HELD: HELD, Outcome.VIOLATED: VIOLATED, Outcome.UNDECIDED: UNDECIDED}
"""The exit status of an outcome."""
DEBUG = "STREAMQUAKE_DEBUG"
ENVIRONMENT = (
    RuntimeUnavailable, ContainerError, ImageBuildFailed, UnknownImage, JavaMissing, NotReady,
    NodeDied, JobRefused, OSError,
)  # fmt: skip
"""What the machine or the system under test is to blame for; their messages say what to do."""


def guarded(command: click.Command, argv: Sequence[str]) -> int:
    """Run a command and answer with its exit status, whatever happens."""
    try:
        status = command.main(args=list(argv), prog_name="streamquake", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else HELD
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does; nothing is left to be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return HELD
    except BadInput as bad:
        return _say(BAD_INPUT, *map(str, bad.problems))
    except click.ClickException as error:
        error.show()
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt, Interrupted):
        return _say(INTERRUPTED, "interrupted")
    except ENVIRONMENT as error:
        _debug(error)
        return _say(UNDECIDED, f"streamquake: {error}")
    except Exception as error:  # noqa: BLE001 - the outermost guard: said in a line, kept in a file
        _debug(error)
        return _say(UNDECIDED, f"streamquake: {type(error).__name__}: {error}", _kept(error))


def status_of(results: Results) -> int:
    """The exit status of a run."""
    return INTERRUPTED if results.ended == "interrupted" else STATUSES[results.outcome]


def hindered(found: Sequence[Examined]) -> int:
    """Say why this machine can run no experiment; the exit status."""
    return _say(UNDECIDED, *(f"{each.what}: {each.said}; {each.next}" for each in found))


def _say(status: int, *lines: str) -> int:
    for line in lines:
        echo(line, err=True)
    return status


def _debug(error: Exception) -> None:
    if os.environ.get(DEBUG):
        traceback.print_exception(error)


def _kept(error: Exception) -> str:
    """Save the traceback for whoever mends it, and say where."""
    number, name = tempfile.mkstemp(prefix="streamquake-traceback-", suffix=".txt")
    os.close(number)
    Path(name).write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    return (
        f"this is a mistake in Streamquake, not in your input; traceback: {name} "
        f"({DEBUG}=1 shows it here)"
    )
