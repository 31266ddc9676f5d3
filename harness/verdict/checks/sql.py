"""`sql`: a rule of the user, as a query whose rows are what breaks it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from py4j.protocol import Py4JJavaError
from pydantic import Field
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

from streamquake.harness.experiment.check import JudgedRun, UserCheck, checks
from streamquake.harness.experiment.check_sql import SENT, relations_of
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.examples import clip
from streamquake.harness.reconcile.json.json_text import base64_text, json_text
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.sql.safe_sql import relations_read, safe_query
from streamquake.harness.verdict.evidence.drain import not_drained
from streamquake.harness.verdict.evidence.reading_contradictions import contradicted_reading
from streamquake.harness.verdict.evidence.record_damage import reading_problem
from streamquake.harness.verdict.expected_output import count_sends, has_unsettled_sends
from streamquake.harness.verdict.queried_relations import RelationSize, relation_views
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.topologies.errors import message_of
from streamquake.topologies.problems import BadInput

MAX_ROWS = 10
ROW = "row"
NESTED = (ArrayType, MapType, StructType, VariantType)
PLAIN = (IntegralType, FloatType, DoubleType, BooleanType, StringType)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The rows of a query: how many, and the first ones; and the sizes of what it read."""

    rows: int
    first: tuple[Mapping[str, Any], ...]
    sizes: Mapping[str, RelationSize]
    possible: bool = True
    """Whether the query can return a row, by its plan alone."""


@checks.register
class Sql(UserCheck):
    """Held when a query of the user returns no row: each row is a violation.

    The query is Spark SQL over `sent` (the records that the job may have read, as for `expected`),
    a view of each output with its committed records, by the name of the output, and `history` (the
    events: index, at_s, process, kind, action, value as JSON). It may do no more than `expected`
    may; among others `NOT IN (SELECT ...)` is rejected, which finds nothing where a null is among
    the values, and so is `IN (SELECT ...)` as a value, such as a column. An output without
    `expected` has columns of text.

    Undecided where no record was acknowledged; where an output that it reads was not read, is
    damaged, has records that cannot be read, or may still change, as the run was not drained; where
    it reads `sent` and some sends are not settled; where it fails; where it cannot return a row,
    such as one with `WHERE false`; and where a relation that it reads has too few rows.
    """

    name: ClassVar[str] = "sql"
    classes: ClassVar[tuple[str, ...]] = (ROW,)

    query: Annotated[str, Field(min_length=1)]
    """One query; names of outputs with other characters than letters, digits and _ are in
    backticks."""
    min_rows: Annotated[int, Field(ge=1)] = 1
    """With fewer rows than this in a relation that the query reads, nothing is proven."""
    may_be_empty: tuple[str, ...] = ()
    """Relations that may have fewer rows, such as an output for rejected records."""

    def queries(self) -> Mapping[str, str]:
        return {"query": self.query}

    def check(self, case: JudgedRun) -> CheckResult:
        if not count_sends(case, "acknowledged"):
            return self.undecided("no record was acknowledged, so nothing is proven")
        # A session of its own has its own views.
        session = case.spark().newSession()
        own = replace(case, spark=lambda: session)
        try:
            read = relations_read(session, self.query, "query", relations_of(case.experiment))
            if missing := "; ".join(_missing(case, read)):
                return self.undecided(missing)
            return self._verdict(answer_of(own, self.query, read))
        except (BadInput, PySparkException, Py4JJavaError) as error:
            # Behind its message Spark prints the plan of the query.
            message = message_of(error).partition(";\n")[0]
            return self.undecided(f"the query cannot be executed: {message}")

    def _verdict(self, answer: Answer) -> CheckResult:
        counts: dict[str, Any] = {"rows": answer.rows, **_counts(answer.sizes)}
        unread = "; ".join(
            f"{size.malformed:,} records of {name} cannot be read"
            for name, size in answer.sizes.items()
            if size.malformed
        )
        if answer.rows:
            rows = "1 row breaks" if answer.rows == 1 else f"{answer.rows:,} rows break"
            result = self.violated("; ".join(filter(None, (f"{rows} the rule", unread))), **counts)
            findings = tuple(Finding(what=ROW, detail=row) for row in answer.first)
            return replace(result, findings=findings)
        if unread:
            return self.undecided(unread, **counts)
        if not answer.possible:
            return self.undecided(
                "the query cannot return a row, whatever it reads: its conditions exclude each "
                "other",
                **counts,
            )
        if few := "; ".join(self._too_small(answer.sizes)):
            return self.undecided(few, **counts)
        read = ", ".join(f"{size.rows:,} of {name}" for name, size in answer.sizes.items())
        return self.held(f"no row breaks the rule ({read})", **counts)

    def _too_small(self, sizes: Mapping[str, RelationSize]) -> Iterator[str]:
        """Why the relations are no evidence that the rule holds."""
        for name, size in sizes.items():
            if size.rows < self.min_rows and name not in self.may_be_empty:
                yield f"{name} has {size.rows:,} rows, and at least {self.min_rows:,} are needed"


def _missing(case: JudgedRun, read: frozenset[str]) -> Iterator[str]:
    """What is missing of the relations that a query reads."""
    if not read:
        yield "the query reads no relation of the run"
    promised = case.experiment.promise.outputs
    outputs = {name: output for name, output in promised.items() if name.lower() in read}
    for name, output in outputs.items():
        stored = StoredOutput(path=case.data / name)
        if not stored.complete:
            yield f"{name} was not read"
        elif problem := (
            reading_problem(stored, output.place) or contradicted_reading(case, name, stored)
        ):
            yield f"{name}: {problem}"
    if outputs and (reason := not_drained(case.history)):
        yield f"the outputs may still change: {reason}"
    if SENT in read and has_unsettled_sends(case):
        yield (
            "some sends have an unknown result, and the input topic that would settle them was "
            "not read"
        )


def answer_of(case: JudgedRun, query: str, read: frozenset[str]) -> Answer:
    """Execute a query in the session of the case."""
    with relation_views(case, read) as sizes:
        rows = safe_query(case.spark(), query, "query", relations_of(case.experiment))
        with persisted(rows) as found:
            count = found.count()
            first = _readable(found).take(MAX_ROWS) if count else []
        possible = count > 0 or _may_return_rows(rows)
    return Answer(
        rows=count,
        first=tuple({name: clip(row[name]) for name in row.__fields__} for row in first),
        sizes=sizes,
        possible=possible,
    )


def _may_return_rows(rows: DataFrame) -> bool:
    """Whether Spark's optimizer finds no contradiction in a query (`PruneFilters`,
    `PropagateEmptyRelation`)."""
    most = rows._jdf.queryExecution().optimizedPlan().maxRows()
    return not (most.isDefined() and most.get() == 0)


def _readable(rows: DataFrame) -> DataFrame:
    """The rows with values that Python and JSON have, and with distinct names of their columns."""
    numbers = [f"c{at}" for at in range(len(rows.columns))]
    names = _distinct(rows.columns)
    return rows.toDF(*numbers).select(
        *(
            _plain(F.col(number), field.dataType).alias(name)
            for number, name, field in zip(numbers, names, rows.schema, strict=True)
        )
    )


def _distinct(columns: Sequence[str]) -> Sequence[str]:
    """The names of columns, with a number behind each that is given already."""
    names: list[str] = []
    for column in columns:
        tries = itertools.chain((column,), (f"{column} ({n})" for n in itertools.count(2)))
        names.append(next(name for name in tries if name not in names))
    return names


def _plain(value: Column, kind: DataType) -> Column:
    if isinstance(kind, PLAIN):
        return value
    if isinstance(kind, BinaryType):
        return base64_text(value)
    return json_text(value) if isinstance(kind, NESTED) else value.cast("string")


def _counts(sizes: Mapping[str, RelationSize]) -> dict[str, int]:
    """The rows of each relation, and the records of outputs that cannot be read."""
    rows = {f"{name}.rows": size.rows for name, size in sizes.items()}
    malformed = {f"{name}.malformed": s.malformed for name, s in sizes.items() if s.malformed}
    return {**rows, **malformed}
