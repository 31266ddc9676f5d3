"""One Spark session for the tests of all mutants.

mutmut forks its process for each mutant. Spark's virtual machine is a process of its own and is
there for all of them; what a fork may not do is talk over the connections it has inherited, and
tell the machine to forget objects that its parent still uses.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from py4j.finalizer import clear_finalizers
from pyspark.sql import SparkSession


def mutants_are_tested() -> bool:
    """Whether mutmut runs the tests, in this process or in one that was forked from it."""
    return "MUTANT_UNDER_TEST" in os.environ


@cache
def session_of_all_mutants(start: Callable[[], SparkSession]) -> SparkSession:
    """The session that was started first; it ends with the process."""
    session = start()
    keep_in_forks(session)
    return session


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
