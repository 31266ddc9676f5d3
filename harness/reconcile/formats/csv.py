"""CSV with a header: all fields are text.

Quotes are doubled inside quotes (RFC 4180). An unquoted empty field is null, a quoted one is empty
text. A row with too few or too many fields is malformed; blank lines are no records.
"""

from __future__ import annotations

import csv
import uuid
from collections.abc import Sequence
from typing import ClassVar

from pyspark.sql import Column, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from streamquake.harness.reconcile.reading.files import FILE_PLACE, with_place
from streamquake.harness.reconcile.reading.format import Format, formats
from streamquake.harness.reconcile.reading.partitions import Partitions
from streamquake.harness.reconcile.reading.table import (
    MALFORMED,
    RAW,
    Table,
    reject_reserved,
)
from streamquake.topologies.problems import BadInput, Problem, bad_input

LF, CRLF = "\n", "\r\n"
NO_CHARACTER = "\uffff"
"""A code point that Unicode never assigns to a character."""
CONTROL_LINE = r"\A[\x00-\x20]*[\x00-\x08\x0b-\x1f&&[^\r]][\x00-\x20]*\z"
"""A line of control characters, which Spark reads as a blank line."""
BLANKS = r"\A[\x00-\x20]+"
"""Blanks after a closing quote, which Spark drops before a comma or the end of the line."""


@formats.register
class Csv(Format):
    """Comma-separated values, the first line of each file naming the fields."""

    name: ClassVar[str] = "csv"
    extensions: ClassVar[tuple[str, ...]] = (".csv",)

    @classmethod
    def fits(cls, head: bytes) -> bool:
        return False  # any text may be CSV; only the file's name or the user identifies it

    def read(
        self,
        spark: SparkSession,
        paths: Sequence[str],
        names: frozenset[str],
        partitions: Partitions,
    ) -> Table:
        fields = _header(spark, paths)
        reject_reserved(fields)
        schema = StructType([StructField(name, StringType()) for name in (*fields, RAW)])
        options: dict[str, bool | str] = {
            "header": True,
            "enforceSchema": False,
            "mode": "PERMISSIVE",
            "escape": '"',
            "columnNameOfCorruptRecord": RAW,
            "columnPruning": False,
            # By default Spark reads a NUL before a doubled quote as an escape character.
            "charToEscapeQuoteEscaping": NO_CHARACTER,
            # An unquoted empty field becomes this and then null; by default a quoted one would too.
            "nullValue": f"null {uuid.uuid4()}",
        }
        if _has_multiline_fields(spark, paths):
            # Spark must read whole files. It would guess the row end, and then read each such line
            # break within quotes as LF; one that is given leaves all of them as they are.
            options |= {"multiLine": True, "lineSep": _row_end(spark, paths)}
        # Spark would remove the field of a partition folder; CSV fields are read by position.
        folders = partitions.without_conflicts((*fields, *FILE_PLACE))
        reader = spark.read.options(**options, **folders.options)
        rows = reader.schema(schema).csv(list(paths))
        frame = with_place(rows).withColumn(MALFORMED, F.col(RAW).isNotNull())
        place = (*FILE_PLACE, *folders.names)
        return Table(
            frame=frame,
            columns=fields,
            place=place,
            hidden=frozenset(fields).intersection(FILE_PLACE),
            origin="csv",
            costly=True,
        )


def _header(spark: SparkSession, paths: Sequence[str]) -> tuple[str, ...]:
    """The fields of the first file that is not blank; Spark compares the headers of the other files
    with them."""
    lines = (spark.read.text(path).where("trim(value) != ''").first() for path in paths)
    first = next((line for line in lines if line is not None), None)
    fields = tuple(next(csv.reader([first.value]))) if first else ()
    if not fields or not all(fields) or len(set(fields)) < len(fields):
        names = ", ".join(name or '""' for name in fields)
        actual = f"got {names}" if fields else "every file is empty"
        message = (
            f"expected a first line with a name for each field, no name twice; {actual}; "
            "give the file such a line"
        )
        raise BadInput([Problem(file=paths[0], message=message)])
    return fields


def _has_multiline_fields(spark: SparkSession, paths: Sequence[str]) -> bool:
    """Whether quoted fields span lines. Raises BadInput for text that Spark would change: bytes
    that are not UTF-8, lines of control characters, and blanks after a closing quote."""
    path = F.col("_metadata.file_path")
    blank = F.when(F.col("value").rlike(CONTROL_LINE), path)
    unbalanced = F.expr("(length(value) - length(replace(value, '\"', ''))) % 2 = 1")
    not_utf8 = F.when(~F.expr("is_valid_utf8(value)"), path)
    row = spark.read.text(list(paths)).agg(
        F.count_if(unbalanced).alias("unbalanced"),
        F.min(not_utf8).alias("not_utf8"),
        F.min(blank).alias("blank"),
        F.min(F.when(_has_trimmed_blanks(within=False), path)).alias("trimmed"),
        F.min(F.when(_has_trimmed_blanks(within=True), path)).alias("trimmed_within"),
    )
    files = row.first()
    assert files is not None
    if files.not_utf8 is not None:
        message = (
            "expected text in UTF-8, got something else; convert it, such as with iconv -t UTF-8"
        )
        raise bad_input(files.not_utf8, message)
    if files.blank is not None:
        message = "a line of control characters alone would be read as a blank one; quote them"
        raise bad_input(files.blank, message)
    # Where quotes span lines, any line may begin within quotes.
    if trimmed := files.trimmed or (files.unbalanced and files.trimmed_within):
        message = "blanks between a closing quote and the next comma would be dropped; remove them"
        raise bad_input(trimmed, message)
    return bool(files.unbalanced)


def _row_end(spark: SparkSession, paths: Sequence[str]) -> str:
    """The row end of some files in which quoted fields span lines: that of their first line.

    Raises BadInput where any row has another one, which Spark would read as part of a value, and
    for a line of blanks, which it would read as a record only here.
    """
    first = spark.read.option("lineSep", LF).text(list(paths[:1])).first()
    end = CRLF if first is not None and first.value.endswith("\r") else LF
    lines = with_place(spark.read.option("lineSep", end).text(list(paths)))
    in_file = Window.partitionBy("_file").orderBy("_position")
    before = in_file.rowsBetween(Window.unboundedPreceding, -1)
    quotes = F.length("value") - F.length(F.replace("value", F.lit('"')))
    # Only these few bytes of each line are sorted, not its text.
    ends = lines.select(
        *FILE_PLACE,
        quotes.alias("quotes"),
        _has_line_break(outside_from=0).alias("breaks"),
        _has_line_break(outside_from=1).alias("breaks_within"),
        F.col("value").rlike(r"[\r\n]").alias("breaks_anywhere"),
        _has_quote_in_field(outside_from=0).alias("stray"),
        _has_quote_in_field(outside_from=1).alias("stray_within"),
        F.col("value").rlike(BLANKS + r"\z").alias("blank"),
    ).withColumn("within", F.coalesce(F.sum("quotes").over(before), F.lit(0)) % 2 == 1)
    stray = F.when(F.col("within"), F.col("stray_within")).otherwise(F.col("stray"))
    # After a quote that opens no field, the number of quotes does not show what is within some.
    ends = ends.withColumn("unclear", F.max(stray).over(in_file))
    breaks = (
        F.when(F.col("unclear"), F.col("breaks_anywhere"))
        .when(F.col("within"), F.col("breaks_within"))
        .otherwise(F.col("breaks"))
    )
    blank = F.col("blank") & (F.col("unclear") | ~F.col("within"))
    files = ends.agg(
        F.min(F.when(breaks, F.col("_file"))).alias("other"),
        F.min(F.when(blank, F.col("_file"))).alias("blank"),
    ).first()
    assert files is not None
    if files.other is not None:
        message = (
            "quoted fields span lines, so all rows of a side must end alike, in LF or in CRLF as "
            f"the first line does ({'CRLF' if end == CRLF else 'LF'}), got others; convert them"
        )
        raise bad_input(files.other, message)
    if files.blank is not None:
        message = "quoted fields span lines, so a line of blanks would be a record; remove it"
        raise bad_input(files.blank, message)
    return end


def _has_line_break(*, outside_from: int) -> Column:
    """Whether a line has a line break outside of quotes. Its parts between quotes are alternately
    within and outside; `outside_from` is the number of the first part outside."""
    parts = F.split("value", '"')
    outside = F.filter(parts, lambda part, at: (at % 2 == outside_from) & part.rlike(r"[\r\n]"))
    return F.when(F.col("value").rlike(r"[\r\n]"), F.size(outside) > 0).otherwise(F.lit(False))


def _has_quote_in_field(*, outside_from: int) -> Column:
    """Whether a line has a quote within a field that no quote opened, as in `5" pipe`."""
    parts = F.split("value", '"')

    def is_before_it(part: Column, at: Column) -> Column:
        opens = part.rlike(r"(?:\A|,)\z") | (at == F.size(parts) - 1)
        return (at % 2 == outside_from) & ~opens

    return F.size(F.filter(parts, is_before_it)) > 0


def _has_trimmed_blanks(*, within: bool) -> Column:
    """Whether a line has blanks between a closing quote and the next comma or its end. `within`:
    the line begins within quotes."""
    parts = F.split("value", '"')  # every other part follows a closing quote
    first = 1 if within else 2

    def is_dropped(part: Column, at: Column) -> Column:
        ends = part.rlike(BLANKS + r"\z") & (at == F.size(parts) - 1)
        return (at >= first) & (at % 2 == first % 2) & (part.rlike(f"{BLANKS},") | ends)

    # Most lines have no such blanks and need no split.
    suspect = F.col("value").rlike(r'"[\x00-\x20]+(?:,|\z)')
    return F.when(suspect, F.size(F.filter(parts, is_dropped)) > 0).otherwise(F.lit(False))
