"""The SQL of checks: the relations of a run that it may read, and its validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from streamquake.harness.experiment.model import Experiment
from streamquake.topologies.problems import BadInput, Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SENT, HISTORY = "sent", "history"
"""The relations beside the outputs: the records sent, and the events of the run."""


def relations_of(experiment: Experiment) -> frozenset[str]:
    """The relations of a run, in small letters."""
    return frozenset((SENT, HISTORY, *map(str.lower, experiment.promise.outputs)))


def unsafe_queries(
    experiment: Experiment, spark: Callable[[], SparkSession], *, recorded: bool = False
) -> Iterator[tuple[str, str, str]]:
    """(title of the check, parameter, message) of each SQL that is not a query over the relations
    of a run, or does more. Without any SQL no session is started. Of recorded SQL that only
    misleads its check says so, and the others can judge."""
    relations = relations_of(experiment)
    for check in experiment.checks:
        for parameter, text in check.queries().items():
            from streamquake.harness.reconcile.sql.safe_sql import MisleadingInput, relations_read

            try:
                if not relations_read(spark(), text, parameter, relations):
                    given = ", ".join(sorted(relations))
                    yield check.title, parameter, f"expected a query that reads one of: {given}"
            except BadInput as error:
                if recorded and isinstance(error, MisleadingInput):
                    continue
                for problem in error.problems:
                    yield check.title, parameter, problem.message


def reject_unsafe_queries(
    experiment: Experiment,
    file: str,
    spark: Callable[[], SparkSession],
    *,
    recorded: bool = False,
) -> None:
    """Raise BadInput with every problem of the SQL of the checks, as `unsafe_queries` finds it."""
    problems = [
        Problem(file=file, path=f"checks.{title}.{parameter}", message=message)
        for title, parameter, message in unsafe_queries(experiment, spark, recorded=recorded)
    ]
    if problems:
        raise BadInput(problems)
