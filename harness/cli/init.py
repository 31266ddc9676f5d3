"""`init`: writes a project that runs as it is."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from streamquake.harness.cli.guard import HELD
from streamquake.harness.cli.output import echo
from streamquake.harness.project.project import write_project

NEXT_STEPS = """
Next:
{enter}  streamquake doctor                                  # can this machine run experiments?
  streamquake validate chaos/first-cluster.yaml chaos/lose-a-worker.yaml
  streamquake run chaos/lose-a-worker.yaml            # deploy, load, kill, judge
  pytest chaos                                        # the same as tests
  streamquake suite chaos                             # all experiments, as the night does

Then replace the job in chaos/first-job.sql and its promise by yours."""


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
def init_command(folder: Path) -> int:
    """Write a first project into FOLDER, the current one unless given: a topology, a job with its
    promise, an experiment, tests for pytest and a nightly workflow.

    Nothing is written if one of these files exists.
    """
    for path in write_project(folder):
        echo(f"{path}: written")
    enter = "" if folder == Path() else f"  cd {shlex.quote(str(folder))}\n"
    echo(NEXT_STEPS.format(enter=enter))
    return HELD
