"""The comparison of two data sets that Streamquake did not make, as one short story.

Parse the expressions, read both sides, bring them to one form, compare what could be read, and say
what that proves. The comparing itself is `reconcile.py`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.column_layout import (
    STATUS,
    STATUS_TEXT,
    Layout,
    ParsedExpressions,
    lay_out,
)
from streamquake.harness.reconcile.comparison import ComparisonRequest, DataComparison, Side
from streamquake.harness.reconcile.digest import Digest, digest_of
from streamquake.harness.reconcile.examples import MAX_EXAMPLES, clip
from streamquake.harness.reconcile.expressions import (
    Expression,
    expressions,
    field_names,
    message_line,
    only_expression,
)
from streamquake.harness.reconcile.final_state import final_records
from streamquake.harness.reconcile.readable import readable_finding
from streamquake.harness.reconcile.reading.reading_session import reading_session
from streamquake.harness.reconcile.reading.source import ReadRequest, ShowMessage, Source
from streamquake.harness.reconcile.reading.table import MALFORMED, RAW, Table
from streamquake.harness.reconcile.reconcile import ReconciliationInput, buckets_for, judge
from streamquake.harness.reconcile.result import (
    ReconciliationResult,
    unjudged_reasons,
    violated_classes,
)
from streamquake.harness.reconcile.row_hashes import ACTUAL_KINDS, RowKind
from streamquake.reports.record.outcome import Finding, Outcome
from streamquake.topologies.problems import BadInput, Problem, bad_input

OTHER_HEADER = "CSV header does not conform to the schema"
"""What Spark says where a file's first line is not that of the others (CSVHeaderChecker)."""
NO_PARQUET = re.compile(r"(\S+) is not a Parquet file")
TWICE = re.compile(r"COLUMN_ALREADY_EXISTS\] The column (`.*?`) already")
NO_TYPE = re.compile(
    r"\[(?:PARQUET_TYPE_ILLEGAL|UNSUPPORTED_TIME_TYPE)\] (.*?)(?:\.? SQLSTATE|$)", re.MULTILINE
)
BAD_DATA = "SQLSTATE: 22"
"""The class of data exceptions: an expression failed on a record."""


@dataclass(frozen=True, kw_only=True)
class _SideFacts:
    """What is known of a side. Records that could not be read are in `records`."""

    records: int
    malformed: int
    unplaced: int = 0


def compare(
    spark: SparkSession,
    request: ComparisonRequest,
    expected: Source,
    actual: Source,
    show_message: ShowMessage,
) -> DataComparison:
    """Compare two sources, which have looked already.

    Raises BadInput for what was asked wrongly, OSError for what could not be read.
    """
    session = reading_session(spark)
    with _translated_errors():
        asking = _parse_expressions(session, request)
        _reject_unkeyed_upserts(asking, request.actual, actual)
        sides = (
            _read(session, request.expected, expected, _requested_fields(asking, 0), show_message),
            _read(session, request.actual, actual, _requested_fields(asking, 1), show_message),
        )
        layout = lay_out(asking, *sides)
        with _persisted_layout(layout, *sides) as kept:
            notes = (*sides[0].notes, *sides[1].notes)
            return _compare_layout(kept, asking, sides[0].about, notes, show_message)


def _parse_expressions(spark: SparkSession, request: ComparisonRequest) -> ParsedExpressions:
    return ParsedExpressions(
        key=_expression_pairs(spark, request, "key"),
        sequence=_expression_pairs(spark, request, "sequence"),
        compare=_expression_pairs(spark, request, "compare"),
        order=_parse(spark, request.order, request.actual.place("order")),
        ack=_only_or_none(_parse(spark, request.ack, request.expected.place("ack"))),
        retracts=_only_or_none(_parse(spark, request.retracts, request.actual.place("retracts"))),
        also=request.also,
        upsert=request.upsert,
    )


def _reject_unkeyed_upserts(asking: ParsedExpressions, side: Side, source: Source) -> None:
    """Raises BadInput where records shall replace each other of which nobody can say that."""
    if not asking.upsert:
        return
    if not source.keyed:
        message = "it is for topics: files have no key, and no last record"
        raise bad_input(side.place("upsert"), message)
    for _, key in asking.key:
        if "_key" not in key.names:
            message = (
                f"a record without a value must say which it deletes: expected `{key.text}` over "
                "`_key`, such as get_json_object(_key, '$.id')"
            )
            raise bad_input(side.place("key"), message)


def _expression_pairs(
    spark: SparkSession, request: ComparisonRequest, name: str
) -> tuple[tuple[Expression, Expression], ...]:
    """The expressions of both sides for one place. Raises BadInput where their numbers differ."""
    texts = (getattr(request.expected, name), getattr(request.actual, name))
    if texts[0] is None:
        return ()
    places = (request.expected.place(name), request.actual.place(name))
    ones = expressions(spark, texts[0], places[0])
    others = ones if texts[1] == texts[0] else expressions(spark, texts[1], places[1])
    if name == "sequence":
        _only_or_none(ones), _only_or_none(others)
    if len(ones) != len(others):
        message = f"expected as many expressions as {places[0]}, {len(ones)}, got {len(others)}"
        raise bad_input(places[1], message)
    return tuple(zip(ones, others, strict=True))


def _parse(spark: SparkSession, text: str | None, place: str) -> tuple[Expression, ...]:
    return expressions(spark, text, place) if text else ()


def _only_or_none(found: tuple[Expression, ...]) -> Expression | None:
    return only_expression(found) if found else None


def _requested_fields(asking: ParsedExpressions, side: int) -> frozenset[str]:
    """The fields that are asked of a side, 0 the expected and 1 the actual."""
    own = [pair[side] for pair in asking.columns.values()]
    others = (*asking.order, asking.retracts) if side else (asking.ack,)
    return field_names([*own, *(each for each in others if each is not None)])


def _read(
    spark: SparkSession,
    side: Side,
    source: Source,
    names: frozenset[str],
    show_message: ShowMessage,
) -> Table:
    requested = ReadRequest(
        names=names, format=side.format, schema=side.schema, show_message=show_message
    )
    return source.read(spark, requested)


@contextmanager
def _persisted_layout(layout: Layout, expected: Table, actual: Table) -> Iterator[Layout]:
    """Keep the laid-out rows of what is dear to read again, and let all that was kept go."""
    with ExitStack() as stack:
        for frame in (*expected.persisted, *actual.persisted):
            stack.callback(frame.unpersist)
        for frame, table in ((layout.expected, expected), (layout.actual, actual)):
            if table.costly:
                stack.enter_context(persisted(frame))
        yield layout


def _compare_layout(
    layout: Layout,
    asking: ParsedExpressions,
    about: int,
    notes: tuple[str, ...],
    show_message: ShowMessage,
) -> DataComparison:
    with final_records(layout.actual, layout.shape) as stands:
        sides = ReconciliationInput(
            expected=layout.expected,
            actual=stands,
            arrived=layout.actual,
            shape=layout.shape,
            buckets=buckets_for(about),
        )
        digest = digest_of(sides.rows())
        sent, seen = _side_facts(digest)
        show_message(
            f"expected side: {sent.records:,} records; actual side: {seen.records:,}; comparing"
        )
        _reject_unknown_acks(digest, layout, asking)
        return _to_comparison(judge(sides, digest), layout, sent, seen, (*notes, *layout.notes))


def _side_facts(digest: Digest) -> tuple[_SideFacts, _SideFacts]:
    """What is known of the expected and of the actual side."""
    return (
        _SideFacts(
            records=digest.count(
                RowKind.OK,
                RowKind.UNKNOWN,
                RowKind.REFUSED,
                RowKind.UNKNOWN_STATUS,
                RowKind.UNREAD_EXPECTED,
            ),
            malformed=digest.count(RowKind.UNREAD_EXPECTED),
        ),
        _SideFacts(
            records=digest.count(*ACTUAL_KINDS, RowKind.UNREAD_ACTUAL),
            malformed=digest.count(RowKind.UNREAD_ACTUAL),
            unplaced=digest.count(RowKind.UNPLACED),
        ),
    )


def _reject_unknown_acks(digest: Digest, layout: Layout, asking: ParsedExpressions) -> None:
    if asking.ack is None or not digest.count(RowKind.UNKNOWN_STATUS):
        return
    odd = layout.expected.where(F.col(STATUS).isNull() & ~F.col(MALFORMED))
    rows = odd.groupBy(STATUS_TEXT).count().orderBy(F.desc("count"), STATUS_TEXT).take(MAX_EXAMPLES)
    values = ", ".join(
        f"{'null' if row[STATUS_TEXT] is None else repr(row[STATUS_TEXT])} "
        f"({row['count']:,} records)"
        for row in rows
    )
    message = f"expected ok, fail or unknown (or true, false, acknowledged, failed), got {values}"
    raise bad_input(asking.ack.option, message)


def _to_comparison(
    found: ReconciliationResult,
    layout: Layout,
    sent: _SideFacts,
    seen: _SideFacts,
    notes: tuple[str, ...],
) -> DataComparison:
    counts = dict(found.counts)
    counts["actual"] = seen.records
    counts["malformed"] = sent.malformed + seen.malformed
    counts["phantom"] = (counts["phantom"] or 0) + seen.malformed
    findings = [readable_finding(each, layout) for each in found.findings]
    if not layout.shape.compare:
        counts["changed"] = None
    if seen.unplaced:
        notes = (*notes, f"--order is null for {seen.unplaced:,} records: no order was judged")
    for name, facts in (("expected", sent), ("actual", seen)):
        if facts.malformed == facts.records > 0:
            requested = f"is its format right? --{name}-format says another, such as text"
            notes = (*notes, f"no record of the {name} side could be read: {requested}")
    if sent.malformed:
        # A phantom may be what one of the unread records said.
        counts["phantom"] = None
    unread = [
        *_malformed_examples(layout.actual, layout, "actual", seen.malformed),
        *_malformed_examples(layout.expected, layout, "expected", sent.malformed),
    ]
    outcome, reasons = _outcome(counts, sent)
    return DataComparison(
        outcome=outcome, counts=counts, findings=(*findings, *unread), reasons=reasons, notes=notes
    )


def _malformed_examples(side: DataFrame, layout: Layout, name: str, count: int) -> list[Finding]:
    """Examples of records that could not be read, with what stands in their place."""
    if not count:
        return []
    place = [each for each in side.columns if each.startswith("_") and each not in (MALFORMED, RAW)]
    rows = side.where(MALFORMED).orderBy(*place).select(*place, RAW).take(MAX_EXAMPLES)
    return [
        Finding(
            what="malformed",
            where=", ".join(f"{each.removeprefix('_')} {row[each]}" for each in place),
            detail={
                "side": name,
                "record": clip(row[RAW]),
            },
        )
        for row in rows
    ]


def _outcome(counts: dict[str, int | None], sent: _SideFacts) -> tuple[Outcome, tuple[str, ...]]:
    if found := violated_classes(counts):
        return Outcome.VIOLATED, tuple(f"{counts[name]:,} {name}" for name in found)
    if sent.malformed:
        why = f"{sent.malformed:,} records of the expected side could not be read"
        return Outcome.UNDECIDED, (f"{why}, so nobody knows what else was expected",)
    if missing := unjudged_reasons(counts):
        return Outcome.UNDECIDED, missing
    if not counts["expected"] and not counts["actual"]:
        return Outcome.UNDECIDED, ("nothing was expected and nothing came, which proves nothing",)
    return Outcome.HELD, (f"{counts['expected']:,} records, each there once",)


def _other_header(text: str) -> Problem:
    """What Spark says of the file in lines of its own: Header: ..., Schema: ..., CSV file: ..."""
    parts = (line.partition(": ") for line in text.splitlines())
    facts = {name.strip(): value.strip() for name, _, value in parts}
    message = (
        "the CSV files of one side must name the same fields in the same order: expected "
        f"{facts.get('Schema', 'those of the first file')}, got {facts.get('Header', 'others')}"
    )
    return Problem(file=facts.get("CSV file", "input"), message=message)


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Spark's errors as what they mean to whoever asked."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if problem := _input_problem(str(error), error):
            raise BadInput([problem]) from error
        raise OSError(f"Spark could not read or compare: {message_line(error)}") from error


def _input_problem(whole: str, error: Exception) -> Problem | None:
    """What the input has to do with an error; None where it has nothing to do with it."""
    if BAD_DATA in whole:
        message = f"an expression failed on a record ({message_line(error)}); TRY_CAST gives null"
        return Problem(file="expressions", message=message)
    if OTHER_HEADER in whole:
        return _other_header(whole)
    if broken := NO_PARQUET.search(whole):
        message = "it is no Parquet file from end to end; was it cut off, or is it still written?"
        return Problem(file=broken[1], message=message)
    if unread := NO_TYPE.search(whole):
        message = f"Spark reads no column of this type: {unread[1].strip()}; write it as another"
        return Problem(file="input", message=message)
    if twice := TWICE.search(whole):
        message = f"expected columns of different names, got {twice[1]} twice; rename one of them"
        return Problem(file="input", message=message)
    return None
