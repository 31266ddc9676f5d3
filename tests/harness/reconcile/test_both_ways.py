"""Odd inputs through both ways of reading, a run's and the `reconcile` command's: one verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.expected import reconciled
from streamquake.harness.outputs import Output
from streamquake.harness.reconcile import compare, examples
from streamquake.harness.reconcile.files import read_files
from streamquake.harness.reconcile.stored import Stored
from streamquake.reports.outcome import Finding
from tests.harness.checks.test_exactly_once import Bed
from tests.harness.reconcile.data_sets import compared


@dataclass(frozen=True, kw_only=True)
class Odd:
    """A value as it is promised, in Spark SQL; as it stands in the record; whether it is the same.
    Without `seen` the record has no such field."""

    kind: str
    promised: str
    seen: str
    same: bool


def same(kind: str, promised: str, *seen: str) -> list[Odd]:
    return [Odd(kind=kind, promised=promised, seen=each, same=True) for each in seen]


def other(kind: str, promised: str, *seen: str) -> list[Odd]:
    return [Odd(kind=kind, promised=promised, seen=each, same=False) for each in seen]


PAIRS = "array<struct<a:bigint,b:bigint>>"
TWO = "named_struct('a', 1L, 'b', CAST(NULL AS BIGINT))"
VALUES = [
    *same("bigint", "1", "1", "1.0", "1e0", "10e-1", "0.1e1"),
    *other("bigint", "1", '"1"', "1.4", "true", "null", "[1]", "1e1", "01", "+1", "1.", "NaN"),
    *same("bigint", "9007199254740993", "9007199254740993", "9007199254740993e0"),
    *other("bigint", "9007199254740993", "9007199254740992e0", "9007199254740992"),
    *other("bigint", "9223372036854775807", "9223372036854775808", "-9223372036854775809"),
    *same("bigint", "0", "-0", "0.0", "0e7"),
    *same("bigint", "NULL", "null", ""),
    *other("bigint", "NULL", "0", '""'),
    *same("decimal(10,2)", "1.00", "1", "1.00", "1.000", "100e-2"),
    *other("decimal(10,2)", "1.00", "1.004", "1.0000000000000000000000000000000000001", '"1.00"'),
    *other("decimal(10,2)", "1.00", f"1.{'0' * 45}1", "100000000001", "Infinity"),
    *same("double", "0.1D", "0.1", "1e-1", "0.10"),
    *other("double", "0.1D", "0.10000000149011612", "0.1000000000000000000001", '"0.1"'),
    *same("double", "1e23D", "1e23", "1" + "0" * 23, "1.0E+23"),
    *same("double", "1e300D", "1e300", "10e299"),
    *other("double", "1e300D", "1e301", "1.00000000000000000001e300", "1e400"),
    *other("double", "9007199254740992D", "9007199254740993", "9007199254740993e0"),
    *other("double", "CAST('NaN' AS DOUBLE)", "NaN", '"NaN"'),
    *same("float", "CAST(0.1 AS FLOAT)", "0.1"),
    *other("float", "CAST(0.1 AS FLOAT)", "0.10000000149011612", "0.1000000001", '"0.1"'),
    *same("string", "'a'", '"a"', '"\\u0061"'),
    *other("string", "'7'", "7", "[7]", "'7'", '{"7":7}', "true"),
    *other("string", "'?'", '"\\ud800"', '"\\udc00?"'),
    *same("string", "'😀'", '"\\ud83d\\ude00"', '"😀"'),
    *other("string", "'a'", '"a "', '"A"', '"a\t"', '"\\q"'),
    *same("boolean", "true", "true"),
    *other("boolean", "true", '"true"', "1", "false", "True"),
    *same("date", "DATE'2026-01-02'", '"2026-01-02"'),
    *other("date", "DATE'2026-01-02'", '"2026-01-02T00:00:00"', '"2026-1-2"', '"2026-01-02 "', "7"),
    *other("date", "DATE'2026-03-02'", '"2026-02-30"'),
    *same("timestamp", "TIMESTAMP'2026-01-02 03:04:05.123456Z'", '"2026-01-02T03:04:05.123456Z"',
          '"2026-01-02 04:04:05.123456+01:00"'),
    *other("timestamp", "TIMESTAMP'2026-01-02 03:04:05.123456Z'", '"2026-01-02T03:04:05.1234567Z"',
           '"2026-01-02T03:04:05.123Z"', "1767323045", '"2026-01-02"'),
    *same("array<bigint>", "array(1, NULL)", "[1,null]", "[1e0, null]"),
    *other("array<bigint>", "array(1, NULL)", "[1]", "[null,1]", '["1",null]', "[[1],null]", "{}"),
    *other("array<array<bigint>>", "array(array(1, 2))", "[[1],[2]]", "[1,2]"),
    *same("array<array<bigint>>", "array(array(1), array(2))", "[[1.0],[2]]"),
    *same(PAIRS, f"array({TWO})", '[{"b":null,"a":1}]'),
    *other(PAIRS, f"array({TWO})", '[{"a":null,"b":1}]', '[{"a":1}]', '[{"a":1,"c":null}]',
           '[{"a":1,"b":null,"b":null}]', '[{"a":1,"b":null,"b" :2}]'),
    *same("array<double>", "array(1e23D, 0.5D)", "[1e23,0.5]", "[1.0e23,5e-1]"),
    *other("array<double>", "array(9007199254740992D)", "[9007199254740993e0]"),
    *other("array<decimal(10,2)>", "array(1.00)", "[1.004]", '["1.00"]'),
    *same("map<string,bigint>", "map('a', 1L)", '{"a":1}'),
    *other("map<string,bigint>", "map('a', 1L)", '{"b":1}', "{}", "null", "[1]"),
]  # fmt: skip
RECORDS = [
    "} {",
    "}\x00",
    '}{"n":7}',
    "}x",
    "},",
    "}}",
    " // }",
    "/*x*/}",
    ',"x":1,"x":2}',
    ',"x":1,"x" :1}',
    ',"x":1,"\\u0078":1}',
    ',"x":{"y":1,"y":1}}',
    ",'x':1}",
    ",x:1}",
    ',"x":NaN}',
    ',"x":-Infinity}',
    ',"x":01}',
    ',"x":"\\udfff"}',
    ',"x":"\udcff"}',
    ',"x":1,}',
    ',"x":}',
    "",
    ',"x":"\x01"}',
    "}\u2028",
    "}\u00a0",
]
"""What stands behind `{"n":17`, and makes it no record; a lone surrogate is a byte that is no
UTF-8."""
SOUND = ["}", " } \t\r", ',"x":"}"}', ',"x":{"n":8}}', ',"x":1e999}', ',"x":[{"y":1},{"y":1}]}',
         ',"x":"\\\\ud800"}']  # fmt: skip
KINDS = tuple(dict.fromkeys(odd.kind for odd in VALUES))
WRONG = {at for at, odd in enumerate(VALUES) if not odd.same} | {
    len(VALUES) + at for at in range(len(RECORDS))
}
ALL = len(VALUES) + len(RECORDS) + len(SOUND)


def lines() -> bytes:
    """A record for each; between them lines of white space."""
    said = [
        f'{{"n":{at}' + (f',"v{KINDS.index(odd.kind)}":{odd.seen}}}' if odd.seen else "}")
        for at, odd in enumerate(VALUES)
    ]
    said += [f'{{"n":{at}{rest}' for at, rest in enumerate([*RECORDS, *SOUND], len(VALUES))]
    return "\n \t\n".join([*said, " ", ""]).encode(errors="surrogateescape")


def promise(spark: SparkSession, path: Path) -> Path:
    """What is promised, with a column for each type."""
    rows = [
        ", ".join([str(at), *(f"CAST({odd.promised if odd.kind == kind else 'NULL'} AS {kind})"
                              for kind in KINDS)])
        for at, odd in enumerate(VALUES)
    ]  # fmt: skip
    rows += [", ".join([str(at), *["NULL"] * len(KINDS)]) for at in range(len(VALUES), ALL)]
    names = ", ".join(["n", *(f"v{at}" for at in range(len(KINDS)))])
    table = ", ".join(f"({row})" for row in rows)
    frame = spark.sql(f"SELECT * FROM VALUES {table} AS t({names})")
    frame.selectExpr("CAST(n AS BIGINT) n", "* EXCEPT (n)").coalesce(1).write.parquet(str(path))
    return path


def wrong(findings: tuple[Finding, ...]) -> set[int]:
    return {each.detail["n"] for each in findings if each.what in ("lost", "changed")}


@pytest.fixture(autouse=True)
def all_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "MAX_EXAMPLES", 2 * ALL)
    monkeypatch.setattr(compare, "MAX_EXAMPLES", 2 * ALL)


def test_both_ways_find_exactly_what_differs(spark: SparkSession, tmp_path: Path) -> None:
    values = [f"v{at}" for at in range(len(KINDS))]
    told = promise(spark, tmp_path / "promised.parquet")
    came = tmp_path / "came.json"
    came.write_bytes(lines())
    bed, folder = Bed(spark, tmp_path / "data"), tmp_path / "copied"
    folder.mkdir()
    (folder / "part-0").write_bytes(lines())
    read_files(spark, folder, into=Stored(path=bed.data / "nasty"), source="/nasty")
    output = Output(hdfs="/nasty", identity=("n",), compare=tuple(values))

    command = compared(spark, told, came, "n", compare=", ".join(values))
    run = reconciled(bed.case(), "nasty", output, spark.read.parquet(str(told)))

    assert len(WRONG) > 60
    assert wrong(command.findings) == WRONG
    assert wrong(run.findings) == WRONG
