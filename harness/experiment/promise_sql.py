"""Validation of a recorded promise's SQL, before any of it is executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from streamquake.harness.experiment.outputs import JobPromise
from streamquake.topologies.problems import BadInput, Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def reject_unsafe_sql(promise: JobPromise, file: str, spark: Callable[[], SparkSession]) -> None:
    """Raise BadInput with every text of a recorded promise that is more than a query over `sent`,
    or an expression over a record. Without any SQL no session is started. Of SQL that only misleads
    the checks that need it say so, and the others can judge."""
    queries, values = dict(_queries(promise)), dict(_values(promise))
    if not queries and not values:
        return
    from streamquake.harness.reconcile.expressions import expressions
    from streamquake.harness.reconcile.sql.safe_sql import MisleadingInput, reject_unsafe_query

    problems: list[Problem] = []
    for texts, reject in ((queries, reject_unsafe_query), (values, expressions)):
        for place, text in texts.items():
            try:
                reject(spark(), text, place)
            except MisleadingInput:
                continue
            except BadInput as error:
                problems += [
                    Problem(file=file, path=place, message=p.message) for p in error.problems
                ]
    if problems:
        raise BadInput(problems)


def _queries(promise: JobPromise) -> Iterator[tuple[str, str]]:
    """(place, text) of each query."""
    if promise.expected is not None:
        yield "job.promise.expected", promise.expected
    for name, output in promise.outputs.items():
        if output.expected is not None:
            yield f"job.promise.outputs.{name}.expected", output.expected


def _values(promise: JobPromise) -> Iterator[tuple[str, str]]:
    """(place, text) of each expression."""
    for name, output in promise.outputs.items():
        for column, text in output.map.items():
            yield f"job.promise.outputs.{name}.map.{column}", text
        if output.retracts is not None:
            yield f"job.promise.outputs.{name}.retracts", output.retracts
