"""Uses a Spark session for several pieces of work at the same time.

The plan of a query is made by one core, and so is the end of each job. With two pieces of work the
other core has something to do meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

from pyspark.sql import SparkSession

from streamquake.harness.reconcile.spark_session import CANCEL_EVERY_S

Item = TypeVar("Item")
Result = TypeVar("Result")
AT_ONCE = 2
"""More would only need more memory: their frames are persisted at the same time."""


def in_parallel(
    work: Callable[[Item], Result], items: Iterable[Item], spark: Callable[[], SparkSession]
) -> list[Result]:
    """The results of `work` for all items, in their order. The first error is raised after all work
    has ended. An interruption cancels the jobs of the session, and what has not begun."""
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="output") as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            wait(futures)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            with suppress(Exception):  # a session that has ended has no jobs
                _cancel_jobs(futures, spark)
            raise
        return [future.result() for future in futures]


def _cancel_jobs(futures: Sequence[Future[Result]], spark: Callable[[], SparkSession]) -> None:
    """Cancel the jobs of the session until the work has ended: a query that is just being planned
    begins its job later."""
    while running := [future for future in futures if not future.done()]:
        spark().sparkContext.cancelAllJobs()
        wait(running, CANCEL_EVERY_S)
