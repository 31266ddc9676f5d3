"""The priority of a session's virtual machine: the lowest while it does what may take its time."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

LOWEST = 19


def lower_priority(session: SparkSession) -> None:
    """Give the virtual machine the lowest priority. Without the right to raise it again, which only
    root has, nothing is changed."""
    if os.geteuid() == 0:
        _set_priority(session, LOWEST)


def restore_priority(session: SparkSession) -> None:
    """Give the virtual machine the priority of this process."""
    if os.geteuid() == 0:
        _set_priority(session, os.getpriority(os.PRIO_PROCESS, 0))


def _set_priority(session: SparkSession, priority: int) -> None:
    """Set the priority of all threads of the virtual machine: on Linux each has its own."""
    gateway = session.sparkContext._gateway
    if gateway is None:
        return
    process = gateway.proc.pid
    tasks = Path(f"/proc/{process}/task")
    threads = [int(task.name) for task in tasks.iterdir()] if tasks.is_dir() else [process]
    for thread in threads:
        with suppress(ProcessLookupError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, thread, priority)
