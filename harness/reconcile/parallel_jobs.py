"""Uses a Spark session for several pieces of work at the same time.

The plan of a query is made by one core, and so is the end of each job. With two pieces of work the
other core has something to do meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from pyspark.sql import SparkSession

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
            spark().sparkContext.cancelAllJobs()
            raise
        return [future.result() for future in futures]
