"""Parses one record of JSON, for the outputs of a run and for the `reconcile` command.

Most lines have the form of the first ones: the same names in the same order, and values that
Spark's own reader reads exactly. One pattern proves this for a line. `json_exact.py` reads every
other line, which costs more and is as strict as RFC 8259.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from streamquake.harness.reconcile.json.json_exact import (
    record_rewriter,
    rewrite_floating,
    rewrite_values,
    shortest_numerals,
    shortest_numerals_of_32_bits,
)

SAMPLE_SIZE = 1000
"""Number of first lines that show the form of all lines."""
VARIANTS = 4
"""Sequences of names in the pattern of a line; `json_exact.py` reads lines with others."""
STRICT: Mapping[str, str] = {
    "mode": "PERMISSIVE",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
PLAIN_NAME = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]*')
"""Names without escapes in a line."""
BLANK = r"\A[ \t\r\n]*+\z"
MAX_NAMES = 100
"""Java's matcher recurses with the length of a pattern, so a longer one overflows the stack."""
_SPACE = r"[ \t\r\n]*+"
_PART = r'[^"\\\x00-\x1f]*+'
_ESCAPE = r'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4})'
_TEXT = f'"{_PART}(?:{_ESCAPE}{_PART}){{0,50}}+"'
_WHOLE = "-?(?:0|[1-9][0-9]{0,18}+)"
_NUMBER = r"-?(?:0|[1-9][0-9]{0,17}+)(?:\.[0-9]{1,18}+)?+"
_ANY = f"(?:{_TEXT}|{_NUMBER}|true|false|null)"
_OF_KIND = {"string": _TEXT, "bigint": _WHOLE, "boolean": "(?:true|false)"}


@dataclass(frozen=True, kw_only=True)
class LineForm:
    """The form of the first lines of a data set."""

    first: tuple[str | None, ...]
    variants: tuple[tuple[str, ...], ...]
    """Sequences of names, the most frequent first."""

    def plain(self, value: Column, kinds: Mapping[str, str] | None = None) -> Column:
        """Whether a line is certainly one flat record that Spark reads exactly. Each field of
        `kinds` (string, bigint, boolean) must be present and of its kind."""
        kinds = kinds or {}
        variants = [names for names in self.variants if kinds.keys() <= set(names)]
        if not variants:
            return F.lit(False)
        record = "|".join(_object(names, kinds) for names in variants)
        pattern = rf"\A{_SPACE}(?:{record}){_SPACE}\z"
        return F.coalesce(value.rlike(pattern) & F.is_valid_utf8(value), F.lit(False))


def sample_lines(lines: DataFrame) -> LineForm:
    """The form of some lines, whose text is in `value`."""
    first = tuple(row.value for row in lines.select("value").take(SAMPLE_SIZE))
    name_counts = Counter(names for names in map(_names, first) if names)
    return LineForm(
        first=first, variants=tuple(names for names, _ in name_counts.most_common(VARIANTS))
    )


def record_of(value: Column, sample: LineForm, names: Iterable[str]) -> Column:
    """A line as one record that Spark reads exactly, with at least the fields `names`; null for a
    malformed line."""
    plain = sample.plain(value)
    rewritten = rewritten_record(F.when(~plain, value.cast("binary")), names)
    return F.when(plain, value).otherwise(rewritten)


def rewritten_record(line: Column, names: Iterable[str]) -> Column:
    """A line, given in bytes, as one record that Spark reads exactly; null for a malformed line."""
    rewrite: Any = evaluated_once(arrow_udf(record_rewriter(frozenset(names)), "string"))  # type: ignore[call-overload]
    written: Column = rewrite(line)
    return written


def exact_json(text: Column) -> Column:
    """JSON that Spark wrote, with its numbers in the form of `record_of`."""
    rewrite: Any = arrow_udf(rewrite_values, "string")  # type: ignore[call-overload]
    floating = text.rlike("[0-9][eE.]")
    return F.when(floating, rewrite(F.when(floating, text))).otherwise(text)


def exact_floating(text: Column) -> Column:
    """A text of `nested.py`, with its floating-point values in the form of other numbers."""
    rewrite: Any = arrow_udf(rewrite_floating, "string")  # type: ignore[call-overload]
    marked = text.rlike('"[ef]:')
    return F.when(marked, rewrite(F.when(marked, text))).otherwise(text)


def numeral(value: Column, *, bits: int = 64) -> Column:
    """The shortest numeral that reads as the same floating-point value, of 64 or 32 bits."""
    write = arrow_udf(shortest_numerals_of_32_bits if bits == 32 else shortest_numerals, "string")  # type: ignore[call-overload]
    written: Column = write(value.cast("double"))
    return written


def not_blank(value: Column) -> Column:
    """Whether a line has anything but white space."""
    return F.isnull(value) | ~value.rlike(BLANK)


def evaluated_once(function: Any) -> Any:
    """Mark a function so that the optimiser does not inline it. Inlined into each use of a field,
    one call becomes dozens, and its plan takes seconds to compile and megabytes to store."""
    return function.asNondeterministic()


def _object(names: Sequence[str], kinds: Mapping[str, str]) -> str:
    values = (_OF_KIND[kinds[name]] if name in kinds else _ANY for name in names)
    fields = (
        f'{_SPACE}"{re.escape(name)}"{_SPACE}:{_SPACE}{value}'
        for name, value in zip(names, values, strict=True)
    )
    return rf"\{{{f'{_SPACE},'.join(fields)}{_SPACE}\}}"


def _names(line: str | None) -> tuple[str, ...] | None:
    """The names of a record in their order; None where the pattern cannot match them."""
    try:
        pairs: Collection[tuple[str, object]] = json.loads(line or "", object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, tuple) or not (line or "").lstrip().startswith("{"):
        return None
    names = tuple(name for name, _ in pairs)
    matchable = len(set(names)) == len(names) and all(map(PLAIN_NAME.fullmatch, names))
    return names if matchable and len(names) <= MAX_NAMES else None
