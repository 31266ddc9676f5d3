"""The comparison of any two data sets, step by step.

Parse the expressions, read both sides, lay them out in one form, compare the records that could be
read, and derive the outcome. `reconcile.py` compares the records.
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
    NOTHING_EXPECTED,
    ReconciliationResult,
    unjudged_reasons,
    violated_classes,
)
from streamquake.harness.reconcile.row_hashes import ACTUAL_KINDS, RowKind
from streamquake.reports.record.outcome import Finding, Outcome
from streamquake.topologies.errors import root_cause
from streamquake.topologies.problems import BadInput, Problem, bad_input

OTHER_HEADER = (
    "CSV header does not conform to the schema",
    "Number of column in CSV header is not equal to number of fields in the schema",
)
"""Spark's messages where a file's first line differs from that of the others, in its names or in
their number (CSVHeaderChecker)."""
NOT_PARQUET = re.compile(r"(\S+) is not a Parquet file")
UNREADABLE_FILE = re.compile(r"FAILED_READ_FILE\S*\] .* reading file file://(\S+?)\.\s")
DUPLICATE_COLUMN = re.compile(r"COLUMN_ALREADY_EXISTS\] The column (`.*?`) already")
UNSUPPORTED_TYPE = re.compile(
    r"\[(?:PARQUET_TYPE_ILLEGAL|UNSUPPORTED_TIME_TYPE)\] (.*?)(?:\.? SQLSTATE|$)", re.MULTILINE
)
DATA_EXCEPTION = "SQLSTATE: 22"
"""The class of errors where an expression failed on a record."""


@dataclass(frozen=True, kw_only=True)
class _SideCounts:
    """Counts of a side. `records` includes those that could not be read."""

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
    """Compare two sources whose `inspect` has run already.

    Raises BadInput for a wrong request, OSError for a source that could not be read.
    """
    session = reading_session(spark)
    with _translated_errors(), ExitStack() as stack:
        parsed = _parse_expressions(session, request)
        _reject_unkeyed_upserts(parsed, request.actual, actual)
        tables = tuple(
            _read(session, side, source, _requested_fields(parsed, number), show_message, stack)
            for number, (side, source) in enumerate(
                ((request.expected, expected), (request.actual, actual))
            )
        )
        layout = lay_out(parsed, *tables)
        for frame, table in zip((layout.expected, layout.actual), tables, strict=True):
            if table.costly:
                stack.enter_context(persisted(frame))
        notes = (*tables[0].notes, *tables[1].notes)
        return _compare_layout(layout, parsed, tables[0].record_estimate, notes, show_message)


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


def _reject_unkeyed_upserts(parsed: ParsedExpressions, side: Side, source: Source) -> None:
    """Raises BadInput where upserts cannot be judged: the side is no topic, or its key expression
    does not use the key of the record."""
    if not parsed.upsert:
        return
    if not source.has_keys:
        message = "it is for topics: files have no key, and no last record"
        raise bad_input(side.place("upsert"), message)
    for _, key in parsed.key:
        if "_key" not in key.names:
            message = (
                "a record without a value must name the key that it deletes: expected "
                f"`{key.text}` over `_key`, such as get_json_object(_key, '$.id')"
            )
            raise bad_input(side.place("key"), message)


def _expression_pairs(
    spark: SparkSession, request: ComparisonRequest, name: str
) -> tuple[tuple[Expression, Expression], ...]:
    """The expressions of both sides for one option, paired. Raises BadInput where one side has more
    of them than the other."""
    texts = (getattr(request.expected, name), getattr(request.actual, name))
    if texts[0] is None:
        return ()
    places = (request.expected.place(name), request.actual.place(name))
    expected = expressions(spark, texts[0], places[0])
    actual = expected if texts[1] == texts[0] else expressions(spark, texts[1], places[1])
    if name == "sequence":
        _only_or_none(expected), _only_or_none(actual)
    if len(expected) != len(actual):
        message = f"expected as many expressions as {places[0]}, {len(expected)}, got {len(actual)}"
        raise bad_input(places[1], message)
    return tuple(zip(expected, actual, strict=True))


def _parse(spark: SparkSession, text: str | None, place: str) -> tuple[Expression, ...]:
    return expressions(spark, text, place) if text else ()


def _only_or_none(parsed: tuple[Expression, ...]) -> Expression | None:
    return only_expression(parsed) if parsed else None


def _requested_fields(parsed: ParsedExpressions, side: int) -> frozenset[str]:
    """The fields that the expressions read of a side: 0 is the expected side, 1 the actual one."""
    parsed_pairs = [pair[side] for pair in parsed.columns.values()]
    others = (*parsed.order, parsed.retracts) if side else (parsed.ack,)
    return field_names([*parsed_pairs, *(other for other in others if other is not None)])


def _read(
    spark: SparkSession,
    side: Side,
    source: Source,
    names: frozenset[str],
    show_message: ShowMessage,
    stack: ExitStack,
) -> Table:
    """Read one side. Its persisted frames are released when the stack is closed: a later comparison
    in the session must not read them instead of the source."""
    requested = ReadRequest(
        names=names, format=side.format, schema=side.schema, show_message=show_message
    )
    table = source.read(spark, requested)
    for frame in table.persisted_frames:
        stack.callback(frame.unpersist)
    return table


def _compare_layout(
    layout: Layout,
    parsed: ParsedExpressions,
    record_estimate: int,
    notes: tuple[str, ...],
    show_message: ShowMessage,
) -> DataComparison:
    with final_records(layout.actual, layout.shape) as final, ExitStack() as stack:
        sides = ReconciliationInput(
            expected=layout.expected,
            actual=final,
            all_actual=layout.actual,
            shape=layout.shape,
            buckets=buckets_for(record_estimate),
        )
        digest = digest_of(sides.rows())
        expected_counts, actual_counts = _side_counts(digest)
        show_message(
            f"expected side: {expected_counts.records:,} records; "
            f"actual side: {actual_counts.records:,}; comparing"
        )
        _reject_unknown_acks(digest, layout, parsed)
        result = judge(sides, digest, stack)
        notes = (*notes, *layout.notes)
        return _to_comparison(result, layout, expected_counts, actual_counts, notes)


def _side_counts(digest: Digest) -> tuple[_SideCounts, _SideCounts]:
    """Counts of the expected and of the actual side."""
    return (
        _SideCounts(
            records=digest.count(
                RowKind.OK,
                RowKind.UNKNOWN,
                RowKind.FAILED,
                RowKind.UNKNOWN_STATUS,
                RowKind.UNREADABLE_EXPECTED,
            ),
            malformed=digest.count(RowKind.UNREADABLE_EXPECTED),
        ),
        _SideCounts(
            records=digest.count(*ACTUAL_KINDS, RowKind.UNREADABLE_ACTUAL),
            malformed=digest.count(RowKind.UNREADABLE_ACTUAL),
            unplaced=digest.count(RowKind.UNPLACED),
        ),
    )


def _reject_unknown_acks(digest: Digest, layout: Layout, parsed: ParsedExpressions) -> None:
    if parsed.ack is None or not digest.count(RowKind.UNKNOWN_STATUS):
        return
    unknown_rows = layout.expected.where(F.col(STATUS).isNull() & ~F.col(MALFORMED))
    rows = (
        unknown_rows.groupBy(STATUS_TEXT)
        .count()
        .orderBy(F.desc("count"), STATUS_TEXT)
        .take(MAX_EXAMPLES)
    )
    values = ", ".join(
        f"{'null' if row[STATUS_TEXT] is None else repr(row[STATUS_TEXT])} "
        f"({row['count']:,} records)"
        for row in rows
    )
    message = f"expected ok, fail or unknown (or true, false, acknowledged, failed), got {values}"
    raise bad_input(parsed.ack.option, message)


def _to_comparison(
    result: ReconciliationResult,
    layout: Layout,
    expected_counts: _SideCounts,
    actual_counts: _SideCounts,
    notes: tuple[str, ...],
) -> DataComparison:
    counts = dict(result.counts)
    counts["actual"] = actual_counts.records
    counts["malformed"] = expected_counts.malformed + actual_counts.malformed
    counts["phantom"] = (counts["phantom"] or 0) + actual_counts.malformed
    findings = [readable_finding(finding, layout) for finding in result.findings]
    if not layout.shape.compare:
        counts["changed"] = None
    if actual_counts.unplaced:
        notes = (
            *notes,
            f"--order is null for {actual_counts.unplaced:,} records: no order was judged",
        )
    for name, counted in (("expected", expected_counts), ("actual", actual_counts)):
        if counted.malformed == counted.records > 0:
            advice = f"is its format right? --{name}-format names another, such as text"
            notes = (*notes, f"no record of the {name} side could be read: {advice}")
    if expected_counts.malformed:
        # A phantom may be one of the expected records that could not be read.
        counts["phantom"] = None
    malformed_findings = [
        *_malformed_examples(layout.actual, layout, "actual", actual_counts.malformed),
        *_malformed_examples(layout.expected, layout, "expected", expected_counts.malformed),
    ]
    outcome, reasons = _outcome(counts, expected_counts)
    return DataComparison(
        outcome=outcome,
        counts=counts,
        findings=(*findings, *malformed_findings),
        reasons=reasons,
        notes=notes,
    )


def _malformed_examples(side: DataFrame, layout: Layout, name: str, count: int) -> list[Finding]:
    """Examples of records that could not be read, with their raw text and their place."""
    if not count:
        return []
    place = [c for c in side.columns if c.startswith("_") and c not in (MALFORMED, RAW)]
    rows = side.where(MALFORMED).orderBy(*place).select(*place, RAW).take(MAX_EXAMPLES)
    return [
        Finding(
            what="malformed",
            where=", ".join(f"{column.removeprefix('_')} {row[column]}" for column in place),
            detail={
                "side": name,
                "record": clip(row[RAW]),
            },
        )
        for row in rows
    ]


def _outcome(
    counts: dict[str, int | None], expected_counts: _SideCounts
) -> tuple[Outcome, tuple[str, ...]]:
    if violated := violated_classes(counts):
        return Outcome.VIOLATED, tuple(f"{counts[name]:,} {name}" for name in violated)
    if expected_counts.malformed:
        why = f"{expected_counts.malformed:,} records of the expected side could not be read"
        return Outcome.UNDECIDED, (f"{why}, so it is unknown what else was expected",)
    if missing := unjudged_reasons(counts):
        return Outcome.UNDECIDED, missing
    if not counts["expected"]:
        return Outcome.UNDECIDED, (f"{NOTHING_EXPECTED}, which proves nothing",)
    return Outcome.HELD, (f"{counts['expected']:,} records, each present once",)


def _other_header(text: str) -> Problem:
    """The problem of a CSV header, from the lines of Spark's message: Header, Schema, CSV file."""
    parts = (line.partition(": ") for line in text.splitlines())
    fields = {name.strip(): value.strip() for name, _, value in parts}
    message = (
        "the CSV files of one side must name the same fields in the same order: expected "
        f"{fields.get('Schema', 'those of the first file')}, got {fields.get('Header', 'others')}"
    )
    return Problem(file=fields.get("CSV file", "input"), message=message)


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Translate Spark's errors. Raises BadInput for those of the input, OSError for others."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if problem := _input_problem(str(error), error):
            raise BadInput([problem]) from error
        raise OSError(f"Spark could not read or compare: {message_line(error)}") from error


def _input_problem(text: str, error: Exception) -> Problem | None:
    """The problem of the input that caused an error; None where the input did not cause it."""
    if DATA_EXCEPTION in text:
        message = f"an expression failed on a record ({message_line(error)}); TRY_CAST gives null"
        return Problem(file="expressions", message=message)
    if any(message in text for message in OTHER_HEADER):
        return _other_header(text)
    if truncated := NOT_PARQUET.search(text):
        message = "it is not a complete Parquet file; is it truncated, or still being written?"
        return Problem(file=truncated[1], message=message)
    if unreadable := UNREADABLE_FILE.search(text):
        why = root_cause(text).partition(": ")[2]
        message = f"it cannot be read ({why}); is it complete, and what its name says?"
        return Problem(file=unreadable[1], message=message)
    if unsupported := UNSUPPORTED_TYPE.search(text):
        message = (
            f"Spark cannot read a column of this type: {unsupported[1].strip()}; write another type"
        )
        return Problem(file="input", message=message)
    if duplicate := DUPLICATE_COLUMN.search(text):
        message = (
            f"expected columns of different names, got {duplicate[1]} twice; rename one of them"
        )
        return Problem(file="input", message=message)
    return None
