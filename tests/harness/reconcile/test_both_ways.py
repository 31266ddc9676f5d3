"""Odd inputs through both ways of reading, a run's and the `reconcile` command's: one verdict."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamquake.harness.expected import reconciled
from streamquake.harness.outputs import Output
from streamquake.harness.reconcile import compare, examples
from streamquake.harness.reconcile.files import read_files
from streamquake.harness.reconcile.json_quick import ENOUGH
from streamquake.harness.reconcile.stored import Stored
from streamquake.reports.outcome import Finding
from tests.harness.checks.test_exactly_once import Bed
from tests.harness.reconcile.data_sets import compared
from tests.harness.reconcile.odd_values import RECORDS, SOUND, VALUES

KINDS = tuple(dict.fromkeys(odd.kind for odd in VALUES))
WRONG = {at for at, odd in enumerate(VALUES) if not odd.same} | {
    len(VALUES) + at for at in range(len(RECORDS))
}
NOT_IN_JSON = [
    at for at, odd in enumerate(VALUES)
    if any(each in odd.promised for each in ("NaN", "Infinity", "'+10000", "'+294247"))
]  # fmt: skip
"""Values that a run, which keeps all its outputs as JSON, cannot be told of."""
ALL = len(VALUES) + len(RECORDS) + len(SOUND)


def lines(first: str | None) -> bytes:
    """A record for each, behind as many plain records as a guess at the types takes, with a `first`
    value each; between them lines of white space."""
    said = [
        f'{{"n":{at}' + (f',"v{KINDS.index(odd.kind)}":{odd.seen}}}' if odd.seen else "}")
        for at, odd in enumerate(VALUES)
    ]
    said += [f'{{"n":{at}{rest}' for at, rest in enumerate([*RECORDS, *SOUND], len(VALUES))]
    plain = [f'{{"n":{-at},"v0":{first}}}' for at in range(1, ENOUGH + 100)] if first else []
    return "\n \t\n".join([*plain, *said, " ", ""]).encode(errors="surrogateescape")


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


@pytest.mark.parametrize("first", [None, "1"])
def test_both_ways_find_exactly_what_differs(
    spark: SparkSession, tmp_path: Path, first: str | None
) -> None:
    told = promise(spark, tmp_path / "promised.parquet")

    command, run = both_ways(spark, tmp_path, told, lines(first), "json")

    assert len(WRONG) > 300
    assert command == WRONG
    assert run == WRONG


def test_both_ways_hold_what_came_in_parquet_as_it_was_promised(
    spark: SparkSession, tmp_path: Path
) -> None:
    told = promise(spark, tmp_path / "promised.parquet")
    sayable = spark.read.parquet(str(told)).where(~F.col("n").isin(NOT_IN_JSON))
    whole = sayable.withColumn("bytes", F.repeat(F.lit("a"), F.col("n").cast("int")).cast("binary"))
    whole.coalesce(1).write.parquet(str(tmp_path / "whole.parquet"))
    (part,) = (tmp_path / "whole.parquet").glob("part-*.parquet")

    command, run = both_ways(spark, tmp_path, part, part.read_bytes(), "parquet", "bytes")

    assert command == set()
    assert run == set()


def both_ways(
    spark: SparkSession, folder: Path, told: Path, came: bytes, kind: str, *more: str
) -> tuple[set[int], set[int]]:
    """What differs of the values that came in a file, as the command says it, and as a run does."""
    values = [*(f"v{at}" for at in range(len(KINDS))), *more]
    copied = folder / "copied"
    copied.mkdir()
    (copied / f"part-0.{kind}").write_bytes(came)
    bed = Bed(spark, folder / "data")
    read_files(spark, copied, into=Stored(path=bed.data / "nasty"), source="/nasty")
    output = Output(hdfs="/nasty", identity=("n",), compare=tuple(values))
    command = compared(spark, told, copied / f"part-0.{kind}", "n", compare=", ".join(values))
    run = reconciled(bed.case(), "nasty", output, spark.read.parquet(str(told)))
    return wrong(command.findings), wrong(run.findings)
