"""Lowers the priority of a session's virtual machine while it does what may take its time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import SparkSession

LOWEST = 19


@contextmanager
def lowest_priority(session: SparkSession) -> Iterator[None]:
    """Give the virtual machine the lowest priority while the block runs. Without the right to raise
    it again, which only root has, nothing is changed."""
    gateway = session.sparkContext._gateway
    if os.geteuid() != 0 or gateway is None:
        yield
        return
    process = gateway.proc.pid
    before = os.getpriority(os.PRIO_PROCESS, process)
    _set_priority(process, LOWEST)
    try:
        yield
    finally:
        _set_priority(process, before)


def _set_priority(process: int, priority: int) -> None:
    """Set the priority of all threads of a process: on Linux each thread has its own."""
    tasks = Path(f"/proc/{process}/task")
    threads = [int(task.name) for task in tasks.iterdir()] if tasks.is_dir() else [process]
    for thread in threads:
        with suppress(ProcessLookupError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, thread, priority)
