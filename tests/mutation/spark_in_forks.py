"""One Spark session for the tests of all mutants.

mutmut forks its process for each mutant. Spark's virtual machine is a process of its own and is
there for all of them; what a fork may not do is talk over the connections it has inherited, and
tell the machine to forget objects that its parent still uses.

Spark's Python workers import the project themselves. They are told where the mutated copy is, and
which mutant is tested; Spark starts other workers for another environment.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from py4j.finalizer import clear_finalizers
from pyspark.sql import SparkSession

import streamquake

FORK = "STREAMQUAKE_MUTANT_PROCESS"
"""The environment variable by which a worker names the process that tests the mutant."""


def mutants_are_tested() -> bool:
    """Whether mutmut runs the tests, in this process or in one that was forked from it."""
    return "MUTANT_UNDER_TEST" in os.environ


def session_of_all_mutants(start: Callable[[], SparkSession]) -> SparkSession:
    """The session that was started first; it ends with the process."""
    session = _first_session(start)
    end_workers_of_ended_forks()
    session.sparkContext.environment |= {
        "PYTHONPATH": str(Path(streamquake.__file__).parents[1]),
        "MUTANT_UNDER_TEST": os.environ["MUTANT_UNDER_TEST"],
        FORK: str(os.getpid()),
    }
    return session


@cache
def _first_session(start: Callable[[], SparkSession]) -> SparkSession:
    session = start()
    keep_in_forks(session)
    return session


def end_workers_of_ended_forks() -> None:
    """End the Python workers of mutants whose tests are over; Spark would keep them."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            fork = re.search(rb"(?:^|\0)" + FORK.encode() + rb"=(\d+)\0", environment.read_bytes())
            if fork and not Path("/proc", fork[1].decode()).exists():
                os.kill(int(environment.parent.name), signal.SIGKILL)


def keep_in_forks(session: SparkSession) -> None:
    """Let every process that is forked from here on have connections of its own."""
    gateway: Any = session.sparkContext._gateway
    client = gateway._gateway_client
    inherited: list[Any] = []

    def reconnect() -> None:
        # Kept, not dropped: an end that is dropped is shut down, for the parent too.
        inherited.extend(client.deque)
        client.deque.clear()
        client.thread_connection = threading.local()
        clear_finalizers(clear_all=True)
        client.finalizer_deque = gateway._create_finalizer_worker()

    os.register_at_fork(after_in_child=reconnect)
