"""The programs of the user that judge a run: started once, when its record is complete.

Their results are events of the history, so that a record can be judged again without starting
anything that it names.
"""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from streamquake.harness.experiment.check import CheckCommand
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.event_loop import EventLoop
from streamquake.reports.record.event import Action
from streamquake.reports.record.run_folder import RunFolder
from streamquake.topologies.problems import BadInput, Problem

FOLDER_VARIABLE = "STREAMQUAKE_RUN_FOLDER"
MAX_LINES = 10
MAX_CHARACTERS = 500
TAIL_BYTES = 64 * 1024
MAX_FILE_BYTES = 1 << 30
"""The largest file that a program may write, its output among them: one that prints without an end
would fill the disk."""
BY_FILE_SIZE = (-signal.SIGXFSZ, 128 + signal.SIGXFSZ)
"""The exit status of a program, or of a shell that ran it, that wrote more (setrlimit(2))."""


def reject_missing_programs(experiment: Experiment) -> None:
    """Raise BadInput for each program that this machine does not have."""
    problems = [
        Problem(
            file=experiment.name,
            path=f"checks.{title}",
            message=f"there is no program `{command.argv[0]}` that can be executed",
        )
        for title, command in experiment.commands.items()
        if shutil.which(command.argv[0]) is None
    ]
    if problems:
        raise BadInput(problems)


def run_commands(commands: Mapping[str, CheckCommand], folder: RunFolder, loop: EventLoop) -> None:
    """Run each program to its end, one after the other, and record its result."""
    for title, command in commands.items():
        folder.logs.mkdir(exist_ok=True)  # the program before may have removed it
        with (
            (folder.logs / f"check-{title}.out.txt").open("w+b") as output,
            (folder.logs / f"check-{title}.err.txt").open("w+b") as errors,
        ):
            exit_code, reason = _run(command, folder.path.resolve(), output, errors)
            loop.record(
                Action.COMMAND_ENDED,
                check=title,
                argv=list(command.argv),
                exit_code=exit_code,
                reason=reason,
                last_lines=_last_lines(output),
                last_errors=_last_lines(errors),
            )
        loop.tick()


def _run(
    command: CheckCommand, folder: Path, output: BinaryIO, errors: BinaryIO
) -> tuple[int | None, str | None]:
    """The exit status of a program that runs in the run folder, or why there is none. One that has
    not ended in time is killed, and so are the processes that it started and left."""
    try:
        with _limited_files():
            process = subprocess.Popen(
                command.argv,
                cwd=folder,
                env={**os.environ, FOLDER_VARIABLE: str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
    except OSError as error:
        return None, f"`{shlex.join(command.argv)}` cannot be started: {error.strerror}"
    try:
        exit_code = process.wait(command.timeout_s)
        if exit_code in BY_FILE_SIZE:
            return None, f"it wrote more than {MAX_FILE_BYTES >> 20} MiB into a file"
        return exit_code, None
    except subprocess.TimeoutExpired:
        return None, f"it did not end within {command.timeout_s:g} s"
    finally:
        with suppress(ProcessLookupError):  # none is left
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def _limited_files() -> Iterator[None]:
    """The size of files is limited for the processes that are started within. They inherit the
    limit of this process, whose own files are far smaller."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    known = [limit for limit in (MAX_FILE_BYTES, soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_FSIZE, (min(known), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _last_lines(content: BinaryIO) -> list[str]:
    """The last lines of a text that are not blank, each cut to its beginning. The open file is
    read, since the program may have removed its name, or given it to another file."""
    size = content.seek(0, os.SEEK_END)
    content.seek(max(0, size - TAIL_BYTES))
    text = content.read().decode("utf-8", errors="replace")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return [line[:MAX_CHARACTERS] for line in lines[-MAX_LINES:]]
